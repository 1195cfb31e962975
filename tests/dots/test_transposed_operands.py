"""A loaded matrix that is turned and cast on its way to a product: kept in the layout that follows from its load's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def product(a, b):
    return tl.dot(a, b.to(tl.bfloat16))


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, N: tl.constexpr, D: tl.constexpr):
    places = tl.arange(0, N)[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + places)
    w = tl.load(w_ptr + places).to(tl.float32)
    STATEMENTS
    tl.store(o_ptr + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], s)
"""


def _launch(path: Path, statements: str) -> Launch:
    path.write_text(KERNEL.replace("STATEMENTS", statements))
    kinds = {"x_ptr": "*bf16", "w_ptr": "*bf16", "o_ptr": "*fp32", "N": "constexpr", "D": "constexpr"}
    args = {name: TensorArg("bfloat16", (64, 32), (32, 1)) for name in ("x_ptr", "w_ptr")}
    args["o_ptr"] = TensorArg("float32", (64, 64), (64, 1))
    return Launch(path.name, "kernel", kinds, {"N": 64, "D": 32}, tuple(args), Options(4, 3), (1, 1, 1), args)


def test_what_is_read_otherwise_too_is_laid_out_anew(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    launch = _launch(path, "t = tl.trans(w) * 2\n    s = tl.dot(x, t.to(tl.bfloat16)) + tl.sum(t, 0)[None, :]")
    made = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False)
    assert "gl.convert_layout(tl.trans(w), tile_layout)" in made.text


@pytest.mark.parametrize(
    "statements",
    [
        "s = tl.dot(x, tl.trans(w).to(tl.bfloat16))",
        "s = product(x, tl.trans(w))",
        "t = tl.trans(w)\n    s = tl.dot(x, t.to(tl.bfloat16))",
    ],
    ids=["cast", "in a helper", "by a name"],
)
def test_it_is_not_converted_before_it_is_stored(statements: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    _, theirs, ours = compared(path, _launch(path, statements), "sm90")
    assert (ours.convert_layouts, ours.barriers) == (theirs.convert_layouts, theirs.barriers)
