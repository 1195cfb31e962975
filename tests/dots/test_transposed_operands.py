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


def test_what_is_summed_too_is_turned_in_its_threads(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    launch = _launch(path, "t = tl.trans(w) * 2\n    s = tl.dot(x, t.to(tl.bfloat16)) + tl.sum(t, 0)[None, :]")
    made = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False)
    assert "    t = tl.trans(w) * 2\n" in made.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "statements",
    [
        "s = tl.dot(x, tl.trans(w).to(tl.bfloat16))",
        "s = product(x, tl.trans(w))",
        "t = tl.trans(w)\n    s = tl.dot(x, t.to(tl.bfloat16))",
        "t = tl.trans(w) * 2\n    s = tl.dot(x, t.to(tl.bfloat16)) + tl.sum(t, 0)[None, :]",
    ],
    ids=["cast", "in a helper", "by a name", "summed besides"],
)
def test_it_is_not_converted_before_it_is_stored(statements: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    _, theirs, ours = compared(path, _launch(path, statements), "sm90")
    assert (ours.convert_layouts, ours.barriers) == (theirs.convert_layouts, theirs.barriers)


LOOP = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, o_ptr, N: tl.constexpr, D: tl.constexpr, STEP: tl.constexpr):
    rows, s = tl.arange(0, N)[:, None], tl.zeros([N, N], tl.float32)
    for d in range(0, D, STEP):
        cols = d + tl.arange(0, STEP)[None, :]
        x = tl.load(x_ptr + rows * D + cols)
        w = tl.load(w_ptr + rows * D + cols)
        s += tl.dot(x, OPERAND)
    tl.store(o_ptr + rows * N + tl.arange(0, N)[None, :], s)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm100", "sm80"])
@pytest.mark.parametrize(
    ("cast_from", "operand"),
    [
        ("float16", "tl.trans(w).to(x.dtype)"),
        ("float32", "tl.trans(w).to(x.dtype)"),
        ("bfloat16", "tl.trans(w).to(x.dtype)"),
        ("float16", "-tl.trans(w).to(x.dtype)"),
        ("float32", "tl.exp(tl.trans(w).to(tl.float32)).to(x.dtype)"),
    ],
)
def test_the_tile_of_a_ring_is_turned_in_registers_where_it_is_cast(
    tmp_path: Path, target: str, cast_from: str, operand: str
) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(LOOP.replace("OPERAND", operand))
    args = {
        "x_ptr": TensorArg("float16", (64, 64), (64, 1)),
        "w_ptr": TensorArg(cast_from, (64, 64), (64, 1)),
        "o_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    kind = {"float16": "*fp16", "float32": "*fp32", "bfloat16": "*bf16"}[cast_from]
    sizes = {"N": 64, "D": 64, "STEP": 32}
    kinds = {"x_ptr": "*fp16", "w_ptr": kind, "o_ptr": "*fp32", **dict.fromkeys(sizes, "constexpr")}
    launch = Launch(path.name, "kernel", kinds, sizes, tuple(args), Options(4, 3), (1, 1, 1), {**args, **sizes})
    _, theirs, ours = compared(path, launch, target)
    assert ours.convert_layouts == theirs.convert_layouts
    assert ours.barriers == theirs.barriers or target == "sm100"
