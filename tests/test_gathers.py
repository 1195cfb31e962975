"""What is gathered: each warp has whole lines of what it is gathered from, so that lanes give it to each other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, P: tl.constexpr, Q: tl.constexpr):
    rows, cols = tl.arange(0, P)[:, None], tl.arange(0, Q)[None, :]
    x = tl.load(x_ptr + {place})
    gathered = tl.zeros((P, Q), tl.float32)
    for step in tl.static_range(4):
        gathered += tl.gather(x, tl.broadcast_to({index}, (P, Q)), {axis})
    tl.store(out_ptr + rows * Q + cols, gathered)
"""
ROWS = "tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]"
COLUMNS = "tl.arange(0, M)[:, None] + tl.arange(0, N)[None, :] * M"


def launched(directory: Path, place: str, axis: int, **extents: int) -> tuple[Path, Launch]:
    """The file of a kernel that gathers along a dimension, and a launch of it."""
    path = directory / "kernel.py"
    index = ("(rows ^ step) % M", "(cols ^ step) % N")[axis]
    path.write_text(KERNEL.format(place=place, axis=axis, index=index))
    m, n, p, q = (extents[name] for name in "MNPQ")
    tensors = {
        "x_ptr": TensorArg("float32", (m, n), (n, 1), None),
        "out_ptr": TensorArg("float32", (p, q), (q, 1), None),
    }
    signature = {"x_ptr": "*fp32", "out_ptr": "*fp32", **dict.fromkeys("MNPQ", "constexpr")}
    launch = Launch(
        "kernel.py", "kernel", signature, extents, tuple(tensors), Options(4, 3), (1,), {**tensors, **extents}
    )
    return path, launch


@pytest.mark.slow
@pytest.mark.parametrize(
    "extents",
    [
        pytest.param({"M": 2, "N": 256, "P": 2, "Q": 256}, id="more warps than lines"),
        pytest.param({"M": 64, "N": 64, "P": 64, "Q": 64}, id="loaded so"),
    ],
)
def test_what_needs_no_layout_of_its_own(tmp_path: Path, extents: dict[str, int]) -> None:
    path, launch = launched(tmp_path, ROWS, 1, **extents)
    assert "gather_layout" not in convert(path, target="sm90", launches=[launch], root=tmp_path).text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize(
    ("place", "axis", "extents"),
    [
        pytest.param(COLUMNS, 1, {"M": 64, "N": 16, "P": 64, "Q": 4}, id="fewer"),
        pytest.param(COLUMNS, 1, {"M": 32, "N": 128, "P": 32, "Q": 128}, id="long lines"),
        pytest.param(ROWS, 1, {"M": 32, "N": 128, "P": 32, "Q": 128}, id="loaded so"),
        pytest.param(ROWS, 0, {"M": 8, "N": 64, "P": 16, "Q": 64}, id="more, of columns"),
    ],
)
def test_no_barrier_more_than_of_triton(
    tmp_path: Path, target: str, place: str, axis: int, extents: dict[str, int]
) -> None:
    """Lines in one warp need none: what is exchanged there is not stored to shared memory."""
    _, triton, gluon = compared(*launched(tmp_path, place, axis, **extents), target)
    assert gluon.barriers <= triton.barriers
