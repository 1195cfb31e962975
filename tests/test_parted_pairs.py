"""What is split: a pair gives two scalars, and pairs that a thread has loaded whole are parted in that thread.

Triton parts a pair as a row of one, and the port says in which layout.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def pairs_kernel(x_ptr, at_ptr, y_ptr, N: tl.constexpr):
    pid = tl.program_id(0)
    first, last = tl.split(tl.load(at_ptr + pid * 2 + tl.arange(0, 2)))
    cols = tl.arange(0, N)
    x = tl.load(x_ptr + cols, mask=(cols >= first) & (cols < last), other=0.0)
    even, odd = tl.split(tl.sum(tl.reshape(x, (N // 2, 2)), axis=0))
    tl.store(y_ptr + pid * 2, even)
    tl.store(y_ptr + pid * 2 + 1, odd)
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_the_scalars_of_a_pair(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    args = {
        "x_ptr": TensorArg("float32", (256,), (1,)),
        "at_ptr": TensorArg("int32", (8,), (1,), (0, 255)),
        "y_ptr": TensorArg("float32", (8,), (1,)),
    }
    types = {"x_ptr": "*fp32", "at_ptr": "*i32", "y_ptr": "*fp32", "N": "constexpr"}
    launch = Launch(str(path), "pairs_kernel", types, {"N": 256}, tuple(args), grid=(4, 1, 1), args=args)
    [report] = verify(path, targets=[target], launches=[launch], run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise, report.simulate


ROTARY = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, angle_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols, halves = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :], tl.arange(0, N // 2)[None, :]
    x = tl.load(x_ptr + rows * N + cols).to(tl.float32)
    angle = tl.load(angle_ptr + rows * (N // 2) + halves).to(tl.float32)
    {parted}
    tl.store(y_ptr + rows * N + cols, y.to(y_ptr.dtype.element_ty))
"""
PAIRS = """pairs = tl.reshape(x, (M, N // 2, 2))
    even, odd = tl.split(pairs)
    y = tl.reshape(tl.join(even * tl.cos(angle), odd * tl.sin(angle)), (M, N))"""
FOURS = """first, second = tl.split(tl.reshape(x, (M, N // 4, 2, 2)))
    a, c = tl.split(first)
    b, d = tl.split(second)
    y = tl.reshape(tl.join(tl.join(d, b), tl.join(c, a)), (M, N)) * 2"""
SIZES = {"x_ptr": 1, "angle_ptr": 2, "y_ptr": 1}


def rotary(directory: Path, parted: str, rows: int, columns: int) -> tuple[Path, Launch]:
    """A kernel that parts the pairs of a tile of bfloat16, and its launch."""
    path = directory / "kernel.py"
    path.write_text(ROTARY.format(parted=parted))
    args = {
        name: TensorArg("bfloat16", (rows, columns // part), (columns // part, 1), None) for name, part in SIZES.items()
    }
    types = {**dict.fromkeys(SIZES, "*bf16"), "M": "constexpr", "N": "constexpr"}
    sizes = {"M": rows, "N": columns}
    return path, Launch("kernel.py", "kernel", types, sizes, tuple(SIZES), Options(4), (1, 1, 1), args)


@pytest.mark.parametrize(
    ("parted", "rows", "columns"),
    [
        (PAIRS, 4, 32),
        (FOURS, 8, 32),
        (
            "y = tl.trans(tl.split(tl.reshape(tl.trans(x), (M, N // 2, 2)))[0])\n    y = tl.join(y, y).reshape(M, N)",
            64,
            64,
        ),
    ],
    ids=["an element a thread", "pairs where fours are parted", "columns"],
)
def test_other_layouts_are_not_narrowed(tmp_path: Path, parted: str, rows: int, columns: int) -> None:
    path, launch = rotary(tmp_path, parted, rows, columns)
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert "narrowed(" not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("parted", [PAIRS, FOURS], ids=["pairs", "fours"])
def test_pairs_are_parted_in_their_threads(tmp_path: Path, target: str, parted: str) -> None:
    path, launch = rotary(tmp_path, parted, 64, 64)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.convert_layouts <= triton.convert_layouts
    assert (gluon.barriers, gluon.shared_bytes) <= (triton.barriers, triton.shared_bytes)
    text = convert(path, target=target, launches=[launch], root=tmp_path, compile=False).text
    assert "x_part_layout: gl.constexpr = narrowed(x_layout, 1, " in text


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_halves_of_a_row_are_joined_as_they_are_stored(tmp_path: Path, target: str) -> None:
    parted = "y = tl.sum(tl.reshape(x, (M, 2, N // 2)), axis=1)\n    y = tl.join(y, y).reshape(M, N)"
    _, triton, gluon = compared(*rotary(tmp_path, parted, 64, 64), target)
    assert gluon.convert_layouts <= triton.convert_layouts == 1


WEIGHED = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, h_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + rows[:, None] * N * 4 + tl.arange(0, N * 4)[None, :])
    x01, x23 = tl.split(tl.reshape(x, (M, N, 2, 2)))
    x0, x1 = tl.split(x01)
    x2, x3 = tl.split(x23)
"""
ROW = """    h01, h23 = tl.split(tl.reshape(tl.load(h_ptr + tl.arange(0, M * 4)), (M, 2, 2)))
    h0, h1 = tl.split(h01)
    h2, h3 = tl.split(h23)
    y = x0 * h0[:, None] + x1 * h1[:, None] + x2 * h2[:, None] + x3 * h3[:, None]
    tl.store(y_ptr + rows[:, None] * N + cols[None, :], y)
"""
# They are as many as threads, and loaded side by side: they change threads once, before they are parted.
TURNED = """    h = tl.reshape(tl.load(h_ptr + tl.arange(0, M * 16)), (M, 4, 4))
    h01, h23 = tl.split(tl.reshape(tl.trans(h, (0, 2, 1)), (M, 4, 2, 2)))
    h0, h1 = tl.split(h01)
    h2, h3 = tl.split(h23)
    y = tl.zeros((M, N, 4), dtype=tl.float32)
    y = tl.fma(x0[:, :, None], h0[:, None, :], y)
    y = tl.fma(x1[:, :, None], h1[:, None, :], y)
    y = tl.fma(x2[:, :, None], h2[:, None, :], y)
    y = tl.fma(x3[:, :, None], h3[:, None, :], y)
    tl.store(y_ptr + rows[:, None] * N * 4 + tl.arange(0, N * 4)[None, :], tl.reshape(y, (M, N * 4)))
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize(("rest", "each"), [(ROW, 4), (TURNED, 16)], ids=["a row", "turned"])
def test_what_a_row_is_parted_into_comes_as_it_is_wanted(tmp_path: Path, rest: str, each: int, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(WEIGHED + rest)
    args = {
        "x_ptr": TensorArg("float32", (4, 1024), (1024, 1), None),
        "h_ptr": TensorArg("float32", (4 * each,), (1,), None),
        "y_ptr": TensorArg("float32", (4, 64 * each), (64 * each, 1), None),
    }
    types = {**dict.fromkeys(args, "*fp32"), "M": "constexpr", "N": "constexpr"}
    launch = Launch("kernel.py", "kernel", types, {"M": 4, "N": 256}, tuple(args), Options(1), (1, 1, 1), args)
    [report] = verify(path, targets=[target], launches=[launch], root=tmp_path, run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise
    assert [found for found in report.diagnostics if found.code.startswith("TTG5")] == []
