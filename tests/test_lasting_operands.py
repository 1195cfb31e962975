"""Products in helpers that take what comes from before a loop, or are ordinary: written out in the loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def multiply(a, b, PRECISE: tl.constexpr):
    if PRECISE:
        return tl.dot(a, b, input_precision="ieee")
    else:
        return tl.dot(a, b)


@triton.jit
def scores(q, k, bias, PRECISE: tl.constexpr):
    return multiply(q, tl.trans(k), PRECISE) + bias[None, :]


@triton.jit
def kernel(q_ptr, k_ptr, b_ptr, y_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, PRECISE: tl.constexpr):
    rows, columns, lines = tl.arange(0, M)[:, None], tl.arange(0, D)[None, :], tl.arange(0, N)
    q = tl.load(q_ptr + rows * D + columns) * 0.5
    most = tl.full([M], float("-inf"), tl.float32)
    BODY
    tl.store(y_ptr + tl.arange(0, M), most)
"""
LOOP = """for start in range(0, n, N):
        k = tl.load(k_ptr + (start + lines)[:, None] * D + columns)
        bias = tl.load(b_ptr + start + lines)
        most = tl.maximum(most, tl.max(scores(q, k, bias, PRECISE), axis=1))"""
ONCE = """k = tl.load(k_ptr + lines[:, None] * D + columns)
    bias = tl.load(b_ptr + lines)
    most = tl.max(scores(q, k, bias, PRECISE), axis=1)"""
OWN = """for start in range(0, n, N):
        k = tl.load(k_ptr + (start + lines)[:, None] * D + columns)
        own = tl.load(q_ptr + (start + rows) * D + columns)
        most = tl.maximum(most, tl.max(multiply(own, tl.trans(k), PRECISE), axis=1))"""
BOTH = """for start in range(0, n, N):
        k = tl.load(k_ptr + (start + lines)[:, None] * D + columns)
        own = tl.load(q_ptr + (start + rows) * D + columns)
        s = multiply(own, tl.trans(k), PRECISE)
        most = tl.maximum(most, tl.max(multiply(s, k, PRECISE), axis=1))"""


MULTIPLY = KERNEL[KERNEL.index("@triton.jit\ndef multiply") : KERNEL.index("@triton.jit\ndef scores")]


def ported(body: str, precise: bool, tmp_path: Path, target: str = "sm90", elsewhere: str = "") -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("BODY", body)
    if elsewhere:
        text = text.replace(MULTIPLY, "").replace("\n\n\n", f"\n{elsewhere}\n\n\n", 1)
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **dict.fromkeys(("q_ptr", "k_ptr", "b_ptr", "y_ptr"), "*fp32"),
            "n": "i32",
            **dict.fromkeys(("M", "N", "D", "PRECISE"), "constexpr"),
        },
        constexprs={"M": 64, "N": 32, "D": 64, "PRECISE": precise},
        divisible_by_16=("q_ptr", "k_ptr", "b_ptr", "y_ptr", "n"),
        options=Options(4, 1),
        grid=(1,),
        args={
            "q_ptr": TensorArg("float32", (128, 64), (64, 1), None),
            "k_ptr": TensorArg("float32", (96, 64), (64, 1), None),
            "b_ptr": TensorArg("float32", (64,), (1,), None),
            "y_ptr": TensorArg("float32", (64,), (1,), None),
            "n": 64,
        },
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.slow
def test_outside_of_loops_what_a_helper_gets_turned_lies_as_it_comes(tmp_path: Path) -> None:
    """Triton puts it there before it is turned: the same bytes. A conversion spilt 36 registers a thread for none."""
    text = ported(ONCE, True, tmp_path, "sm80")
    assert "written out" not in text
    assert "b_smem = gl.allocate_shared_memory(b.dtype, [D, N], b_shared, b)" in text
    assert "gl.SwizzledSharedLayout(1, 1, 1, [0, 1])" in text


@pytest.mark.slow
def test_outside_of_loops_a_call_stays(tmp_path: Path) -> None:
    assert "written out" not in ported(ONCE, True, tmp_path)


def test_tensor_cores_that_multiply_what_the_loop_computes_stay_in_their_helper(tmp_path: Path) -> None:
    assert "written out" not in ported(OWN, False, tmp_path, "sm80")


@pytest.mark.slow
def test_tensor_cores_take_what_comes_from_before_the_loop_once(tmp_path: Path) -> None:
    text = ported(LOOP, False, tmp_path)
    before, loop = text.split("    for start in range(0, n, N):")
    assert "multiply, written out: its products take tiles of this loop" in loop
    assert before.count("allocate_shared_memory(q.dtype") == 1
    assert "allocate_shared_memory(q.dtype" not in loop


@pytest.mark.slow
@pytest.mark.subset
def test_a_loop_reads_what_it_multiplies_where_it_lies(tmp_path: Path) -> None:
    text = ported(LOOP, True, tmp_path)
    before, loop = text.split("    for start in range(0, n, N):")
    assert "multiply, written out: its products take tiles of this loop" in loop
    # What comes from before the loop is put into shared memory once, what it loads turned as it lies.
    assert before.count("allocate_shared_memory(q.dtype") == loop.count("allocate_shared_memory(k.dtype") == 1
    assert "gl.dot_fma(" in loop
    assert ".permute((1, 0)).load(" in loop
    assert "convert_layout(" not in loop.partition("gl.store")[0]
    # The other branch has a product that reads the same memory itself.
    assert "fence_async_shared()\n" in loop.partition("gl.dot_fma(")[0]


@pytest.mark.slow
def test_products_of_another_file_are_brought_along_before_calls_are_given_up(tmp_path: Path) -> None:
    (tmp_path / "products.py").write_text(KERNEL.partition("@triton.jit")[0] + MULTIPLY)
    text = ported(LOOP, True, tmp_path, "sm80", "from products import multiply")
    before, loop = text.split("    for start in range(0, n, N):")
    assert "multiply, written out: its products take tiles of this loop" in loop
    assert before.count("allocate_shared_memory(q.dtype") == 1


@pytest.mark.slow
def test_calls_that_are_given_memory_and_registers_are_written_out(tmp_path: Path) -> None:
    text = ported(BOTH, False, tmp_path)
    loop = text[text.index("    for start in range(0, n, N):") :]
    assert "multiply, written out: its calls want different layouts" in loop
    assert loop.count("warpgroup_mma(") == 2
