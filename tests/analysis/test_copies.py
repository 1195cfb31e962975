"""Copies of statements that only some launches read: a text for each kind of launch, where a constant tells them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(
    x_ptr, rows_ptr, w_ptr, o_ptr, n, NAIVE: tl.constexpr, WEIGHED: tl.constexpr, M: tl.constexpr, K: tl.constexpr
):
    at = tl.arange(0, M)
    if NAIVE:
        rows = tl.where(at < 3, at, n)
    else:
        rows = tl.load(rows_ptr + at, mask=at < 3, other=n)
    mask = rows < n
    ks = tl.arange(0, K)
    x = tl.load(x_ptr + rows[:, None] * K + ks[None, :], mask=mask[:, None], other=0.0)
    o = tl.dot(x, tl.trans(x))
    if WEIGHED:
        o *= tl.load(w_ptr + rows, mask=mask, other=0.0)[:, None]
    tl.store(o_ptr + rows[:, None] * M + at[None, :], o, mask=mask[:, None])
"""


def test_launches_that_compute_what_others_load_have_a_text_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    m, k = 64, 64
    tensors = {
        "x_ptr": TensorArg("float16", (m, k), (k, 1), None),
        "rows_ptr": TensorArg("int32", (m,), (1,), (0, m - 1)),
        "w_ptr": TensorArg("float32", (m,), (1,), None),
        "o_ptr": TensorArg("float32", (m, m), (m, 1), None),
    }
    naive = {"NAIVE": True, "WEIGHED": True, "M": m, "K": k}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "rows_ptr": "*i32", "w_ptr": "*fp32", "o_ptr": "*fp32", "n": "i32"}
        | dict.fromkeys(naive, "constexpr"),
        constexprs=naive,
        divisible_by_16=tuple(tensors),
        options=Options(4, 3),
        grid=(1,),
        args={**tensors, "n": m},
    )
    launches = [launch, replace(launch, constexprs={**naive, "NAIVE": False, "WEIGHED": False})]
    reports = verify(path, targets=["sm90"], launches=launches, root=path.parent, run="simulate")
    assert [report.status for report in reports] == ["converted"] * 2
    assert [report.simulate is not None and report.simulate.equal for report in reports] == [True] * 2


MOVED = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, at_ptr, o_ptr, s_ptr, BY_ROW: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, B)
    if BY_ROW:
        src = x_ptr + tl.load(at_ptr + rows)
    else:
        src = x_ptr
    src += rows * D
    cols = tl.arange(0, D)
    tl.store(o_ptr + rows[:, None] * D + cols[None, :], tl.load(src[:, None] + cols[None, :]))
    few = tl.arange(0, D // 16)
    tl.store(s_ptr + rows[:, None] * (D // 16) + few[None, :], tl.load(src[:, None] + few[None, :]))
"""


def test_a_pointer_that_one_side_of_a_branch_leaves_as_it_is_has_the_name_of_each_copy(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(MOVED)
    b, d = 32, 64
    tensors = {
        "x_ptr": TensorArg("float32", (2 * b, d), (d, 1), None),
        "at_ptr": TensorArg("int32", (b,), (1,), (0, d)),
        "o_ptr": TensorArg("float32", (b, d), (d, 1), None),
        "s_ptr": TensorArg("float32", (b, d // 16), (d // 16, 1), None),
    }
    by_row = {"BY_ROW": True, "B": b, "D": d}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(tensors, "*fp32"), "at_ptr": "*i32"} | dict.fromkeys(by_row, "constexpr"),
        constexprs=by_row,
        divisible_by_16=tuple(tensors),
        options=Options(4, 3),
        grid=(1,),
        args=tensors,
    )
    launches = [launch, replace(launch, constexprs={**by_row, "BY_ROW": False})]
    reports = verify(path, targets=["sm90"], launches=launches, root=path.parent, run="simulate")
    assert [report.status for report in reports] == ["converted"] * 2
    assert [report.simulate is not None and report.simulate.equal for report in reports] == [True] * 2


AGAIN = """
@triton.jit
def kernel(x_ptr, y_ptr, S, T, AGAIN: tl.constexpr, WIDE: tl.constexpr, N: tl.constexpr):
    cols = tl.arange(0, N)
    if WIDE:
        tl.store(y_ptr + cols[:, None] * N + cols[None, :], 0)
    for t in range(T):
        x = tl.load(x_ptr + cols[:, None] + cols[None, :] * S)
        if AGAIN:
            cols = tl.arange(0, N)
        tl.store(y_ptr + t * N * N + cols[:, None] + cols[None, :] * S, x)
"""


def test_a_range_is_made_again_in_the_layouts_of_launches_that_do_not_come_there(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    types = "x_ptr=*fp16 y_ptr=*fp16 S=i32 T=i32"
    launches = [launch(types, AGAIN=again, WIDE=not again, N=64) for again in (True, False)]
    branch = port(AGAIN, *launches, target="sm90").split("if AGAIN:")[1]
    assert "cols_y = cols_y_range\n" in branch
