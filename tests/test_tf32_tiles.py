"""Tiles of 32-bit elements that two products take, one of them turned: tensor cores take their rows in one way only."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, l_ptr, o_ptr, N, D: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * B + tl.arange(0, B)
    columns = tl.arange(0, D)
    k = tl.load(k_ptr + rows[:, None] * D + columns[None, :])
    acc = tl.zeros((B, D), dtype=tl.float32)
    for start in range(0, N, B):
        offsets = start + tl.arange(0, B)
        q = tl.load(q_ptr + offsets[:, None] * D + columns[None, :])
        s = tl.dot(q, tl.trans(k))
        s -= SHIFT
        acc += tl.dot(tl.trans(tl.exp(s)), q)
    tl.store(o_ptr + rows[:, None] * D + columns[None, :], acc)
"""
POINTERS = ("q_ptr", "k_ptr", "l_ptr", "o_ptr")
SIZES = ("D", "B")


def converted(folder: Path, shift: str) -> str:
    """The text of the kernel, which compiles."""
    path = folder / "kernel.py"
    path.write_text(KERNEL.replace("SHIFT", shift))
    kinds = {**dict.fromkeys(POINTERS, "*fp32"), "N": "i32", **dict.fromkeys(SIZES, "constexpr")}
    values = {"D": 64, "B": 64}
    launch = Launch(path.name, "kernel", kinds, values, divisible_by_16=(*POINTERS, "N"), options=Options(4, 3))
    made = convert(path, target="sm100", launches=[launch], root=folder, compile=True)
    assert [report.status for report in made.kernels] == ["converted"]
    return made.text


@pytest.mark.slow
@pytest.mark.subset
def test_the_product_that_takes_it_turned_has_a_tile_of_its_own(tmp_path: Path) -> None:
    text = converted(tmp_path, "tl.load(l_ptr + offsets)[:, None]")
    assert "tcgen05_mma(q_smem, k_smem.permute((1, 0)), " in text
    assert "tcgen05_mma(s_smem.permute((1, 0)), q_tile, " in text


@pytest.mark.slow
@pytest.mark.subset
def test_a_slot_that_is_read_until_its_iteration_ends_is_no_ring(tmp_path: Path) -> None:
    assert "async_load" not in converted(tmp_path, "0.5")
