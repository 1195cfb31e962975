"""Layout classes: written as a formula that gives what Triton's Coalesce pass gives, under every launch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.memory import LayoutClass
from tt2gl.launches import Launch
from tt2gl.layouts import coalesced

pytestmark = pytest.mark.once

Analysed = Callable[..., KernelAnalysis]
MakeLaunch = Callable[..., Launch]

TURNED = """
@triton.jit
def kernel(x_ptr, y_ptr, s, t, TURNED: tl.constexpr, MIRRORED: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    cols = tl.arange(0, B)
    if TURNED:
        x_ptrs = x_ptr + rows[:, None] + cols[None, :] * s
    elif MIRRORED:
        x_ptrs = x_ptr + rows[:, None] + (B - cols[None, :]) * s
    else:
        x_ptrs = x_ptr + rows[:, None] * s + cols[None, :]
    x = tl.load(x_ptrs)
    tl.store(y_ptr + rows[:, None] * t + cols[None, :], x)
"""

COPY = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, x, mask=offs < n)
"""

TRANSPOSE = """
@triton.jit
def kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.arange(0, BM)
    cols = tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    tl.store(y_ptr + rows[:, None] + cols[None, :] * M, x)
"""

TILE = "x_ptr=*fp16 y_ptr=*fp16 M=i32 N=i32"


def pointers(*dtypes: str) -> str:
    """The types of `x_ptr`, `y_ptr` and `n`."""
    return f"x_ptr=*{dtypes[0]} y_ptr=*{dtypes[-1]} n=i32"


def classes(analysis: KernelAnalysis) -> list[LayoutClass]:
    """The classes that serve accesses."""
    return [known for known in analysis.classes.classes if any(known.pointers)]


def bits(pointer: str) -> str:
    """How a formula says the width of what a pointer points to."""
    return f"{pointer}.dtype.element_ty.primitive_bitwidth"


def test_accesses_of_one_layout_share_a_class(analysed: Analysed, launch: MakeLaunch) -> None:
    (only,) = classes(analysed(COPY, launch(pointers("fp16"), BLOCK=1024)))
    assert only.source == f"coalesced([BLOCK], [0], {bits('x_ptr')}, gl.num_warps())"
    assert only.pointers == ["x_ptr", "y_ptr"]
    assert only.exact


@pytest.mark.parametrize(("aligned", "most"), [(True, 2), (False, 12)])
def test_no_formula_is_tried_twice(
    analysed: Analysed, launch: MakeLaunch, monkeypatch: pytest.MonkeyPatch, aligned: bool, most: int
) -> None:
    tried: list[Any] = []

    @functools.wraps(coalesced)
    def counted(*given: Any) -> Any:
        tried.append(given)
        return coalesced(*given)

    monkeypatch.setattr("tt2gl.analysis.access_formulas.coalesced", counted)
    unused = " ".join(f"p{number}=*fp16" for number in range(20))
    names = "".join(f"p{number}, " for number in range(20))
    text = COPY.replace("x_ptr, y_ptr, n", f"x_ptr, y_ptr, {names}n")
    launches = [launch(f"x_ptr=*fp16 y_ptr=*fp16 {unused} n=i32", aligned=aligned, BLOCK=1024)]
    (only,) = classes(analysed(text, *launches))
    assert only.exact
    assert 0 < len(tried) <= most


def test_accesses_of_two_orders_have_two_classes(analysed: Analysed, launch: MakeLaunch) -> None:
    sources = [known.source for known in classes(analysed(TRANSPOSE, launch(TILE, BM=64, BN=32)))]
    assert sources == [
        f"coalesced([BM, BN], [1, 0], {bits('x_ptr')}, gl.num_warps())",
        f"coalesced([BM, BN], [0, 1], {bits('y_ptr')}, gl.num_warps())",
    ]


def test_accesses_of_two_orders_under_either_of_two_flags(analysed: Analysed, launch: MakeLaunch) -> None:
    flags = ((False, False), (True, False), (False, True))
    made = [launch("x_ptr=*fp16 y_ptr=*fp16 s=i32 t=i32", TURNED=one, MIRRORED=other, B=64) for one, other in flags]
    loaded = next(each for each in classes(analysed(TURNED, *made)) if "x_ptr" in each.pointers)
    assert loaded.exact
    first, test, other = loaded.source.partition(" if TURNED or MIRRORED else ")
    assert "[0, 1]" in first
    assert test
    assert "[1, 0]" in other


def test_a_launch_with_narrow_accesses_does_not_hide_what_tells_the_others_apart(
    analysed: Analysed, launch: MakeLaunch
) -> None:
    types = "x_ptr=*fp16 y_ptr=*fp16 s=i32 t=i32"
    made = [launch(types, TURNED=turned, MIRRORED=False, B=64) for turned in (False, True)]
    narrow = launch(types, aligned=False, TURNED=True, MIRRORED=False, B=64)
    sources = [each.source for each in classes(analysed(TURNED, *made, narrow)) if "x_ptr" in each.pointers]
    assert any(" if TURNED else " in source for source in sources)


def test_accesses_of_two_widths_have_two_classes(analysed: Analysed, launch: MakeLaunch) -> None:
    narrow, wide = classes(analysed(COPY, launch(pointers("fp16", "fp32"), BLOCK=1024)))
    assert (narrow.layouts[0].size_per_thread, wide.layouts[0].size_per_thread) == ((8,), (4,))
    assert (narrow.pointers, wide.pointers) == (["x_ptr"], ["y_ptr"])
    assert f"{bits('y_ptr')}" in wide.source


@pytest.mark.parametrize("dtypes", [("fp16", "fp32"), ("i8", "bf16", "fp64")])
def test_one_formula_for_launches_of_several_dtypes(
    analysed: Analysed, launch: MakeLaunch, dtypes: tuple[str, ...]
) -> None:
    launches = [launch(pointers(dtype), BLOCK=1024) for dtype in dtypes]
    (only,) = classes(analysed(COPY, *launches))
    assert only.source == f"coalesced([BLOCK], [0], {bits('x_ptr')}, gl.num_warps())"
    assert {layout.size_per_thread for layout in only.layouts.values()} != {(1,)}
    assert only.exact


def test_one_formula_for_launches_of_several_blocks_and_warps(analysed: Analysed, launch: MakeLaunch) -> None:
    launches = [launch(pointers("fp16"), num_warps=w, BLOCK=b) for w, b in ((1, 64), (4, 2048), (8, 8192))]
    (only,) = classes(analysed(COPY, *launches))
    assert only.exact
    assert "BLOCK" in only.source


def test_unaligned_accesses_take_the_width_that_triton_gives(analysed: Analysed, launch: MakeLaunch) -> None:
    (only,) = classes(analysed(COPY, launch(pointers("fp16"), aligned=False, BLOCK=1024)))
    assert only.exact
    assert only.layouts[0].size_per_thread == (1,)


def test_a_stride_unknown_to_be_divisible_narrows_the_access(analysed: Analysed, launch: MakeLaunch) -> None:
    """Row-major still, but one element a thread: nothing says that a row begins on 16 bytes."""
    text = TRANSPOSE.replace("rows[:, None] + cols[None, :] * M", "rows[:, None] * M + cols[None, :]")
    (only, *_) = classes(analysed(text, launch(TILE, aligned=False, BM=64, BN=32)))
    assert only.exact
    assert only.layouts[0].size_per_thread == (1, 1)
    assert only.source == "coalesced([BM, BN], [1, 0], 128, gl.num_warps())"


@pytest.mark.parametrize(
    ("extents", "named"),
    [
        ("0, BLOCK", "[BLOCK]"),
        ("0, BLOCK * 2", "[BLOCK * 2]"),
        ("0, 256", "[256]"),
        ("0, HALF", "[BLOCK // 2]"),
    ],
)
def test_extents_are_said_in_the_authors_words(
    analysed: Analysed, launch: MakeLaunch, extents: str, named: str
) -> None:
    text = COPY.replace("tl.arange(0, BLOCK)", f"tl.arange({extents})")
    text = text.replace("    offs =", "    HALF: tl.constexpr = BLOCK // 2\n    offs =")
    (only,) = classes(analysed(text, launch(pointers("fp16"), BLOCK=1024)))
    assert only.source.startswith(f"coalesced({named}, [0], ")


def test_a_tile_smaller_than_the_threads_is_no_anchor(analysed: Analysed, launch: MakeLaunch) -> None:
    small = analysed(COPY, launch(pointers("fp16"), BLOCK=64))
    large = analysed(COPY, launch(pointers("fp16"), BLOCK=128))
    assert not small.classes.anchored
    assert len(large.classes.anchored) == 2


def test_a_tile_small_in_few_launches_is_an_anchor_all_the_same(analysed: Analysed, launch: MakeLaunch) -> None:
    launches = [launch(pointers("fp16"), BLOCK=block) for block in (64, 1024, 2048)]
    assert len(analysed(COPY, *launches).classes.anchored) == 2


UNDER_FLAGS = """
@triton.jit
def kernel(x_ptr, y_ptr, stride, LOAD: tl.constexpr, STORE: tl.constexpr, BLOCK: tl.constexpr):
    rows, cols = tl.arange(0, BLOCK), tl.arange(0, BLOCK)
    tile = tl.zeros((BLOCK, BLOCK), tl.float16)
    if LOAD:
        tile += tl.load(x_ptr + rows[:, None] * stride + cols[None, :])
    if STORE:
        tl.store(y_ptr + rows[:, None] * stride + cols[None, :], tile)
    else:
        tl.store(x_ptr + rows[:, None] * stride + cols[None, :], tile)
"""


@pytest.mark.parametrize(
    ("loaded", "shared"),
    [
        pytest.param([True, False], True, id="the second has more launches"),
        pytest.param([True, True, False], False, id="each has one that the other lacks"),
    ],
)
def test_what_two_accesses_share_is_right_for_all_launches_of_both(
    analysed: Analysed, launch: MakeLaunch, loaded: list[bool], shared: bool
) -> None:
    flags = [{"LOAD": load, "STORE": place > 0 or shared} for place, load in enumerate(loaded)]
    launches = [launch("x_ptr=*fp16 y_ptr=*fp16 stride=i32", aligned=each["LOAD"], **each, BLOCK=64) for each in flags]
    found = classes(analysed(UNDER_FLAGS, *launches))
    stored = next(known for known in found if "y_ptr" in known.pointers)
    assert (len(found) == 1) is shared
    assert " if LOAD else " in stored.source
    assert [stored.layouts[index].size_per_thread[1] for index in sorted(stored.layouts)][-2:] == [8, 1]


PRODUCT = """
@triton.jit
def kernel(x_ptr, w_ptr, bias_ptr, y_ptr, N: tl.constexpr):
    rows, cols = tl.arange(0, 64), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * 64 + rows[None, :])
    w = tl.load(w_ptr + rows[:, None] * N + cols[None, :])
    acc = tl.dot(x, w) + tl.load(bias_ptr + cols)[None, :]
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("extents", [(64, 128), (64, 64, 128), (64, 128, 128)], ids=str)
def test_a_row_beside_a_product_is_an_anchor_where_it_fills_the_threads(
    port: Callable[..., str], launch: MakeLaunch, extents: tuple[int, ...]
) -> None:
    types = "x_ptr=*fp16 w_ptr=*fp16 bias_ptr=*fp32 y_ptr=*fp32"
    text = port(PRODUCT, *(launch(types, N=n) for n in extents))
    assert " = row_layout if N >= 32 * gl.num_warps() else gl.SliceLayout(0, mma_layout)" in text
    assert "gl.convert_layout(gl.load(bias_ptr + cols_chosen), gl.SliceLayout(0, mma_layout))" in text


TABLE = """
@triton.jit
def kernel(x_ptr, y_ptr, D: tl.constexpr, L: tl.constexpr):
    rows, cols = tl.arange(0, D), tl.arange(0, L)
    x = tl.load(x_ptr + rows)
    tl.store(y_ptr + rows[:, None] * L + cols[None, :], x[:, None] * cols[None, :])
"""


@pytest.mark.parametrize("extents", [(64, 128), (64, 64, 128), (64, 128, 128)], ids=str)
def test_a_row_beside_a_tile_is_an_anchor_where_it_fills_the_threads(
    port: Callable[..., str], launch: MakeLaunch, extents: tuple[int, ...]
) -> None:
    text = port(TABLE, *(launch("x_ptr=*fp32 y_ptr=*fp32", D=n, L=64) for n in extents))
    assert " = row_layout if D >= 32 * gl.num_warps() else gl.SliceLayout(1, tile_layout)" in text
    assert "x = gl.load(x_ptr + rows_chosen)" in text
    assert "gl.convert_layout(x, gl.SliceLayout(1, tile_layout))[:, None]" in text


def test_a_row_alone_has_one_layout_however_many_threads_it_fills(port: Callable[..., str], launch: MakeLaunch) -> None:
    text = port(COPY, *(launch(pointers("fp32"), BLOCK=n) for n in (64, 128)))
    assert "chosen" not in text


def test_a_row_beside_a_tile_has_one_layout_where_warps_have_64_lanes(
    port: Callable[..., str], launch: MakeLaunch
) -> None:
    text = port(TABLE, *(launch("x_ptr=*fp32 y_ptr=*fp32", D=n, L=64) for n in (64, 256)), target="gfx942")
    assert "chosen" not in text


def test_lanes_are_the_targets(analysed: Analysed, launch: MakeLaunch) -> None:
    (only,) = classes(analysed(COPY, launch(pointers("fp16"), BLOCK=1024), target="gfx942"))
    assert only.exact
    assert only.layouts[0].threads_per_warp == (64,)


BYTES = """
@triton.jit
def kernel(a_ptr, w_ptr, c_ptr, K, N, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, cols, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + k + ks[None, :])
        w = tl.load(w_ptr + (k + ks)[:, None] * N + cols[None, :])
        acc = tl.dot(a, w.to(tl.float16), acc)
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)
"""


def test_copies_are_no_wider_than_the_pieces_of_a_swizzled_slot(analysed: Analysed, launch: MakeLaunch) -> None:
    """16 bytes could be copied at once, and would be in halves: their slot changes the places of 8 of them."""
    pointers = "a_ptr=*fp16 w_ptr=*i8 c_ptr=*fp32 K=i32 N=i32"
    found = analysed(BYTES, launch(pointers, BM=16, BN=128, BK=64))
    (weights,) = (each for each in classes(found) if "w_ptr" in each.pointers)
    assert weights.exact
    assert weights.layouts[0].size_per_thread == (1, 8)


DOWN = """
@triton.jit
def kernel(x_ptr, y_ptr, M, ROWS: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + rows % 50 + rows // 50 * 3200 + tl.arange(0, B)[None, :] * 50)
    tl.store(y_ptr + rows * B + tl.arange(0, B)[None, :], x)
"""


def test_where_an_extent_is_one_the_order_is_that_of_other_launches(analysed: Analysed, launch: MakeLaunch) -> None:
    one, many = (launch("x_ptr=*fp32 y_ptr=*fp32 M=i32", ROWS=rows, B=128) for rows in (1, 32))
    loaded = classes(analysed(DOWN, one, many))[0]
    assert loaded.exact
    assert loaded.source == "coalesced([ROWS, B], [0, 1], 64, gl.num_warps())"


WALKS = """
@triton.jit
def kernel(x_ptr, y_ptr, n, R: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, R)
    x = tl.load(x_ptr + rows)
    tile = tl.broadcast_to(x[:, None], [R, B])
    for step in range(n):
        tile += tl.randn(step, tl.arange(0, B))[None, :] * x[:, None]
    {end}
"""


@pytest.mark.parametrize(
    ("end", "width"),
    [
        # What is stored has an element for each thread, and a layout of its own: a tile's, or a row's.
        ("tl.store(y_ptr + tl.arange(0, 128)[:, None] + tl.arange(0, 2)[None, :], tl.sum(tl.sum(tile, 1), 0))", 32),
        ("tl.store(y_ptr + tl.arange(0, 256), tl.max(tl.max(tile, 1), 0))", 128),
        ("tl.store(y_ptr + rows, tl.sum(tile, 1))", 128),
    ],
)
def test_a_tile_that_nothing_decides(analysed: Analysed, launch: MakeLaunch, end: str, width: int) -> None:
    analysis = analysed(WALKS.replace("{end}", end), launch(pointers("fp32"), R=8, B=128))
    (only,) = [known for known in analysis.classes.classes if known.rank == 2 and not known.pointers]
    assert only.source == f"coalesced([R, B], [1, 0], {width}, gl.num_warps())"


TWICE = """
@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, R: tl.constexpr, B: tl.constexpr):
    places = tl.arange(0, R)[:, None] * B + tl.arange(0, B)[None, :]
    total = tl.zeros([R, B], tl.float32)
    for start in range(0, B, B):
        total += tl.load(x_ptr + places + start) * tl.load(w_ptr + places + start)
    for start in range(0, B, B):
        scaled = tl.load(w_ptr + places + start) * tl.sum(total, 1)[:, None]
        tl.store(y_ptr + places + start, scaled)
"""


def test_what_the_compiler_loads_once_is_in_one_layout(analysed: Analysed, launch: MakeLaunch) -> None:
    """Loops of one turn: of the second load nothing is known but that it is the first one."""
    only, *others = classes(analysed(TWICE, launch("x_ptr=*fp32 w_ptr=*fp32 y_ptr=*fp32", R=32, B=64)))
    assert (only.pointers, others) == (["x_ptr", "w_ptr", "y_ptr"], [])
