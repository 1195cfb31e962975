"""Layouts as pictures: which thread holds which element of a corner, which warp which part, which banks a row takes.

Neighbours of one thread are one box, with its number in it; boxes of one colour are one path, so that pictures stay
small. What is drawn is the corner at the origin: layouts repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeVar

from tt2gl.report.page.places import Places, places_of
from tt2gl.results import NamedLayout

Owner = TypeVar("Owner")

_ROWS, _COLUMNS = 16, 64  # of a corner
_FOLD = 64  # elements of a row of one dimension
_MOST_BOXES = 256
_HEIGHT = 16
_MARGIN = 34  # left of a row, for its number
_TOP = 14
_BANK_BYTES, _CHUNK_BYTES = 4, 16
_ROW_BYTES = 256


@dataclass(frozen=True)
class Picture:
    """A drawing, what it shows in words, and what it is of: equal keys are equal drawings."""

    key: str
    caption: str
    svg: str


@dataclass(frozen=True)
class _Box:
    row: int
    start: int
    width: int
    label: str
    colour: int


def pictures(layout: NamedLayout, warp_size: int, banks: int) -> list[Picture]:
    """The pictures of one layout; none where its places are not known."""
    places = places_of(layout.bases, layout.shape) if layout.shape and layout.bases else None
    if places is None:
        return []
    if layout.kind == "shared":
        return [_banks(layout, places, banks)] if layout.bits else []
    drawn = [_threads(layout, places, warp_size)]
    overview = _warps(layout, places)
    return drawn if overview is None else [*drawn, overview]


# ------------------------------------------------------------------------------------------------- three pictures


def _threads(layout: NamedLayout, places: Places, warp_size: int) -> Picture:
    height, width, at = _corner(layout.shape, _ROWS, _COLUMNS)

    def thread(row: int, column: int) -> tuple[int, int, int]:
        found = places.where(at(row, column))
        return found.get("block", 0), found["warp"], found["lane"]

    boxes: list[_Box] = []
    while True:
        boxes.clear()
        for row in range(height):
            for start, end, (block, warp, lane) in _runs(row, width, thread):
                number = warp * warp_size + lane
                boxes.append(_Box(row, start, end - start, f"{block}:{number}" if block else str(number), lane % 8))
        if len(boxes) <= _MOST_BOXES or width <= 8:
            break
        width //= 2
    held = 1 << len(layout.bases["reg"])
    words = f"{_part(layout.shape, height, width)}: the thread that holds each element; {held} elements a thread"
    if places.copies > 1:
        words += f"; every element is held {places.copies} times, the first is shown"
    return _picture("threads", layout, words, boxes, (height, width))


def _warps(layout: NamedLayout, places: Places) -> Picture | None:
    """The whole tensor by warps, in the largest boxes that never split; None where that says nothing, or too much."""
    if len(layout.bases["warp"]) == 0:
        return None
    rank = len(layout.shape)
    column_step = places.granule("warp", rank - 1)
    row_step = places.granule("warp", rank - 2) if rank > 1 else 1
    rows, columns, at = _corner(layout.shape, 1 << 30, 1 << 30)
    if rank == 1:
        rows, columns = 1, layout.shape[0]

    def warp(row: int, column: int) -> int:
        place = (column * column_step,) if rank == 1 else at(row * row_step, column * column_step)
        return places.where(place)["warp"]

    height, width = max(rows // row_step, 1), max(columns // column_step, 1)
    if height > 2 * _ROWS or width > _COLUMNS:
        return None
    boxes = [
        _Box(row, start, end - start, f"w{found}", found % 8)
        for row in range(height)
        for start, end, found in _runs(row, width, warp)
    ]
    step = f"{row_step} × {column_step}" if rank > 1 else str(column_step)
    words = f"all {_extents(layout.shape)} by warps, in boxes of {step} elements"
    return _picture("warps", layout, words, boxes, (height, width), (row_step, column_step))


def _banks(layout: NamedLayout, places: Places, banks: int) -> Picture:
    per_row = max(_ROW_BYTES * 8 // layout.bits, 1)
    height, width, at = _corner(layout.shape, _ROWS, per_row)
    chunk = max(_CHUNK_BYTES * 8 // layout.bits, 1)

    def offset(row: int, column: int) -> int:
        return places.where(at(row, column))["offset"]

    boxes = []
    for row in range(height):
        start = 0
        while start < width:
            first, end = offset(row, start), start + 1
            while end < width and end - start < chunk and offset(row, end) == first + end - start:
                end += 1
            bank = first * layout.bits // 8 // _BANK_BYTES % banks
            boxes.append(_Box(row, start, end - start, str(bank), bank * _BANK_BYTES // _CHUNK_BYTES % 8))
            start = end
    words = (
        f"{_part(layout.shape, height, width)}: the first of the banks that each run of up to 16 bytes takes, "
        f"of {banks} banks of 4 bytes; rows in which a column has other colours do not conflict"
    )
    return _picture("banks", layout, words, boxes, (height, width))


# --------------------------------------------------------------------------------------------------- the drawing

_At = Callable[[int, int], tuple[int, ...]]


def _corner(shape: Sequence[int], rows: int, columns: int) -> tuple[int, int, _At]:
    """Rows and columns of the corner, and the element at a row and column; one dimension is folded into rows."""
    if len(shape) == 1:
        width = min(shape[0], _FOLD, columns)
        return min(max(shape[0] // width, 1), rows), width, lambda row, column: (row * width + column,)
    outer = (0,) * (len(shape) - 2)
    return min(shape[-2], rows), min(shape[-1], columns), lambda row, column: (*outer, row, column)


def _runs(row: int, width: int, owner: Callable[[int, int], Owner]) -> Iterator[tuple[int, int, Owner]]:
    start, known = 0, owner(row, 0)
    for column in range(1, width):
        found = owner(row, column)
        if found != known:
            yield start, column, known
            start, known = column, found
    yield start, width, known


def _part(shape: Sequence[int], height: int, width: int) -> str:
    if len(shape) == 1:
        return (
            f"the first {height * width} of {shape[0]}, {width} a row" if height * width < shape[0] else _extents(shape)
        )
    where = "" if len(shape) == 2 else ", at 0 of the dimensions before"
    return f"{height} × {width} of {_extents(shape)}{where}"


def _extents(shape: Sequence[int]) -> str:
    return " × ".join(map(str, shape))


def _picture(
    kind: str,
    layout: NamedLayout,
    words: str,
    boxes: Sequence[_Box],
    size: tuple[int, int],
    steps: tuple[int, int] = (1, 1),
) -> Picture:
    key = f"{kind} {layout.text} {layout.shape} {layout.bits}"
    height, width = size
    widest = max(len(box.label) for box in boxes)
    narrowest = min(box.width for box in boxes)
    cell = max((6 * widest + 6) / narrowest, 8.0)
    every = max(width // 8, 1)
    tick = 6 * len(str((width - 1) // every * every * steps[1])) + 4
    cell = max(min(cell, 720 / width), tick / every)
    paths: dict[int, list[str]] = {}
    labels = []
    for box in boxes:
        x, y = _MARGIN + box.start * cell, _TOP + box.row * _HEIGHT
        across = _number(box.width * cell - 1)
        paths.setdefault(box.colour, []).append(f"M{_number(x)} {y}h{across}v{_HEIGHT - 1}h-{across}z")
        if box.width * cell >= 5 * len(box.label) + 2:
            labels.append(f'<text x="{_number(x + box.width * cell / 2)}" y="{y + 11}">{box.label}</text>')
    drawn = [f'<path class="c{colour}" d="{"".join(parts)}"/>' for colour, parts in sorted(paths.items())]
    row_step = width if len(layout.shape) == 1 else steps[0]
    rows = [
        f'<text class="axis" x="{_MARGIN - 4}" y="{_TOP + row * _HEIGHT + 11}">{row * row_step}</text>'
        for row in range(height)
    ]
    columns = [
        f'<text class="tick" x="{_number(_MARGIN + column * cell)}" y="{_TOP - 4}">{column * steps[1]}</text>'
        for column in range(0, width, every)
    ]
    right, bottom = _number(_MARGIN + width * cell + 2), _TOP + height * _HEIGHT + 2
    svg = (
        f'<svg class="layout" viewBox="0 0 {right} {bottom}" width="{right}" height="{bottom}" role="img" '
        f'aria-label="{escape(f"{layout.name}: {words}")}">{"".join(drawn)}{"".join(rows)}{"".join(columns)}'
        f"{''.join(labels)}</svg>"
    )
    return Picture(key, words, svg)


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
