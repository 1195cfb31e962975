"""The statements of a kernel as lowering walks them: steps, branches, loops, and what each does to block pointers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.expressions import called, target_names
from tt2gl.lowering.pointer_calls import (
    Access,
    Advance,
    Make,
    Refused,
    is_none,
    is_plain,
    pointer_argument,
    read_access,
    read_advance,
    read_make,
)
from tt2gl.visitors import Reader, VariableReader

IsMake = Callable[[cst.Call], bool]


@dataclass(frozen=True, eq=False)
class Define:
    """`name = tl.make_block_ptr(...)`; `condition` is the source after it in `... if CONDITION else None`."""

    name: str
    make: Make
    value: cst.BaseExpression
    condition: str = ""


@dataclass(frozen=True, eq=False)
class Move:
    """`name = tl.advance(...)`."""

    name: str
    advance: Advance


@dataclass(frozen=True, eq=False)
class Nothing:
    """`name = None`, or `name = 0`, for a variable that holds a block pointer under some flag."""

    name: str


@dataclass(frozen=True, eq=False)
class Replace:
    """A variable that elsewhere holds a block pointer is assigned something else."""

    name: str


@dataclass(frozen=True, eq=False)
class Use:
    """A use of a variable that elsewhere holds a block pointer, which may be no block pointer here."""

    name: str
    node: cst.CSTNode


@dataclass(frozen=True, eq=False)
class Pass:
    """A variable that elsewhere holds a block pointer is given to a jit function; or None is, where `name` is empty."""

    name: str
    node: cst.Call
    argument: cst.Arg
    function: JitFunction
    parameter: str


@dataclass(frozen=True, eq=False)
class Element:
    """`name.type.element_ty.element_ty`: the element type of what a block pointer points to.

    Or `name.type.element_ty`, the type of its blocks, in a cast, which takes the element type of that.
    """

    name: str
    node: cst.Attribute


Event = Define | Nothing | Move | Access | Replace | Use | Element | Pass


@dataclass(frozen=True, eq=False)
class Step:
    """A statement without a body. `inline`: it shares its line with others, or with the header before it."""

    node: cst.BaseSmallStatement
    inline: bool
    events: tuple[Event, ...]
    assigned: frozenset[str]


@dataclass(frozen=True, eq=False)
class Branch:
    """An `if`: the bodies that may run, one of which does; that of a missing `else` is empty."""

    bodies: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, eq=False)
class Loop:
    """A `for` or `while`, and what its header assigns."""

    assigned: frozenset[str]
    body: tuple[Node, ...]


Node = Step | Branch | Loop


def outline(
    function: cst.FunctionDef,
    module: cst.Module,
    is_make: IsMake,
    helpers: Mapping[str, JitFunction],
    given: Iterable[str],
) -> tuple[Node, ...]:
    """The statements of a function. `helpers`: jit functions of the file; `given`: parameters that are block pointers.

    Raises Refused where a statement is not understood.
    """
    names = _Pointers(is_make)
    function.body.visit(names)
    reader = _Reader(module, is_make, frozenset(names.names | set(given)), helpers)
    return tuple(reader.body(function.body))


def steps(nodes: Sequence[Node]) -> Iterator[Step]:
    """Every step, in order of the text."""
    for node in nodes:
        if isinstance(node, Step):
            yield node
        elif isinstance(node, Branch):
            for body in node.bodies:
                yield from steps(body)
        else:
            yield from steps(node.body)


def assigned(nodes: Sequence[Node]) -> frozenset[str]:
    """All names that statements assign."""
    names: frozenset[str] = frozenset()
    for node in nodes:
        if isinstance(node, Step):
            names |= node.assigned
        elif isinstance(node, Branch):
            names = names.union(*(assigned(body) for body in node.bodies))
        else:
            names |= node.assigned | assigned(node.body)
    return names


class _Pointers(Reader):
    """Names that are assigned block pointers."""

    def __init__(self, is_make: IsMake) -> None:
        self.is_make = is_make
        self.names: set[str] = set()

    def visit_Assign(self, node: cst.Assign) -> None:
        value, _ = _unconditional(node.value)
        if isinstance(value, cst.Call) and (self.is_make(value) or called(value) == "advance"):
            self.names |= target_names(target.target for target in node.targets)


def _unconditional(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """The value of `value if condition else None`, or the other way round, with the condition; others as they are."""
    match node:
        case cst.IfExp(orelse=cst.Name("None")):
            return node.body, node.test
        case cst.IfExp(body=cst.Name("None"), test=cst.UnaryOperation(operator=cst.Not(), expression=test)):
            return node.orelse, test
        case cst.IfExp(body=cst.Name("None"), test=test):
            bare = isinstance(test, (cst.Name, cst.Attribute, cst.Call)) or test.lpar
            inner = test if bare else test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            return node.orelse, cst.UnaryOperation(cst.Not(), inner)
    return node, None


@dataclass
class _Reader:
    module: cst.Module
    is_make: IsMake
    pointers: frozenset[str]
    helpers: Mapping[str, JitFunction]

    def body(self, suite: cst.BaseSuite | cst.BaseStatement) -> Iterator[Node]:
        if isinstance(suite, cst.SimpleStatementSuite):
            for small in suite.body:
                yield self.step(small, inline=True)
        elif isinstance(suite, cst.IndentedBlock):
            for statement in suite.body:
                yield from self.statement(statement)

    def statement(self, node: cst.BaseStatement) -> Iterator[Node]:
        if isinstance(node, cst.SimpleStatementLine):
            for index, small in enumerate(node.body):
                yield self.step(small, inline=len(node.body) > 1 and index > 0)
        elif isinstance(node, cst.If):
            yield from self.branch(node)
        elif isinstance(node, (cst.For, cst.While)):
            header = node.iter if isinstance(node, cst.For) else node.test
            uses = self.plain(header)
            targets = target_names([node.target]) if isinstance(node, cst.For) else frozenset()
            yield from uses
            yield Loop(targets, (*self.body(node.body), *(uses if isinstance(node, cst.While) else ())))
            if node.orelse is not None:
                yield from self.body(node.orelse.body)
        elif isinstance(node, cst.With):
            for item in node.items:
                yield from self.plain(item.item)
            yield from self.body(node.body)
        else:
            raise Refused(node, "the kernel has a statement that is not understood")

    def branch(self, node: cst.If) -> Iterator[Node]:
        yield from self.plain(node.test)
        body = tuple(self.body(node.body))
        if isinstance(node.orelse, cst.If):
            yield Branch((body, tuple(self.branch(node.orelse))))
        else:
            yield Branch((body, tuple(self.body(node.orelse.body)) if node.orelse is not None else ()))

    def step(self, node: cst.BaseSmallStatement, *, inline: bool) -> Step:
        if isinstance(node, (cst.Break, cst.Continue)):
            raise Refused(node, "its loop is left with `break` or `continue`")
        names: frozenset[str] = frozenset()
        if isinstance(node, cst.Assign):
            names = target_names(target.target for target in node.targets)
            events = self.definition(node)
            if events:
                return Step(node, inline, events, names)
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign)):
            names = target_names([node.target])
        found = _Events(self)
        for child in node.children:
            # Targets are assigned and not read, but for `+=` and the like.
            if not isinstance(child, cst.AssignTarget):
                child.visit(found)
        replaced = tuple(Replace(name) for name in sorted(names & self.pointers))
        return Step(node, inline, (*found.events, *replaced), names)

    def definition(self, node: cst.Assign) -> tuple[Event, ...]:
        value, condition = _unconditional(node.value)
        target = node.targets[0].target
        absent = is_none(value) or isinstance(value, cst.Integer)
        if absent and isinstance(target, cst.Name) and target.value in self.pointers and len(node.targets) == 1:
            return (Nothing(target.value),)
        if not isinstance(value, cst.Call) or len(node.targets) > 1 or not isinstance(target, cst.Name):
            return ()
        if self.is_make(value):
            uses = self.uses(arg.value for arg in value.args)
            words = f" if {self.module.code_for_node(condition)} else None" if condition is not None else ""
            return (*uses, Define(target.value, read_make(value, self.module), node.value, words))
        if called(value) == "advance" and condition is None:
            move = read_advance(value, self.module)
            return (*self.uses(offset.node for offset in move.offsets), Move(target.value, move))
        return ()

    def plain(self, node: cst.BaseExpression) -> tuple[Step, ...]:
        """The uses in an expression that cannot be edited, such as a header's."""
        uses = self.uses([node])
        return (Step(cst.Expr(node), inline=True, events=uses, assigned=frozenset()),) if uses else ()

    def uses(self, nodes: Iterable[cst.BaseExpression]) -> tuple[Use, ...]:
        """The uses in expressions that are moved as they are. Raises Refused where they load through block pointers."""
        found = _Events(self)
        for node in nodes:
            node.visit(found)
        uses = tuple(Use(event.name, event.node) for event in found.events if isinstance(event, (Use, Element)))
        for event in found.events:
            if not isinstance(event, (Use, Element)):
                raise Refused(
                    event.node, "it loads through a block pointer in a header or another pointer's definition"
                )
        return uses


@dataclass
class _Events(VariableReader):
    """Loads and stores through block pointers, from left to right, and other uses of their variables."""

    reader: _Reader
    events: list[Access | Use | Element | Pass] = field(default_factory=list)

    def visit_Call(self, node: cst.Call) -> bool:
        name = called(node)
        match node:
            case cst.Call(
                func=cst.Attribute(value=cast, attr=cst.Name("to")),
                args=[cst.Arg(value=cst.Attribute(cst.Attribute(cst.Name(to), cst.Name("type")), kind) as element)],
            ) if to in self.reader.pointers and kind.value == "element_ty":
                cast.visit(self)
                self.events.append(Element(to, element))
                return False
        if self.reader.is_make(node):
            raise Refused(node, "a block pointer is made where it is neither assigned nor used at once")
        if name in ("load", "store"):
            pointer = pointer_argument(node, name)
            made = isinstance(pointer, cst.Call) and self.reader.is_make(pointer)
            if made or isinstance(pointer, cst.Name) and pointer.value in self.reader.pointers:
                self.access(node, pointer)
                return False
        function = self.reader.helpers.get(node.func.value) if isinstance(node.func, cst.Name) else None
        if function is not None:
            self.passes(node, function)
        return function is None

    def passes(self, node: cst.Call, function: JitFunction) -> None:
        """Arguments of a call of a jit function; one that is unpacked may move those behind it."""
        plain = [param.name.value for param in (*function.node.params.posonly_params, *function.node.params.params)]
        starred = False
        for index, arg in enumerate(node.args):
            value = arg.value
            starred = starred or bool(arg.star)
            by_place = plain[index] if index < len(plain) and not starred else ""
            parameter = arg.keyword.value if arg.keyword is not None else by_place
            if isinstance(value, cst.Name) and value.value in self.reader.pointers and parameter in plain:
                self.events.append(Pass(value.value, node, arg, function, parameter))
            elif is_none(value) and parameter in plain:
                self.events.append(Pass("", node, arg, function, parameter))
            else:
                value.visit(self)

    def access(self, node: cst.Call, pointer: cst.BaseExpression | None) -> None:
        what: cst.Name | Make
        if isinstance(pointer, cst.Name):
            what = pointer
        else:
            assert isinstance(pointer, cst.Call)
            self.events += self.reader.uses(arg.value for arg in pointer.args)
            what = read_make(pointer, self.reader.module)
        if is_plain(node):
            assert isinstance(what, cst.Name)
            self.events.append(Use(what.value, node))
        else:
            self.events.append(read_access(node, what))
        for arg in node.args:
            if arg.value is not pointer:
                arg.value.visit(self)

    def visit_Comparison(self, node: cst.Comparison) -> bool:
        # A pointer is None where the block pointer was.
        return not (
            len(node.comparisons) == 1
            and isinstance(node.comparisons[0].operator, (cst.Is, cst.IsNot))
            and is_none(node.comparisons[0].comparator)
            and isinstance(node.left, cst.Name)
        )

    def visit_Attribute(self, node: cst.Attribute) -> bool | None:
        # The element type of a tensor of pointers is spelled as that of a block pointer.
        match node:
            case cst.Attribute(cst.Attribute(cst.Name(), cst.Name("dtype")), cst.Name("element_ty")):
                return False
            case cst.Attribute(
                cst.Attribute(cst.Attribute(cst.Name(name), cst.Name("type")), cst.Name("element_ty")),
                cst.Name("element_ty"),
            ) if name in self.reader.pointers:
                self.events.append(Element(name, node))
                return False
        return super().visit_Attribute(node)

    def visit_Name(self, node: cst.Name) -> None:
        if node.value in self.reader.pointers:
            self.events.append(Use(node.value, node))
