"""Tensors that are broadcast to each other's shape, or gain or lose a dimension of one, by Triton's own functions."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton.language as tl

from tests.compared import compared
from tt2gl.launches import Launch, TensorArg

HEAD = """import triton
import triton.language as tl


@triton.jit
def pair_kernel(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    places = rows[:, None] * N + cols[None, :]
"""

BODIES = {
    "a column and a row": """
    x, y = tl.broadcast(tl.load(x_ptr + rows)[:, None], tl.load(y_ptr + cols)[None, :])
    tl.store(out_ptr + places, x * 2 + y)
""",
    "one of a lower rank": """
    x, y = tl.broadcast(tl.load(x_ptr + places), tl.load(y_ptr + cols))
    tl.store(out_ptr + places, x * 2 + y)
""",
    "a scalar": """
    x, y = tl.broadcast(tl.load(x_ptr + places), tl.load(y_ptr))
    tl.store(out_ptr + places, x * 2 + y)
""",
}

SQUEEZED = """
    total = tl.squeeze(tl.sum(tl.load(x_ptr + places), 1, keep_dims=True), 1)
    tl.store(out_ptr + rows, total)
    tl.store(out_ptr + M + rows[None, :], tl.unsqueeze(total, 0))
"""


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_both_have_one_layout(body: str, target: str, tmp_path: Path) -> None:
    _compare(body, target, tmp_path)


@pytest.mark.skipif(not hasattr(tl, "squeeze"), reason="this Triton has no squeeze")
def test_a_dimension_of_one_goes_and_comes(tmp_path: Path) -> None:
    _compare(SQUEEZED, "sm90", tmp_path)


def _compare(body: str, target: str, folder: Path) -> None:
    """A kernel with this body is converted, and its port is equal to it and converts no more often."""
    path = folder / "kernels.py"
    path.write_text(HEAD + body)
    args = {name: TensorArg("float32", (16 * 64,), (1,)) for name in ("x_ptr", "y_ptr", "out_ptr")}
    extents = {"M": 16, "N": 64}
    types = dict.fromkeys(args, "*fp32") | dict.fromkeys(extents, "constexpr")
    launch = Launch(path.name, "pair_kernel", types, extents, tuple(args), grid=(1, 1, 1), args=args)
    _, triton, port = compared(path, launch, target)
    assert port.convert_layouts <= triton.convert_layouts
    assert port.global_loads == triton.global_loads
