"""Which layouts of TTGIR are the same, however they are written: a conversion between two of those moves nothing.

A layout is known by its bases: the element to which each bit of a thread's lane and of its warp leads, and those that
a thread has itself. `tt.reshape` and `tt.join` leave `linear` ones that a slice of a `blocked` one says as well, and
rows of two products' sums lie alike, whatever their columns. What is turned in registers, or unpacked, for MFMA or WMMA
lies as its operand.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_ALIAS = re.compile(r"^(#\w+) = (#ttg\.\w+<\{.*\}>)$", re.MULTILINE)
_TENSOR = re.compile(r"tensor<((?:\d+x)+)[^,]*, (#.*)>$")
_LAYOUT = re.compile(r"#ttg\.(\w+)<\{(.*)\}>$")
_SLICE = re.compile(r"dim = (\d+), parent = (.*)$")
_PARENT = re.compile(r"parent = (#\w+)")
_NUMBERS = re.compile(r"(\w+) = (\d+|\[[\[\]\d, ]*\])")

_WAVE = 64
"""Lanes of the waves that have MFMA."""

Basis = tuple[int, ...]


@dataclass(frozen=True)
class _Bases:
    """Where the elements of a tile are. Of a thread's own no order is kept, nor those that it has twice."""

    registers: frozenset[Basis]
    lanes: tuple[Basis, ...]
    warps: tuple[Basis, ...]


class Layouts:
    """The layouts that a module names."""

    def __init__(self, ttgir: str) -> None:
        self._named = dict(_ALIAS.findall(ttgir))

    def alike(self, one: str, other: str) -> bool:
        """Whether two types, `tensor<16xf32, #blocked>`, have every element in the same thread."""
        found = [_TENSOR.match(each) for each in (one, other)]
        if found[0] is None or found[1] is None or found[0][1] != found[1][1]:
            return False
        shape = [int(extent) for extent in found[0][1].split("x")[:-1]]
        bases = [self._bases(each[2], shape) for each in found if each is not None]
        return bases[0] is not None and bases[0] == bases[1]

    def _bases(self, layout: str, shape: Sequence[int]) -> _Bases | None:
        """The bases of a layout; None for kinds that are not read."""
        found = _LAYOUT.match(self._named.get(layout, layout))
        if found is None:
            return None
        kind, said = found.groups()
        if kind == "slice":
            return self._slice(said, shape)
        parts = _parts(said)
        if "CGALayout" in said or parts.get("block"):
            return None
        match kind:
            case "blocked":
                order = parts["order"]
                sizes = [(parts[name], order) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")]
                return _tiled(sizes[0], sizes[1], sizes[2], shape)
            case "linear":
                registers, lanes, warps = (
                    [_within(each, shape) for each in parts[n]] for n in ("register", "lane", "warp")
                )
                return _Bases(frozenset(filter(any, registers)), tuple(lanes), tuple(warps))
            case "dot_op" if len(shape) == 2:
                return self._operand(parts, said, shape)
            case "nvidia_mma" if len(shape) == 2 == len(parts["warpsPerCTA"]):
                return _product(parts, shape)
        return None

    def _operand(self, parts: Mapping[str, Any], said: str, shape: Sequence[int]) -> _Bases | None:
        found = _PARENT.search(said)
        mma = _LAYOUT.match(self._named.get(found[1], "")) if found is not None else None
        if mma is None or "CGALayout" in mma[2]:
            return None
        match mma[1]:
            case "nvidia_mma":
                return _operand(_parts(mma[2]), shape, parts["opIdx"], parts["kWidth"])
            case "amd_mfma":
                return _mfma_operand(_parts(mma[2]), shape, parts["opIdx"], parts["kWidth"])
            case "amd_wmma":
                return _wmma_operand(_parts(mma[2]), shape, parts["opIdx"], parts["kWidth"])
        return None

    def _slice(self, said: str, shape: Sequence[int]) -> _Bases | None:
        found = _SLICE.match(said)
        assert found is not None
        dim = int(found[1])
        whole = self._bases(found[2], [*shape[:dim], 1, *shape[dim:]])
        if whole is None:
            return None
        registers, lanes, warps = (
            [basis[:dim] + basis[dim + 1 :] for basis in bases] for bases in (whole.registers, whole.lanes, whole.warps)
        )
        return _Bases(frozenset(filter(any, registers)), tuple(lanes), tuple(warps))


def _parts(said: str) -> dict[str, Any]:
    """What a layout says of itself in numbers."""
    return {name: ast.literal_eval(value) for name, value in _NUMBERS.findall(said)}


def _within(basis: Sequence[int], shape: Sequence[int]) -> Basis:
    """Where a bit leads in a tile that may be smaller than that of the layout: nowhere, beyond its extents."""
    return tuple(step if step < extent else 0 for step, extent in zip(basis, shape, strict=True))


Tile = tuple[Sequence[int], Sequence[int]]
"""Extents, and the order in which bits go through them."""


def _tiled(own: Tile, lanes: Tile, warps: Tile, shape: Sequence[int], first: Sequence[int] = ()) -> _Bases:
    """What a thread has side by side, lanes, and warps, each beside all before; then a thread's own again."""
    done = [*(first or [1] * len(shape))]

    def bases(tile: Tile) -> Iterator[Basis]:
        extents, order = tile
        for dim in order:
            for bit in range(int(math.log2(extents[dim]))):
                step = done[dim] << bit
                yield tuple(step if place == dim and step < shape[dim] else 0 for place in range(len(shape)))
            done[dim] *= extents[dim]

    mine, of_lanes, of_warps = ([*bases(tile)] for tile in (own, lanes, warps))
    again = [max(extent // covered, 1) for extent, covered in zip(shape, done, strict=True)]
    mine += bases((again, range(len(shape))))
    return _Bases(frozenset(filter(any, mine)), tuple(of_lanes), tuple(of_warps))


def _product(parts: Mapping[str, Any], shape: Sequence[int]) -> _Bases:
    """The sum of a matrix product: pairs of columns."""
    rows, columns = parts["instrShape"][:2]
    others = [(8, 0), *((0, 8 << bit) for bit in range(int(math.log2(columns // 8))))]
    return _matrix(parts, shape, (1, 2), others, (rows, columns), shape)


def _operand(parts: Mapping[str, Any], shape: Sequence[int], operand: int, width: int) -> _Bases:
    """An operand of a matrix product, with `width` elements side by side along K; all warps along the other have it."""
    others = [(8, 0), (0, 4 * width)] if operand == 0 else [(4 * width, 0)]
    tile = (16, 8 * width) if operand == 0 else (8 * width, 8)
    across = [1 if dim == 1 - operand else extent for dim, extent in enumerate(shape)]
    return _matrix(parts, shape, (1 - operand, width), others, tile, across)


def _mfma_operand(parts: Mapping[str, Any], shape: Sequence[int], operand: int, width: int) -> _Bases | None:
    """One of AMD's (Triton's `mfmaDotToLinearLayout`): lanes along the other side than K, then along K by `width`."""
    side, other = parts["instrShape"][:2]
    deep = width * (_WAVE // side)
    if side != other or shape[1 - operand] < deep or shape[operand] < side or "tilesPerWarp" in parts:
        return None
    one, order = ([1, 1], [1, 0]), [operand, 1 - operand]
    own, lanes = [1, 1], [side, side]
    own[1 - operand], lanes[1 - operand] = width, _WAVE // side
    tile = [deep if dim == 1 - operand else side for dim in range(2)]
    across = [1 if dim == 1 - operand else extent for dim, extent in enumerate(shape)]
    counts = [1 if dim == 1 - operand else count for dim, count in enumerate(parts["warpsPerCTA"])]
    covered = [extent * count for extent, count in zip(tile, counts, strict=True)]
    within = _tiled((own, order), (lanes, order), one, tile)
    again = _tiled(one, one, one, shape, covered).registers
    warps = _tiled(one, one, (parts["warpsPerCTA"], [1, 0]), across, tile).warps
    return _Bases(within.registers | again, within.lanes, warps)


def _wmma_operand(parts: Mapping[str, Any], shape: Sequence[int], operand: int, width: int) -> _Bases | None:
    """One of RDNA's (Triton's `wmmaDotOperandToLinearLayout`): lanes along the other side than K, then along K.

    The halves of a wave of the first version have the same elements. `warp` says which tile a warp has.
    """
    side, deep = 16, parts.get("instrShape", (16, 16, 16))[2]
    if "warp" not in parts or "register" in parts or shape[1 - operand] < deep or shape[operand] < side:
        return None
    one, order = ([1, 1], [1, 0]), [operand, 1 - operand]
    own, lanes, halves = [1, 1], [side, side], 1 if parts["version"] == 1 else 2
    own[1 - operand], lanes[1 - operand] = width, halves
    tile = [deep if dim == 1 - operand else side for dim in range(2)]
    within = _tiled((own, order), (lanes, order), one, tile)
    steps = [tuple(0 if dim == 1 - operand else side * each for dim, each in enumerate(b)) for b in parts["warp"]]
    warps = tuple(b if b[operand] < shape[operand] else (0, 0) for b in steps)
    covered = list(tile)
    covered[operand] <<= sum(map(any, warps))
    again = _tiled(one, one, one, shape, covered).registers
    return _Bases(within.registers | again, within.lanes + ((0, 0),) * (2 - halves), warps)


def _matrix(
    parts: Mapping[str, Any],
    shape: Sequence[int],
    side: tuple[int, int],
    others: Sequence[Basis],
    tile: Sequence[int],
    across: Sequence[int],
) -> _Bases:
    """A tile for tensor cores: elements side by side (along which dimension, how many), four lanes, then eight.

    `others`: what a thread has besides of an instruction's `tile`. Warps stand beside each other in `across`.
    """
    dim, width = side

    def steps(along: int, first: int, end: int) -> list[Basis]:
        bits = range(int(math.log2(end // first)))
        return [_within([first << bit if place == along else 0 for place in range(2)], shape) for bit in bits]

    own = [*steps(dim, 1, width), *(_within(each, shape) for each in others)]
    lanes = [*steps(dim, width, 4 * width), *steps(1 - dim, 1, 8)]
    order = [0, 1] if parts["versionMajor"] == 3 else [1, 0]
    nothing = ([1, 1], order)
    warps = _tiled(nothing, nothing, (parts["warpsPerCTA"], order), across, tile).warps
    counts = [count if extent > 1 else 1 for count, extent in zip(parts["warpsPerCTA"], across, strict=True)]
    covered = [extent * count for extent, count in zip(tile, counts, strict=True)]
    again = _tiled(nothing, nothing, nothing, shape, covered).registers
    return _Bases(frozenset(filter(any, own)) | again, tuple(lanes), warps)
