"""Truth values in memory: bytes, of which a warp reads as many as of other bytes, and which run ahead as such."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.truths_as_bytes import with_truths_as_bytes
from tt2gl.source import read_source

KEPT = """import triton
import triton.language as tl


@triton.jit
def kernel(keep_ptr, out_ptr, B: tl.constexpr):
    offsets = tl.arange(0, B)
    keep = tl.load(keep_ptr + offsets)
    tl.store(out_ptr + offsets, tl.where(keep, 1.0, 0.0))
"""

PRODUCT = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, keep_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + rows[None, :])
        keep = tl.load(keep_ptr + rows[:, None] * K + k + rows[None, :])
        acc = tl.dot(tl.where(keep, a, 0.0), b, acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


@pytest.mark.once
def test_no_width_is_said_by_a_pointer_to_truth_values(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KEPT)
    signature = {"keep_ptr": "*i1", "out_ptr": "*fp32", "B": "constexpr"}
    launch = Launch("kernel.py", "kernel", signature, {"B": 4096}, ("keep_ptr", "out_ptr"), Options(4, 3))
    text = convert(path, target="sm90", launches=[launch], root=tmp_path).text
    assert "coalesced([B], [0], 8," in text
    assert "keep_ptr.dtype" not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_truth_values_run_ahead_as_bytes(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(PRODUCT)
    tensors = {
        "a_ptr": TensorArg("float16", (64, 256), (256, 1)),
        "b_ptr": TensorArg("float16", (256, 64), (64, 1)),
        "keep_ptr": TensorArg("bool", (64, 256), (256, 1)),
        "c_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "keep_ptr": "*i1", "c_ptr": "*fp32", "K": "i32", "B": "constexpr"}
    values, aligned = {**tensors, "K": 256}, (*tensors, "K")
    launch = Launch("kernel.py", "kernel", types, {"B": 64}, aligned, Options(4, 3), (1,), values)
    _, triton, gluon = compared(path, launch, target)
    assert (gluon.step_copies, gluon.convert_layouts) == (triton.step_copies, triton.convert_layouts)


@pytest.mark.once
@pytest.mark.parametrize(
    ("load", "found"),
    [
        ("x = tl.load(p)", "x = tl.load(p.to(tl.pointer_type(tl.int8), bitcast=True)) != 0"),
        ("x = ~tl.load(p + 1, m)", "x = ~(tl.load((p + 1).to(tl.pointer_type(tl.int8), bitcast=True), m) != 0)"),
        ("x = tl.load((p + 1))", "x = tl.load((p + 1).to(tl.pointer_type(tl.int8), bitcast=True)) != 0"),
    ],
)
def test_bytes_are_loaded_in_their_place(tmp_path: Path, load: str, found: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(f"import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel(p, m):\n    {load}\n")
    source = read_source(path)
    assert with_truths_as_bytes(source, [(7, 0)]).functions == ()
    assert f"    {found}\n" in with_truths_as_bytes(source, [(7, 4 + load.index("tl."))]).text
