"""Which layouts of TTGIR are the same, however they are written: a conversion between two of those moves nothing.

A layout is known by its bases: the element to which each bit of a thread's lane and of its warp leads, and those that
a thread has itself. `tt.reshape` and `tt.join` leave `linear` ones that a slice of a `blocked` one says as well, and
rows of two products' sums lie alike, whatever their columns.
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
_NUMBERS = re.compile(r"(\w+) = (\d+|\[[\[\]\d, ]*\])")

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
        parts = {name: ast.literal_eval(value) for name, value in _NUMBERS.findall(said)}
        if "CGALayout" in said or parts.get("block"):
            return None
        match kind:
            case "blocked":
                order = parts["order"]
                sizes = [(parts[name], order) for name in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")]
                return _tiled(sizes[0], sizes[1], sizes[2], shape)
            case "linear":
                registers, lanes, warps = ([tuple(basis) for basis in parts[n]] for n in ("register", "lane", "warp"))
                return _Bases(frozenset(filter(any, registers)), tuple(lanes), tuple(warps))
            case "nvidia_mma" if len(shape) == 2 == len(parts["warpsPerCTA"]):
                return _product(parts, shape)
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
    """The sum of a matrix product: pairs of columns in four lanes, eight rows, then a thread's others of its tile."""
    rows, columns = parts["instrShape"][:2]
    hopper = parts["versionMajor"] == 3
    done = [rows, columns]
    tile = _tiled(([1, 2], [1, 0]), ([8, 4], [1, 0]), ([1, 1], [1, 0]), [8, 8])
    others = {(8, 0)} | {(0, 8 << bit) for bit in range(int(math.log2(columns // 8)))}
    warps = (parts["warpsPerCTA"], [0, 1] if hopper else [1, 0])
    nothing = ([1, 1], [1, 0])
    around = _tiled(nothing, nothing, warps, shape, done)

    def within(basis: Basis) -> Basis:
        return tuple(step if step < extent else 0 for step, extent in zip(basis, shape, strict=True))

    own = frozenset(filter(any, map(within, tile.registers | others))) | around.registers
    return _Bases(own, tuple(map(within, tile.lanes)), around.warps)
