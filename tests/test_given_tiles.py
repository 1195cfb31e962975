"""Descriptors' tiles that helpers are given: products take them where they lie."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg

TEXT = """import triton
import triton.language as tl


@triton.jit
def add(acc, q, desc, start, stop, B: tl.constexpr):
    for k in range(start, stop, B):
        acc += tl.dot(LHS, RHS) * 0.5
    return acc


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, n, B: tl.constexpr):
    desc_q = tl.make_tensor_descriptor(q_ptr, [n, B], [B, 1], [B, B])
    desc_k = tl.make_tensor_descriptor(k_ptr, [n, B], [B, 1], [B, B])
    q = desc_q.load([0, 0])
    acc = tl.zeros([B, B], tl.float32)
    acc = add(acc, q, desc_k, 0, B, B)
    acc = add(acc, q, desc_k, B, n, B)
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    tl.store(o_ptr + rows * B + columns, acc)
"""
AS_IT_LIES = ("q", "desc.load([k, 0]).T")
TURNED = ("desc.load([k, 0])", "q.T")
GIVEN = "q = load_tile(desc_q, [0, 0])\n"

LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "B": "constexpr"},
    constexprs={"B": 64},
    divisible_by_16=("q_ptr", "k_ptr", "o_ptr", "n"),
    grid=(1,),
    args={
        "q_ptr": TensorArg("float16", (192, 64), (64, 1), None),
        "k_ptr": TensorArg("float16", (192, 64), (64, 1), None),
        "o_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        "n": 192,
    },
)


def ported(path: Path, operands: tuple[str, str]) -> tuple[str, str]:
    text = TEXT.replace("LHS", operands[0]).replace("RHS", operands[1])
    path.write_text(text)
    made = convert(path, target="sm90", launches=(LAUNCH,), compile=False)
    assert [kernel.status for kernel in made.kernels] == ["converted"], made.kernels
    return text, made.text


@pytest.mark.slow
def test_a_tile_that_the_helper_computes_with_comes_to_registers(tmp_path: Path) -> None:
    _, text = ported(tmp_path / "kernel.py", ("q", "desc.load([k, 0]).T) * tl.max(q"))

    assert GIVEN not in text


@pytest.mark.slow
@pytest.mark.parametrize("operands", [AS_IT_LIES, TURNED], ids=["as it lies", "turned"])
def test_products_take_a_tile_where_the_caller_has_it(tmp_path: Path, operands: tuple[str, str]) -> None:
    path = tmp_path / "kernel.py"
    before, text = ported(path, operands)

    assert GIVEN in text
    assert "allocate_shared_memory(q" not in text
    equal(path, before, text, LAUNCH)
