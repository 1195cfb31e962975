"""Tensor descriptors, a kernel's own or the host's, as graph nodes: what makes them, loads and stores through them.

A load puts its tile into shared memory, where products take it or from where it is read in any layout; a store or
atomic takes its value in the layout that it has. Other uses, and targets without TMA, raise `Unsupported`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tt2gl.analysis.arguments import Arguments
from tt2gl.analysis.facts import Fact, TensorFact
from tt2gl.analysis.frames import Frame, Value, unsupported
from tt2gl.analysis.graph import Node
from tt2gl.analysis.operations import short_name
from tt2gl.analysis.statics import Static, position_of
from tt2gl.targets import adds_tiles
from tt2gl.trees import nodes_in

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder

_TRANSFERS = {"load": "load", "store": "store", "load_tensor_descriptor": "load", "store_tensor_descriptor": "store"}
_BY_ROW = {"gather": (("x_offsets", 1), ("y_offset", 2)), "scatter": (("value", 1), ("x_offsets", 2), ("y_offset", 3))}
_ATOMICS = tuple(f"atomic_{kind}" for kind in ("add", "min", "max", "and", "or", "xor"))


_NO_HARDWARE = "a tensor descriptor, for which the target has no hardware"


class DescriptorReader:
    """Turns calls that have to do with descriptors into nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def read(self, name: str, node: ast.Call, receiver: ast.expr | None, frame: Frame, fact: Fact | None) -> Value:
        """The value of a call of Triton's, or of a method of the descriptor `receiver`."""
        arguments = Arguments(node, receiver)
        if short_name(name) == "make_tensor_descriptor":
            return self.make(node, arguments, frame, fact)
        kind = _TRANSFERS.get(short_name(name))
        if name in _ATOMICS and receiver is not None and self.builder.facts.mover == "tma" and adds_tiles():
            kind = name
        if name in _BY_ROW and receiver is not None and self.builder.facts.mover == "tma":
            kind = name
        if kind is None:
            raise unsupported("TTG304", f"a tensor descriptor's `{name}`", node, frame)
        through = arguments.get("desc", 0)
        if through is None:
            raise unsupported("TTG304", "a tensor descriptor in an unknown form", node, frame)
        if not self.builder.facts.mover:
            raise unsupported("TTG304", _NO_HARDWARE, node, frame)
        made = self.builder.evaluate(through, frame)
        places = _BY_ROW.get(kind, (("offsets", 1), ("value", 2)))
        operands = self.builder.accesses.operands(arguments, [*places], frame)
        tensors = [value for value in operands if isinstance(value, Node)]
        loads = kind in ("load", "gather")
        shape = fact if loads else self.builder.shape_of(arguments.get("value", dict(places)["value"]), frame)
        if not isinstance(shape, TensorFact):
            raise unsupported("TTG304", "a tensor descriptor in an unknown form", node, frame)
        transfer = self.builder.node("load" if loads else "store", node, shape, tensors, frame)
        transfer.tile, transfer.cheap = ast.unparse(through), loads
        transfer.function = kind
        dims = (made.dims if isinstance(made, Static) else ()) or (None,) * len(shape.shape)
        # Rows are as many as there are offsets.
        transfer.dims = (*tensors[-1].dims, *dims[1:]) if kind in _BY_ROW else dims
        return transfer

    def make(self, node: ast.Call, arguments: Arguments, frame: Frame, fact: Fact | None) -> Static:
        """A descriptor: its block's extents as the author named them, and the pointer that it starts from."""
        if not self.builder.facts.mover:
            raise unsupported("TTG304", _NO_HARDWARE, node, frame)
        base, block = arguments.get("base", 0), arguments.get("block_shape", 3)
        for value in self.builder.accesses.operands(arguments, [("base", 0), ("shape", 1), ("strides", 2)], frame):
            self.builder.effect(value)
        given = self.builder.evaluate(block, frame) if block is not None else ()
        parts = [part for part in given if isinstance(part, Static)] if isinstance(given, tuple) else []
        extents = tuple(part.integer for part in parts if part.integer is not None)
        kind = frame.facts.expressions.get(position_of(base)) if base is not None else None
        if not extents or len(extents) != len(parts) or not isinstance(kind, TensorFact):
            raise unsupported("TTG304", "a tensor descriptor in an unknown form", node, frame)
        made = self.builder.node("descriptor", node, TensorFact(extents, kind.dtype), [], frame)
        made.dims = tuple(part.text for part in parts)
        made.pointer, made.cheap = self.builder.accesses.pointer(base, frame), False
        self.builder.effect(made)
        return Static(None, fact, made.pointer, made.dims_known)


def asks_for_descriptor(node: ast.expr) -> bool:
    """Whether an expression names the type of descriptors: `isinstance(x, tl.tensor_descriptor)`."""
    return any(isinstance(part, ast.Attribute) and part.attr == "tensor_descriptor" for part in nodes_in(node))
