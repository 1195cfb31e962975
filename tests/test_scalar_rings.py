"""Scalars that a loop loads beside its tiles, and that Triton copies ahead with those: the scale of each block, say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def summed(acc, a, b_ptrs, scale_ptr, blocks, B: tl.constexpr):
    for block in range(0, blocks):
        b = tl.load(b_ptrs)
        scale = {load}
        acc = tl.dot((tl.dot(a, tl.trans(b)) * scale).to(a.dtype), b, acc)
        b_ptrs += B * B
        scale_ptr += 1
    return acc


@triton.jit
def kernel(a_ptr, b_ptr, scale_ptr, c_ptr, blocks, half, B: tl.constexpr):
    rows = tl.arange(0, B)
    tile = rows[:, None] * B + rows[None, :]
    a = tl.load(a_ptr + tile)
    acc = tl.zeros((B, B), tl.float32)
    acc = summed(acc, a, b_ptr + tile, scale_ptr, blocks - half, B)
    acc = summed(acc, a, b_ptr + tile + (blocks - half) * B * B, scale_ptr + blocks - half, half, B)
    tl.store(c_ptr + tile, acc)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        "a_ptr": "*fp16",
        "b_ptr": "*fp16",
        "scale_ptr": "*fp32",
        "c_ptr": "*fp32",
        "blocks": "i32",
        "half": "i32",
        "B": "constexpr",
    },
    constexprs={"B": 64},
    divisible_by_16=("a_ptr", "b_ptr", "scale_ptr", "c_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (64, 64), (64, 1), None),
        "b_ptr": TensorArg("float16", (9 * 64, 64), (64, 1), None),
        "scale_ptr": TensorArg("float32", (9,), (1,), None),
        "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        "blocks": 9,
        "half": 4,
    },
)

ALONE = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, scale_ptr, c_ptr, blocks, half, B: tl.constexpr):
    rows = tl.arange(0, B)
    tile = rows[:, None] * B + rows[None, :]
    a = tl.load(a_ptr + tile)
    b = tl.load(b_ptr + tile)
    best = tl.full([B], float("inf"), tl.float32)
    for block in range(0, blocks):
        scale = {load}
        best = tl.minimum(best, tl.sum(tl.dot((a * scale).to(tl.float16), b), axis=1))
    tl.store(c_ptr + rows, best)
"""


def written(directory: Path, load: str) -> Path:
    """The file of a kernel that loads its scales so."""
    path = directory / "kernel.py"
    path.write_text(KERNEL.format(load=load))
    return path


def test_a_scalar_that_is_not_zero_where_it_is_masked_out_is_loaded_where_it_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "tl.load(scale_ptr, mask=block < 3, other=1.0)")
    text = convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text
    assert "b_buf.index(" in text
    assert "scale = gl.load(scale_ptr, mask=block < 3, other=1.0)" in text


def test_a_scalar_that_a_launch_has_no_use_for_is_copied_ahead_where_others_do(tmp_path: Path) -> None:
    product = "acc = tl.dot((tl.dot(a, tl.trans(b)) * scale).to(a.dtype), b, acc)"
    scaled = """score = tl.dot(a, tl.trans(b))
        if SCALED:
            scale = {load}
            score *= scale
        acc = tl.dot(score.to(a.dtype), b, acc)"""
    text = KERNEL.replace("        scale = {load}\n", "").replace(product, scaled)
    text = text.replace("B: tl.constexpr)", "B: tl.constexpr, SCALED: tl.constexpr)").replace(
        " half, B)", " half, B, SCALED)"
    )
    path = tmp_path / "kernel.py"
    path.write_text(text.format(load="tl.load(scale_ptr)"))
    signature = {**LAUNCH.signature, "SCALED": "constexpr"}
    launches = [replace(LAUNCH, signature=signature, constexprs={"B": 64, "SCALED": each}) for each in (True, False)]
    made = convert(path, target="sm90", launches=launches, root=tmp_path, compile=False).text
    assert "scale = scale_buf.index(scale_slot).load(scale_layout).item()" in made


@pytest.mark.once
def test_a_scalar_of_a_loop_without_tiles_is_copied_ahead_by_as_many_stages(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ALONE.format(load="tl.load(scale_ptr + block)"))
    launches = [replace(LAUNCH, options=Options(4, stages)) for stages in (3, 4)]
    made = convert(path, target="sm90", launches=launches, root=tmp_path, compile=False).text
    assert "scale_buf = gl.allocate_shared_memory(scale_ptr.dtype.element_ty, [NUM_STAGES - 1, 1]" in made
    # What the loop writes to may be what it reads.
    path.write_text(ALONE.format(load="tl.load(c_ptr + block)\n        tl.store(c_ptr + block, scale)"))
    made = convert(path, target="sm90", launches=launches, root=tmp_path, compile=False).text
    assert "scale = gl.load(c_ptr + block)" in made


@pytest.mark.slow
def test_a_scalar_of_a_loop_without_tiles_is_copied_ahead_as_by_triton(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(ALONE.format(load="tl.load(scale_ptr + block)"))
    report, triton, gluon = compared(path, LAUNCH, "sm90")
    assert gluon.step_copies == triton.step_copies == {"cp.async.4": 1}
    assert [each.code for each in report.diagnostics] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "load"), [("sm80", "tl.load(scale_ptr, mask=block < 3, other=0.0)"), ("sm90", "tl.load(scale_ptr)")]
)
def test_a_scalar_that_each_step_loads_is_copied_ahead_with_its_tiles(tmp_path: Path, target: str, load: str) -> None:
    report, triton, gluon = compared(written(tmp_path, load), LAUNCH, target)
    assert gluon.step_copies == triton.step_copies == {"cp.async.16": 8, "cp.async.4": 2}
    assert [each.code for each in report.diagnostics] == []
