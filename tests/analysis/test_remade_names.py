"""Names that a loop makes of what is at hand in the layout that they are wanted in, and are computed there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, steps):
    rows = tl.arange(0, M)[:, None]
    offs = rows * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offs)
    y = tl.load(y_ptr + offs)
    sums = tl.zeros([M, N], tl.float32)
    for j in range(steps):
        row = tl.gather(x, tl.full([1, N], j, tl.int16), axis=0)
        {turn}
    tl.store(out_ptr + offs, sums)
"""
SHAPE = {"M": 16, "N": 64}


def launched(directory: Path, turn: str) -> tuple[Path, Launch]:
    path = directory / "kernel.py"
    path.write_text(KERNEL.format(turn=turn.replace("; ", "\n        ")))
    tensors = {name: TensorArg("float32", (16, 64), (64, 1), None) for name in ("x_ptr", "y_ptr", "out_ptr")}
    signature = {**dict.fromkeys(tensors, "*fp32"), **dict.fromkeys(SHAPE, "constexpr"), "steps": "i32"}
    launch = Launch(
        "kernel.py", "kernel", signature, SHAPE, tuple(tensors), Options(8, 3), (1,), {**tensors, **SHAPE, "steps": 9}
    )
    return path, launch


def port_of(path: Path, launch: Launch) -> str:
    return convert(path, target="sm90", launches=[launch], root=path.parent, compile=False).text


@pytest.mark.once
@pytest.mark.parametrize(
    "turn",
    [
        pytest.param("z = y - row; sums += row * rows * z", id="no name at hand"),
        pytest.param("z = x * y - row; sums += row * rows * z", id="one of two at hand"),
        pytest.param(
            "z = x - row; sums += row * rows * z; tl.store(out_ptr + offs, z)", id="wanted in its own layout, too"
        ),
        pytest.param("z = x - row; sums += row * rows * tl.sum(z, 1)[:, None]", id="reduced"),
    ],
)
def test_what_keeps_its_layout(tmp_path: Path, turn: str) -> None:
    assert "gl.convert_layout(row, " in port_of(*launched(tmp_path, turn))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize(
    "turn",
    [
        pytest.param("z = tl.exp(x - row); sums += row * rows * z", id="one name"),
        pytest.param("d = x - row; z = d * d; sums += row * rows * z", id="a name made of another"),
    ],
)
def test_what_a_loop_makes_is_not_converted_on_its_turns(tmp_path: Path, turn: str, target: str) -> None:
    path, launch = launched(tmp_path, turn)
    assert "gl.convert_layout" not in port_of(path, launch).split("for j in", 1)[1].split("gl.store", 1)[0]
    _, triton, gluon = compared(path, launch, target)
    assert gluon.barriers <= triton.barriers
