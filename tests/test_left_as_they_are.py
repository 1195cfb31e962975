"""Notes on what Triton does with loads and loops, and the port does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import converted
from tests.test_persistent import KERNEL
from tests.test_persistent import launch as persistent
from tt2gl.convert import convert
from tt2gl.diagnostics import Diagnostic
from tt2gl.launches import Launch, Options

PRODUCT = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, n):
    at = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    acc = tl.zeros((64, 64), tl.float32)
    for i in range(n):
        a = tl.load(a_ptr + i * 4096 + at)
        b = tl.load(b_ptr + i * 4096 + at)
        acc = tl.dot(a, b, acc)
    tl.store(b_ptr + at, acc.to(tl.float16))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "n": "i32"},
    constexprs={},
    divisible_by_16=("a_ptr", "b_ptr"),
    options=Options(4, 3),
)


def notes(path: Path, text: str, launch: Launch, target: str) -> list[Diagnostic]:
    path.write_text(text)
    made = convert(path, target=target, launches=[launch], root=path.parent, compile=False)
    assert made.kernels[0].status == "converted"
    return list(made.kernels[0].diagnostics)


def test_a_loop_that_is_as_tritons(tmp_path: Path) -> None:
    assert notes(tmp_path / "kernel.py", PRODUCT, LAUNCH, "sm80") == []


def test_loads_that_stay_are_told(tmp_path: Path) -> None:
    text = PRODUCT.replace("    tl.store", "        tl.store(b_ptr + i * 4096 + at, b)\n    tl.store")
    (found,) = notes(tmp_path / "kernel.py", text, LAUNCH, "sm80")
    assert (found.code, found.line) == ("TTG331", 11)
    assert "the loop writes to the memory that the load reads" in found.message


def test_loads_that_triton_keeps_in_registers_on_amd_wait_there(tmp_path: Path) -> None:
    scaled = "b = b * tl.load(a_ptr + i * 64 + tl.arange(0, 64))[None, :]\n        acc = tl.dot("
    path = tmp_path / "kernel.py"
    path.write_text(PRODUCT.replace("acc = tl.dot(", scaled))
    made = convert(path, target="gfx942", launches=[LAUNCH], root=tmp_path, compile=False)
    assert "b = b * a_2_held[0][None, :]" in made.text
    assert not [each for each in made.kernels[0].diagnostics if each.code == "TTG331"]


@pytest.mark.slow
def test_warps_of_their_own_are_told_and_the_loop_is_pipelined(tmp_path: Path) -> None:
    path, launch = tmp_path / "kernel.py", persistent(256, 128, block=128, step=64)
    text = KERNEL.replace("P):\n", "P, warp_specialize=True):\n").replace(
        "in range(tl.program", "in tl.range(tl.program"
    )
    made, codes = converted(path, text, launch, "sm90")
    if codes == ["TTG401"]:
        pytest.skip("this Triton does not compile the loop with warps of its own")
    assert codes == ["TTG332"]
    assert "NUM_STAGES" in made
    assert made.count("tma_load(a, ") == 4
