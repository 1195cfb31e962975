"""Rows of fewer elements than a program has threads, copied in wide pieces by few of them, as Triton copies them."""

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


FILLED = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, scale_ptr, w_ptr, out_ptr, K, M: tl.constexpr, N: tl.constexpr, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for step in range(tl.cdiv(K, BLOCK)):
        inner = step * BLOCK + tl.arange(0, BLOCK)
        mask = inner < K
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :], mask=mask[None, :], other=0.0)
        scale = tl.load(scale_ptr + inner, mask=mask, other=1.0)
        w = tl.load(w_ptr + columns[:, None] * K + inner[None, :], mask=mask[None, :], other=0.0)
        total += tl.dot(x * scale[None, :], tl.trans(w))
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], total)
"""


@pytest.mark.parametrize("m", [(64,), (64, 32)], ids=["one instruction", "an instruction a launch"])
def test_what_is_put_in_where_the_row_is_masked_out_is_in_the_layout_that_the_row_is_wanted_in(
    tmp_path: Path, m: tuple[int, ...]
) -> None:
    """Of rows copied along a tile the mask had that tile's layout, and the row its own: that did not compile."""
    path = tmp_path / "kernel.py"
    path.write_text(FILLED)
    launches = []
    for extent in m:
        tensors = {
            "x_ptr": TensorArg("float16", (extent, 200), (200, 1)),
            "scale_ptr": TensorArg("float16", (200,), (1,)),
            "w_ptr": TensorArg("float16", (64, 200), (200, 1)),
            "out_ptr": TensorArg("float32", (extent, 64), (64, 1)),
        }
        extents = {"M": extent, "N": 64, "BLOCK": 64}
        kinds = {"x_ptr": "*fp16", "scale_ptr": "*fp16", "w_ptr": "*fp16", "out_ptr": "*fp32", "K": "i32"}
        signature, values = kinds | dict.fromkeys(extents, "constexpr"), {**tensors, "K": 200, **extents}
        options = Options(4, 3)
        launches.append(Launch(path.name, "kernel", signature, extents, (*tensors, "K"), options, (1,), values))
    for report in verify(path, targets=["sm90"], launches=launches, root=tmp_path, run="simulate"):
        assert report.status == "converted"
        assert report.simulate is not None
        assert report.simulate.equal
        assert report.triton is not None
        assert report.triton.metrics is not None
        assert report.gluon is not None
        assert report.gluon.metrics is not None
        assert report.gluon.metrics.convert_layouts == report.triton.metrics.convert_layouts
        assert report.gluon.metrics.shared_bytes == report.triton.metrics.shared_bytes
