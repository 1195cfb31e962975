"""What the last TTGIR of a kernel says and its assembly does not: conversions, rings, the tiles of bulk copies."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tt2gl.results import Place
from tt2gl.verify.assembly import Exact, innermost
from tt2gl.verify.equal_layouts import Layouts

_CONVERSION = re.compile(r"ttg\.convert_layout [^:\n]*: (tensor<.*?>) -> (tensor<.*?>)(?: loc\(|$)")
# What AMD's compiler turns within threads, on its way to shared memory: its port converts.
_TURNED = re.compile(r"= \w+\.in_thread_transpose %")
# A tensor put into shared memory, a view of one that was, and a read: that moves data between layouts as well.
_STORED = re.compile(r"(%[\w#]+) = ttg\.local_alloc (?:\{[^}]*\} )?%\w")
_VIEW = re.compile(r"(%[\w#]+) = ttg\.memdesc_\w+ (?:\{[^}]*\} )?(%[\w#]+)")
_READ = re.compile(r"= ttg\.local_load (%[\w#]+)")
_ALLOCATION = re.compile(r"ttg\.local_alloc (?:\{[^}]*\} )?: \(\) -> !ttg\.memdesc<(\d+)x([\dx]+x)(\w+),")
_SLOT = re.compile(r"ttg\.memdesc_index .*?!ttg\.memdesc<(\d+x[\dx]+x\w+),")
_BULK = re.compile(
    r"""(?P<name>ttng\.async_tma_copy_global_to_local|ttng\.async_tma_gather|amdg\.async_tdm_copy_global_to_local
        |ttng\.async_tma_copy_local_to_global|ttng\.async_tma_scatter|amdg\.async_tdm_copy_local_to_global)\b.*
        !ttg\.memdesc<(?P<shape>[\dx]+x)(?P<element>\w+),""",
    re.VERBOSE,
)
# What only tells of another layout that it has: converted back, it has not moved.
_RESHAPED = re.compile(r"(%[\w#]+) = tt\.reshape .*: (tensor<[^,]*)(, .*>) -> (tensor<[^,]*), ")
_CONVERTED = re.compile(r"ttg\.convert_layout (%[\w#]+)")
_BITS = re.compile(r"\d+")
_LOCATION = re.compile(r"^(#loc\d*) = (loc\(.*\))$", re.MULTILINE)
_FILE = re.compile(r'"(?:[^"]*/)?([^"/]+)\.py":(\d+):(\d+)')
_REFERENCE = re.compile(r"#loc\d*")


class _Conversions:
    """Finds the layout conversions that can move data: one between equal layouts compiles to nothing."""

    def __init__(self, ttgir: str) -> None:
        self._layouts = Layouts(ttgir)
        self._stored: set[str] = set()
        self._reshaped: dict[str, str] = {}

    def moves(self, line: str) -> bool:
        """Whether a line, given in order, is one; so is a read of what was put into shared memory for that."""
        if found := _CONVERSION.search(line):
            value = _CONVERTED.search(line)
            known = (found[1], self._reshaped.get(value[1]) if value is not None else None)
            return found[2] not in known and not self._layouts.alike(found[1], found[2])
        if (found := _RESHAPED.search(line)) and found[2] == found[4]:
            self._reshaped[found[1]] = found[2] + found[3]
        if (found := _STORED.search(line)) or (found := _VIEW.search(line)) and found[2] in self._stored:
            self._stored.add(found[1])
        found = _READ.search(line)
        return _TURNED.search(line) is not None or found is not None and found[1] in self._stored


@dataclass(frozen=True)
class LoweredText:
    """What was read of a kernel's TTGIR.

    `bulk_copies` counts copies of whole tiles by direction and bytes (`tma.16384`, `tma_store.8192`), `step_copies`
    those of one step of the innermost loops that have some; `rings` has the depths of all rings of tiles of a kind.
    """

    conversions: int
    bulk_copies: Counter[str]
    step_copies: Counter[str]
    rings: dict[str, list[int]]
    places: dict[str, dict[Place, None]]


def read_ttgir(ttgir: str, files: Mapping[str, str] | None = None) -> LoweredText:
    """Read the text of a TTGIR module; `files` has the sources that places may be in, by stem."""
    locations = Locations(ttgir, files or {})
    slots = set(_SLOT.findall(ttgir))
    copies: Counter[str] = Counter()
    by_loop: defaultdict[tuple[int, ...], Counter[str]] = defaultdict(Counter)
    rings: defaultdict[str, list[int]] = defaultdict(list)
    places: defaultdict[str, dict[Place, None]] = defaultdict(dict)
    conversions, conversion = 0, _Conversions(ttgir)
    for line, loops in _lines_with_loops(ttgir):
        kind = ""
        if conversion.moves(line):
            conversions += 1
            kind = "convert_layout"
        elif (ring := _ALLOCATION.search(line)) and f"{ring[1]}x{ring[2]}{ring[3]}" in slots and ring[3] != "i64":
            # What is indexed and no tile is an array of mbarriers, words of 64 bits.
            kind = f"ring.{ring[2]}{ring[3]}"
            rings[f"{ring[2]}{ring[3]}"].append(int(ring[1]))
        elif bulk := _BULK.search(line):
            kind = _bulk_name(bulk)
            copies[kind] += 1
            by_loop[loops][kind] += 1
        if kind and (place := locations.place(line)) is not None:
            places[kind][place] = None
    outer = {loops[:depth] for loops in by_loop for depth in range(len(loops))}
    step = sum((counted for loops, counted in by_loop.items() if loops and loops not in outer), Counter())
    depths = {tile: sorted(found, reverse=True) for tile, found in sorted(rings.items())}
    return LoweredText(conversions, copies, step, depths, places)


def _bulk_name(found: re.Match[str]) -> str:
    bits = _BITS.search(found["element"])
    tile = math.prod(int(extent) for extent in found["shape"].rstrip("x").split("x"))
    kind = "tdm" if "tdm" in found["name"] else "tma"
    out = "_store" if "local_to_global" in found["name"] or "scatter" in found["name"] else ""
    return f"{kind}{out}.{tile * (int(bits[0]) if bits else 8) // 8}"


def _lines_with_loops(ttgir: str) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Each line with the numbers of the loops around it, outermost first."""
    # What is open at a line: the number of a loop, or 0 for any other region.
    opened: list[int] = []
    count = 0
    for line in ttgir.splitlines():
        text = line.strip()
        if text.startswith("}") and opened:
            opened.pop()
        yield line, tuple(loop for loop in opened if loop)
        # A second region of an operation begins where the first ends: of a `while`, the loop's body.
        opens = re.sub(r" loc\(.*\)$", "", text).endswith("{")
        if opens:
            loop = re.search(r"\bscf\.(?:for|while)\b", text) or text.startswith("} do {")
            count += bool(loop)
            opened.append(count if loop else 0)


class Locations:
    """The places of a module's lines: their locations are named, and written out below."""

    def __init__(self, ttgir: str, files: Mapping[str, str]) -> None:
        self._texts = dict(_LOCATION.findall(ttgir)) if files else {}
        self._files = files

    def place(self, line: str) -> Place | None:
        """The innermost place of a line that is in one of the files."""
        exact = self.exact(line.rpartition(" loc(")[2])
        return Place(*exact[:2]) if exact is not None else None

    def exact(self, location: str) -> Exact | None:
        """The same of a location, `#loc5`, with the column."""
        return innermost(self._chain(location, frozenset()), self._files)

    def _chain(self, text: str, seen: frozenset[str]) -> Iterator[tuple[str, str, str]]:
        yield from _FILE.findall(text)
        for name in _REFERENCE.findall(text):
            if name not in seen and name in self._texts:
                yield from self._chain(self._texts[name], seen | {name})
