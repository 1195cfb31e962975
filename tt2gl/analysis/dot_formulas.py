"""The layouts of dots and rings as source: the formula that gives every launch the layout it has in Triton."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tt2gl.amd_matrix_layouts import mfma_source, read_mfma, read_wmma, wmma_source
from tt2gl.amd_shared_layouts import banked_source, read_rotating, rotating_source
from tt2gl.analysis.conditions import Case, flag_tests
from tt2gl.analysis.extents import element_bits
from tt2gl.analysis.memory import Scene
from tt2gl.formulas import Tile, Width, Written, telling_apart
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch
from tt2gl.matrix_layouts import Mma, fma_layout_source, mma_source, read_blocked, read_mma
from tt2gl.padded_layouts import padded_source, read_padded
from tt2gl.shared_layouts import (
    NvmmaShared,
    Swizzled,
    nvmma_shared,
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

Extent = tuple[str, Mapping[int, int]]
"""An extent as source, and under each launch."""

_DTYPES = {16: "gl.float16", 8: "gl.int8", 32: "gl.float32", 64: "gl.float64"}
_BITS = (16, 8, 32)
_K_WIDTHS = (2, 4, 1, 8, 16)

L = TypeVar("L")


@dataclass(frozen=True)
class _Test:
    """A condition as source, and whether it holds under each launch."""

    source: str
    holds: tuple[bool, ...]


class NoFormulaError(Exception):
    """A layout of a kind that no formula gives; its name."""


class Formulas:
    """Writes the layouts of one kernel."""

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self.scenes = scenes
        self.elements = [_elements(scene.launch) for scene in scenes]

    def written(
        self,
        dims: tuple[str, ...],
        shapes: Shapes,
        layouts: Layouts,
        pointer: str | None = None,
        inner: Extent | None = None,
    ) -> Written:
        """Source of `layouts` for a tile of `dims`; `pointer`: the parameter that says best what its elements are.

        `inner`: the extent that a product adds up along. Raises NoFormulaError for a layout of another kind.
        """
        made, missing = None, None
        try:
            made = self._alike(dims, shapes, layouts, pointer, inner)
        except NoFormulaError as error:
            missing = error
        if made is not None and made.exact:
            return made
        apart = self._apart(dims, shapes, layouts, pointer, inner)
        if apart is None and missing is not None:
            raise missing
        found = apart or made
        assert found is not None
        return found

    def _apart(
        self, dims: tuple[str, ...], shapes: Shapes, layouts: Layouts, pointer: str | None, inner: Extent | None
    ) -> Written | None:
        """A formula for launches under which a condition holds, and one for the others; None where that is none."""
        at = sorted(layouts)
        for test in (*_width_tests(self._bits(at)), *self._flags(at), *self._sizes(dims, shapes, at)):
            parts: list[Written] = []
            for side in (True, False):
                own = {i: layouts[i] for i, holds in zip(at, test.holds, strict=True) if holds == side}
                try:
                    parts.append(self._alike(dims, shapes, own, pointer, inner))
                except NoFormulaError:
                    break
            if len(parts) == 2 and all(part.exact for part in parts):
                source = f"{parts[0].source} if {test.source} else {parts[1].source}"
                return Written(source, tuple(dict.fromkeys((*parts[0].helpers, *parts[1].helpers))), True)
        return None

    def _alike(
        self, dims: tuple[str, ...], shapes: Shapes, layouts: Layouts, pointer: str | None, inner: Extent | None
    ) -> Written:
        """Source of `layouts` as layouts of one kind, by one formula."""
        layouts = dict(sorted(layouts.items()))
        at = list(layouts)
        tile = Tile(dims, tuple(shapes[index] for index in at))
        every = [layouts[index] for index in at]
        warps = [self.scenes[index].launch.options.num_warps for index in at]
        if mma := _all(every, read_mma):
            return self._accumulator(mma, tile, warps, at)
        depth = Width(inner[0], tuple(inner[1][index] for index in at)) if inner is not None else None
        if mfma := _all(every, read_mfma):
            return mfma_source(mfma, tile, warps, self._bits(at), depth)
        if wmma := _all(every, read_wmma):
            return wmma_source(wmma, tile, warps, self._bits(at), depth)
        if nvmma := _all(every, read_nvmma_shared):
            numbers = (_number(name, bits, at) for bits, name in _DTYPES.items())
            dtypes = telling_apart([*self._dtypes(at, pointer), *numbers])
            plain = nvmma_shared_source(nvmma, tile, dtypes)
            return plain if plain.exact else self._turned(nvmma, tile, dtypes, at) or plain
        if swizzled := _all(every, read_swizzled):
            return self._swizzled(swizzled, tile, at, pointer)
        rotating = [read_rotating(layout, shapes[index]) for index, layout in layouts.items()]
        if None not in rotating:
            orders = [layout.get("order") for layout in every]
            return rotating_source(
                [each for each in rotating if each is not None], orders, tile, self._widths(at, pointer)
            )
        if memory := _all(every, read_tensor_memory):
            return tensor_memory_source(memory, tile)
        if blocked := _all(every, read_blocked):
            multiplied = fma_layout_source(blocked, tile, warps, self.scenes[0].lanes)
            if multiplied.exact:
                return multiplied
        padded = [read_padded(layout, shapes[index]) for index, layout in layouts.items()]
        if None not in padded:
            return padded_source([each for each in padded if each is not None], tile, self._bits(at, pointer))
        linear = [read_linear(layout, shapes[index]) for index, layout in layouts.items()]
        loaded = [layout for layout in linear if layout is not None]
        if len(loaded) == len(at):
            return loaded_source(loaded, tile, warps)
        raise NoFormulaError(every[0].name)

    def k_width(self, widths: Mapping[int, int], inner: Extent, said: Callable[[str], str] = str) -> str:
        """A `k_width` under each launch as source: a number, what fills a register, or no more than the product has.

        Or one number for elements of one width, and another for those of another; or with a flag, and without it, if
        `said` has a word for that.
        """
        at, values = sorted(widths), set(widths.values())
        if len(values) == 1:
            return str(values.pop())
        for width in self._bits(at):
            if all(32 // bits == widths[index] for bits, index in zip(width.values, at, strict=True)):
                return width.under(32)
        for width in self._bits(at):
            known = dict(zip(width.values, (widths[index] for index in at), strict=True))
            if len(known) == 2 and all(known[bits] == widths[i] for bits, i in zip(width.values, at, strict=True)):
                (bits, one), (_, other) = known.items()
                return f"{one} if {width.source} == {bits} else {other}"
        text, extents = inner
        if all(min(max(values), extents[index] // 4) == widths[index] for index in at):
            return f"min({max(values)}, {text} // 4)"
        by_flag = ((said(flag), one, other) for flag, one, other in self._by_flag(widths))
        return next((f"{one} if {flag} else {other}" for flag, one, other in by_flag if flag), str(max(values)))

    def _by_flag(self, widths: Mapping[int, int]) -> Iterator[tuple[str, int, int]]:
        """The constexprs that tell two numbers apart, each with what they are with it and without."""
        constexprs = {index: self.scenes[index].launch.constexprs for index in widths}
        for flag, value in next(iter(constexprs.values())).items():
            if isinstance(value, bool):
                known = {(bool(constexprs[index].get(flag)), width) for index, width in widths.items()}
                if len(known) == 2 and len(by_flag := dict(known)) == 2:
                    yield flag, by_flag[True], by_flag[False]

    def _accumulator(self, values: Sequence[Mma], tile: Tile, warps: Sequence[int], at: Sequence[int]) -> Written:
        """A dot's own layout; where it is not that of a dot alone, that of a chain that it ends."""
        alone = mma_source(values, tile, warps, self._bits(at))
        return alone if alone.exact else mma_source(values, tile, warps, self._bits(at), last=tile)

    def _swizzled(self, values: Sequence[Swizzled], tile: Tile, at: Sequence[int], pointer: str | None) -> Written:
        """Memory that is swizzled for one of a dot's operands, whichever fits."""
        widths = self._widths(at, pointer)
        if any(dot.instruction in ("mfma", "wmma") for i in at for dot in self.scenes[i].facts.lowered.dots.values()):
            return banked_source(values, tile, widths)
        k_widths = [_number(str(number), number, at) for number in _K_WIDTHS]
        k_widths += [
            Width(width.under(32), tuple(32 // bits for bits in width.values))
            for width in self._bits(at)
            if max(width.values) <= 32
        ]
        return swizzled_source(values, tile, (1, 0), telling_apart(k_widths), widths)

    def _widths(self, at: Sequence[int], pointer: str | None) -> list[Width]:
        """Ways to say how wide an element is, by the kernel's pointers and as a number."""
        return telling_apart([*self._bits(at, pointer), *(_number(str(bits), bits, at) for bits in _BITS)])

    def _bits(self, at: Sequence[int], pointer: str | None = None) -> list[Width]:
        """Ways to say how wide an element is, by the kernel's pointers, the one that is given first."""
        return [Width(f"{dtype.source}.primitive_bitwidth", dtype.values) for dtype in self._dtypes(at, pointer)]

    def _dtypes(self, at: Sequence[int], pointer: str | None = None) -> list[Width]:
        """The types of what the kernel's pointers and descriptors point to, with their bits under each launch.

        Those that are None under another launch come last: that one compiles the layout, too.
        """
        always = self._pointers()
        names = sorted(self.elements[at[0]], key=lambda name: (name not in always, name != pointer))
        own = self.elements[at[0]]
        found = [Width(own[name][0], tuple(self.elements[i].get(name, ("", 0))[1] for i in at)) for name in names]
        return telling_apart(dtype for dtype in found if all(dtype.values))

    def _pointers(self) -> set[str]:
        """The names that are pointers or descriptors under every launch."""
        return set.intersection(*({name for name, (_, bits) in own.items() if bits} for own in self.elements))

    def _flags(self, at: Sequence[int]) -> list[_Test]:
        """The flags that hold under some launches, and not under the others."""
        cases = [Case(self.scenes[index].launch, self.scenes[index].facts, "") for index in at]
        tests = [(test.source, [holds for holds in test.holds if holds is not None]) for test in flag_tests(cases)]
        return [
            _Test(source, tuple(holds)) for source, holds in tests if len(holds) == len(at) and len(set(holds)) == 2
        ]

    def _sizes(self, dims: tuple[str, ...], shapes: Shapes, at: Sequence[int]) -> Iterator[_Test]:
        """Whether a tile's extents, or the warps, are so many: where all of a column is one warp's, say."""
        extents = [Width(name, tuple(shapes[index][dim] for index in at)) for dim, name in enumerate(dims)]
        warps = Width("gl.num_warps()", tuple(self.scenes[index].launch.options.num_warps for index in at))
        for size in telling_apart([*extents, warps]):
            for bound in sorted(set(size.values))[1:]:
                yield _Test(f"{size.source} >= {bound}", tuple(value >= bound for value in size.values))

    def _turned(
        self, values: Sequence[NvmmaShared], tile: Tile, dtypes: Sequence[Width], at: Sequence[int]
    ) -> Written | None:
        """Memory that stands the other way round under a flag, or for 32-bit floats.

        Of those wgmma takes tiles with K along a row alone.
        """
        for dtype in dtypes:
            bits = f"{dtype.source}.primitive_bitwidth"
            floats = [value == 32 for value in dtype.values]
            ways = [_Test(f"{bits} == 32", tuple(floats)), _Test(f"{bits} != 32", tuple(not one for one in floats))]
            for flag in self._flags(at):
                ways += [flag, _Test(f"not {flag.source}", tuple(not one for one in flag.holds))]
            for way in ways:
                made = map(nvmma_shared, tile.shapes, dtype.values, way.holds)
                if list(made) == list(values):
                    end = f"{dtype.source}, transposed={way.source}"
                    return Written(f"gl.NVMMASharedLayout.get_default_for({tile.source}, {end})", (), True)
        return None


def _elements(launch: Launch) -> dict[str, tuple[str, int]]:
    """The types of what pointers and descriptors point to under a launch, by parameter: as source, and their bits."""
    kinds = launch.signature.items()
    ways = {name: f"{name}.dtype.element_ty" for name, kind in kinds if kind.startswith("*")}
    ways |= {name: f"{name}.dtype" for name, kind in kinds if kind.startswith("tensordesc<")}
    return {name: (source, element_bits(launch, name)) for name, source in ways.items()}


def _width_tests(widths: Sequence[Width]) -> Iterator[_Test]:
    """Whether elements have one width, where there are two."""
    for width in widths:
        if len(set(width.values)) == 2:
            first = width.values[0]
            yield _Test(f"{width.source} == {first}", tuple(bits == first for bits in width.values))


def _number(source: str, value: int, at: Sequence[int]) -> Width:
    return Width(source, (value,) * len(at))


def _all(layouts: Sequence[DialectAttr], read: Callable[[DialectAttr], L | None]) -> list[L]:
    """The layouts as values, where all are of one kind; else none."""
    found = [read(layout) for layout in layouts]
    return [layout for layout in found if layout is not None] if None not in found else []
