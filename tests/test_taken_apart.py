"""Products that are taken apart: reshapes, transpositions and splits keep the layout that the compiler infers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr, D: tl.constexpr):
    rows, columns, depth = tl.arange(0, B), tl.arange(0, 2 * B), tl.arange(0, D)
    a = tl.load(a_ptr + rows[:, None] * D + depth[None, :])
    b = tl.load(b_ptr + depth[:, None] * 2 * B + columns[None, :])
    acc = tl.dot(a, b)
    x, y = tl.split(tl.permute(tl.reshape(acc, (B, 2, B)), (0, 2, 1)))
    BODY
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], z)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "B": "constexpr", "D": "constexpr"},
    constexprs={"B": 64, "D": 32},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr"),
    options=Options(4, 3),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (64, 32), (32, 1), None),
        "b_ptr": TensorArg("float16", (32, 128), (128, 1), None),
        "c_ptr": TensorArg("float32", (64, 64), (64, 1), None),
    },
)

BODIES = {
    # What is done with the halves, and how many tiles are converted for it.
    "together": ("z = x * tl.sigmoid(y)", 1),
    "with what needs one": ("z = tl.where(rows[:, None] >= rows[None, :], x, y)", 2),
    "joined again": ("z = tl.sum(tl.join(x, y), axis=2)", 3),
    "carried": ("z = x\n    for _ in range(2):\n        z += y", 2),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BODIES)
def test_equal_with_no_more_conversions(what: str, tmp_path: Path) -> None:
    body, most = BODIES[what]
    path, text = tmp_path / "kernel.py", KERNEL.replace("BODY", body)
    path.write_text(text)
    made = convert(path, target="sm90", launches=[LAUNCH], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, LAUNCH)
    after = made.text[made.text.index("    x, y = ") :]
    assert len(re.findall(r"convert_layout\((?!rows,)", after)) <= most


def test_a_loop_without_iterations_says_nothing(tmp_path: Path) -> None:
    # Triton flattens the two loops, and splits a constant where the inner one has no turns.
    loop = """acc = tl.zeros((B, 2 * B), tl.float32)
        for k in range(n):
            a = tl.load(a_ptr + rows[:, None] * D + depth[None, :])
            b = tl.load(b_ptr + depth[:, None] * 2 * B + columns[None, :])
            acc = tl.dot(a, b, acc)
        x, y = tl.split(tl.permute(tl.reshape(acc, (B, 2, B)), (0, 2, 1)))
        tl.store(c_ptr + (t * B + rows)[:, None] * B + rows[None, :], x + y)
"""
    head = KERNEL[: KERNEL.index("    a = ")].replace("c_ptr,", "c_ptr, n,")
    text = head + "    for t in tl.range(0, n, flatten=True):\n        " + loop
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "n": "i32", "B": "constexpr", "D": "constexpr"}
    launch = replace(LAUNCH, signature=signature, args={**(LAUNCH.args or {}), "n": 1})
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm80", launches=[launch], root=path.parent, compile=False)
    assert [each.message for report in made.kernels for each in report.diagnostics] == []
    assert re.search(r"gl\.split\((gl\.permute\(gl\.reshape)", made.text)


@pytest.mark.slow
def test_what_is_taken_apart_is_reduced_as_it_is(tmp_path: Path) -> None:
    head = KERNEL[: KERNEL.index("    x, y = ")]
    text = (
        head
        + """    acc = tl.maximum(acc, 0.0)
    z = acc.trans().reshape(2 * B, 1, B).sum(-1).trans()
    tl.store(c_ptr + columns[None, :], z)
"""
    )
    path = tmp_path / "kernel.py"
    path.write_text(text)
    made = convert(path, target="sm90", launches=[LAUNCH], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, LAUNCH)
    assert re.search(r"convert_layout\(acc\.trans\(\)\.reshape\(2 \* B, 1, B\)\.sum\(-1\)\.trans\(\)", made.text)
