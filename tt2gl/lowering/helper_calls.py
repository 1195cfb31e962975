"""One call of a helper written out: its arguments bound, its names made the caller's, its result where the call was."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.jit_functions import JitFunction, Parameter
from tt2gl.lowering.expressions import called, expression
from tt2gl.lowering.helper_bodies import (
    Body,
    assigned_names,
    is_atom,
    is_literal,
    loop_names,
    read_body,
    read_names,
    with_names,
    writes,
)
from tt2gl.syntax import is_name
from tt2gl.visitors import within

_SHARED = frozenset(("arange", "cdiv", "next_power_of_2", "to", "cast", "min", "max"))
"""What makes the same of the same constants, wherever it stands."""


_OF_LAUNCHES = frozenset(("do_not_specialize", "do_not_specialize_on_alignment"))
"""Options of `jit` that say nothing to a function that another calls."""


@dataclass
class Caller:
    """A function that calls helpers: `names` in it, and how often it assigns which; `helpers`: all of its file.

    Of what was written out so far: `fresh`, names by the scope they are in; `constants`, those that hold compile-time
    values; `made`, what is computed of such alone, by block and source.
    """

    function: JitFunction
    module: cst.Module
    names: frozenset[str]
    assigned: Mapping[str, int]
    helpers: Mapping[str, JitFunction]
    fresh: dict[int, set[str]] = field(default_factory=dict)
    constants: set[str] = field(default_factory=set)
    made: dict[tuple[int, str], str] = field(default_factory=dict)

    def is_free(self, name: str, scope: int) -> bool:
        """Whether a name can be given to a variable: those of one loop are gone in the next."""
        return name not in self.names and not any(
            name in names for other, names in self.fresh.items() if scope in (0, other) or other == 0
        )

    def is_constant(self, name: str) -> bool:
        """Whether a name holds one compile-time value, or is of the file."""
        parameter = self.function.parameter(name)
        if name in self.assigned or any(name in names for names in self.fresh.values()):
            return name in self.constants
        return parameter is None or parameter.is_constexpr

    def has(self, name: str) -> bool:
        """Whether a name is one of the function's own variables."""
        return name in self.assigned or self.function.parameter(name) is not None

    def writes(self, name: str) -> bool:
        """Whether a helper may do more than compute and load."""
        return writes([self.helpers[name].node.body], self.helpers)


@dataclass(frozen=True, eq=False)
class Site:
    """A call: the statement it is in, what stands around the loops of that, and what ran before.

    `outermost`: the outermost loop around the statement that it is in at every turn, or the statement's own line;
    `block`: the one of that; `scope`: the function's own loop around all of it, 0 for none; `before`: statements of the
    function that ran before the call.
    """

    call: cst.Call
    statement: cst.BaseSmallStatement
    outermost: cst.BaseStatement
    block: int
    scope: int
    before: Sequence[cst.BaseStatement]

    @property
    def is_whole(self) -> bool:
        """Whether the statement does nothing but to take the call's result."""
        return getattr(self.statement, "value", None) is self.call

    @property
    def targets(self) -> tuple[str | None, ...]:
        """The variables that take the result, None for what is no plain variable; empty where it is not assigned."""
        if not self.is_whole or not isinstance(self.statement, cst.Assign) or len(self.statement.targets) != 1:
            return ()
        target = self.statement.targets[0].target
        elements = [each.value for each in target.elements] if isinstance(target, (cst.Tuple, cst.List)) else [target]
        return tuple(each.value if isinstance(each, cst.Name) else None for each in elements)

    @property
    def stem(self) -> str:
        """The variable that a line around the call is about."""
        targets = self.statement.targets if isinstance(self.statement, cst.Assign) else ()
        target = targets[0].target if targets else getattr(self.statement, "target", None)
        if isinstance(target, cst.Tuple):
            target = target.elements[0].value
        return target.value if isinstance(target, cst.Name) else ""


@dataclass(frozen=True)
class Inlined:
    """A call written out: the lines before its loops and its statement, and what takes the call's place.

    With `whole` that takes the statement's, and nothing is left of it where it is None.
    """

    outside: tuple[str, ...]
    lines: tuple[str, ...]
    result: str | None
    whole: bool


def inline(caller: Caller, helper: JitFunction, site: Site, *, repeated: bool) -> Inlined | None:
    """Write out one call; None where the helper cannot stand there. `repeated`: the caller has more of this helper."""
    arguments = _arguments(caller, helper, site.call)
    if arguments is None or not _is_plain(helper):
        return None
    changed = assigned_names([helper.node.body])
    literals = {name: node for name, node in arguments.items() if is_literal(node) and name not in changed}
    body = read_body(helper.node, literals)
    if body is None or (body.result is None and not isinstance(site.statement, cst.Expr)):
        return None
    nodes = [*body.statements, *([body.result] if body.result is not None else [])]
    outer = set(read_names(nodes)) - assigned_names(nodes).keys() - arguments.keys()
    if any(caller.has(name) for name in outer) or not _in_order(caller, helper, site, nodes):
        return None
    return _Writing(caller, site, arguments, body, outer, repeated=repeated).written(helper)


def _is_plain(helper: JitFunction) -> bool:
    """Whether nothing but `jit` decorates a helper, told at most what matters to launches alone."""
    if len(helper.decorators) != 1:
        return False
    decorator = helper.decorators[0].node.decorator
    args = decorator.args if isinstance(decorator, cst.Call) else ()
    return all(arg.keyword is not None and arg.keyword.value in _OF_LAUNCHES for arg in args)


def _arguments(caller: Caller, helper: JitFunction, call: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """What each parameter is at a call; None where that is not plain."""
    params = helper.node.params
    if params.star_kwarg is not None or isinstance(params.star_arg, cst.Param) or any(arg.star for arg in call.args):
        return None
    names = [parameter.name for parameter in helper.parameters]
    found: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(call.args):
        if arg.keyword is None and index >= len(names):
            return None
        found[arg.keyword.value if arg.keyword is not None else names[index]] = arg.value
    for parameter in helper.parameters:
        if parameter.name not in found:
            default = cst.parse_expression(parameter.default) if parameter.default is not None else None
            if default is None or any(caller.has(name) for name in read_names([default])):
                return None
            found[parameter.name] = default
    return found if found.keys() == set(names) else None


def _in_order(caller: Caller, helper: JitFunction, site: Site, nodes: Collection[cst.CSTNode]) -> bool:
    """Whether the helper may run before all else of the statement."""
    if site.is_whole:
        return True
    # What the call is an argument of is done after it either way.
    own = {id(call) for call in within(site.call, cst.Call)}
    calls = [call for call in within(site.statement, cst.Call) if id(call) not in own]
    beside = [call for call in calls if not any(inner is site.call for inner in within(call, cst.Call))]
    if not beside:
        return True
    others = read_names(beside).keys() & caller.helpers.keys() - {helper.name}
    effects = writes(beside, ()) or any(caller.writes(name) for name in others)
    return not effects and not writes(nodes, caller.helpers)


@dataclass
class _Writing:
    """One call on its way. `values`: what the helper's names stand for; `outside`, `lines`: those so far."""

    caller: Caller
    site: Site
    arguments: Mapping[str, cst.BaseExpression]
    body: Body
    outer: set[str]
    repeated: bool
    values: dict[str, cst.BaseExpression] = field(default_factory=dict)
    outside: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def written(self, helper: JitFunction) -> Inlined | None:
        changed = assigned_names(self.body.statements)
        self._take_targets(changed)
        for parameter in helper.parameters:
            if not self._bind(parameter, changed):
                return None
        for statement in self.body.statements:
            self._write(statement, changed)
        self.lines += self.body.comments
        return Inlined(tuple(self.outside), tuple(self.lines), *self._result())

    # ---------------------------------------------------------------------------------------------------- names

    def _take_targets(self, changed: Mapping[str, int]) -> None:
        """Have what is returned computed in the caller's variable, where nothing else needs what is in that."""
        given = [name for node in self.arguments.values() for name in read_names([node])]
        for target, element in zip(self.site.targets, self._elements(), strict=False):
            if target is None or not isinstance(element, cst.Name) or element.value not in changed:
                continue
            local, argument = element.value, self.arguments.get(element.value)
            taken = {node.value for node in self.values.values() if isinstance(node, cst.Name)} | self.outer
            is_own = is_name(argument, target)
            if given.count(target) == is_own and target not in taken:
                self.values.setdefault(local, cst.Name(target))

    def _elements(self) -> tuple[cst.BaseExpression, ...]:
        """What is returned, one for each target."""
        if len(self.site.targets) > 1 and isinstance(self.body.result, cst.Tuple):
            elements = tuple(element.value for element in self.body.result.elements)
            return elements if len(elements) == len(self.site.targets) else ()
        return (self.body.result,) if self.body.result is not None and len(self.site.targets) == 1 else ()

    def _fresh(self, wanted: str, *, shared: bool = False) -> cst.Name:
        stem = self.site.stem
        longer = f"{stem}_{wanted}" if stem and stem != wanted else wanted
        tries = [longer, wanted] if self.repeated and not shared else [wanted, longer]
        tries += [f"{wanted}_{number}" for number in range(2, 100 + len(self.caller.names))]
        # What is before a loop is there after it, too.
        scope = 0 if shared else self.site.scope
        name = next(name for name in tries if name not in self.outer and self.caller.is_free(name, scope))
        self.caller.fresh.setdefault(scope, set()).add(name)
        return cst.Name(name)

    # ----------------------------------------------------------------------------------------------- parameters

    def _bind(self, parameter: Parameter, changed: Mapping[str, int]) -> bool:
        """Give a parameter its argument: in its place where that says the same, else by a line; whether it can be."""
        name, value = parameter.name, self.arguments[parameter.name]
        if name not in changed and self._stands_for_itself(name, value):
            self.values[name] = value
            return True
        if name in changed and (parameter.is_constexpr or self._is_constant(value)):
            return False
        local = self.values.get(name) or self._fresh(name)
        assert isinstance(local, cst.Name)
        if not is_name(value, local.value):
            said = f": {parameter.annotation}" if parameter.is_constexpr else ""
            self.lines.append(f"{local.value}{said} = {expression(value, self.caller.module).text}")
        self.values[name] = local
        return True

    def _stands_for_itself(self, name: str, value: cst.BaseExpression) -> bool:
        nodes = [*self.body.statements, *([self.body.result] if self.body.result is not None else [])]
        known = expression(value, self.caller.module)
        if is_literal(value) or isinstance(value, cst.Name) or (known.pure and self._is_constant(value)):
            return True
        match value:
            case cst.Attribute(cst.Name() | cst.Attribute(cst.Name())):
                return True
        read = read_names(nodes).get(name, 0)
        return read <= 1 and name not in loop_names(nodes) and (known.pure or bool(read) and _is_same_elements(value))

    def _is_constant(self, value: cst.BaseExpression) -> bool:
        return all(self.caller.is_constant(name) for name in read_names([value]))

    # ----------------------------------------------------------------------------------------------- statements

    def _write(self, statement: cst.BaseStatement, changed: Mapping[str, int]) -> None:
        name, value = _computed(statement)
        if value is not None and changed[name] == 1 and name not in self.values:
            placed = with_names(value, self.values)
            if self._is_shared(placed):
                key = self.site.block, _said(statement, placed)
                known = self.caller.made.get(key) or self._made_before(key[1])
                if known:
                    self.values[name] = cst.Name(known)
                    return
                fresh = self.values[name] = self._fresh(name, shared=True)
                self.caller.made[key] = fresh.value
                if any(within(statement, cst.AnnAssign)):
                    self.caller.constants.add(fresh.value)
                self.outside += self._code(with_names(statement, self.values))
                return
        for name in assigned_names([statement]):
            if name not in self.values:
                self.values[name] = self._fresh(name)
        self.lines += self._code(with_names(statement, self.values))

    def _is_shared(self, value: cst.CSTNode) -> bool:
        """Whether a value is made of constants alone."""
        functions = {called(call) for call in within(value, cst.Call)}
        return functions <= _SHARED and all(self.caller.is_constant(name) for name in read_names([value]))

    def _made_before(self, text: str) -> str | None:
        """The caller's own variable that holds this value since before its loops."""
        for statement in self.site.before:
            name, value = _computed(statement)
            is_fixed = value is not None and self.caller.assigned[name] == 1
            if value is not None and is_fixed and _said(statement, value) == text:
                return name
        return None

    def _code(self, node: cst.CSTNode) -> list[str]:
        module = self.caller.module
        text = cst.Module([], default_indent=module.default_indent).code_for_node(node)
        return text.rstrip().splitlines()

    def _result(self) -> tuple[str | None, bool]:
        """What stands in the call's place, or, with True, in its statement's."""
        result = self.body.result
        if result is None:
            return None, True
        placed = with_names(result, self.values)
        assert isinstance(placed, cst.BaseExpression)
        text = "\n".join(self._code(placed))
        elements = [with_names(element, self.values) for element in self._elements()]
        if elements:
            pairs = list(zip(self.site.targets, ["\n".join(self._code(element)) for element in elements], strict=True))
            left = [(target, value) for target, value in pairs if target != value]
            if not left:
                return None, True
            if len(left) < len(pairs) and all(target is not None for target, _ in left):
                return f"{', '.join(str(target) for target, _ in left)} = {', '.join(value for _, value in left)}", True
        if self.site.is_whole:
            # A name alone says nothing.
            is_idle = isinstance(self.site.statement, cst.Expr) and isinstance(placed, cst.Name)
            return (None, True) if is_idle else (text, False)
        return (text if is_atom(placed) else f"({text})"), False


def _is_same_elements(value: cst.BaseExpression) -> bool:
    """Whether a value is one of a name, turned or cast: a product takes that as it lies where it stands in its call."""
    match value:
        case cst.Call(func=cst.Attribute(value=cst.Name() | cst.Call() as inner, attr=cst.Name(value="to"))):
            return isinstance(inner, cst.Name) or _is_same_elements(inner)
        case cst.Call(args=[cst.Arg(value=inner)]) if called(value) == "trans":
            return isinstance(inner, cst.Name) or _is_same_elements(inner)
    return False


def _computed(statement: cst.BaseStatement) -> tuple[str, cst.BaseExpression | None]:
    """Name and value of `name = value`, or of a constant; None for another statement."""
    if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
        small = statement.body[0]
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            target: cst.BaseExpression = small.targets[0].target
        elif isinstance(small, cst.AnnAssign):
            target = small.target
        else:
            return "", None
        if isinstance(target, cst.Name):
            return target.value, small.value
    return "", None


def _said(statement: cst.BaseStatement, value: cst.CSTNode) -> str:
    """A value as source; one that is annotated as a constant is another than one that is not."""
    return f"{cst.Module([]).code_for_node(value)} {any(within(statement, cst.AnnAssign))}"
