"""One text for all launches and callers: layout parameters of helpers, layouts chosen by flags, conflicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tt2gl.launches import Launch
from tt2gl.results import Conversion

pytestmark = pytest.mark.once

Port = Callable[..., str]
Convert = Callable[..., Conversion]
MakeLaunch = Callable[..., Launch]

TYPES = "x_ptr=*fp16 y_ptr=*fp16 n=i32"

HELPER = """
@triton.jit
def block(ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    return tl.load(ptr + offs, mask=offs < n)

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    {}
"""


def helper(made: str) -> str:
    """The helper's text."""
    return made[: made.index("def kernel(")]


def test_a_helper_that_only_computes_stays_triton(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def twice(x):
    return tl.where(x > 0, x * 2, x)

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, twice(tl.load(x_ptr + offs)))
"""
    made = port(text, launch(TYPES, BLOCK=1024))
    assert "def twice(x):\n    return tl.where(x > 0, x * 2, x)" in made


def test_a_helper_that_makes_tensors_takes_their_layout(port: Port, launch: MakeLaunch) -> None:
    made = port(HELPER.format("tl.store(y_ptr + offs, block(x_ptr, n, BLOCK))"), launch(TYPES, BLOCK=1024))
    assert helper(made).startswith(
        "def block(ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):\n    offs = gl.arange(0, BLOCK, layout=layout)\n"
    )
    assert "block(x_ptr, n, BLOCK, layout=layout)" in made


def test_callers_pass_different_layouts(port: Port, launch: MakeLaunch) -> None:
    statement = (
        "tl.store(y_ptr + offs, block(x_ptr, n, BLOCK))\n"
        "    tl.store(y_ptr + n + tl.arange(0, BLOCK * 4), block(x_ptr, n, BLOCK * 4))"
    )
    made = port(HELPER.format(statement), launch("x_ptr=*fp32 y_ptr=*fp32 n=i32", BLOCK=256))
    assert "def block(ptr, n, BLOCK: gl.constexpr, layout: gl.constexpr):" in made
    passed = {line.partition("block(")[2].partition("layout=")[2] for line in made.splitlines() if "= block(" in line}
    assert made.count("layout=") >= 4
    assert len(passed) <= 2


def test_a_layout_goes_through_helpers_of_helpers(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def offsets(BLOCK: tl.constexpr):
    return tl.arange(0, BLOCK)

@triton.jit
def block(ptr, BLOCK: tl.constexpr):
    return tl.load(ptr + offsets(BLOCK))

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    tl.store(y_ptr + offsets(BLOCK), block(x_ptr, BLOCK))
"""
    made = port(text, launch(TYPES, BLOCK=1024))
    assert "return gl.load(ptr + offsets(BLOCK, layout=layout))" in made
    assert "gl.store(y_ptr + offsets(BLOCK, layout=layout), block(x_ptr, BLOCK, layout=layout))" in made


INDICES = """
@triton.jit
def indices(BM: tl.constexpr, BN: tl.constexpr):
    return tl.arange(0, BM), tl.arange(0, BN)

@triton.jit
def kernel(x_ptr, y_ptr, n, BM: tl.constexpr, BN: tl.constexpr):
    rows, cols = indices(BM, BN)
    at = rows[:, None] * n + cols[None, :]
    tl.store(y_ptr + at, tl.load(x_ptr + at))
"""


def test_a_helper_that_returns_tensors_of_two_layouts(port: Port, launch: MakeLaunch) -> None:
    """They are made as they are read: nothing is converted."""
    made = port(INDICES, launch(TYPES, BM=32, BN=64))
    rows, columns = (
        "gl.arange(0, BM, layout=gl.SliceLayout(1, layout))",
        "gl.arange(0, BN, layout=gl.SliceLayout(0, layout))",
    )
    assert f"return {rows}, {columns}" in made
    assert "indices(BM, BN, layout=tile_layout)" in made
    assert "gl.convert_layout(" not in made


def test_a_helper_that_stores(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def write(ptr, offs, value, n):
    tl.store(ptr + offs, value, mask=offs < n)

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    write(y_ptr, offs, tl.load(x_ptr + offs), n)
"""
    assert "gl.convert_layout" not in port(text, launch(TYPES, BLOCK=1024))


def test_a_helper_with_several_returns(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def act(x, KIND: tl.constexpr):
    if KIND == "relu":
        return tl.maximum(x, tl.zeros_like(x))
    else:
        return x

@triton.jit
def kernel(x_ptr, y_ptr, n, KIND: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(y_ptr + offs, act(tl.load(x_ptr + offs), KIND))
"""
    launches = [launch(TYPES, KIND=kind, BLOCK=1024) for kind in ("relu", "none")]
    assert "gl.convert_layout" not in port(text, *launches)


def test_two_launches_that_want_two_orders(conversion: Convert, launch: MakeLaunch) -> None:
    """Strides that are constexprs change the order; the kernel is converted for both, or kept with the reason."""
    text = """
@triton.jit
def kernel(x_ptr, y_ptr, n, SM: tl.constexpr, SN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    at = tl.arange(0, BM)[:, None] * SM + tl.arange(0, BN)[None, :] * SN
    tl.store(y_ptr + at, tl.load(x_ptr + at))
"""
    launches = [launch(TYPES, SM=m, SN=n, BM=64, BN=64) for m, n in ((64, 1), (1, 64))]
    made = conversion(text, *launches)
    for report in made.kernels:
        if report.status == "kept":
            assert [d.code for d in report.diagnostics] == ["TTG310"]
        else:
            assert report.gluon is not None
            assert report.gluon.ok, report.gluon.error


def test_a_layout_that_a_flag_decides(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def kernel(x_ptr, y_ptr, n, ROWS: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    x_at = tl.arange(0, BM)[:, None] * n + tl.arange(0, BN)[None, :]
    x = tl.load(x_ptr + x_at)
    if ROWS:
        at = tl.arange(0, BM)[:, None] * n + tl.arange(0, BN)[None, :]
    else:
        at = tl.arange(0, BM)[:, None] + tl.arange(0, BN)[None, :] * n
    tl.store(y_ptr + at, x)
"""
    made = port(text, *(launch(TYPES, ROWS=flag, BM=64, BN=64) for flag in (True, False)))
    assert "gl.convert_layout(" in made


def test_a_mask_that_is_none_under_a_flag_is_none_in_each_layout(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def kernel(x_ptr, y_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if EVEN:
        mask = None
    else:
        mask = (i[:, None] < n) & (i[None, :] < n)
    x = tl.load(x_ptr + i[:, None] * BLOCK + i[None, :], mask=mask)
    tl.store(y_ptr + i[:, None] + i[None, :] * BLOCK, x, mask=mask)
"""
    made = port(text, launch(TYPES, EVEN=True, BLOCK=64), launch(TYPES, EVEN=False, BLOCK=64))
    assert "    if EVEN:\n        mask = None\n        mask_y = None\n    else:\n" in made


ROWS_BY_A_FLAG = """
@triton.jit
def kernel(x_ptr, y_ptr, n, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    if FLAG:
        x = rows(x, y_ptr, i, True, BLOCK)
    else:
        x = rows(x, y_ptr, i, False, BLOCK)
    tl.store(y_ptr + i, x)
"""


def test_a_call_that_needs_no_layout_is_given_none(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def rows(x, y_ptr, i, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    if WHOLE:
        j = tl.arange(0, BLOCK)
        x += tl.sum(tl.load(y_ptr + j[:, None] * BLOCK + j[None, :]), axis=1)
    return x
"""
    made = port(text + ROWS_BY_A_FLAG, launch(TYPES, FLAG=True, BLOCK=64), launch(TYPES, FLAG=False, BLOCK=64))
    assert "x = rows(x, y_ptr, i, True, BLOCK, layout=tile_layout)\n" in made
    assert "x = rows(x, y_ptr, i, False, BLOCK, layout=None)\n" in made


def test_a_layout_that_a_call_needs_not_is_one_that_it_gives_as_well(port: Port, launch: MakeLaunch) -> None:
    # Where rows are told apart for it ahead of the branch, no layout at all would not do.
    text = """
@triton.jit
def rows(x, y_ptr, i, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    j = tl.arange(0, BLOCK)
    x += tl.sum(tl.load(y_ptr + i[:, None] * BLOCK + j[None, :]), axis=1)
    if WHOLE:
        k = tl.arange(0, 2 * BLOCK)
        x += tl.sum(tl.load(y_ptr + i[:, None] * BLOCK * 2 + k[None, :]), axis=1)
    return x
"""
    made = port(text + ROWS_BY_A_FLAG, launch(TYPES, FLAG=True, BLOCK=64), launch(TYPES, FLAG=False, BLOCK=64))
    assert "x = rows(x, y_ptr, i, i_rows, True, BLOCK, y_layout=y_layout, y_layout_2=y_layout_2)\n" in made
    assert "x = rows(x, y_ptr, i, i, False, BLOCK, y_layout=y_layout, y_layout_2=y_layout)\n" in made


def test_helpers_that_one_call_may_reach_take_the_same_parameters(port: Port, launch: MakeLaunch) -> None:
    text = """
@triton.jit
def plain(x):
    return x + 1

@triton.jit
def filled(x):
    return x + tl.full([1], 3, tl.int32)

@triton.jit
def apply(change, ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(ptr + offs, change(offs).to(ptr.dtype.element_ty))

@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    apply(plain, x_ptr, BLOCK)
    apply(filled, y_ptr, BLOCK)
"""
    made = port(text, launch(TYPES, BLOCK=1024))
    assert "def plain(x, layout: gl.constexpr):" in made
    assert "def filled(x, layout: gl.constexpr):" in made


def test_kernels_of_one_file_share_a_helper(port: Port, launch: MakeLaunch) -> None:
    text = HELPER.format("tl.store(y_ptr + offs, block(x_ptr, n, BLOCK))")
    text += text[text.index("@triton.jit\ndef kernel") :].replace("def kernel", "def other")
    known = launch(TYPES, BLOCK=1024)
    made = port(text, known, replace(known, kernel="other"))
    assert made.count("block(x_ptr, n, BLOCK, layout=layout)") == 2


@pytest.mark.parametrize("name", ["layout", "layout_0"])
def test_a_helper_whose_own_names_are_like_ours(port: Port, launch: MakeLaunch, name: str) -> None:
    text = HELPER.format("tl.store(y_ptr + offs, block(x_ptr, n, BLOCK))").replace(
        "    return tl.load(ptr + offs, mask=offs < n)",
        f"    {name} = offs + 16\n    return tl.load(ptr + {name}, mask=offs < n)",
    )
    assert f"    {name} = offs + 16\n" in port(text, launch(TYPES, BLOCK=1024))
