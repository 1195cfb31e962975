"""Which place of the source the accesses, conversions and products of a compiled kernel come from.

LLVM's assembly and Triton's TTGIR both say so. A place that is in no file of the author's (Triton's standard library)
counts as that of the call that led there.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tt2gl.check.lowering import Access, Spot, Spots
from tt2gl.verify.amdgcn import count_amdgcn
from tt2gl.verify.ptx import count_ptx

_LOCATION = re.compile(r"([^\s@\[\]:/]+)\.py:(\d+):(\d+)")
_Place = tuple[str, int, int]
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
    loads: dict[_Place, tuple[int, int, bool]] = {}
    stores: dict[_Place, tuple[int, int, bool]] = {}
    for place, lines in _by_place(text, comment, modules).items():
        counts = count("\n".join(lines) + "\n")
        copies = bool(counts.async_copies)
        for found, widths in ((loads, counts.loads), (stores, counts.stores)):
            if sum(widths.values()):
                found[place] = (sum(widths.values()), max(widths), copies)
    ttgir = asm["ttgir"]
    tiles = _tiles(ttgir, modules)
    spots = Spots(
        loads=tuple(place[:2] for place in sorted(loads)),
        stores=tuple(place[:2] for place in sorted(stores)),
        conversions=_spots(_conversions(ttgir), ttgir, modules),
        products=_spots(re.findall(_PRODUCT, ttgir, re.MULTILINE), ttgir, modules),
    )
    return Located(_accesses(loads, tiles), _accesses(stores, tiles), _scalar_products(ttgir), spots)


def _accesses(found: Mapping[_Place, tuple[int, int, bool]], tiles: Mapping[_Place, _Tile]) -> tuple[Access, ...]:
    return tuple(Access(*found[place], *tiles.get(place, ((), 0))) for place in sorted(found))


def _by_place(text: str, comment: str, modules: Mapping[str, Path]) -> Mapping[_Place, list[str]]:
    """The lines of assembly by the place that the `.loc` above them names."""
    lines: defaultdict[_Place, list[str]] = defaultdict(list)
    place: _Place = ("", 0, 0)
    inline = False
    for line in text.splitlines():
        # Later LLVMs count the lines of inline assembly on, as if they were the author's.
        inline = ("begin inline asm" in line or "#ASMSTART" in line) or (
            inline and "end inline asm" not in line and "#ASMEND" not in line
        )
        if line.lstrip().startswith(".loc"):
            if inline:
                continue
            chain = _LOCATION.findall(line.partition(comment)[2])
            # Without a line (`:0:0`) code belongs to no statement, and so to the one before it.
            place = _innermost(chain, modules) or place
        else:
            lines[place].append(line)
    return lines


def _innermost(chain: Iterable[tuple[str, str, str]], modules: Mapping[str, Path]) -> _Place | None:
    for stem, line, column in chain:
        if stem in modules and int(line):
            return (str(modules[stem]), int(line), int(column))
    return None


# ------------------------------------------------------------------------------------------------------- TTGIR

_PRODUCT = (
    r"(?:tt\.dot|tt\.dot_scaled|ttng\.warp_group_dot|ttng\.tc_gen5_mma(?:_scaled)?|amdg\.\w*dot\w*) .*?(#loc\d*)\)$"
)
_CONVERSION = re.compile(r"ttg\.convert_layout [^:\n]*: (tensor<.*?>) -> (tensor<.*?>) loc\((#loc\d*)\)$", re.MULTILINE)
_DEFINITION = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)


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


def _tiles(ttgir: str, modules: Mapping[str, Path]) -> Mapping[_Place, _Tile]:
    """How many bytes of a tile a warp accesses along each dimension, and its fastest one, by the access's place."""
    definitions = dict(_DEFINITION.findall(ttgir))
    layouts = {
        name: (_numbers(size), _numbers(lanes), int(order)) for name, size, lanes, order in _BLOCKED.findall(ttgir)
    }
    found: dict[_Place, _Tile] = {}
    for shape, bits, layout, where in _ACCESS.findall(ttgir):
        place = _innermost(_chain(where, definitions), modules)
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


def _spots(names: Iterable[str], ttgir: str, modules: Mapping[str, Path]) -> tuple[Spot, ...]:
    """The spots of MLIR's location names, in the order of the source, each once."""
    definitions = dict(_DEFINITION.findall(ttgir))
    places = (_innermost(_chain(name, definitions), modules) for name in names)
    return tuple(dict.fromkeys(place[:2] for place in sorted(filter(None, places))))


def _chain(name: str, definitions: Mapping[str, str], depth: int = 0) -> Iterator[tuple[str, str, str]]:
    """The files' stems, lines and columns that a location says, callees before callers."""
    text = definitions.get(name, "")
    file = re.match(r'"(?:[^"]*/)?([^"/]+)\.py":(\d+):(\d+)', text)
    if file is not None:
        yield file[1], file[2], file[3]
    elif depth < len(definitions):
        for inner in re.findall(r"#loc\d*", text):
            yield from _chain(inner, definitions, depth + 1)
