"""Between which integers an index expression lies: intervals over the author's names, masks and program ids.

The value of a pointer is its distance, in elements, from the argument that it starts from, so that an address and its
offset are read by one rule. Integers are those of mathematics within the range of their type: the author's index
arithmetic is taken not to overflow, as Triton takes it. What is not understood may be anything of its type.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

from tt2gl.analysis.facts import ConstFact, Fact, FunctionFact, FunctionFacts, TensorFact
from tt2gl.analysis.intervals import ANY, COUNT, NOTHING, TYPES, Interval, combined, union_of
from tt2gl.analysis.statics import position_of
from tt2gl.plan import Position
from tt2gl.trees import nodes_in

_SAME = {
    "expand_dims", "broadcast_to", "broadcast", "reshape", "view", "trans", "permute", "ravel", "cast", "to",
    "multiple_of", "max_contiguous", "max_constancy", "max", "min", "flip", "gather",
}  # fmt: skip


_MOST_WORK = 5000
"""How many names are looked into for one expression: variables of a loop that are made of each other take turns within
turns, and what is not known by then may be anything."""

Maker: TypeAlias = "Callable[[Reader], Interval]"
"""Reads what a definition gives its name."""


@dataclass
class Body:
    """A function under the launches that reach it: its tree, what was said of it, and who calls it.

    `parameters`: what is known of the kernel's own; `assumed`: what the launches say of them besides. `callers`: calls
    of a helper, with the body that each stands in; `callees`: the helpers that a call reaches. `kernel`: the name of
    one that it is, or is reached by. `pairs`: parameters that it is given tensors of pointers for, as offsets from a
    scalar pointer each, by the name of that; `carried`: those and variables that hold offsets, likewise; `given`: what
    those scalar pointers are where it is called; `moved`: parameters that are scalar pointers which its callers have
    moved, by the name of what says by how much; `authors`: the author's names for those that the tree tells apart.
    """

    tree: ast.FunctionDef
    facts: list[FunctionFacts]
    kernel: str = ""
    parameters: dict[str, Interval] = field(default_factory=dict)
    assumed: dict[str, Interval] = field(default_factory=dict)
    callers: list[tuple[Body, ast.Call]] = field(default_factory=list)
    callees: dict[Position, list[Body]] = field(default_factory=dict)
    is_kernel: bool = True
    pairs: dict[str, str] = field(default_factory=dict)
    carried: dict[str, str] = field(default_factory=dict)
    given: dict[str, list[tuple[Body, ast.expr]]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    authors: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.definitions = definitions_of(self.tree)
        self.arguments = [each.arg for each in (*self.tree.args.posonlyargs, *self.tree.args.args)]
        self.arguments += [each.arg for each in self.tree.args.kwonlyargs]

    def author(self, name: str) -> str:
        """What the author calls a name of the tree."""
        return self.authors.get(name, name)

    def in_words(self, text: str) -> str:
        """A text by the author's names."""
        for own, authors in self.authors.items():
            text = re.sub(rf"\b{own}\b", authors, text)
        return text

    def said(self, node: ast.expr) -> list[Fact]:
        """What was said of an expression under each launch that reaches it."""
        at = position_of(node)
        return [facts.expressions[at] for facts in self.facts if at in facts.expressions]

    def callee(self, node: ast.expr) -> str:
        """The function of Triton's that an expression names, without its module; empty for any other."""
        names = {fact.name for fact in self.said(node) if isinstance(fact, FunctionFact) and fact.path is None}
        name = names.pop() if len(names) == 1 else ""
        return name.rpartition(".")[2] if name.startswith("triton.language.") else ""

    def called(self, node: ast.Call) -> list[Body]:
        """The jit functions that a call reaches."""
        return list({id(body): body for body in self.callees.get(position_of(node), ())}.values())

    def argument_of(self, name: str, call: ast.Call) -> ast.expr | None:
        """What a call gives to one of this function's parameters."""
        for keyword in call.keywords:
            if keyword.arg == name:
                return keyword.value
        place = self.arguments.index(name)
        given = call.args[place] if place < len(call.args) else None
        return None if isinstance(given, ast.Starred) else given


@dataclass(frozen=True)
class Definition:
    """How a name gets a value: `make` says what of, by the rules of a reader."""

    statement: ast.AST
    make: Maker


@dataclass
class Work:
    """How often readers have asked what statements make of names."""

    done: int = 0


@dataclass
class Reader:
    """Reads intervals in a body. `constraints`: what a mask says of expressions, by their text.

    `assume`: parameters, each of a kernel, that are taken to be as under the launches. `read`: names whose interval was
    asked for when it was known or supposed. `current`: what a name is made of, where the mask says the same of that.
    """

    body: Body
    assume: Collection[tuple[str, str]] = ()
    constraints: Mapping[str, Interval] = field(default_factory=dict)
    known: dict[tuple[int, str], Interval] = field(default_factory=dict)
    read: set[tuple[int, str]] = field(default_factory=set)
    current: Callable[[str], ast.expr | None] | None = None
    work: Work = field(default_factory=Work)

    def value(self, node: ast.expr) -> Interval:
        """The interval of an expression."""
        facts = self.body.said(node)
        constants = [fact.value for fact in facts if isinstance(fact, ConstFact)]
        if facts and len(constants) == len(facts) and all(isinstance(value, int) for value in constants):
            return Interval(min(constants), max(constants))
        made = self._made(node)
        types = [TYPES.get(fact.dtype, ANY) for fact in facts if isinstance(fact, TensorFact) and not fact.is_pointer]
        for kind in types[:1]:
            made = made.within(union_of([kind, *types[1:]]))
        limit = self.constraints.get(plain_text(node)) if self.constraints else None
        return made if limit is None else made.within(limit)

    def _made(self, node: ast.expr) -> Interval:
        match node:
            case ast.Constant(value=int() as number):
                return Interval(int(number), int(number))
            case ast.Constant(value=None):
                return NOTHING
            case ast.Name(id=name):
                made = self.named(name)
                value = self.current(name) if self.current is not None and self.constraints else None
                return made if value is None else made.within(self.value(value))
            case ast.BinOp(left=left, op=op, right=right):
                made = combined(op, self.value(left), self.value(right))
                return made.within(Interval(low=0)) if self._counts_down(node) or self._is_rest(node) else made
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return self.value(operand).negated()
            case ast.IfExp(body=first, orelse=second):
                return self.value(first).union(self.value(second))
            case ast.Compare():
                return Interval(0, 1)
            case ast.Subscript(value=inner) if only_adds_dims(node):
                return self.value(inner)
            case ast.Call():
                return self._call(node)
        return ANY

    def _call(self, node: ast.Call) -> Interval:
        if bodies := self.body.called(node):
            return union_of([self._returned(body, None) for body in bodies])
        name = self.body.callee(node.func)
        places = list(node.args)
        if isinstance(node.func, ast.Attribute) and any(isinstance(each, TensorFact) for each in self._receiver(node)):
            name, places = node.func.attr, [node.func.value, *places]
        elif isinstance(node.func, ast.Name) and not name and node.func.id in ("min", "max"):
            name = f"{node.func.id}imum"
        given = [self.value(place) for place in places if not isinstance(place, ast.Starred)]
        match name:
            case "program_id":
                return COUNT
            case "num_programs":
                return Interval(1, COUNT.high)
            case "arange" if len(given) == 2:
                return Interval(given[0].low, given[1].high - 1)
            case "zeros" | "zeros_like":
                return Interval(0, 0)
            case "full" if len(given) > 1:
                return given[1]
            case "where" if len(given) == 3:
                return given[1].union(given[2])
            case "minimum" if len(given) == 2:
                return Interval(min(given[0].low, given[1].low), min(given[0].high, given[1].high))
            case "maximum" if len(given) == 2:
                return Interval(max(given[0].low, given[1].low), max(given[0].high, given[1].high))
            case "cdiv" if len(given) == 2 and given[0].low >= 0 and given[1].low >= 0:
                return Interval(0, given[0].high)
            case _ if name in _SAME and given:
                return given[0]
        return ANY

    def _counts_down(self, node: ast.BinOp) -> bool:
        """Whether it is `n - 1 - i`, of the variable of a loop up to `n`."""
        if not isinstance(node.op, ast.Sub) or not isinstance(node.right, ast.Name):
            return False
        made = [each.statement for each in self.body.definitions.get(node.right.id, ())]
        if len(made) != 1 or not isinstance(made[0], ast.For) or not isinstance(made[0].iter, ast.Call):
            return False
        given = made[0].iter.args
        stop = given[0] if len(given) == 1 else given[1] if len(given) == 2 else None
        if stop is None or ast.unparse(node.left) != f"{ast.unparse(stop)} - 1":
            return False
        names = [part.id for part in nodes_in(stop) if isinstance(part, ast.Name)]
        return all(len(self.body.definitions.get(name, ())) + (name in self.body.arguments) <= 1 for name in names)

    def _is_rest(self, node: ast.BinOp) -> bool:
        """Whether it is `n - steps * block` of `steps = n // block`, where `n` is not negative."""
        match node:
            case ast.BinOp(left=whole, op=ast.Sub(), right=ast.BinOp(left=steps, op=ast.Mult(), right=block)):
                pass
            case _:
                return False
        names = [part.id for part in nodes_in(node) if isinstance(part, ast.Name)]
        if not all(len(self.body.definitions.get(name, ())) + (name in self.body.arguments) <= 1 for name in names):
            return False
        if isinstance(steps, ast.Name):
            match [each.statement for each in self.body.definitions.get(steps.id, ())]:
                case [ast.Assign(targets=[ast.Name()], value=steps)]:
                    pass
        divided = ast.BinOp(whole, ast.FloorDiv(), block)
        return ast.unparse(steps) == ast.unparse(divided) and self.value(whole).low >= 0

    def _receiver(self, node: ast.Call) -> list[Fact]:
        """What was said of the value whose method a call may be of."""
        return self.body.said(node.func.value) if isinstance(node.func, ast.Attribute) else []

    def _returned(self, body: Body, place: int | None) -> Interval:
        """What a helper returns; of a tuple, the element at a place."""
        key = (id(body), f"return {place}")
        if key in self.known:
            return self.known[key]
        self.known[key] = ANY
        inner = self._inside(body)
        values = [node.value for node in nodes_in(body.tree) if isinstance(node, ast.Return)]
        found: list[Interval] = []
        for value in values:
            if place is not None:
                value = value.elts[place] if isinstance(value, ast.Tuple) and place < len(value.elts) else None
            found.append(ANY if value is None else inner.value(value))
        self.known[key] = union_of(found)
        return self.known[key]

    def element(self, node: ast.expr, place: int) -> Interval:
        """An element of what an expression unpacks to."""
        if isinstance(node, ast.Tuple):
            return self.value(node.elts[place]) if place < len(node.elts) else ANY
        if isinstance(node, ast.Call):
            if bodies := self.body.called(node):
                return union_of([self._returned(body, place) for body in bodies])
            if self.body.callee(node.func) == "swizzle2d":
                return COUNT
        return ANY

    def _inside(self, body: Body) -> Reader:
        """A reader of what this one needs of a body, where no mask says anything."""
        return Reader(body, self.assume, {}, self.known, self.read, work=self.work)

    def named(self, name: str) -> Interval:
        """A name's interval, whatever statement gave it its value; loops widen it until it holds."""
        key = (id(self.body), name)
        if key in self.known:
            self.read.add(key)
            return self.known[key]
        if name in self.body.given:
            outside = self.body.given[name]
            return union_of([self._inside(body).value(node) for body, node in outside])
        makers = self.body.definitions.get(name, [])
        start = [self._parameter(name)] if name in self.body.arguments else []
        if not makers:
            return start[0] if start else ANY
        self.work.done += 1
        if self.work.done > _MOST_WORK:
            return ANY
        inside = self._inside(self.body)
        current = start[0] if start else NOTHING
        for turn in range(4):
            inside.known = {**self.known, key: current}
            self.read.discard(key)
            made = union_of([current, *(maker.make(inside) for maker in makers)])
            if key not in self.read:
                # Nothing hangs on what was supposed: another turn would say the same, of all that this one read.
                self.known.update(inside.known)
                current = made
                break
            if made == current:
                break
            if turn:
                made = Interval(
                    current.low if made.low >= current.low else -math.inf,
                    current.high if made.high <= current.high else math.inf,
                )
            current = made
        self.known[key] = current
        return current

    def _parameter(self, name: str) -> Interval:
        body = self.body
        if body.is_kernel:
            known = body.parameters.get(name, ANY)
            return known.within(body.assumed.get(name, ANY)) if (body.kernel, name) in self.assume else known
        found: list[Interval] = []
        for caller, call in body.callers:
            argument = body.argument_of(name, call)
            found.append(ANY if argument is None else self._inside(caller).value(argument))
        return union_of(found) if found else ANY


def only_adds_dims(node: ast.Subscript) -> bool:
    """Whether an index is of colons and None alone: `x[:, None]`."""
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return all(isinstance(part, ast.Slice) or isinstance(part, ast.Constant) and part.value is None for part in parts)


def plain_text(node: ast.expr) -> str:
    """An expression's text, however its dimensions are arranged."""
    while isinstance(node, ast.Subscript) and only_adds_dims(node):
        node = node.value
    return ast.unparse(node)


def definitions_of(tree: ast.FunctionDef) -> dict[str, list[Definition]]:
    """Every way that each name of a function gets a value."""
    found: dict[str, list[Definition]] = {}
    for node in nodes_in(tree):
        for name, make in _bound(node):
            found.setdefault(name, []).append(Definition(node, make))
    return found


def _bound(node: ast.AST) -> Iterator[tuple[str, Maker]]:
    """The names that a statement gives values to, and how those are read."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _targets(target, value)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, partial(Reader.value, node=value)
        case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
            yield name, partial(_added, name=name, op=op, value=value)
        case ast.For(target=ast.Name(id=name), iter=ast.Call() as call):
            yield name, partial(_counted, call=call)
        case ast.For(target=target) | ast.NamedExpr(target=target):
            for part in nodes_in(target):
                if isinstance(part, ast.Name):
                    yield part.id, _anything


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, Maker]]:
    if isinstance(target, ast.Name):
        yield target.id, partial(Reader.value, node=value)
    elif isinstance(target, (ast.Tuple, ast.List)):
        for place, part in enumerate(target.elts):
            if isinstance(part, ast.Name):
                yield part.id, partial(Reader.element, node=value, place=place)


def _added(reader: Reader, name: str, op: ast.operator, value: ast.expr) -> Interval:
    return combined(op, reader.named(name), reader.value(value))


def _anything(_: Reader) -> Interval:
    return ANY


def _counted(reader: Reader, call: ast.Call) -> Interval:
    """The variable of a loop over a range that counts up."""
    given = [reader.value(argument) for argument in call.args]
    start, stop = (Interval(0, 0), given[0]) if len(given) == 1 else given[:2] if len(given) > 1 else (ANY, ANY)
    step = given[2] if len(given) > 2 else Interval(1, 1)
    if start.empty or stop.empty or step.empty:
        return NOTHING
    return ANY if step.low < 1 else Interval(start.low, max(stop.high - 1, start.low))
