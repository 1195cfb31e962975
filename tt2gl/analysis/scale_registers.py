"""The registers that a product's scales are taken from, or are put into tensor memory from."""

from __future__ import annotations

from tt2gl.analysis.dot_formulas import NoFormulaError
from tt2gl.analysis.graph import Node
from tt2gl.analysis.tensor_cores import TensorCores
from tt2gl.analysis.terms import Root
from tt2gl.formulas import Tile
from tt2gl.matrix_layouts import read_mma
from tt2gl.scale_layouts import operand_scales_source
from tt2gl.tensor_memory_layouts import read_linear


def scale_registers(cores: TensorCores, node: Node, operand: int, value: Node) -> Root:
    """The layout of the scales of an operand of a product, which `value` is. Raises NoFormulaError where none fits."""
    use = cores.dots[node.chain]
    taken = {index: fact.scales[operand] for index, fact in use.facts.items()}
    shapes = {index: scale.shape for index, scale in taken.items()}
    dims, label = cores.dims(value, shapes), f"{use.name}_{('lhs', 'rhs')[operand]}_scale_layout"
    if use.instruction == "tcgen05_scaled":
        stored = {index: scale.registers for index, scale in taken.items() if scale.registers is not None}
        return Root(cores.register(dims, shapes, stored, label))
    layouts = {index: scale.layout for index, scale in taken.items()}
    name = cores.accumulator(node).name
    own = next(each for each in cores.classes.classes if each.name == name)
    if use.instruction == "mma_v2_scaled":
        found = [(read_linear(each, shapes[i]), read_mma(own.layouts[i]), shapes[i]) for i, each in layouts.items()]
        known = [(scales, sums, shape) for scales, sums, shape in found if scales is not None and sums is not None]
        bases, sums, extents = zip(*known, strict=True)
        made = operand_scales_source(bases, Tile(dims, extents), operand, own.source, sums)
        if not (own.exact and made.exact):
            # Gluon takes scales in any layout, and multiplies by whatever lies where the instruction looks for them.
            raise NoFormulaError("ttg.linear")
        return Root(cores.classes.named(dims, layouts, made.source, True, label))
    assert node.dot is not None
    function = f"gl.amd.{node.dot.chip}.get_{use.instruction.removesuffix('_scaled')}_scale_layout"
    elements = f"gl.DotOperandLayout({operand}, {own.source}, {cores.k_width(node, operand)})"
    return Root(cores.classes.named(dims, layouts, f"{function}({elements}, [{', '.join(dims)}])", own.exact, label))
