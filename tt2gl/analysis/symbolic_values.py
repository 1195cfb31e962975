"""What a kernel computes, as expressions of what is not known of it: two that are the same have one value.

A value is a tree whose leaves are parameters, constants, and what nothing is known of: the same where that is the same
object alone. Constants that are equal under a launch are so on a condition, which is spelled in the kernel's words.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from tt2gl.analysis.facts import ConstFact, Fact, FunctionFact, FunctionFacts, LaunchFacts, OtherFact, TensorFact
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in

MERGED = ("load", "dot")
"""What is worth to be made once."""
_ELEMENTWISE = ("abs", "cast", "ceil", "cos", "erf", "exp", "exp2", "fdiv", "floor", "fma", "log", "log2", "maximum")
_MORE_ELEMENTWISE = ("minimum", "rsqrt", "sigmoid", "sin", "sqrt", "tanh", "to", "umulhi", "where")
_SHAPES = ("broadcast", "broadcast_to", "expand_dims", "flip", "join", "permute", "ravel", "reshape", "trans", "view")
_REDUCTIONS = ("argmax", "argmin", "cumsum", "dot", "max", "min", "softmax", "split", "sum", "xor_sum")
_MADE = ("arange", "full", "load", "num_programs", "program_id", "zeros", "zeros_like")
_NUMBERS = ("cdiv", "float", "int", "len", "max_contiguous", "multiple_of", "static_assert")
PURE = frozenset((*_ELEMENTWISE, *_MORE_ELEMENTWISE, *_SHAPES, *_REDUCTIONS, *_MADE, *_NUMBERS))
"""Triton's functions that compute, or read memory."""
_STATIC_CALLS = ("cdiv", "next_power_of_2")
_WITH_VOLATILE = 8
"""How many arguments a load has whose last one may say that memory changes by itself."""
_OPERANDS = 2
"""How many arguments a division has."""
_CONSTANTS = (bool, int, float, str)
_DEEPEST, _DEEP = 6, 200
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Constant, ast.Subscript)


@dataclass(frozen=True)
class Condition:
    """A test of constants, as source, and the values that names in it must still have where it is asked."""

    text: str
    names: tuple[tuple[str, Value], ...] = ()


Conditions = frozenset[Condition]


@dataclass(frozen=True, eq=False)
class Value:
    """What a name or an expression stands for.

    `kind`: how it is made of its `parts`, empty where that is not known. `when`: the conditions under which it is that.
    `text` and `constant`: how it is spelled in the kernel, and what it is under this launch, if that is a constant.
    `heavy`: whether it is made of what is worth to be made once.
    """

    kind: str = ""
    parts: tuple[Value, ...] = ()
    when: Conditions = frozenset()
    text: Condition | None = None
    constant: ConstFact | None = None
    heavy: bool = False
    depth: int = 0

    @property
    def number(self) -> int | None:
        """The integer that it is, if it is one."""
        value = self.constant.value if self.constant is not None else None
        return value if isinstance(value, int) and not isinstance(value, bool) else None


def same(one: Value, other: Value, known: dict[tuple[Value, Value], Conditions | None]) -> Conditions | None:
    """The conditions under which two values are one; None where they may be two. `known`: what was found before."""
    if one is other:
        return frozenset()
    if (one, other) not in known:
        known[one, other] = _same(one, other, known)
    return known[one, other]


def _same(one: Value, other: Value, known: dict[tuple[Value, Value], Conditions | None]) -> Conditions | None:
    if one.kind and one.kind == other.kind and len(one.parts) == len(other.parts):
        found = one.when | other.when
        for mine, its in zip(one.parts, other.parts, strict=True):
            asked = same(mine, its, known)
            if asked is None:
                break
            found |= asked
        else:
            return found
    said = [(each.text, each.constant.value) for each in (one, other) if each.text and each.constant]
    if len(said) < len((one, other)):
        return None
    (mine_said, value), (its_said, its_value) = said
    if type(value) is not type(its_value) or value != its_value or not isinstance(value, _CONSTANTS):
        return None
    asks = Condition(f"{mine_said.text} == {its_said.text}", mine_said.names + its_said.names)
    return one.when | other.when | {asks}


@dataclass
class Scope:
    """A function as it is read: what the compiler said of it, and what its names stand for.

    `own`: whether it is the kernel, in whose words conditions are spelled; `constants`: parameters that are constants.
    """

    facts: FunctionFacts
    values: dict[str, Value]
    own: bool = False
    constants: frozenset[str] = frozenset()
    depth: int = 0
    asked: set[Condition] = field(default_factory=set)

    def fact(self, node: ast.expr) -> Fact | None:
        """What the compiler said of an expression."""
        return self.facts.expressions.get(position_of(node))

    def condition(self, node: ast.expr) -> Condition | None:
        """An expression of constants in the kernel's words; None where it has others."""
        if not self.own:
            known = self.values.get(node.id) if isinstance(node, ast.Name) else None
            return known.text if known is not None else None
        if not isinstance(self.fact(node), ConstFact):
            return None
        typed = {id(each.value): each.attr for each in nodes_in(node) if isinstance(each, ast.Attribute)}
        names: list[tuple[str, Value]] = []
        for each in nodes_in(node):
            if isinstance(each, ast.Call) and not self._is_static(each):
                return None
            if isinstance(each, ast.Name) and each.id not in self.constants and each.id in self.values:
                if typed.get(id(each)) != "dtype":
                    return None
                names.append((each.id, self.values[each.id]))
        text = ast.unparse(node)
        return Condition(text if isinstance(node, _ATOMS) else f"({text})", tuple(names))

    def _is_static(self, call: ast.Call) -> bool:
        callee = self.fact(call.func)
        return isinstance(callee, FunctionFact) and callee.name.rpartition(".")[2] in _STATIC_CALLS


class UnreadError(Exception):
    """A helper is not read."""


class Reader:
    """Says what expressions stand for under one launch, those of helpers by what these do.

    `memory`: what all memory is at the moment, another one after each call that may write.
    """

    def __init__(self, facts: LaunchFacts, functions: Mapping[tuple[str, int], ast.FunctionDef]) -> None:
        self.facts, self.functions, self.memory = facts, functions, Value()

    def written(self) -> None:
        """From here on nothing is known of what was loaded before."""
        self.memory = Value()

    def value(self, node: ast.expr, scope: Scope) -> Value:
        """What an expression stands for."""
        made = self._made(node, scope)
        fact = scope.fact(node)
        if isinstance(node, ast.Call) and isinstance(fact, TensorFact) and (divided := self._divided(node, scope)):
            return replace(made, text=divided[0], constant=divided[1])
        if isinstance(node, ast.Name | ast.Constant) or not isinstance(fact, ConstFact):
            return made
        return replace(made, text=scope.condition(node), constant=fact)

    def _made(self, node: ast.expr, scope: Scope) -> Value:
        match node:
            case ast.Constant(value=value):
                kind = f"{type(value).__name__} {value!r}"
                return Value(kind, text=Condition(repr(value)), constant=ConstFact(value))
            case ast.Name(id=name):
                return scope.values[name] if name in scope.values else Value(f"{scope.facts.path} {name}")
            case ast.Attribute(value=base, attr=name):
                return self._of(f".{name}", [base], scope)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                return self._remainder(node, self.value(left, scope), self.value(right, scope), scope)
            case ast.BinOp(left=left, op=op, right=right):
                return self._of(type(op).__name__, [left, right], scope)
            case ast.UnaryOp(op=op, operand=operand):
                return self._of(type(op).__name__, [operand], scope)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                return self._of(type(op).__name__, [left, right], scope)
            case ast.Subscript(value=base, slice=index):
                part = self.value(base, scope)
                if all(isinstance(each, ast.Constant | ast.Slice | ast.Tuple) for each in nodes_in(index)):
                    return Value(f"[{ast.unparse(index)}]", (part,), heavy=part.heavy)
            case ast.Tuple(elts=items) | ast.List(elts=items):
                return self._of("tuple", items, scope)
            case ast.Call():
                return self._called(node, scope)
        if any(isinstance(each, ast.Call) for each in nodes_in(node)):
            self.written()
        return Value()

    def _of(self, kind: str, nodes: Sequence[ast.expr], scope: Scope) -> Value:
        return _made_of(kind, [self.value(each, scope) for each in nodes])

    def _remainder(self, node: ast.expr, left: Value, right: Value, scope: Scope) -> Value:
        """A remainder: 0 where an integer is divided by 1, of the type of what is divided."""
        fact = scope.fact(node)
        whole = isinstance(fact, TensorFact) and not fact.is_pointer and "int" in fact.dtype
        if not whole or right.number != 1 or right.text is None:
            return _made_of("Mod", [left, right])
        while left.kind in ("FloorDiv", "Mod") and left.parts[1].number is not None:
            left = left.parts[0]
        asked = {replace(right.text, text=f"{right.text.text} == 1")} if right.text.text != "1" else set[Condition]()
        return Value("zero", (left,), right.when | asked)

    def _called(self, node: ast.Call, scope: Scope) -> Value:
        callee = scope.fact(node.func)
        arguments = [self.value(each, scope) for each in node.args]
        named = sorted(
            ((each.arg or "", self.value(each.value, scope)) for each in node.keywords), key=lambda each: each[0]
        )
        spread = any(isinstance(each, ast.Starred) for each in node.args) or any(not each.arg for each in node.keywords)
        if not isinstance(callee, FunctionFact) or spread:
            self.written()
            return Value()
        if callee.path is not None:
            return self._helped(node, scope, arguments, dict(named))
        module, _, name = callee.name.rpartition(".")
        if module.partition(".")[0] not in ("triton", "builtins", "math") or name not in PURE:
            self.written()
            return Value()
        if isinstance(node.func, ast.Attribute) and scope.fact(node.func.value) != OtherFact("module"):
            arguments.insert(0, self.value(node.func.value, scope))
        if name == "load":
            if len(arguments) >= _WITH_VOLATILE or any(key == "volatile" for key, _ in named):
                return Value()
            arguments.append(self.memory)
        kind = f"{callee.name}({len(arguments)}, {', '.join(key for key, _ in named)})"
        made = _made_of(kind, [*arguments, *(value for _, value in named)])
        return replace(made, heavy=made.heavy or name in MERGED)

    def _divided(self, call: ast.Call, scope: Scope) -> tuple[Condition, ConstFact] | None:
        """How often one constant goes into another, rounded up, where Triton (3.6) has that as a scalar; else None."""
        callee = scope.fact(call.func)
        is_division = isinstance(callee, FunctionFact) and callee.name.rpartition(".")[2] == "cdiv"
        if not is_division or len(call.args) != _OPERANDS or call.keywords:
            return None
        (whole, part), asked = (self.value(each, scope) for each in call.args), [*map(scope.condition, call.args)]
        if whole.number is None or not part.number or None in asked:
            return None
        said, by = (each for each in asked if each is not None)
        text = f"({said.text} + {by.text} - 1) // {by.text}"
        return Condition(text, said.names + by.names), ConstFact((whole.number + part.number - 1) // part.number)

    def _helped(self, node: ast.Call, scope: Scope, given: Sequence[Value], named: Mapping[str, Value]) -> Value:
        """What a helper returns; nothing is known of that, and it may write, where its body is not plain."""
        facts = self.facts.functions.get(scope.facts.callees.get(position_of(node), ""))
        function = self.functions.get((facts.path, facts.line)) if facts is not None else None
        if facts is None or function is None or scope.depth == _DEEPEST:
            self.written()
            return Value()
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        names = [each.arg for each in parameters]
        inner = Scope(facts, {}, depth=scope.depth + 1)
        late = zip((each.arg for each in function.args.kwonlyargs), function.args.kw_defaults, strict=True)
        early = zip(
            reversed(names[: len(names) - len(function.args.kwonlyargs)]),
            reversed(function.args.defaults),
            strict=False,
        )
        defaults = {name: self.value(each, inner) for name, each in (*early, *late) if isinstance(each, ast.Constant)}
        values = {**defaults, **dict(zip(names, given, strict=False)), **named}
        inner.values = {name: values.get(name, Value()) for name in names}
        try:
            returned = self._returned(function.body, inner)
        except UnreadError:
            returned = None
        if returned is None or function.args.vararg or function.args.kwarg:
            self.written()
            return Value()
        if returned.kind == "tuple":
            return replace(returned, parts=tuple(asking(each, inner.asked) for each in returned.parts))
        return asking(returned, inner.asked)

    def _returned(self, body: Sequence[ast.stmt], scope: Scope) -> Value | None:
        for statement in body:
            match statement:
                case ast.Assign(targets=[target], value=value):
                    bind(target, self.value(value, scope), scope)
                case ast.Expr(value=value):
                    self.value(value, scope)
                case ast.If(test=test, body=then, orelse=otherwise):
                    fact = scope.fact(test)
                    if not isinstance(fact, ConstFact):
                        raise UnreadError
                    scope.asked |= self._asked(test, scope)
                    found = self._returned(then if fact.value else otherwise, scope)
                    if found is not None:
                        return found
                case ast.Return(value=ast.expr() as value):
                    return self.value(value, scope)
                case _:
                    raise UnreadError
        return None

    def _asked(self, test: ast.expr, scope: Scope) -> Conditions:
        """What a helper's test of a parameter asks, in the kernel's words."""
        match test:
            case ast.Compare(left=ast.Name(id=name), ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant(None)]):
                given = scope.values.get(name, Value())
                if given.constant is not None and given.text is not None:
                    # What is computed is something, and a constant that is written is what it is.
                    if not given.text.text.isidentifier():
                        return frozenset()
                    no = "" if given.constant.value is None else "not "
                    return frozenset([replace(given.text, text=f"{given.text.text} is {no}None")])
        raise UnreadError


def asking(value: Value, conditions: Conditions | set[Condition]) -> Value:
    """A value that is what it is under more conditions."""
    return replace(value, when=value.when | conditions) if conditions else value


def bind(target: ast.expr, value: Value, scope: Scope) -> None:
    """Have names stand for a value, or for its parts."""
    match target:
        case ast.Name(id=name):
            scope.values[name] = value
        case ast.Tuple(elts=items) | ast.List(elts=items):
            whole = value.kind == "tuple" and len(value.parts) == len(items)
            parts = value.parts if whole else [Value() for _ in items]
            for item, part in zip(items, parts, strict=True):
                bind(item, asking(part, value.when), scope)


def _made_of(kind: str, parts: Sequence[Value]) -> Value:
    depth = max((each.depth for each in parts), default=0) + 1
    return Value(kind, tuple(parts), heavy=any(each.heavy for each in parts), depth=depth) if depth < _DEEP else Value()
