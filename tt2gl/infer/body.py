"""What the statements and operators of a function tell of its parameters."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tt2gl.host.scopes import all_arguments
from tt2gl.infer.evidence import Facts, Value
from tt2gl.infer.kernel import DTYPES
from tt2gl.infer.names import STRIDE_NAME

_KINDS = (("unsigned", 2**63), ("wide", 2**31))
"""The kinds of numbers as they are written, by what they are no less than."""
_NUMBERS = ("int", *(kind for kind, _ in _KINDS))
_ORDER = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_WHOLE = (ast.FloorDiv, ast.Mod, ast.LShift, ast.RShift, ast.BitAnd, ast.BitOr, ast.BitXor)

_TURNS = 4
"""Elements of a tuple that are taken by what is not known: as many as loops that are written out take turns."""


class Body:
    """Reads a function's body for evidence; `Usage` adds its calls."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.facts = {arg.arg: Facts() for arg in all_arguments(node.args)}
        self.rank = 1
        """The most dimensions that an index range is spread over."""
        self.returned = Value()
        """What it returns, made of its parameters."""
        self.required: list[tuple[ast.expr, bool]] = []
        """Conditions that have to hold, or not to hold, for the compiler to go on."""
        self._locals: dict[str, Value] = {}
        self._tuples: dict[str, list[ast.expr]] = {}
        """The elements of the tuples that names stand for."""
        self._beside: list[tuple[tuple[str, ...], frozenset[str]]] = []
        """Parameters that meet a loaded value in an operation: floats, unless what was loaded is an index."""
        self._either: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        """Parameters that one name stands for in turn: where one is an address, so is the other."""

    def evidence(self, name: str) -> Facts:
        """The evidence for a parameter."""
        return self.facts.get(name, Facts())

    def _call(self, node: ast.Call) -> Value:
        """What a call is made of."""
        raise NotImplementedError

    # ----------------------------------------------------------------------------------------- statements

    def _body(self, body: Iterable[ast.stmt]) -> None:
        for statement in body:
            match statement:
                case ast.Assign(targets=targets, value=value):
                    result = self._value(value)
                    for target in targets:
                        self._bind(target, result, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._bind(target, self._value(value), value)
                case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                    self._locals[name] = self._binary(op, self._name(name), self._value(value))
                case ast.For(target=target, iter=iterable, body=inner, orelse=orelse):
                    self._value(iterable)
                    self._bind(target, Value(kind="int"), None)
                    self._arms(inner, orelse)
                case ast.If(test=test, body=[ast.Raise()], orelse=orelse):
                    self._truth(test)
                    self._require(test, holds=False)
                    self._body(orelse)
                case ast.If(test=test, body=inner, orelse=orelse) | ast.While(test=test, body=inner, orelse=orelse):
                    self._truth(test)
                    self._arms(inner, orelse)
                case ast.With(body=inner):
                    self._body(inner)
                case ast.Return(value=ast.expr() as value):
                    self.returned |= self._value(value)
                case ast.Expr(value=value):
                    self._value(value)
                case ast.Assert(test=test):
                    self._truth(test)
                    self.required.append((test, True))

    def _require(self, test: ast.expr, *, holds: bool = True) -> None:
        self.required.append((test, holds))
        self._asserted(test, holds)

    def _asserted(self, test: ast.expr, holds: bool = True) -> None:
        """That the compiler goes on only where this holds, or only where it does not."""
        every, equal = (ast.And, ast.Eq) if holds else (ast.Or, ast.NotEq)
        match test:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._asserted(operand, not holds)
            case ast.BoolOp(op=op, values=values) if isinstance(op, every):
                for value in values:
                    self._asserted(value, holds)
            case ast.Compare(
                left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=int() | str() as value)]
            ) if isinstance(op, equal) and name in self.facts:
                self.facts[name].asserted = value

    def _arms(self, one: Iterable[ast.stmt], other: Iterable[ast.stmt]) -> None:
        """Two ways that may be taken: after them a name is what it is after either."""
        before = dict(self._locals)
        self._body(one)
        after, self._locals = self._locals, before
        self._body(other)
        for name, value in after.items():
            other_value = self._locals.get(name, value)
            self._alternatives(value, other_value)
            self._locals[name] = value | other_value

    def _bind(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        match target:
            case ast.Name(id=name):
                self._tuples[name] = _elements(source)
                before = self._locals.get(name)
                if before is not None:
                    self._alternatives(before, value)
                self._locals[name] = value
            case ast.Tuple(elts=targets):
                self._taken(source, len(targets))
                values = source.elts if isinstance(source, ast.Tuple) and len(source.elts) == len(targets) else None
                for index, element in enumerate(targets):
                    self._bind(element, self._value(values[index]) if values else Value(kind=value.kind), None)

    def _taken(self, node: ast.expr | None, count: int) -> None:
        """That so many elements are taken of what is a parameter, so that it is a tuple of as many or more."""
        if isinstance(node, ast.Name) and node.id in self.facts and node.id not in self._locals:
            self.facts[node.id].items = max(self.facts[node.id].items, count)

    def _alternatives(self, one: Value, other: Value) -> None:
        if one.bases and other.bases and not set(one.bases) & set(other.bases):
            self._either.append((one.bases, other.bases))

    # ---------------------------------------------------------------------------------------- expressions

    def _name(self, name: str) -> Value:
        if name in self._locals:
            return self._locals[name]
        if name in self.facts:
            return Value((name,), frozenset((name,)))
        return Value()

    def _value(self, node: ast.expr) -> Value:
        match node:
            case ast.Name(id=name):
                return self._name(name)
            case ast.Constant(value=bool()):
                return Value()
            case ast.Constant(value=int(value)):
                return Value(kind=next((kind for kind, bound in _KINDS if abs(value) >= bound), "int"))
            case ast.Constant(value=float()):
                return Value(kind="float")
            case ast.BinOp(left=left, op=op, right=right):
                if isinstance(op, ast.BitAnd) and isinstance(right, ast.UnaryOp) and isinstance(right.op, ast.USub):
                    self._mark(self._value(right).bases, "whole")  # `& -ALIGN` rounds down
                return self._binary(op, self._value(left), self._value(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                self._truth(operand)
                return Value()
            case ast.UnaryOp(operand=operand):
                return self._value(operand)
            case ast.BoolOp(values=values):
                for value in values:
                    self._truth(value)
                return Value()
            case ast.Compare():
                return self._compare(node)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._truth(test)
                one, other = self._value(body), self._value(orelse)
                self._alternatives(one, other)
                return one | other
            case ast.Subscript(value=value, slice=places):
                if isinstance(places, ast.Tuple) and any(_is_none(place) for place in places.elts):
                    self.rank = max(self.rank, len(places.elts))
                elif isinstance(places, ast.Constant) and type(places.value) is int:
                    self._taken(value, places.value + 1)
                elif not isinstance(places, ast.Slice | ast.Tuple | ast.Constant):
                    self._taken(value, _TURNS)
                return self._value(value)
            case ast.Attribute(value=value, attr=attribute):
                inner = self._value(value)
                if attribute in DTYPES:
                    return Value(made=attribute)
                return inner if attribute in ("T", "value") else Value()
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                result = Value()
                for element in elements:
                    result |= self._value(element)
                return result
            case ast.Call():
                return self._call(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._value(child)
        return Value()

    def _binary(self, op: ast.operator, left: Value, right: Value) -> Value:
        result = left | right
        self._unsigned(left, right)
        if isinstance(op, _WHOLE) and "float" not in (left.kind, right.kind):
            return self._whole(op, left, right)
        if isinstance(op, ast.Add | ast.Sub):
            for one, other in ((left, right), (right, left)):
                if other.kind == "float" and len(one.origins) == 1:
                    self._mark(one.bases, "float")
            return replace(result, raw=frozenset(), made=_promoted(left, right))
        for one, other in ((left, right), (right, left)):
            self._mark(one.bases, "number")
            if not isinstance(op, ast.Div):
                self._mark(one.bases, "multiplied")
            if other.kind == "float":
                self._mark(one.bases, "float")
            elif other.loaded and not other.kind and any(STRIDE_NAME.search(name) for name in one.bases):
                for name in other.loaded:  # a page, or a row, whose place is looked up
                    self.facts[name].index = True
            elif other.loaded and not other.kind:
                self._beside.append((one.bases, other.loaded))
            elif isinstance(op, ast.Mult) and other.kind == "int":
                self._mark(one.bases, "stride")
        kind = "float" if isinstance(op, ast.Div) else result.kind
        scales = frozenset(
            name
            for one, other in ((left, right), (right, left))
            if isinstance(op, ast.Mult) and one.ranged and not other.ranged
            for name in other.bases
        )
        if not result.loaded:  # what is loaded may be no index
            self._mark(scales, "stride")
        ranged = result.ranged and not scales
        made = _promoted(left, right)
        return Value((), result.origins, result.loaded, kind, made=made, ranged=ranged, scales=scales)

    def _unsigned(self, left: Value, right: Value) -> None:
        for value, other in ((left, right), (right, left)):
            if other.kind == "unsigned" and not value.kind and not value.made:
                self._mark(value.loaded or value.origins, "unsigned")

    def _whole(self, op: ast.operator, left: Value, right: Value) -> Value:
        """`//`, `%`, shifts and bitwise operations; of two conditions `&` and `|` say nothing."""
        for value, other in ((left, right), (right, left)):
            if isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor) and other.kind not in _NUMBERS:
                continue
            marks = ["whole", "wide"] if other.kind in ("wide", "unsigned") else ["whole"]
            loaded = value.loaded if not value.kind else value.raw
            for mark in marks:
                self._mark((*value.bases, *loaded), mark)
            if not isinstance(op, ast.FloorDiv | ast.Mod):
                # Of what was computed, bits are taken of the result: `dot`'s operands are not packed by that.
                self._mark(value.raw, "packed")
            if not isinstance(op, ast.BitAnd | ast.BitOr | ast.BitXor):
                self._mark(value.bases, "number")
                self._mark(value.bases, "multiplied")
        kinds = [kind for kind in (left.kind, right.kind) if kind not in _NUMBERS]
        total = left | right
        # An index stays one, whatever it is divided by.
        index = isinstance(op, ast.FloorDiv | ast.Mod) and left.kind in _NUMBERS
        shifted = isinstance(op, ast.LShift | ast.RShift) and not any(kinds)
        kind = "int" if not kinds or index or shifted else kinds[0]
        return Value((), total.origins, total.loaded, kind, total.raw, ranged=total.ranged)

    def _compare(self, node: ast.Compare) -> Value:
        operands = [node.left, *node.comparators]
        values = [self._value(operand) for operand in operands]
        for left, right, op, one, other in zip(values, values[1:], node.ops, operands, operands[1:], strict=False):
            for value, opposite, constant in ((left, right, other), (right, left, one)):
                self._compared(value, opposite, constant, op)
        return Value()

    def _compared(self, value: Value, opposite: Value, constant: ast.expr, op: ast.cmpop) -> None:
        if isinstance(op, _ORDER) and not is_number(constant):
            self._mark(value.bases, "ordered")
        self._unsigned(value, opposite)
        match constant:
            case ast.Constant(value=None):
                self._mark(value.bases, "none")
            case ast.Constant(value=bool()):
                self._mark(value.bases, "truth")
            case ast.Constant(value=str() as text):
                for name in value.bases:
                    self.facts[name].strings.append(text)
            case ast.Constant(value=int() as number):
                for name in value.bases:
                    self.facts[name].integers.append(number)
            case ast.Tuple(elts=elements) | ast.List(elts=elements) if isinstance(op, ast.In | ast.NotIn):
                for element in elements:
                    self._compared(value, opposite, element, op)
            case ast.Attribute(attr=attribute) if attribute.startswith(("float", "bfloat", "int", "fp8")):
                self._mark(value.bases, "dtype")
            case _ if (opposite.kind == "int" or opposite.ranged) and len(value.origins) == 1:
                self._mark(value.bases, "size")
            case _ if opposite.kind == "float":
                self._mark(value.bases, "float")
            case _ if opposite.loaded and not isinstance(op, ast.Eq | ast.NotEq):
                self._beside.append((value.bases, opposite.loaded))
        counted = opposite.ranged and opposite.kind != "float" and not opposite.loaded and not opposite.made
        if value.loaded and not value.kind and (counted or (isinstance(op, ast.Eq | ast.NotEq) and opposite.bases)):
            for name in value.loaded:
                self.facts[name].index = True

    def _bounded(self, values: Sequence[Value]) -> None:
        """Values that are bounds of each other: beside a float, parameters are floats."""
        if any(value.kind == "float" or value.made.startswith(("float", "bfloat")) for value in values):
            for value in values:
                self._mark(value.bases if len(value.origins) == 1 else (), "float")

    def _given(self, node: ast.Call) -> Iterable[ast.expr]:
        """The arguments of a call, of tuples that are given with a star each element."""
        for argument in node.args:
            match argument:
                case ast.Starred(value=ast.Name(id=name)) if name in self._tuples:
                    yield from self._tuples[name]
                case _:
                    yield argument

    def _truth(self, node: ast.expr) -> None:
        value = self._value(node)
        if isinstance(node, ast.Name | ast.Call):
            self._mark(value.bases, "truth")
            for name in value.loaded:
                self.facts[name].mask = True
        match node:
            case ast.BinOp(left=ast.Name(id=name), op=ast.BitAnd(), right=ast.Constant(value=int(bits))):
                for each in self._name(name).bases:
                    self.facts[each].asked |= bits

    def _chosen(self, values: Sequence[Value], arms: Sequence[ast.expr]) -> Value:
        """One of two values by a mask: what `where` is given."""
        for loaded in values[0].loaded:
            self.facts[loaded].mask = True
        self._alternatives(values[1], values[2])
        given = [value for value, arm in zip(values[1:], arms[1:], strict=True) if not is_number(arm)]
        return functools.reduce(operator.or_, given, Value())

    def _counted(self, name: str, total: Value) -> Value:
        """What counts, a range or `cdiv`, of what it is given."""
        self._mark(total.bases, "tile" if name == "arange" else "size")
        self._mark(total.bases if name == "static_range" else (), "unrolled")
        self._mark(total.bases if name == "range" else (), "turns")
        self._mark(total.origins, "number")
        for loaded in total.loaded:
            self.facts[loaded].index = True
        return Value((), total.origins, frozenset(), "int", ranged=name == "arange")

    def _mark(self, names: Iterable[str], fact: str) -> None:
        for name in names:
            setattr(self.facts[name], fact, True)


def _elements(node: ast.expr | None) -> list[ast.expr]:
    """What a tuple is written with, a constant of the compilation (`tl.constexpr((M, N))`) or not."""
    match node:
        case ast.Tuple(elts=elements):
            return elements
        case ast.Call(func=ast.Attribute(attr="constexpr"), args=[ast.Tuple(elts=elements)]):
            return elements
    return []


def _promoted(left: Value, right: Value) -> str:
    """The dtype that an operation of two values has, where casts say so: a number by itself changes none."""
    if "float32" in (left.made, right.made):
        return "float32"
    return (left | right).made if left.loaded and right.loaded else left.made or right.made


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def is_number(node: ast.expr) -> bool:
    """Whether an expression is a constant, with a sign or not."""
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and is_number(node.operand))


def is_whole(node: ast.expr) -> bool:
    """Whether a number is whole as it is written: an atomic that adds or stores it counts, or locks."""
    value = node.operand if isinstance(node, ast.UnaryOp) else node
    return isinstance(value, ast.Constant) and type(value.value) is int


def is_true(node: ast.expr) -> bool:
    """Whether an expression is True as it is written."""
    return isinstance(node, ast.Constant) and node.value is True


def innermost(strides: ast.expr | None, order: ast.expr | None) -> ast.expr | None:
    """Of a block's strides the last, or that of the dimension that `order` has first."""
    if not isinstance(strides, ast.List | ast.Tuple) or not strides.elts:
        return None
    match order:
        case ast.List(elts=[ast.Constant(value=int(first)), *_]) | ast.Tuple(elts=[ast.Constant(value=int(first)), *_]):
            return strides.elts[first if first < len(strides.elts) else -1]
    return strides.elts[-1]
