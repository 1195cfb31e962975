from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

from tests.report.page.samples import BLOCKED, SWIZZLED, sides
from tt2gl.report.page.chart import speed_chart
from tt2gl.report.page.contents import contents
from tt2gl.report.page.pictures import pictures


def labels(svg: str) -> list[str]:
    """What stands in the boxes, row by row."""
    return [text.text or "" for text in ET.fromstring(svg).iter("text") if "class" not in text.attrib]


def boxes(svg: str) -> int:
    return sum(path.attrib["d"].count("M") for path in ET.fromstring(svg).iter("path"))


def test_layouts_without_places_are_not_drawn() -> None:
    assert pictures(replace(BLOCKED, bases={}), 32, 32) == []
    assert pictures(replace(BLOCKED, shape=()), 32, 32) == []
    assert pictures(replace(SWIZZLED, bits=0), 32, 32) == []


def test_threads_of_a_corner() -> None:
    threads, warps = pictures(BLOCKED, 32, 32)
    found = labels(threads.svg)
    assert found[:8] == [str(lane) for lane in range(8)]
    assert found[4 * 8 : 4 * 8 + 8] == [str(32 + lane) for lane in range(8)]
    assert found[8 * 8] == "0"
    assert boxes(threads.svg) == len(found) == 16 * 8
    assert threads.caption == "16 × 32 of 16 × 32: the thread that holds each element; 8 elements a thread"
    assert labels(warps.svg) == ["w0", "w1", "w0", "w1"]


def test_waves_of_64_count_their_threads_on() -> None:
    wide = {**BLOCKED.bases, "lane": (*BLOCKED.bases["lane"], (4, 0)), "warp": ((8, 0),), "reg": ((0, 1), (0, 2))}
    threads, _ = pictures(replace(BLOCKED, bases=wide), 64, 32)
    assert labels(threads.svg)[8 * 8] == "64"


def test_one_dimension_is_folded() -> None:
    bases = {"reg": ((1,), (2,)), "lane": ((4,), (8,), (16,), (32,), (64,)), "warp": ((128,),), "block": ()}
    threads, warps = pictures(replace(BLOCKED, bases=bases, shape=(256,)), 32, 32)
    assert labels(threads.svg)[:17][-1] == "16"
    assert labels(warps.svg) == ["w0", "w1"]


def test_copies_are_told() -> None:
    bases = {**BLOCKED.bases, "warp": ((4, 0), (0, 0))}
    assert "held 2 times" in pictures(replace(BLOCKED, bases=bases), 32, 32)[0].caption


def test_banks_of_a_swizzled_tile() -> None:
    (banks,) = pictures(SWIZZLED, 32, 32)
    rows = [labels(banks.svg)[row * 8 : row * 8 + 8] for row in range(8)]
    assert rows[0] == ["0", "4", "8", "12", "16", "20", "24", "28"]
    assert rows[1] == ["4", "0", "12", "8", "20", "16", "28", "24"]
    # In each column eight rows take all banks: what swizzling is for.
    assert all(len({row[column] for row in rows}) == 8 for column in range(8))


def test_banks_go_round_later_where_there_are_more() -> None:
    (banks,) = pictures(SWIZZLED, 32, 64)
    assert labels(banks.svg)[8] == "36"


def test_nothing_ran_no_chart() -> None:
    assert speed_chart(contents("t", [sides(ran=False)]).kernels) == ""


def test_bars_go_to_the_side_that_is_faster() -> None:
    file = sides()
    slow = tuple(
        replace(each, kernel="sort_kernel", device=replace(each.device, gluon_ms=2.0))
        for each in file.kernels[:1]
        if each.device is not None
    )
    chart = ET.fromstring(speed_chart(contents("t", [replace(file, kernels=(*file.kernels[:2], *slow))]).kernels))
    bars = [(bar.attrib["class"], float(bar.attrib["x"]), float(bar.attrib["width"])) for bar in chart.iter("rect")]
    (slower, left, length), (faster, right, other) = bars
    assert (slower, faster) == ("slower", "faster")
    assert left + length == right
    assert length > other
