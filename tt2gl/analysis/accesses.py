"""Accesses to global memory as graph nodes: loads, stores and atomics, with the parameter at an address's base."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tt2gl.analysis.arguments import Arguments
from tt2gl.analysis.facts import ConstFact, Fact, OtherFact, TensorFact
from tt2gl.analysis.frames import Frame, Value, unsupported
from tt2gl.analysis.graph import Node, Web
from tt2gl.analysis.operations import gluon_dtype, short_name
from tt2gl.analysis.statics import Static, position_of
from tt2gl.trees import nodes_in

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder


class AccessReader:
    """Turns loads, stores and atomics into nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def load(self, node: ast.Call, arguments: Arguments, frame: Frame, fact: Fact | None) -> Value:
        """A global load; scalars pass."""
        operands = [("pointer", 0), ("mask", 1), ("other", 2)]
        values = self.operands(arguments, operands, frame)
        pointer = values[0]
        if not isinstance(pointer, Node):
            if isinstance(pointer, Static) and isinstance(pointer.fact, OtherFact):
                raise unsupported("TTG303", "a block pointer", node, frame)
            return Static(None, fact)
        if not isinstance(fact, TensorFact):
            fact = TensorFact(pointer.shape, f"int{pointer.bits}")
        made = self.builder.node("load", node, fact, values, frame)
        if pointer.shape == fact.shape:  # else it is spread over the mask
            made.dims = pointer.dims
        made.pointer = self.pointer(arguments.get("pointer", 0), frame)
        made.function = self.spelled_pointer(arguments.get("pointer", 0), frame)
        made.dtype = f"gl.{gluon_dtype(fact.dtype)}"
        return made

    def store(self, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
        """A global store: pointer, value, mask."""
        values = self.operands(arguments, [("pointer", 0), ("value", 1), ("mask", 2)], frame)
        return self.write("store", node, arguments, values, frame)

    def atomic(self, node: ast.Call, arguments: Arguments, frame: Frame, fact: Fact | None) -> Value:
        """A global read-modify-write; compare-and-swap has two values and no mask."""
        callee = short_name(ast.unparse(node.func))
        names = [("pointer", 0), ("val", 1), ("mask", 2)]
        if callee == "atomic_cas":
            names = [("pointer", 0), ("cmp", 1), ("val", 2)]
        values = self.operands(arguments, names, frame)
        result = self.write("atomic", node, arguments, values, frame)
        if isinstance(result, Node) and isinstance(fact, TensorFact):
            result.bits = fact.bits
        return result

    def write(self, kind: str, node: ast.Call, arguments: Arguments, values: list[Value], frame: Frame) -> Value:
        """The node of a store or an atomic."""
        pointer = values[0]
        if not isinstance(pointer, Node):
            if isinstance(pointer, Static) and isinstance(pointer.fact, OtherFact):
                raise unsupported("TTG303", "a block pointer", node, frame)
            self.builder.effect(*values)
            return Static(None)
        fact = TensorFact(pointer.shape, f"int{pointer.bits}")
        made = self.builder.node(kind, node, fact, values, frame)  # type: ignore[arg-type]
        made.dims, made.cheap, made.pointer = pointer.dims, False, self.pointer(arguments.get("pointer", 0), frame)
        swaps = kind == "atomic" and "cas" in ast.unparse(node.func)
        if not swaps:
            made.function = self.element(arguments.get("pointer", 0), frame)
        if kind == "atomic":
            # A store takes a scalar as it is; an atomic wants a tile.
            names = [("cmp", 1), ("val", 2)] if swaps else [("val", 1), ("mask", 2)]
            given = [(name, arguments.get(name, place)) for name, place in names]
            element = "gl.int1", self.spelled_element(arguments.get("pointer", 0), frame)
            made.scalars = tuple(
                (position_of(argument), element[name != "mask"])
                for name, argument in given
                if argument is not None and not self.is_tile(argument, frame)
            )
        return made

    def is_tile(self, argument: ast.expr, frame: Frame) -> bool:
        """Whether an argument has a shape; one left out (None) needs none."""
        fact = frame.facts.expressions.get(position_of(argument))
        return isinstance(fact, TensorFact) and bool(fact.shape) or fact == ConstFact(None)

    def operands(self, arguments: Arguments, names: list[tuple[str, int]], frame: Frame) -> list[Value]:
        """Named arguments evaluated; those not given are left out."""
        given = [arguments.get(name, place) for name, place in names]
        return [self.builder.evaluate(argument, frame) for argument in given if argument is not None]

    def pointer(self, argument: ast.expr | None, frame: Frame) -> str | None:
        """The kernel's parameter at the base of an address: `x_ptr` in `x_ptr + row * stride + cols`."""
        while isinstance(argument, ast.BinOp):
            left = frame.facts.expressions.get(position_of(argument.left))
            argument = argument.left if isinstance(left, TensorFact) and left.is_pointer else argument.right
        if not isinstance(argument, ast.Name):
            return None
        bound = frame.env.get(argument.id)
        if isinstance(bound, Web):
            made = bound.find().definitions
            return made[0].node.pointer if made else None
        return bound.pointer if isinstance(bound, Static) else None

    def element(self, argument: ast.expr | None, frame: Frame) -> str:
        """The dtype of what an address is of, by a scalar pointer in it or at its base; empty where there is none."""
        base = self.pointer(argument, frame)
        for name, fact in self._named(argument, frame):
            # The kernel's own parameter says it, too, where it is moved to a tile: `x_ptr += rows[:, None]`.
            if not fact.shape or name == base and not frame.chain:
                return f"{name}.dtype.element_ty"
        # In a helper its parameter has a name of its own, and what is so called may stand for something else by now.
        names = frame.env if frame.chain else [base]
        bound = ((name, frame.env.get(name)) for name in names if base is not None and name is not None)
        scalars = (name for name, value in bound if isinstance(value, Static) and value.pointer == base)
        return next((f"{name}.dtype.element_ty" for name in scalars), "")

    def spelled_pointer(self, argument: ast.expr | None, frame: Frame) -> str:
        """A name in the author's address that has its dtype; empty where there is none."""
        return next((name for name, _ in self._named(argument, frame)), "")

    def spelled_element(self, argument: ast.expr | None, frame: Frame) -> str:
        """The dtype of what an address is of: that of a name in it, else as Triton has it."""
        if name := self.spelled_pointer(argument, frame):
            return f"{name}.dtype.element_ty"
        fact = frame.facts.expressions.get(position_of(argument)) if argument is not None else None
        return f"gl.{gluon_dtype(fact.pointee)}" if isinstance(fact, TensorFact) else "pointer.dtype.element_ty"

    def _named(self, argument: ast.expr | None, frame: Frame) -> Iterator[tuple[str, TensorFact]]:
        """The names in an address that point to what it points to: not those that it casts."""
        whole = frame.facts.expressions.get(position_of(argument)) if argument is not None else None
        for part in nodes_in(argument) if argument is not None else ():
            fact = frame.facts.expressions.get(position_of(part)) if isinstance(part, ast.Name) else None
            if not isinstance(part, ast.Name) or not isinstance(fact, TensorFact) or not fact.is_pointer:
                continue
            if not isinstance(whole, TensorFact) or fact.pointee == whole.pointee:
                yield part.id, fact
