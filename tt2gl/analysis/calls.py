"""Calls in a kernel as graph nodes: builtins by table, methods as functions of their tensor."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tt2gl.analysis.arguments import Arguments, constant, integer
from tt2gl.analysis.extents import doubled
from tt2gl.analysis.facts import Fact, FunctionFact, OtherFact, TensorFact, TupleFact
from tt2gl.analysis.frames import Frame, Value, unsupported
from tt2gl.analysis.graph import Node
from tt2gl.analysis.operations import (
    ATOMIC,
    BROADCAST,
    CREATE,
    ELEMENTWISE,
    IGNORED,
    LATER,
    OPAQUE,
    REDUCE,
    REDUCTION_OPTIONS,
    SCAN,
    gluon_dtype,
    is_extern_math,
    is_operator,
    short_name,
)
from tt2gl.analysis.statics import Static, position_of, static_text
from tt2gl.targets import softmax_keeps_dims
from tt2gl.words import HELPED

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder


# A place that no call has arguments for: the option is by keyword only.
_NOWHERE = 99


class CallReader:
    """Turns a call into nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def read(self, node: ast.Call, frame: Frame, fact: Fact | None) -> Value:
        """The call's value. Raises `Unsupported` for what this version does not convert."""
        callee = frame.facts.expressions.get(position_of(node.func))
        receiver = None
        if isinstance(node.func, ast.Attribute):
            owner = frame.facts.expressions.get(position_of(node.func.value))
            if isinstance(owner, TensorFact | TupleFact):
                receiver = node.func.value
            elif isinstance(owner, OtherFact) and "descriptor" in owner.kind:
                return self.builder.descriptors.read(node.func.attr, node, node.func.value, frame, fact)
            elif isinstance(callee, OtherFact) and self._makes_tensors(frame.facts.callees.get(position_of(node), "")):
                what = f"`{ast.unparse(node.func)}`, a method of an aggregate that makes tensors"
                raise unsupported("TTG301", what, node, frame)
        arguments = Arguments(node, receiver)
        if isinstance(callee, FunctionFact) and callee.path is not None:
            return self.builder.helpers.read(node, arguments, frame)
        qualified = callee.name if isinstance(callee, FunctionFact) else ast.unparse(node.func)
        name = (
            node.func.attr if receiver is not None and isinstance(node.func, ast.Attribute) else short_name(qualified)
        )
        if isinstance(fact, TupleFact) and fact.fields:
            # A `NamedTuple` is made of what it is given, by name or place.
            given = [arguments.get(field, place) for place, field in enumerate(fact.fields)]
            parts = zip(given, fact.items, strict=True)
            return tuple(
                Static(None, item) if each is None else self.builder.evaluate(each, frame) for each, item in parts
            )
        if name == "dot":
            return self.builder.dots.read(node, frame)
        if name == "dot_scaled":
            return self.builder.dots.read_scaled(node, frame)
        if name.endswith("tensor_descriptor"):
            return self.builder.descriptors.read(name, node, None, frame, fact)
        if name in LATER:
            code, what = LATER[name]
            raise unsupported(code, what, node, frame)
        return self.builtin(name, qualified, node, arguments, frame, fact)

    def _makes_tensors(self, instance: str) -> bool:
        """Whether a function of the author's makes tensors, itself or by those that it calls: these need layouts."""
        facts = self.builder.facts.functions.get(instance)
        if facts is None:
            return False
        called = (fact for fact in facts.expressions.values() if isinstance(fact, FunctionFact) and fact.path is None)
        makes = any(short_name(fact.name) in CREATE for fact in called)
        return makes or any(self._makes_tensors(each) for each in set(facts.callees.values()) - {instance})

    def builtin(
        self, name: str, qualified: str, node: ast.Call, arguments: Arguments, frame: Frame, fact: Fact | None
    ) -> Value:
        """A function of Triton's."""
        if name in CREATE:
            return self.create(name, node, arguments, frame, fact)
        if name == "load":
            return self.builder.accesses.load(node, arguments, frame, fact)
        if name == "store":
            return self.builder.accesses.store(node, arguments, frame)
        if name in ATOMIC:
            return self.builder.accesses.atomic(node, arguments, frame, fact)
        values = [self.builder.evaluate(argument, frame) for argument in arguments.all()]
        flat = [v for value in values for v in (value if isinstance(value, tuple) else (value,))]
        tensors = [value for value in flat if isinstance(value, Node)]
        if name in BROADCAST and isinstance(fact, TensorFact):
            return self.broadcast(node, arguments, tensors, fact, frame)
        if not tensors:
            return Static(None, fact)
        if name == "constexpr":
            return values[0]  # another name of the tensor
        if name in REDUCE:
            return self.reduce(name, node, arguments, tensors, frame, fact)
        if name == "softmax" and isinstance(fact, TensorFact):
            return self.softmax(node, tensors, arguments, frame, fact)
        if name in SCAN:
            scans = self.spread(node, tensors, frame, fact, "scan", name if name in HELPED else "")
            for value in scans if isinstance(scans, tuple) else (scans,):
                if isinstance(value, Node):
                    value.axis = integer(arguments.get("axis", 1), frame)
            return scans
        if name == "expand_dims" and isinstance(values[0], Node):
            axis = integer(arguments.get("axis", 1), frame)
            if axis is not None:
                return self.builder.expanded(node, values[0], axis % (len(values[0].shape) + 1), frame)
        if name == "split" and len(tensors[0].shape) == 1:
            return self.parted(node, tensors[0], frame, fact)
        if name in ("join", "split"):
            halves = self.spread(node, tensors, frame, fact, name)
            for value in halves if isinstance(halves, tuple) else (halves,):
                if isinstance(value, Node):
                    value.dims = (*tensors[0].dims, "2") if name == "join" else tensors[0].dims[:-1]
            return halves
        if name in OPAQUE:
            return self.rearranged(name, node, arguments, tensors, frame, fact)
        if name in ELEMENTWISE or is_operator(name) or is_extern_math(qualified):
            computed = self.spread(node, tensors, frame, fact, "elementwise", name if name == "to" else "")
            is_cast = name in ("to", "cast") and fact == self.builder.shape_of(arguments.get("input", 0), frame)
            if is_cast and isinstance(computed, Node):
                computed.order = tuple(range(len(computed.shape)))
            return computed
        if name in IGNORED or not _tensors_in(fact):
            self.builder.effect(*tensors)
            return Static(None, fact)
        raise unsupported("TTG301", f"`{ast.unparse(node.func)}`", node, frame)

    def rearranged(
        self,
        name: str,
        node: ast.Call,
        arguments: Arguments,
        tensors: list[Node],
        frame: Frame,
        fact: Fact | None,
    ) -> Value:
        """The elements of a tensor in another order, or another shape."""
        shaped = self.spread(node, tensors, frame, fact, "opaque", name)
        if isinstance(shaped, Node):
            shaped.order = self.order(name, arguments, len(shaped.shape), frame)
            shaped.dims = self.reshaped(name, shaped, arguments, tensors[0], frame)
            if name == "gather" and (axis := integer(arguments.get("axis", 2), frame)) is not None:
                shaped.axis, shaped.dims = axis % len(shaped.shape), tensors[1].dims
            shaped.squeezed = name in ("reshape", "view") and not arguments.keywords and _is_squeezed(shaped)
        return shaped

    def attribute(self, node: ast.Attribute, frame: Frame, fact: Fact | None) -> Value:
        """`x.T` is transposed, `pair.first` an element of a `NamedTuple`."""
        owner = frame.facts.expressions.get(position_of(node.value))
        if isinstance(owner, TupleFact) and node.attr in owner.fields:
            value = self.builder.evaluate(node.value, frame)
            if isinstance(value, tuple):
                return self.builder.passed(node, value[owner.fields.index(node.attr)], frame)
        if node.attr != "T" or not isinstance(fact, TensorFact) or not fact.shape:
            return Static(None, fact)
        turned = self.builder.node(
            "opaque", node, fact, [self.builder.evaluate(node.value, frame)], frame, function="trans"
        )
        turned.order = tuple(reversed(range(len(fact.shape))))
        turned.dims = tuple(reversed(turned.operands[0].dims)) if turned.operands else turned.dims
        return turned

    def broadcast(
        self, node: ast.Call, arguments: Arguments, tensors: list[Node], fact: TensorFact, frame: Frame
    ) -> Node:
        """A tensor with more elements along a dimension, or a scalar made a tensor, which Gluon does with `full`."""
        if tensors:
            made = self.builder.node("elementwise", node, fact, tensors[:1], frame, function="broadcast_to")
        else:
            made = self.builder.node("create", node, fact, [], frame, function="fill")
            value = arguments.get("input", 0)
            dtype = f"{value.id}.dtype" if isinstance(value, ast.Name) else f"gl.{gluon_dtype(fact.dtype)}"
            made.scalars = ((made.site.position, dtype),)
        shape = _parts_of_shape(arguments)
        if len(shape) == len(made.shape):
            made.dims = tuple(self.text(part, frame) for part in shape)
        return made

    def spread(
        self, node: ast.Call, tensors: list[Node], frame: Frame, fact: Fact | None, kind: str, name: str = ""
    ) -> Value:
        """A node, or for a function of several results one node each, all computed at the same place."""
        facts = fact.items if isinstance(fact, TupleFact) else (fact,)
        made: list[Value] = []
        for item in facts:
            if isinstance(item, TensorFact) and item.shape:
                made.append(self.builder.node(kind, node, item, tensors, frame, function=name))  # type: ignore[arg-type]
            else:
                self.builder.effect(*tensors)
                made.append(Static(None, item))
        return self.gathered(made, fact)

    def softmax(
        self, node: ast.Call, tensors: list[Node], arguments: Arguments, frame: Frame, fact: TensorFact
    ) -> Value:
        """Triton's own function, where it keeps the dimension of the maxima that it subtracts if there is another.

        Where it does not, maxima along the first dimension are spread along it, which Gluon has to be told, as it has
        to be that the maximum of a row is a scalar.
        """
        of_row = len(fact.shape) == 1
        kept = softmax_keeps_dims() or bool(constant(arguments.get("keep_dims", 2), frame))
        whole = kept != of_row
        dim = arguments.get("dim", 1)
        if not whole and not of_row and dim is not None and integer(dim, frame) not in (0, -len(fact.shape)):
            raise unsupported("TTG301", "`tl.softmax` along a later dimension that it does not keep", node, frame)
        return self.spread(node, tensors, frame, fact, "scan", "" if whole else "softmax")

    def parted(self, node: ast.Call, pair: Node, frame: Frame, fact: Fact | None) -> Value:
        """The two scalars of a pair, which have no layout; but Triton parts the pair as a row of one."""
        half = self.builder.node("split", node, TensorFact((1,), f"int{pair.bits}"), [pair], frame)
        half.dims, half.several = ("1",), True
        self.builder.effect(half)
        return tuple(Static(None, item) for item in fact.items) if isinstance(fact, TupleFact) else Static(None, fact)

    def gathered(self, made: list[Value], fact: Fact | None) -> Value:
        """The results of one call: several share its expression, so none can be converted there."""
        if not isinstance(fact, TupleFact):
            return made[0]
        for value in made:
            if isinstance(value, Node):
                value.several = True
        return tuple(made)

    def reshaped(
        self, name: str, made: Node, arguments: Arguments, operand: Node, frame: Frame
    ) -> tuple[str | None, ...]:
        """Extents of a reshaped value, as the author wrote them."""
        if name in ("reshape", "view"):
            parts = _parts_of_shape(arguments)
            if len(parts) == len(made.shape):
                return tuple(self.text(part, frame) for part in parts)
        if name == "interleave" and (last := operand.dims[-1]) is not None:
            return (*operand.dims[:-1], doubled(last))
        if name == "cat":
            return tuple(
                dim if extent == made.shape[at] else f"{dim} * 2" if dim and dim.isidentifier() else None
                for at, (dim, extent) in enumerate(zip(operand.dims, operand.shape, strict=True))
            )
        if name == "topk":
            kept = arguments.get("k", 1)
            return (*operand.dims[:-1], None if kept is None else self.text(kept, frame))
        if made.order:
            return tuple(operand.dims[dim] for dim in made.order)
        return tuple(None for _ in made.shape)

    def order(self, name: str, arguments: Arguments, rank: int, frame: Frame) -> tuple[int, ...]:
        """The dimensions of a transposition, in their new order; empty for other operations."""
        if name not in ("trans", "permute", "T"):
            return ()
        given = [*arguments.places[1:], *arguments.keywords.values()]
        if len(given) == 1 and isinstance(given[0], ast.Tuple | ast.List):
            given = list(given[0].elts)
        if not given:
            return (*range(rank - 2), rank - 1, rank - 2)
        dims = [integer(part, frame) for part in given]
        return tuple(dim % rank for dim in dims if dim is not None) if None not in dims else ()

    def create(self, name: str, node: ast.Call, arguments: Arguments, frame: Frame, fact: Fact | None) -> Value:
        """`arange`, `zeros`, `full`: extents are named as the author named them."""
        if not isinstance(fact, TensorFact) or not fact.shape:
            # Without extents it has no layout; but only Gluon's own function takes none.
            self.builder.graph.touched.add(frame.key)
            return Static(None, fact)
        if name.endswith("_like") or name == "histogram":
            given = arguments.places[:1] if name.endswith("_like") else arguments.all()
            values = [self.builder.evaluate(argument, frame) for argument in given]
            made = self.builder.node("create", node, fact, values, frame, function=name)
            if name == "histogram":
                bins = arguments.get("num_bins", 1)
                made.dims, made.cheap = (self.text(bins, frame) if bins is not None else None,), False
            return made
        made = self.builder.node("create", node, fact, [], frame, function=name)
        if name == "arange":
            start, end = arguments.get("start", 0), arguments.get("end", 1)
            if start is None or end is None:
                return made
            first, last = self.text(start, frame), self.text(end, frame)
            if first == "0":
                made.dims, made.counts = (last,), True
            elif first is not None and last is not None:
                made.dims = (f"{last} - {first}",)
            return made
        shape = arguments.get("shape", 0)
        if isinstance(shape, ast.Tuple | ast.List):
            made.dims = tuple(self.text(part, frame) for part in shape.elts)
        value_of = arguments.get("value", 1)
        if name == "full" and value_of is not None:
            self.builder.effect(self.builder.evaluate(value_of, frame))
        return made

    def reduce(
        self, name: str, node: ast.Call, arguments: Arguments, tensors: list[Node], frame: Frame, fact: Fact | None
    ) -> Value:
        """A reduction; to a scalar it has no layout, but its operand must have one."""
        places = REDUCTION_OPTIONS.get(name, {})
        both = bool(constant(arguments.get("return_indices", places.get("return_indices", _NOWHERE)), frame))
        indexed = name.removeprefix("arg") if both or name.startswith("arg") else ""
        if indexed and len(tensors[0].shape) > 2:
            raise unsupported("TTG301", f"`{name}` with indices of a tensor of rank over two", node, frame)
        if both:
            tensors = [tensors[0], tensors[0]]
        axis = integer(arguments.get("axis", 1), frame)
        keep = bool(constant(arguments.get("keep_dims", places.get("keep_dims", _NOWHERE)), frame))
        rank = len(tensors[0].shape)
        facts = fact.items if isinstance(fact, TupleFact) else (fact,)
        made: list[Value] = []
        for item, tensor in zip(facts, tensors, strict=False):
            shape = item.shape if isinstance(item, TensorFact) else ()
            result = self.builder.node("reduce", node, TensorFact(shape, f"int{tensor.bits}"), tensors, frame)
            result.function = f"{indexed}{'' if both else ' index'}" if indexed else ""
            result.axis, result.keep_dims, result.cheap = (None if axis is None else axis % rank), keep, False
            if shape and result.axis is not None:
                kept = ("1",) if keep else ()
                result.dims = (*tensor.dims[: result.axis], *kept, *tensor.dims[result.axis + 1 :])
            if not shape:
                self.builder.effect(result)
            made.append(result if shape else Static(None, item))
        if keep and isinstance(fact, TensorFact) and (axis is None or rank == 1) and not indexed:
            return self.kept_scalar(node, tensors, fact, frame)
        return self.gathered(made, fact)

    def kept_scalar(self, node: ast.Call, tensors: list[Node], fact: TensorFact, frame: Frame) -> Node:
        """A reduction to a scalar that keeps its dimensions: the scalar made a tensor of one element."""
        scalar = self.builder.node("reduce", node, TensorFact((), f"int{tensors[0].bits}"), tensors, frame)
        scalar.cheap = False
        self.builder.effect(scalar)
        return self.builder.tile_of_one(node, fact, frame)

    def text(self, node: ast.expr, frame: Frame) -> str | None:
        """A compile-time argument in the kernel's own words."""
        return static_text(node, frame.texts, frame.globals, frame.facts.expressions.get(position_of(node)))


def _tensors_in(fact: Fact | None) -> bool:
    if isinstance(fact, TupleFact):
        return any(_tensors_in(item) for item in fact.items)
    return isinstance(fact, TensorFact) and bool(fact.shape)


def _parts_of_shape(arguments: Arguments) -> list[ast.expr]:
    """The extents that a call gives its result, in a list or one by one."""
    shape = arguments.get("shape", 1)
    return shape.elts if isinstance(shape, ast.Tuple | ast.List) else arguments.places[1:]


def _is_squeezed(node: Node) -> bool:
    """Whether a reshape takes away leading dimensions of one element each, and leaves two at least."""
    before, after = node.operands[0].shape, node.shape
    gone = len(before) - len(after)
    return gone > 0 and len(after) > 1 and before == (1,) * gone + after
