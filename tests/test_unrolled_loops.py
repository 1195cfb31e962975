"""Loops inside ones that the compiler writes out: loads that run ahead in one copy, and in another do not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, ends_ptr, PARTS: tl.constexpr, K: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    low = 0
    for part in tl.static_range(PARTS):
        high = tl.load(ends_ptr + part)
        for k in range(low, high, B):
            a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
            b = tl.load(b_ptr + rows[None, :] * K + k + rows[:, None])
            acc = tl.dot(a, b, acc)
        low = high
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        **dict.fromkeys(("a_ptr", "b_ptr"), "*fp16"),
        "c_ptr": "*fp32",
        "ends_ptr": "*i32",
        **dict.fromkeys(("PARTS", "K", "B"), "constexpr"),
    },
    constexprs={"PARTS": 1, "K": 128, "B": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "ends_ptr"),
    options=Options(4, 3),
)


@pytest.mark.parametrize(
    ("parts", "copies"),
    [
        pytest.param(2, 4, id="the second starts at a column that nothing is known of: the first is apart"),
        pytest.param(1, 4, id="all start at zero"),
    ],
)
def test_loads_run_ahead_where_those_of_all_copies_do(parts: int, copies: int, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    launch = replace(LAUNCH, constexprs={**LAUNCH.constexprs, "PARTS": parts})
    made = convert(path, target="sm80", launches=[launch], root=path.parent, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    assert made.text.count("async_load(") == copies


AGAIN = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, scale_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = tl.load(b_ptr + rows[None, :] * K + k + rows[:, None])
        scale = tl.load(scale_ptr + k // B * B + rows)
        acc *= scale[:, None]
        acc += tl.dot((a * scale[:, None]).to(a.dtype), b)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


def test_a_load_that_is_done_again_in_another_layout_runs_ahead(tmp_path: Path) -> None:
    """Triton copies it ahead for one reader, and loads it in the loop for the other."""
    file = tmp_path / "kernel.py"
    file.write_text(AGAIN)
    launch = replace(
        LAUNCH,
        signature={
            **dict.fromkeys(("a_ptr", "b_ptr"), "*fp16"),
            **dict.fromkeys(("c_ptr", "scale_ptr"), "*fp32"),
            "K": "i32",
            "B": "constexpr",
        },
        constexprs={"B": 32},
        divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "scale_ptr", "K"),
    )
    text = convert(file, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert text.count("async_load(scale_buf") == 2
    assert text.count("scale_buf.index(slot).load(") == 2
    assert "gl.load(scale_ptr" not in text


OFFSETS = """import triton
import triton.language as tl


@triton.jit
def offsets_of(indices, strides):
    offset = 0
    for axis in tl.static_range(len(indices)):
        offset += indices[axis] * strides[axis]
    return offset


@triton.jit
def kernel(x_ptr, o_ptr, sx, so, B: tl.constexpr):
    rows = tl.arange(0, B)
    cols = tl.arange(0, B)
    at = tl.program_id(0)
    x = tl.load(x_ptr + offsets_of((rows[:, None], at, cols[None, :]), (1, B * sx, sx)))
    tl.store(o_ptr + offsets_of((rows[:, None], at, cols[None, :]), (so, B * so, 1)), x)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_all_elements_that_a_loop_takes_in_turn_share_a_layout(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(OFFSETS)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "o_ptr": "*fp32", "sx": "i32", "so": "i32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=("x_ptr", "o_ptr", "sx", "so"),
        options=Options(4, 3),
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    assert made.text.count("offsets_of((rows[:, None], at, cols[None, :])") == 1
    assert made.text.count("offsets_of((rows_o[:, None], at, cols_o[None, :])") == 1


ROWS_ALONE = (
    OFFSETS[: OFFSETS.index("    x = tl.load")]
    + """\
    row_of = offsets_of((rows[:, None], at), (sx, B * sx))
    x = tl.load(x_ptr + row_of + cols[None, :])
    tl.store(o_ptr + offsets_of((cols[None, :], rows[:, None], at), (so, 1, B * so)), x)
"""
)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_what_is_a_tensor_in_one_turn_and_a_number_in_the_last_is_a_tensor(target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ROWS_ALONE)
    args = {"x_ptr": TensorArg("float32", (128, 64), (64, 1)), "o_ptr": TensorArg("float32", (128, 64), (64, 1))}
    types = {"x_ptr": "*fp32", "o_ptr": "*fp32", "sx": "i32", "so": "i32", "B": "constexpr"}
    given = {**args, "sx": 64, "so": 64}
    launch = Launch(path.name, "kernel", types, {"B": 64}, (*given,), Options(4, 3), (2,), given)
    compared(path, launch, target)


NO_TURN = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, MORE: tl.constexpr, M: tl.constexpr, K: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, K)
    x_ptrs = x_ptr + rows[:, None] * K + cols[None, :]
    best = tl.load(x_ptrs)
    for turn in tl.static_range(MORE):
        x_ptrs += M * K
        best = tl.maximum(best, tl.load(x_ptrs))
    which = tl.arange(0, 1)
    found = tl.where(best[:, :, None] == which[None, None, :], 1, 0)
    tl.store(out_ptr + rows[:, None] + which[None, :], tl.sum(found, axis=1))
"""


@pytest.mark.subset
def test_a_loop_that_is_written_out_no_time_binds_no_name(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(NO_TURN)
    tensors = {
        "x_ptr": TensorArg("int32", (32, 8), (8, 1), (0, 3)),
        "out_ptr": TensorArg("int32", (32, 1), (1, 1), None),
    }
    constants = {"MORE": 0, "M": 32, "K": 8}
    signature = {**dict.fromkeys(tensors, "*i32"), **dict.fromkeys(constants, "constexpr")}
    launch = Launch("kernel.py", "kernel", signature, constants, tuple(tensors), Options(4, 3), (1,), dict(tensors))
    compared(path, launch, "sm90")
