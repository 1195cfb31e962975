"""Rows of fewer elements than a program has threads, copied in wide pieces by few of them, as Triton copies them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, scale_ptr, out_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((M, N), tl.float32)
    for step in range(0, steps):
        x = tl.load(x_ptr + rows[:, None] * K * steps + (step * K + inner)[None, :])
        w = tl.load(w_ptr + (step * K + inner)[:, None] * N + cols[None, :])
        scale = tl.load(scale_ptr + step * N + {at})
        total = tl.dot(x, (w.to(tl.float16) * scale), total)
    tl.store(out_ptr + rows[:, None] * N + cols[None, :], total)
"""


def launched(directory: Path, at: str, n: int, bits: int = 8) -> tuple[Path, Launch]:
    """The file of a kernel that scales the rows of a product's second operand (numbers of `bits`), and a launch."""
    path = directory / "kernel.py"
    path.write_text(KERNEL.format(at=at))
    m, k, steps = 32, 32, 5
    tensors = {
        "x_ptr": TensorArg("float16", (m, k * steps), (k * steps, 1), None),
        "w_ptr": TensorArg(f"int{bits}", (k * steps, n), (n, 1), (-8, 7)),
        "scale_ptr": TensorArg("float16", (steps, n), (n, 1), None),
        "out_ptr": TensorArg("float32", (m, n), (n, 1), None),
    }
    types = {"x_ptr": "*fp16", "w_ptr": f"*i{bits}", "scale_ptr": "*fp16", "out_ptr": "*fp32", "steps": "i32"}
    extents = {"M": m, "N": n, "K": k}
    signature = types | dict.fromkeys(extents, "constexpr")
    values = {**tensors, "steps": steps, **extents}
    return path, Launch("kernel.py", "kernel", signature, extents, tuple(tensors), Options(4, 3), (1,), values)


@pytest.mark.slow
def test_a_row_with_an_element_for_each_thread_has_the_layout_of_its_access(tmp_path: Path) -> None:
    path, launch = launched(tmp_path, "cols[None, :]", 256)
    text = convert(path, target="sm80", launches=[launch], root=tmp_path).text
    assert "* gl.num_warps()," not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_a_short_row_is_copied_in_wide_pieces(tmp_path: Path, target: str) -> None:
    path, launch = launched(tmp_path, "cols[None, :]", 32)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.step_copies == triton.step_copies


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_a_row_that_becomes_one_of_a_tile_later_is_too(tmp_path: Path, target: str) -> None:
    path, launch = launched(tmp_path, "cols", 32)
    path.write_text(path.read_text().replace("* scale)", "* scale[None, :])"))
    _, triton, gluon = compared(path, launch, target)
    assert gluon.step_copies == triton.step_copies


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_a_short_row_is_copied_in_the_layout_of_the_tile_beside_it(tmp_path: Path, target: str) -> None:
    path, launch = launched(tmp_path, "cols[None, :]", 64, bits=32)
    _, triton, gluon = compared(path, launch, target)
    assert gluon.step_copies == triton.step_copies
