"""The layouts of dots and rings as source: the formula that gives every launch the layout it has in Triton."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from tt2gl.analysis.memory import Scene, pointee_bits
from tt2gl.formulas import Tile, Width, Written
from tt2gl.ir.attributes import DialectAttr
from tt2gl.matrix_layouts import Mma, fma_layout_source, mma_source, read_blocked, read_mma
from tt2gl.shared_layouts import (
    Swizzled,
    nvmma_shared_source,
    read_nvmma_shared,
    read_swizzled,
    swizzled_source,
)
from tt2gl.tensor_memory_layouts import loaded_source, read_linear, read_tensor_memory, tensor_memory_source

Layouts = Mapping[int, DialectAttr]
"""A layout under each launch that has it, by the launch's index."""

Shapes = Mapping[int, tuple[int, ...]]
"""The extents of a tile under each launch."""

_DTYPES = {16: "gl.float16", 8: "gl.int8", 32: "gl.float32", 64: "gl.float64"}
_BITS = (16, 8, 32)
_K_WIDTHS = (2, 4, 1, 8, 16)

L = TypeVar("L")


class NoFormulaError(Exception):
    """A layout of a kind that no formula gives; its name."""


class Formulas:
    """Writes the layouts of one kernel."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self.scenes = scenes

    def written(self, dims: tuple[str, ...], shapes: Shapes, layouts: Layouts, pointer: str | None = None) -> Written:
        """Source of `layouts` for a tile of `dims`; `pointer`: the parameter that says best what its elements are.

        Raises ValueError for a layout of another kind.
        """
        layouts = dict(sorted(layouts.items()))
        at = list(layouts)
        tile = Tile(dims, tuple(shapes[index] for index in at))
        every = [layouts[index] for index in at]
        warps = [self.scenes[index].launch.options.num_warps for index in at]
        if mma := _all(every, read_mma):
            return self._accumulator(mma, tile, warps, at)
        if nvmma := _all(every, read_nvmma_shared):
            known = sorted(self._pointers(at), key=lambda entry: entry[0] != pointer)
            dtypes = [Width(f"{name}.dtype.element_ty", bits) for name, bits in known]
            dtypes += [_number(name, bits, at) for bits, name in _DTYPES.items()]
            return nvmma_shared_source(nvmma, tile, dtypes)
        if swizzled := _all(every, read_swizzled):
            return self._swizzled(swizzled, tile, at)
        if memory := _all(every, read_tensor_memory):
            return tensor_memory_source(memory, tile)
        if blocked := _all(every, read_blocked):
            multiplied = fma_layout_source(blocked, tile, warps, self.scenes[0].lanes)
            if multiplied.exact:
                return multiplied
        linear = [read_linear(layout, shapes[index]) for index, layout in layouts.items()]
        loaded = [layout for layout in linear if layout is not None]
        if len(loaded) == len(at):
            return loaded_source(loaded, tile, warps)
        raise NoFormulaError(every[0].name)

    def k_width(self, widths: Mapping[int, int]) -> str:
        """A `k_width` under each launch as source: a number, or what fills a register."""
        at, values = sorted(widths), set(widths.values())
        if len(values) == 1:
            return str(values.pop())
        for width in self._bits(at):
            if all(32 // bits == widths[index] for bits, index in zip(width.values, at, strict=True)):
                return width.under(32)
        return str(max(values))

    def _accumulator(self, values: Sequence[Mma], tile: Tile, warps: Sequence[int], at: Sequence[int]) -> Written:
        """A dot's own layout; where it is not that of a dot alone, that of a chain that it ends."""
        alone = mma_source(values, tile, warps, self._bits(at))
        return alone if alone.exact else mma_source(values, tile, warps, self._bits(at), last=tile)

    def _swizzled(self, values: Sequence[Swizzled], tile: Tile, at: Sequence[int]) -> Written:
        """Memory that is swizzled for one of a dot's operands, whichever fits."""
        widths = [*self._bits(at), *(_number(str(bits), bits, at) for bits in _BITS)]
        k_widths = [_number(str(number), number, at) for number in _K_WIDTHS]
        k_widths += [
            Width(width.under(32), tuple(32 // bits for bits in width.values))
            for width in self._bits(at)
            if max(width.values) <= 32
        ]
        ways = [swizzled_source(values, tile, k_dim, k_widths, widths) for k_dim in (1, 0)]
        return next((way for way in ways if way.exact), ways[0])

    def _bits(self, at: Sequence[int]) -> list[Width]:
        """Ways to say how wide an element is, by the kernel's pointers."""
        return [Width(f"{name}.dtype.element_ty.primitive_bitwidth", bits) for name, bits in self._pointers(at)]

    def _pointers(self, at: Sequence[int]) -> list[tuple[str, tuple[int, ...]]]:
        """The kernel's pointers, with the bits of what they point to under each launch."""
        names = [name for name, kind in self.scenes[at[0]].launch.signature.items() if kind.startswith("*")]
        found = [(name, tuple(pointee_bits(self.scenes[i].launch, name) for i in at)) for name in names]
        return [(name, bits) for name, bits in found if all(bits)]


def _number(source: str, value: int, at: Sequence[int]) -> Width:
    return Width(source, (value,) * len(at))


def _all(layouts: Sequence[DialectAttr], read: Callable[[DialectAttr], L | None]) -> list[L]:
    """The layouts as values, where all are of one kind; else none."""
    found = [read(layout) for layout in layouts]
    return [layout for layout in found if layout is not None] if None not in found else []
