"""Helpers that want an argument in several layouts, which their caller can make again: written out in loops, else given
it once for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def block(x_ptr, b_ptr, rows, columns, D: tl.constexpr):
    x = tl.load(x_ptr + rows[:, None] * D + columns[None, :])
    BIAS


@triton.jit
def kernel(x_ptr, b_ptr, y_ptr, n, N: tl.constexpr, D: tl.constexpr):
    columns = tl.arange(0, D)
    total = tl.zeros([N], tl.float32)
    for start in range(0, n, N):
        rows = ROWS
        x, bias = block(x_ptr, b_ptr, rows, columns, D)
        total += tl.sum(x, axis=1) * bias
    tl.store(y_ptr + tl.arange(0, N), total)
"""
WITHOUT_LOOP = """import triton
import triton.language as tl


@triton.jit
def block(
    x_ptr,
    b_ptr,
    rows,
    columns,
    D: tl.constexpr,
):
    x = tl.load(x_ptr + rows[:, None] * D + columns[None, :])
    # the rows' own
    BIAS


@triton.jit
def kernel(x_ptr, b_ptr, y_ptr, n, N: tl.constexpr, D: tl.constexpr):
    columns = tl.arange(0, D)
    start = tl.program_id(0) * N
    rows = ROWS
    x, bias = block(x_ptr, b_ptr, rows, columns, D)
    z, more = block(x_ptr, b_ptr, columns=columns, rows=MORE, D=D)
    tl.store(y_ptr + tl.arange(0, N), tl.sum(x + z, axis=1) * (bias + more))
"""
# The loop has `block` written out, and so has `outer`, which is given rows outside loops.
WITHIN_ANOTHER = KERNEL.replace(
    """@triton.jit
def kernel(""",
    """@triton.jit
def outer(x_ptr, b_ptr, rows, columns, D: tl.constexpr):
    return block(x_ptr, b_ptr, rows, columns, D)


@triton.jit
def kernel(""",
).replace(
    "    tl.store(y_ptr",
    """    x, bias = outer(x_ptr, b_ptr, n - N + tl.arange(0, N), columns, D)
    total += tl.sum(x, axis=1) * bias
    tl.store(y_ptr""",
)
BESIDE = "return x, tl.load(b_ptr + rows)"
MASKED = """inside = rows < 200  # of 256
    return tl.where(inside[:, None], x, 0.0), tl.load(b_ptr + rows, mask=inside, other=1.0)"""
ALONE = "return x, 2.0"
MADE = "start + tl.arange(0, N)"
LOADED = "tl.load(b_ptr + start + tl.arange(0, N)).to(tl.int32)"


def ported(bias: str, rows: str, tmp_path: Path, target: str = "sm90", kernel: str = KERNEL) -> str:
    path, text = (
        tmp_path / "kernel.py",
        kernel.replace("BIAS", bias).replace("ROWS", rows).replace("MORE", rows.replace("start", "n - N")),
    )
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **dict.fromkeys(("x_ptr", "b_ptr", "y_ptr"), "*fp32"),
            "n": "i32",
            **dict.fromkeys(("N", "D"), "constexpr"),
        },
        constexprs={"N": 128, "D": 16},
        divisible_by_16=("x_ptr", "b_ptr", "y_ptr", "n"),
        options=Options(4, 1),
        grid=(1,),
        args={
            "x_ptr": TensorArg("float32", (256, 16), (16, 1), None),
            "b_ptr": TensorArg("float32", (256,), (1,), (0, 255)),
            "y_ptr": TensorArg("float32", (128,), (1,), None),
            "n": 256,
        },
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.parametrize(
    ("bias", "rows"),
    [pytest.param(ALONE, MADE, id="wanted once"), pytest.param(BESIDE, LOADED, id="loaded")],
)
def test_helpers_that_stay(bias: str, rows: str, tmp_path: Path) -> None:
    assert "written out" not in ported(bias, rows, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm80"])
def test_an_index_is_made_for_each_access(target: str, tmp_path: Path) -> None:
    text = ported(BESIDE, MADE, tmp_path, target)
    loop = text[text.index("for start in range(0, n, N):") :]
    assert "block, written out: what it is given is made for each of its accesses" in loop
    assert "convert_layout(rows" not in text


@pytest.mark.parametrize(
    ("bias", "rows"),
    [pytest.param(ALONE, MADE, id="wanted once"), pytest.param(BESIDE, LOADED, id="loaded")],
)
def test_arguments_given_once(bias: str, rows: str, tmp_path: Path) -> None:
    assert "rows_2" not in ported(bias, rows, tmp_path, kernel=WITHOUT_LOOP)


@pytest.mark.parametrize("target", ["sm90", "sm80"])
def test_an_index_is_given_for_each_access(target: str, tmp_path: Path) -> None:
    text = ported(BESIDE, MADE, tmp_path, target, WITHOUT_LOOP)
    assert "    rows,\n    rows_2,\n    columns,\n" in text
    assert "load(b_ptr + rows_2)" in text
    assert "convert_layout(rows" not in text
    assert "rows=n - N + gl.arange" in text
    assert "rows_2=n - N + gl.arange" in text


@pytest.mark.parametrize("target", ["sm90", "sm80"])
def test_an_index_is_given_once_more_to_what_another_helper_is_written_out_in(target: str, tmp_path: Path) -> None:
    text = ported(BESIDE, MADE, tmp_path, target, WITHIN_ANOTHER)
    assert "convert_layout(rows" not in text


@pytest.mark.parametrize(
    ("rows", "made"), [pytest.param(MADE, True, id="computed anew"), pytest.param(LOADED, False, id="loaded")]
)
def test_a_name_is_computed_of_it_for_each_access(rows: str, made: bool, tmp_path: Path) -> None:
    text = ported(MASKED, rows, tmp_path, kernel=WITHOUT_LOOP)
    assert ("    inside = rows < 200  # of 256\n    inside_2 = rows_2 < 200\n" in text) is made
    assert ("convert_layout(inside" not in text) is made
