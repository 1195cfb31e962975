"""Layouts of the scales of operands in registers, as values, formulas and Gluon source.

Where `mma_v2` multiplies scaled operands, a lane has the scales of the rows of the first that it has elements of, and
of the columns of the second (Triton's getSM120DotScaledScaleLayout). Gluon does not check what layout they come in.
"""

from __future__ import annotations

from collections.abc import Sequence

from tt2gl.formulas import Candidate, Tile, Written, written
from tt2gl.matrix_layouts import Mma
from tt2gl.tensor_memory_layouts import Linear


def operand_scales(operand: int, warps: Sequence[int], shape: Sequence[int]) -> Linear:
    """The scales of an operand, of which each row or column of it has some (`OPERAND_SCALES_SOURCE`)."""
    step = 8 if operand else 16
    covered = step * warps[operand]

    def bases(first: int, end: int, dim: int = 0) -> tuple[tuple[int, int], ...]:
        steps = [first << bit for bit in range((end // first).bit_length() - 1)]
        # What is covered beyond the tile holds it again.
        return tuple((0, each) if dim else (each % shape[0], 0) for each in steps)

    registers = bases(1, shape[1], 1) + bases(covered, shape[0])
    lanes = ((0 if operand else 8 % shape[0], 0), (0, 0), *bases(1, 8))
    own, others = bases(step, covered), ((0, 0),) * (warps[1 - operand].bit_length() - 1)
    return Linear(registers, lanes, own + others if operand else others + own, (), tuple(shape))


OPERAND_SCALES_SOURCE = '''@gluon.constexpr_function
def operand_scales_layout(operand, mma, shape):
    """Scales of an operand of `mma_v2`: a lane has those of the rows or columns that it has elements of."""
    warps, step = mma.warps_per_cta, 8 if operand else 16
    covered = step * warps[operand]

    def bases(first, end, dim=0):
        steps = [first << bit for bit in range((end // first).bit_length() - 1)]
        # what is covered beyond the tile holds it again
        return [[0, each] if dim else [each % shape[0], 0] for each in steps]

    registers = bases(1, shape[1], 1) + bases(covered, shape[0])
    lanes = [[0 if operand else 8 % shape[0], 0], [0, 0]] + bases(1, 8)
    own, others = bases(step, covered), [[0, 0]] * (warps[1 - operand].bit_length() - 1)
    return gl.DistributedLinearLayout(registers, lanes, own + others if operand else others + own, [], shape)
'''
"""`operand_scales` as a Gluon helper, which is given the layout of the sum."""


def operand_scales_source(values: Sequence[Linear], tile: Tile, operand: int, own: str, sums: Sequence[Mma]) -> Written:
    """Scales as source that gives `values`, one a launch, of an operand of products whose layouts `own` gives."""

    def value(index: int) -> Linear:
        return operand_scales(operand, sums[index].warps_per_cta, tile.shapes[index])

    formula = Candidate(f"operand_scales_layout({operand}, {own}, {tile.source})", value, (OPERAND_SCALES_SOURCE,))
    return written(values, [formula])
