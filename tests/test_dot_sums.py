"""Sums of a product's result and of a tile as large: which of the two is converted."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, B: tl.constexpr):
    rows = tl.arange(0, B)
    at = rows[:, None] * B + rows[None, :]
    before = tl.load(c_ptr + at)
    product = tl.exp2(tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)))
    after = tl.load(c_ptr + at)
    tl.store(c_ptr + at, SUM)
"""


@pytest.mark.parametrize(
    ("target", "sum_of", "written"),
    [
        # Triton takes a product's layout where it is an instruction's, and in tensor memory that of the later.
        ("sm90", "product + after", "product + gl.convert_layout(after, mma_layout)"),
        ("sm100", "product + after", "gl.convert_layout(product, a_layout) + after"),
        ("sm100", "after + product", "after + gl.convert_layout(product, a_layout)"),
        ("sm100", "product + before", "product + gl.convert_layout(before, mma_layout)"),
    ],
)
def test_the_later_is_kept_where_results_are_in_tensor_memory(
    tmp_path: Path, target: str, sum_of: str, written: str
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL.replace("SUM", sum_of))
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**pointers, "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=tuple(pointers),
        options=Options(4, 3),
    )
    assert written in convert(file, target=target, launches=[launch], root=tmp_path, compile=False).text


HELPED = """import triton
import triton.language as tl


@triton.jit
def product(a, b, acc):
    return tl.dot(a, b, acc, out_dtype=acc.dtype)


@triton.jit
def kernel(a_ptr, o_ptr, B: tl.constexpr):
    rows = tl.arange(0, B)
    places = rows[:, None] * B + rows[None, :]
    a = tl.load(a_ptr + places)
    part = product(a, a, tl.zeros((B, B), tl.float16))
    acc = product(a, a, tl.zeros((B, B), tl.float32))
    tl.store(o_ptr + places, acc + part)
"""


@pytest.mark.slow
def test_sums_of_two_types_in_tensor_memory_have_a_text_each(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(HELPED)
    kinds = {"a_ptr": "*fp16", "o_ptr": "*fp32", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"B": 128}, ("a_ptr", "o_ptr"), Options(4, 3))
    made = convert(path, target="sm100", launches=[launch], root=tmp_path, compile=True)
    assert [report.status for report in made.kernels] == ["converted"]
    assert made.text.count("allocate_tensor_memory(gl.float16, ") == 1
    assert made.text.count("allocate_tensor_memory(gl.float32, ") == 1


LOOP = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, N, D: tl.constexpr, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, D)
    places = rows[:, None] * D + cols[None, :]
    q = tl.load(q_ptr + places)
    acc = tl.zeros((B, B), tl.float32)
    for start in range(0, N, B):
        k = tl.load(k_ptr + (start + rows)[None, :] * D + cols[:, None])
        BODY
    tl.store(o_ptr + rows[:, None] * B + rows[None, :], acc)
"""


@pytest.mark.parametrize(
    ("body", "added"),
    [
        ("acc += tl.exp(tl.dot(q, k))", "gl.zeros([B, B], gl.float32, mma_layout)"),
        ("acc = acc * 2.0 + tl.dot(q, k)", "acc * 2.0"),
        ("s = tl.zeros((B, B), tl.float32); s += tl.dot(q, k); acc += tl.exp(s)", "s"),
        ("s = tl.zeros((B, B), tl.float32); s = s + tl.dot(q, k); acc += tl.exp(s)", "s"),
        ("s = tl.zeros((B, B), tl.float32); s = tl.dot(q, k) + s; acc += tl.exp(s)", "s"),
    ],
)
def test_a_product_starts_from_zeros_that_it_is_added_to(tmp_path: Path, body: str, added: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(LOOP.replace("BODY", body.replace("; ", "\n        ")))
    kinds = {**dict.fromkeys(("q_ptr", "k_ptr"), "*fp16"), "o_ptr": "*fp32", "N": "i32"}
    kinds |= {"D": "constexpr", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"D": 64, "B": 32}, ("q_ptr", "k_ptr", "o_ptr"), Options(4, 2))
    made = convert(path, target="sm80", launches=[launch], root=tmp_path, compile=False).text
    calls = (node for node in ast.walk(ast.parse(made)) if isinstance(node, ast.Call))
    assert [ast.unparse(each.args[2]) for each in calls if ast.unparse(each.func) == "mma_v2"] == [added]
    assert "+= mma_v2" not in made
    assert ") + s" not in made
