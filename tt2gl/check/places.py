"""Which place of the source the accesses, conversions and products of a compiled kernel come from.

LLVM's assembly and Triton's TTGIR both say so. A place that is in no file of the author's (Triton's standard library)
counts as that of the call that led there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tt2gl.check.lowering import Access, Spot, Spots
from tt2gl.verify.amdgcn import count_amdgcn
from tt2gl.verify.assembly import Exact, exact_places
from tt2gl.verify.ptx import count_ptx
from tt2gl.verify.ttgir import Locations

_NOWHERE: Exact = ("", 0, 0)
_Tile = tuple[tuple[int, ...], int]


@dataclass(frozen=True)
class Located:
    """Global accesses by place, in the order of the source, and the spots of all that has one."""

    loads: tuple[Access, ...]
    stores: tuple[Access, ...]
    scalar_products: int
    spots: Spots


def locate(asm: Mapping[str, str], modules: Mapping[str, Path]) -> Located:
    """The places of a kernel's instructions. `asm` has its TTGIR and assembly; `modules` the author's file of each."""
    text, comment, count = (asm["ptx"], "//", count_ptx) if "ptx" in asm else (asm["amdgcn"], ";", count_amdgcn)
    files = {stem: str(path) for stem, path in modules.items()}
    loads: dict[Exact, tuple[int, int, bool]] = {}
    stores: dict[Exact, tuple[int, int, bool]] = {}
    for place, lines in _by_place(text, comment, files).items():
        counts = count("\n".join(lines) + "\n")
        copies = bool(counts.async_copies)
        for found, widths in ((loads, counts.loads), (stores, counts.stores)):
            if sum(widths.values()):
                found[place] = (sum(widths.values()), max(widths), copies)
    ttgir = asm["ttgir"]
    locations = Locations(ttgir, files)
    tiles = _tiles(ttgir, locations)
    spots = Spots(
        loads=tuple(place[:2] for place in sorted(loads)),
        stores=tuple(place[:2] for place in sorted(stores)),
        conversions=_spots(_conversions(ttgir), locations),
        products=_spots(re.findall(_PRODUCT, ttgir, re.MULTILINE), locations),
    )
    return Located(_accesses(loads, tiles), _accesses(stores, tiles), _scalar_products(ttgir), spots)


def _accesses(found: Mapping[Exact, tuple[int, int, bool]], tiles: Mapping[Exact, _Tile]) -> tuple[Access, ...]:
    return tuple(Access(*found[place], *tiles.get(place, ((), 0))) for place in sorted(found))


def _by_place(text: str, comment: str, files: Mapping[str, str]) -> Mapping[Exact, list[str]]:
    """The lines of assembly by the place that the `.loc` above them names."""
    lines: defaultdict[Exact, list[str]] = defaultdict(list)
    all_lines = text.splitlines()
    for line, place in zip(all_lines, exact_places(all_lines, comment, files), strict=True):
        if not line.lstrip().startswith(".loc"):
            lines[place or _NOWHERE].append(line)
    return lines


# ------------------------------------------------------------------------------------------------------- TTGIR

_PRODUCT = (
    r"(?:tt\.dot|tt\.dot_scaled|ttng\.warp_group_dot|ttng\.tc_gen5_mma(?:_scaled)?|amdg\.\w*dot\w*) .*?(#loc\d*)\)$"
)
_CONVERSION = re.compile(r"ttg\.convert_layout [^:\n]*: (tensor<.*?>) -> (tensor<.*?>) loc\((#loc\d*)\)$", re.MULTILINE)


def _conversions(ttgir: str) -> list[str]:
    return [where for before, after, where in _CONVERSION.findall(ttgir) if before != after]


_BLOCKED = re.compile(
    r"^(#\w+) = #ttg\.blocked<\{sizePerThread = \[([\d, ]+)\], threadsPerWarp = \[([\d, ]+)\], .*?order = \[(\d+)", re.M
)
_ACCESS = re.compile(
    r"(?:tt\.load|tt\.store|ttg\.async_copy_global_to_local|amdg\.buffer_\w+) .*?"
    r"tensor<((?:\d+x)+)(?:!tt\.ptr<)?[a-zA-Z]+(\d+)\w*>?, (#\w+)>.* loc\((#loc\d*)\)$",
    re.M,
)


def _tiles(ttgir: str, locations: Locations) -> Mapping[Exact, _Tile]:
    """How many bytes of a tile a warp accesses along each dimension, and its fastest one, by the access's place."""
    layouts = {
        name: (_numbers(size), _numbers(lanes), int(order)) for name, size, lanes, order in _BLOCKED.findall(ttgir)
    }
    found: dict[Exact, _Tile] = {}
    for shape, bits, layout, where in _ACCESS.findall(ttgir):
        place = locations.exact(where)
        if place is not None and layout in layouts:
            size, lanes, fastest = layouts[layout]
            extents = _numbers(shape.rstrip("x").replace("x", ","))
            warp = (min(extent, own * many) for extent, own, many in zip(extents, size, lanes, strict=False))
            found[place] = tuple(elements * int(bits) // 8 for elements in warp), fastest
    return found


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _scalar_products(ttgir: str) -> int:
    """Dots whose results are laid out as any tensor is: a matrix instruction wants a layout of its own."""
    blocked = set(re.findall(r"^(#\w+) = #ttg\.blocked<", ttgir, re.MULTILINE))
    return sum(layout in blocked for layout in re.findall(r"tt\.dot .*-> tensor<[^,>]*, (#\w+)>", ttgir))


def _spots(names: Iterable[str], locations: Locations) -> tuple[Spot, ...]:
    """The spots of MLIR's location names, in the order of the source, each once."""
    places = map(locations.exact, names)
    return tuple(dict.fromkeys(place[:2] for place in sorted(filter(None, places))))
