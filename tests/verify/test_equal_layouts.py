"""Layouts that are the same under other names, and those that only look so."""

from __future__ import annotations

import pytest

from tt2gl.verify.equal_layouts import Layouts

BLOCKED = "#ttg.blocked<{sizePerThread = %s, threadsPerWarp = %s, warpsPerCTA = %s, order = %s}>"
OPERAND = (
    "#ttg.linear<{register = [[8, 0], [0, 1], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], "
    "warp = [[16, 0], [32, 0]], block = []}>"
)
UNPACKED = (
    "#ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [16, 0], [32, 0], [64, 0]], "
    "lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [8, 0]], warp = [[0, 32], [0, 64]], block = []}>"
)
TURNED = (
    "#ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [16, 0], [32, 0], [0, 64]], "
    "lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], warp = [[0, 16], [0, 32]], block = []}>"
)
TURNED_TWICE = (
    "#ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [0, 64]], "
    "lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 0]], warp = [[0, 16], [0, 32]], block = []}>"
)
WMMA = "#ttg.amd_wmma<{version = %d, isTranspose = true, ctaLayout = {warp = [[0, 1], [0, 2]]}%s}>"
MODULE = f"""#rows = {BLOCKED % ([1, 4], [4, 8], [4, 1], [1, 0])}
#wide = {BLOCKED % ([1, 8], [4, 8], [4, 1], [1, 0])}
#columns = {BLOCKED % ([4, 1], [8, 4], [1, 4], [0, 1])}
#pairs = #ttg.linear<{{register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]], block = []}}>
#groups = #ttg.linear<{{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}}>
#beside = #ttg.linear<{{register = [], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]], warp = [], block = []}}>
#turned = #ttg.linear<{{register = [[2], [1]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]], block = []}}>
#narrow = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}}>
#broad = #ttg.nvidia_mma<{{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}}>
#operand = {OPERAND}
#plain = #ttg.nvidia_mma<{{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}}>
#unpacked = {UNPACKED}
#mfma = #ttg.amd_mfma<{{version = 4, warpsPerCTA = [1, 4], instrShape = [32, 32, 16], isTransposed = true}}>
#turned_wide = {TURNED}
#turned_twice = {TURNED_TWICE}
#wmma = {WMMA % (3, ", instrShape = [16, 16, 32]")}
#wmma_twice = {WMMA % (1, "")}
"""


def _rows_of(layout: str, dim: int = 0) -> str:
    return f"#ttg.slice<{{dim = {dim}, parent = {layout}}}>"


@pytest.mark.parametrize(
    ("shape", "one", "other", "alike"),
    [
        ("32x", "#pairs", _rows_of("#rows"), True),
        ("32x", "#pairs", "#turned", True),
        ("32x", "#pairs", _rows_of("#wide"), False),
        ("8x1x", "#groups", "#beside", True),
        ("8x8x", "#groups", "#beside", False),
        ("8x", _rows_of("#groups", 1), _rows_of("#beside", 1), True),
        ("32x", _rows_of("#rows"), _rows_of("#columns", 1), True),
        ("32x", _rows_of("#rows", 1), _rows_of("#columns", 1), False),
        ("16x32x", "#rows", "#wide", False),
        ("64x", _rows_of("#narrow", 1), _rows_of("#broad", 1), True),
        ("64x", _rows_of("#narrow", 1), _rows_of("#plain", 1), True),
        ("64x", _rows_of("#narrow"), _rows_of("#plain"), True),
        ("64x64x", "#narrow", "#broad", True),
        ("64x64x", "#narrow", "#rows", False),
        ("64x16x", "#operand", "#ttg.dot_op<{opIdx = 0, parent = #narrow, kWidth = 2}>", True),
        ("64x16x", "#operand", "#ttg.dot_op<{opIdx = 0, parent = #plain, kWidth = 2}>", True),
        ("64x16x", "#operand", "#ttg.dot_op<{opIdx = 0, parent = #plain, kWidth = 4}>", False),
        ("64x16x", "#operand", "#ttg.dot_op<{opIdx = 1, parent = #plain, kWidth = 2}>", False),
        ("128x128x", "#unpacked", "#ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 8}>", True),
        ("128x128x", "#unpacked", "#ttg.dot_op<{opIdx = 1, parent = #mfma, kWidth = 4}>", False),
        ("128x128x", "#unpacked", "#ttg.dot_op<{opIdx = 0, parent = #mfma, kWidth = 8}>", False),
        ("64x128x", "#turned_wide", "#ttg.dot_op<{opIdx = 1, parent = #wmma, kWidth = 8}>", True),
        ("64x128x", "#turned_wide", "#ttg.dot_op<{opIdx = 1, parent = #wmma, kWidth = 16}>", False),
        ("64x128x", "#turned_wide", "#ttg.dot_op<{opIdx = 0, parent = #wmma, kWidth = 8}>", False),
        ("64x128x", "#turned_twice", "#ttg.dot_op<{opIdx = 1, parent = #wmma_twice, kWidth = 16}>", True),
        ("64x128x", "#turned_twice", "#ttg.dot_op<{opIdx = 1, parent = #wmma, kWidth = 8}>", False),
        ("64x", _rows_of("#narrow"), "#unknown", False),
    ],
)
def test_layouts_are_known_by_where_elements_are(shape: str, one: str, other: str, alike: bool) -> None:
    types = [f"tensor<{shape}f32, {layout}>" for layout in (one, other)]
    assert Layouts(MODULE).alike(*types) is alike


def test_tiles_of_other_extents_are_not_compared() -> None:
    assert not Layouts(MODULE).alike("tensor<32xf32, #pairs>", "tensor<64xf32, #pairs>")
