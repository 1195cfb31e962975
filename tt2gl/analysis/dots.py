"""Matrix products in a kernel as graph nodes, and which of them take a sum's other side as their accumulator."""

from __future__ import annotations

import ast
import functools
from typing import TYPE_CHECKING

from tt2gl.amd_matrix_layouts import chip_of
from tt2gl.analysis.arguments import Arguments
from tt2gl.analysis.facts import ConstFact, DotFact, FunctionFact, TensorFact
from tt2gl.analysis.frames import Frame, SeveralProducts, Value, unsupported
from tt2gl.analysis.graph import DotSite, Node, Web
from tt2gl.analysis.operations import gluon_dtype
from tt2gl.analysis.scaled_dots import read_scaled
from tt2gl.analysis.statics import position_of
from tt2gl.lowering.precise_dots import PRECISIONS
from tt2gl.plan import Start
from tt2gl.trees import nodes_in

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder

_DOT = "triton.language.core.dot"
_FLOATS = {"f16": "gl.float16", "bf16": "gl.bfloat16", "f32": "gl.float32"}
_PROMOTED = ("fp16", "bf16", "fp8e4nv", "fp8e5", "fp8e4b8", "fp8e5b16", "fp8e4b15")
_SEVERAL = {f'"{precision}"' for precision in PRECISIONS}


class DotReader:
    """Turns `tl.dot` into nodes."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def fuses(self, node: ast.Call, other: ast.expr, frame: Frame) -> bool:
        """Whether Triton's compiler adds into this call's product what the source adds to it, zeros too."""
        callee = frame.facts.expressions.get(position_of(node.func))
        if not isinstance(callee, FunctionFact) or callee.name != _DOT:
            return False
        chain = ((frame.key[0], node.lineno, node.col_offset), *frame.chain)
        # A product that this launch does not need is written as those have it that do.
        fact = self.builder.facts.lowered.dots.get(chain) or self.builder.products.get(chain)
        adds = fact is not None and (not fact.from_zero or _is_zeros(other, frame))
        given = Arguments(node, None).get("acc", 2)
        return adds and (given is None or self.is_none(given, frame))

    def read(
        self,
        node: ast.Call,
        frame: Frame,
        whole: ast.BinOp | ast.AugAssign | None = None,
        other: ast.expr | None = None,
    ) -> Value:
        """The node of a call, or of the sum (`whole`) whose `other` side it takes as accumulator."""
        added = self.builder.evaluate(other, frame) if other is not None else None
        arguments = Arguments(node, None)
        fact = frame.facts.expressions.get(position_of(node))
        a, b, given = arguments.get("input", 0), arguments.get("other", 1), arguments.get("acc", 2)
        if a is None or b is None or not isinstance(fact, TensorFact):
            raise unsupported("TTG302", "matrix multiplication in an unknown form", node, frame)
        if given is not None and self.is_none(given, frame):
            given = None
        start = self.start(other, added, fact, frame) if other is not None and added is not None else ()
        if added is not None and start is None:
            return self.builder.elementwise(whole or node, [added, self.read(node, frame)], frame)
        precision = self.precision(arguments, frame, node)
        if precision in _SEVERAL and self.is_float32(a, frame) and self.is_float32(b, frame):
            what = f"`input_precision={precision}`, which is several products, not written out where it is asked for"
            error = SeveralProducts("TTG302", what, (frame.key[0], node.lineno, node.col_offset))
            said = arguments.get("input_precision", 3)
            error.named = ast.unparse(said) if said is not None else ""
            raise error
        operands = [self.builder.evaluate(a, frame), self.builder.evaluate(b, frame)]
        if given is not None:
            operands.append(self.builder.evaluate(given, frame))
        if isinstance(added, Node):
            operands.append(added)
        made = self.builder.node("dot", whole or node, fact, operands, frame)
        first, second = made.operands[:2]
        whole_tile = len(made.operands) > 2 and made.operands[2].shape == made.shape
        sum_dims = made.operands[2].dims if whole_tile else made.dims
        own = (*first.dims[:-1], second.dims[-1])
        # A descriptor's block has no names; the sum that it is added to may have.
        made.dims = tuple(dim or summed for dim, summed in zip(own, sum_dims, strict=True))
        made.cheap = False
        made.chain = ((frame.key[0], node.lineno, node.col_offset), *frame.chain)
        made.dot = DotSite(
            call=position_of(node),
            a=position_of(a),
            b=position_of(b),
            accumulator=position_of(given) if given is not None else None,
            dtype=f"gl.{gluon_dtype(fact.dtype)}",
            precision=precision,
            imprecise=self.imprecise(arguments, frame),
            is_sum=whole is not None,
            promoted=self.promoted(a, made, frame),
            summed=self.summed(fact, made),
            chip=self.chip(made),
            asked=self.asked(node, precision, frame) if self.is_float32(a, frame) else None,
            start=start or (),
        )
        return made

    def start(self, other: ast.expr, added: Value, product: TensorFact, frame: Frame) -> tuple[Start, ...] | None:
        """What makes the accumulator of what is added to a product, as Triton does first; None where it cannot be one.

        Nothing for a tile of its type.
        """
        # What `+=` changes is known as what it becomes.
        changed = isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store)
        known = frame.facts.expressions.get(position_of(other)) if not changed else None
        if not isinstance(added, Node):
            is_scalar = isinstance(known, ConstFact) or isinstance(known, TensorFact) and not known.shape
            return ("fill",) if is_scalar else None
        if len(added.shape) != len(product.shape):
            return None
        differs = added.bits != product.bits or isinstance(known, TensorFact) and known.dtype != product.dtype
        cast: tuple[Start, ...] = ("cast",) if differs else ()
        return (*cast, "broadcast") if added.shape != product.shape else cast

    def lowered(self, made: Node) -> DotFact | None:
        """What Triton makes of a product; of one that it computes once with others, what it makes of one like it."""
        of_all = self.builder.products
        shapes = [operand.shape for operand in made.operands[:2]]
        alike = (dot for dot in of_all.values() if [dot.a.shape, dot.b.shape] == shapes)
        found = self.builder.facts.lowered.dots.get(made.chain) or of_all.get(made.chain)
        return found or next(alike, None)

    def promoted(self, operand: ast.expr, made: Node, frame: Frame) -> str | None:
        """What Triton makes of floats that no instruction of the target multiplies, as source."""
        fact = frame.facts.expressions.get(position_of(operand))
        lowered = self.lowered(made)
        if not isinstance(fact, TensorFact) or lowered is None or fact.dtype not in _PROMOTED:
            return None
        wider = _FLOATS.get(lowered.a.element)
        return None if wider == f"gl.{gluon_dtype(fact.dtype)}" else wider

    def summed(self, product: TensorFact, made: Node) -> str | None:
        """What a product adds up in where the instruction knows no sums of its type, as source."""
        lowered = self.lowered(made)
        wider = _FLOATS.get(lowered.element) if lowered is not None else None
        return None if wider == f"gl.{gluon_dtype(product.dtype)}" else wider

    def chip(self, made: Node) -> str:
        """The module of `gl.amd` that has the product's instruction; "" where none has."""
        lowered = self.lowered(made)
        return chip_of(lowered.accumulator) if lowered is not None else ""

    def read_scaled(self, node: ast.Call, frame: Frame) -> Node:
        """The node of a product of operands with shared scales."""
        return read_scaled(self.builder, node, frame)

    def precision(self, arguments: Arguments, frame: Frame, node: ast.Call) -> str | None:
        """The author's precision for 32-bit floats, as source; the options of the launch decide where it is None."""
        given = arguments.get("input_precision", 3)
        if given is not None and not self.is_none(given, frame):
            said = frame.facts.expressions.get(position_of(given))
            return f'"{said.value}"' if isinstance(said, ConstFact) else ast.unparse(given)
        allowed = arguments.get("allow_tf32", 4)
        fact = frame.facts.expressions.get(position_of(allowed)) if allowed is not None else None
        if isinstance(fact, ConstFact) and fact.value is not None:
            return '"tf32"' if fact.value else '"ieee"'
        return None

    def asked(self, node: ast.Call, precision: str | None, frame: Frame) -> str | None:
        """What holds of names where the precision that they give is this one, as source; None where it is written.

        And None in branches, where other constants may lead to a product of its own.
        """
        arguments = Arguments(node, None)
        said, allowed = arguments.get("input_precision", 3), arguments.get("allow_tf32", 4)
        function = self.builder.functions.get(frame.key)
        if precision is None or function is None or _is_in_branch(node, function):
            return None
        if said is not None:
            return f"{said.id} == {precision}" if isinstance(said, ast.Name) else None
        if not isinstance(allowed, ast.Name):
            return None
        return allowed.id if precision == '"tf32"' else f"not {allowed.id}"

    @staticmethod
    def is_float32(node: ast.expr, frame: Frame) -> bool:
        """Whether an operand is of 32-bit floats."""
        fact = frame.facts.expressions.get(position_of(node))
        return isinstance(fact, TensorFact) and fact.dtype in ("fp32", "float32")

    def imprecise(self, arguments: Arguments, frame: Frame) -> str | None:
        """`max_num_imprecise_acc` as source, where the author gives it."""
        given = arguments.get("max_num_imprecise_acc", 5)
        if given is None or self.is_none(given, frame):
            return None
        # A name is the launch's to say: another may give another number.
        said = None if isinstance(given, ast.Name) else frame.facts.expressions.get(position_of(given))
        return str(said.value) if isinstance(said, ConstFact) else ast.unparse(given)

    def is_none(self, node: ast.expr, frame: Frame) -> bool:
        """Whether an argument is given as None."""
        fact = frame.facts.expressions.get(position_of(node))
        return (
            isinstance(fact, ConstFact) and fact.value is None or isinstance(node, ast.Constant) and node.value is None
        )


def _is_in_branch(node: ast.Call, function: ast.FunctionDef) -> bool:
    """Whether a call is made in one branch of a function alone."""
    return node in _in_branches(function)


# Trees live as long as what is asked of them, and nodes are told apart by what they are, not by what they say.
@functools.lru_cache(maxsize=64)
def _in_branches(function: ast.FunctionDef) -> frozenset[ast.AST]:
    """All that is in some branch of a function."""
    branches = [each for each in nodes_in(function) if isinstance(each, ast.If | ast.IfExp)]
    return frozenset(part for branch in branches for part in nodes_in(branch))


def _is_zeros(other: ast.expr, frame: Frame) -> bool:
    """Whether a name has zeros that were made as often as it is read: no loop carries it."""
    bound = frame.env.get(other.id) if isinstance(other, ast.Name) else None
    made = bound.find().made_once() if isinstance(bound, Web) else None
    return made is not None and made.depth == frame.depth and made.node.function == "zeros"
