"""Expressions: the value of each kind of node, with what is undecided carried to where it is used."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from tt2gl.host import facts, operations
from tt2gl.host.attributes import Attributes
from tt2gl.host.base import ABSENT
from tt2gl.host.externals import environment
from tt2gl.host.scopes import Scope
from tt2gl.host.values import (
    Builtin,
    Class,
    Constexpr,
    External,
    Frame,
    Function,
    HostRaise,
    Made,
    Member,
    ModuleValue,
    Partial,
    Undecided,
    Unknown,
    is_data,
)


class Expressions(Attributes):
    """Evaluates expressions other than calls."""

    def call_node(self, node: ast.Call, frame: Frame) -> Any:
        """The value of a call."""
        raise NotImplementedError

    def truth(self, value: Any, node: ast.AST, frame: Frame) -> bool:
        """`bool(value)`. Raises Undecided."""
        match value:
            case Unknown(cause):
                raise Undecided(cause)
            case Constexpr(inner):
                return self.truth(inner, node, frame)
            case External() if value.module or value.within("triton"):
                return True
            case Function() | Class() | ModuleValue() | Builtin() | Partial() | Made() | SimpleNamespace() | Member():
                return True
            case External(dotted) if (answer := facts.question(dotted.rpartition(".")[2], self.target)) is not None:
                return answer
        if is_data(value):
            return bool(value)
        raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")

    def evaluate(self, node: ast.expr, frame: Frame) -> Any:
        """The value of an expression. Raises Undecided or HostRaise."""
        self.steps -= 1
        if self.steps < 0:
            raise self.undecided(frame.scope, node, "it takes too many steps")
        handler = _EXPRESSIONS.get(type(node))
        if handler is None:
            raise self.undecided(frame.scope, node, f"`{ast.unparse(node)[:60]}` cannot be read")
        try:
            return handler(self, node, frame)
        except Undecided as error:
            if error.cause.line:
                raise
            raise self.undecided(frame.scope, node, error.cause.text) from None
        except RecursionError:
            raise self.undecided(frame.scope, node, "it is nested too deeply") from None

    def lenient(self, node: ast.expr, frame: Frame) -> Any:
        """A value for a place: what is undecided stays so until it is used."""
        try:
            return self.evaluate(node, frame)
        except Undecided as error:
            return Unknown(error.cause)

    def _name(self, node: ast.Name, frame: Frame) -> Any:
        current: Frame | None = frame
        while current is not None and current.locals is not None:
            if node.id in current.locals:
                return self.known(current.locals[node.id])
            if current.outer is None:
                break
            current = current.outer
        target = current or frame
        try:
            return self.resolve(target.scope, node.id, target.before)
        except Undecided:
            # A flag of the whole program (`HAS_TRITON`) may be found while it runs.
            answer = facts.question(node.id, self.target) if node.id.isupper() else None
            if answer is None or _is_given(target.scope, node.id):
                raise
            return answer

    def _attribute_node(self, node: ast.Attribute, frame: Frame) -> Any:
        return self.attribute(self.evaluate(node.value, frame), node.attr)

    def _subscript(self, node: ast.Subscript, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        index = self.evaluate(node.slice, frame)
        return self.known(self.item(value, index, node, frame))

    def item(self, value: Any, index: Any, node: ast.AST, frame: Frame) -> Any:
        """`value[index]`."""
        if isinstance(value, External) and value.dotted == "os.environ" and isinstance(index, str):
            return environment(index, ABSENT)
        if isinstance(value, Class):
            return self.class_attribute(value, index)
        if not is_data(value):
            raise self.undecided(frame.scope, node, "its container is not known")
        return operations.guarded(lambda: value[index], "the item")

    def _slice(self, node: ast.Slice, frame: Frame) -> Any:
        parts = [None if part is None else self.evaluate(part, frame) for part in (node.lower, node.upper, node.step)]
        return slice(*parts)

    def _sequence(self, node: ast.Tuple | ast.List | ast.Set, frame: Frame) -> Any:
        items: list[Any] = []
        for element in node.elts:
            if isinstance(element, ast.Starred):
                items.extend(self.iterate(element.value, frame))
            else:
                items.append(self.lenient(element, frame))
        return {ast.Tuple: tuple, ast.List: list, ast.Set: set}[type(node)](items)

    def _dict(self, node: ast.Dict, frame: Frame) -> Any:
        items: dict[Any, Any] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                items.update(self.evaluate(value, frame))
            else:
                found = self.evaluate(key, frame)
                operations.guarded(functools.partial(hash, found), "the key")
                items[found] = self.lenient(value, frame)
        return items

    def _boolean(self, node: ast.BoolOp, frame: Frame) -> Any:
        stops = isinstance(node.op, ast.Or)
        pending: Undecided | None = None
        value: Any = None
        for operand in node.values:
            try:
                value = self.evaluate(operand, frame)
                if self.truth(value, operand, frame) == stops:
                    # `unknown and False` is false all the same; which falsy value it is does not matter to a test.
                    return value if pending is None else stops
            except Undecided as error:
                pending = pending or error
        if pending is not None:
            raise pending
        return value

    def _unary(self, node: ast.UnaryOp, frame: Frame) -> Any:
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.Not):
            return not self.truth(value, node.operand, frame)
        wrap = isinstance(value, Constexpr)
        plain = value.value if isinstance(value, Constexpr) else value
        if not is_data(plain):
            raise self.undecided(frame.scope, node, "its operand is not known")
        operation = _UNARY[type(node.op)]
        result = operations.guarded(lambda: operation(plain), "the operation")
        return Constexpr(result) if wrap else result

    def _binary_node(self, node: ast.BinOp, frame: Frame) -> Any:
        return self.binary(node.op, self.evaluate(node.left, frame), self.evaluate(node.right, frame), node, frame)

    def binary(self, op: ast.operator, left: Any, right: Any, node: ast.AST, frame: Frame) -> Any:
        """`left op right`, a constexpr where an operand is one."""
        wrap = isinstance(left, Constexpr) or isinstance(right, Constexpr)
        left = left.value if isinstance(left, Constexpr) else left
        right = right.value if isinstance(right, Constexpr) else right
        if not (is_data(left) and is_data(right)):
            raise self.undecided(frame.scope, node, "an operand is not known")
        result = operations.binary(type(op), left, right)
        return Constexpr(result) if wrap else result

    def _compare(self, node: ast.Compare, frame: Frame) -> bool:
        left = self.evaluate(node.left, frame)
        for op, operand in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(operand, frame)
            if not self._compared(op, left, right, node, frame):
                return False
            left = right
        return True

    def _compared(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST, frame: Frame) -> bool:
        left = left.value if isinstance(left, Constexpr) else left
        right = right.value if isinstance(right, Constexpr) else right
        if isinstance(op, ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
            same = self._same(left, right, isinstance(op, ast.Is | ast.IsNot))
            if same is not None:
                return same == isinstance(op, ast.Is | ast.Eq)
        elif isinstance(op, ast.In | ast.NotIn):
            if isinstance(right, External) and right.dotted == "os.environ":
                return (environment(left, None) is not None) == isinstance(op, ast.In)
            if is_data(right) and not (isinstance(right, (list, tuple)) and any(isinstance(x, Unknown) for x in right)):
                inside = operations.guarded(lambda: left in right, "the test")
                return bool(inside) == isinstance(op, ast.In)
        elif is_data(left) and is_data(right):
            return bool(operations.compare(type(op), left, right))
        raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")

    @staticmethod
    def _same(left: Any, right: Any, identity: bool) -> bool | None:
        if is_data(left) and is_data(right):
            if isinstance(left, facts.Version) != isinstance(right, facts.Version):
                left, right = str(left), str(right)
            same = left is right or (left == right and (type(left) is type(right) or not identity))
            return bool(same)
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Function | Class | ModuleValue | SimpleNamespace | Made | Member) and is_data(other):
                return False
            if isinstance(one, External) and other is None and (one.module or one.within("triton")):
                return False
        if isinstance(left, External) and isinstance(right, External):
            if left.dotted == right.dotted:
                return True
            return False if left.dotted.split(".")[0] == right.dotted.split(".")[0] else None
        if type(left) is type(right) and isinstance(left, Function | Class | ModuleValue | Member):
            return bool(left == right)
        return None

    def _conditional(self, node: ast.IfExp, frame: Frame) -> Any:
        chosen = node.body if self.decide(node.test, frame) else node.orelse
        return self.evaluate(chosen, frame)

    def _fstring(self, node: ast.JoinedStr, frame: Frame) -> str:
        parts = []
        for piece in node.values:
            if isinstance(piece, ast.Constant):
                parts.append(str(piece.value))
            elif isinstance(piece, ast.FormattedValue):
                value = self.evaluate(piece.value, frame)
                specification = (
                    self._fstring(piece.format_spec, frame) if isinstance(piece.format_spec, ast.JoinedStr) else ""
                )
                if not is_data(value):
                    raise self.undecided(frame.scope, node, "a part of the text is not known")
                value = _CONVERSIONS.get(piece.conversion, _unchanged)(value)
                parts.append(operations.formatted(value, specification))
        return "".join(parts)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, frame: Frame) -> Any:
        results: list[Any] = []
        inner = Frame(frame.scope, {}, frame if frame.locals is not None else None, frame.before)

        def run(index: int) -> None:
            if index == len(node.generators):
                if isinstance(node, ast.DictComp):
                    results.append((self.evaluate(node.key, inner), self.lenient(node.value, inner)))
                else:
                    results.append(self.lenient(node.elt, inner))
                return
            generator = node.generators[index]
            for item in self.iterate(generator.iter, inner):
                self.assign(generator.target, item, inner)
                if all(self.truth(self.evaluate(test, inner), test, inner) for test in generator.ifs):
                    run(index + 1)

        run(0)
        match node:
            case ast.DictComp():
                return dict(results)
            case ast.SetComp():
                return set(results)
        return results

    def iterate(self, node: ast.expr, frame: Frame) -> list[Any]:
        """The items that an expression gives to a loop."""
        value = self.evaluate(node, frame)
        if isinstance(value, Class):
            scope = Scope(value.frame.scope.module, value.node.body, value.frame.scope, value.node)
            return [self.class_attribute(value, name) for name in scope.bindings if not name.startswith("_")]
        if not is_data(value) or isinstance(value, facts.Version):
            raise self.undecided(frame.scope, node, f"nothing is known about `{ast.unparse(node)}`")
        return operations.listed(value)

    def _walrus(self, node: ast.NamedExpr, frame: Frame) -> Any:
        value = self.evaluate(node.value, frame)
        if frame.locals is not None:
            self.assign(node.target, value, frame)
        return value

    def _lambda(self, node: ast.Lambda, frame: Frame) -> Function:
        return Function(frame, node)

    def assign(self, target: ast.expr, value: Any, frame: Frame) -> None:
        """Bind a target in a function being read."""
        assert frame.locals is not None
        match target:
            case ast.Name(id=name):
                frame.locals[name] = value
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                if isinstance(value, Unknown) or not is_data(value):
                    for element in elements:
                        unknown = (
                            value
                            if isinstance(value, Unknown)
                            else Unknown(self.undecided(frame.scope, target, "not known").cause)
                        )
                        self.assign(element, unknown, frame)
                    return
                items = operations.listed(value)
                if len(items) != len(elements):
                    raise HostRaise("ValueError", "unpacking")
                for element, item in zip(elements, items, strict=True):
                    self.assign(element, item, frame)
            case ast.Subscript(value=container, slice=index):
                holder, key = self.evaluate(container, frame), self.evaluate(index, frame)
                if isinstance(holder, dict | list) and self.depth:
                    operations.guarded(lambda: holder.__setitem__(key, value), "the item")


def _is_given(scope: Scope, name: str) -> bool:
    """Whether a name is a parameter of a function around."""
    return name in scope.parameters or scope.parent is not None and _is_given(scope.parent, name)


def _unchanged(value: Any) -> Any:
    return value


_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}

# What `!r`, `!s` and `!a` in an f-string call.
_CONVERSIONS: Mapping[int, Callable[[Any], Any]] = {ord("r"): repr, ord("s"): str, ord("a"): ascii}

_EXPRESSIONS: Mapping[type[ast.expr], Callable[..., Any]] = {
    ast.Constant: lambda _, node, __: node.value,
    ast.Name: Expressions._name,
    ast.Attribute: Expressions._attribute_node,
    ast.Subscript: Expressions._subscript,
    ast.Slice: Expressions._slice,
    ast.Tuple: Expressions._sequence,
    ast.List: Expressions._sequence,
    ast.Set: Expressions._sequence,
    ast.Dict: Expressions._dict,
    ast.BoolOp: Expressions._boolean,
    ast.UnaryOp: Expressions._unary,
    ast.BinOp: Expressions._binary_node,
    ast.Compare: Expressions._compare,
    ast.IfExp: Expressions._conditional,
    ast.JoinedStr: Expressions._fstring,
    ast.ListComp: Expressions._comprehension,
    ast.SetComp: Expressions._comprehension,
    ast.GeneratorExp: Expressions._comprehension,
    ast.DictComp: Expressions._comprehension,
    ast.Lambda: Expressions._lambda,
    ast.NamedExpr: Expressions._walrus,
    ast.Call: lambda self, node, frame: self.call_node(node, frame),
}
