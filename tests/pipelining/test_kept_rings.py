"""Rings of AMD keep their memory until the last iterations are done, where those put something into memory, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, h_ptr, o_ptr, s_ptr, scale, D: tl.constexpr, B: tl.constexpr, V: tl.constexpr):
    rows, columns = tl.arange(0, B), tl.arange(0, V)
    o = tl.zeros((B, V), tl.float32)
    s = tl.zeros((B, B), tl.float32)
    for i in range(D // B):
        depth = i * B + tl.arange(0, B)
        q = tl.load(q_ptr + rows[:, None] * D + depth[None, :])
        k = tl.load(k_ptr + rows[None, :] * D + depth[:, None])
        h = tl.load(h_ptr + depth[:, None] * V + columns[None, :])
        {scaled}
        o = tl.dot(q, h, o)
        s = tl.dot(q, k, s)
    tl.store(o_ptr + rows[:, None] * V + columns[None, :], o)
    tl.store(s_ptr + rows[:, None] * B + rows[None, :], s)
"""
SCALED = "q = (q * scale).to(q.dtype)"


def launch() -> Launch:
    shapes = {"q_ptr": (64, 128), "k_ptr": (64, 128), "h_ptr": (128, 32), "o_ptr": (64, 32), "s_ptr": (64, 64)}
    kinds = {name: "bf16" if name in ("q_ptr", "k_ptr", "h_ptr") else "fp32" for name in shapes}
    names = {"bf16": "bfloat16", "fp32": "float32"}
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **{name: f"*{kind}" for name, kind in kinds.items()},
            "scale": "fp32",
            **dict.fromkeys("DBV", "constexpr"),
        },
        constexprs={"D": 128, "B": 64, "V": 32},
        divisible_by_16=tuple(shapes),
        options=Options(4, 2),
        grid=(1,),
        args={name: TensorArg(names[kinds[name]], shape, (shape[1], 1)) for name, shape in shapes.items()}
        | {"scale": 0.5},
    )


def write(folder: Path, scaled: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(scaled=scaled))
    return path


@pytest.mark.parametrize(("scaled", "target"), [("pass", "gfx942"), (SCALED, "sm80")])
def test_nothing_is_said_where_iterations_put_nothing_there_or_stand_in_the_loop(
    tmp_path: Path, scaled: str, target: str
) -> None:
    path = write(tmp_path, scaled)
    assert "_keep_alive" not in convert(path, target=target, launches=[launch()], root=tmp_path, compile=False).text


@pytest.mark.slow
def test_what_is_put_into_memory_waits_for_no_tile(tmp_path: Path) -> None:
    path = write(tmp_path, SCALED)
    made = convert(path, target="gfx942", launches=[launch()], root=tmp_path, compile=False).text
    lines = [line.strip() for line in made.splitlines()]
    kept = [number for number, line in enumerate(lines) if line.endswith("._keep_alive()")]
    assert [lines[number] for number in kept] == ["k_buf._keep_alive()", "h_buf._keep_alive()"]
    assert lines[kept[0] - 1].startswith("# kept to here: ")
    assert kept[0] > lines.index("# the last iterations, whose tiles have all come")
    _, triton, gluon = compared(path, launch(), "gfx942")
    assert gluon.barriers <= triton.barriers
    assert (gluon.registers or 0) <= (triton.registers or 0)
    assert gluon.shared_bytes <= triton.shared_bytes
