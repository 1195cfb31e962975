"""Operands of products in registers: what is loaded to registers goes on through shared memory, at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch, Options

CORPUS = Path(__file__).resolve().parents[1] / "corpus"

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = tl.load(b_ptr + rows[:, None] * K + k + rows[None, :])
        acc = tl.dot(a, (b * 2).to(b.dtype), acc)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""

HELPER = """@triton.jit
def loaded(ptr, rows, K, k):
    x = tl.load(ptr + rows[:, None] * K + k + rows[None, :])
    return {value}


@triton.jit
def kernel("""


def by_helper(value: str) -> str:
    """The kernel whose first operand is what a helper returns."""
    text = KERNEL.replace("@triton.jit\ndef kernel(", HELPER.format(value=value))
    return text.replace("a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])", "a = loaded(a_ptr, rows, K, k)")


def loop_of(tmp_path: Path, kernel: str) -> list[str]:
    """The lines of the loop of a kernel converted for sm80."""
    file = tmp_path / "kernel.py"
    file.write_text(kernel)
    pointers = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**pointers, "K": "i32", "B": "constexpr"},
        constexprs={"B": 32},
        divisible_by_16=tuple(pointers),
        options=Options(4, 1),
    )
    text = convert(file, target="sm80", launches=[launch], root=tmp_path, compile=False).text
    return [line.strip() for line in text[text.index("for k in") :].splitlines()]


def test_what_a_helper_computes_is_converted(tmp_path: Path) -> None:
    loop = loop_of(tmp_path, by_helper("(x * 2).to(x.dtype)"))
    assert not any("a_smem" in line for line in loop)


@pytest.mark.parametrize(
    ("kernel", "given"), [(KERNEL, "a = gl.load("), (by_helper("x"), "a = loaded(")], ids=["here", "by a helper"]
)
def test_what_is_loaded_leaves_its_registers_and_what_is_computed_is_converted(
    tmp_path: Path, kernel: str, given: str
) -> None:
    loop = loop_of(tmp_path, kernel)
    assert loop[1].startswith(given)
    assert loop[2] == "a_smem = gl.allocate_shared_memory(a.dtype, [B, B], a_shared, a)"
    assert loop[4] == "b_rhs = gl.convert_layout((b * 2).to(b.dtype), rhs_layout)"
    assert loop[5] == "acc = mma_v2(a_smem.load(lhs_layout), b_rhs, acc)"


@pytest.mark.slow
def test_what_is_in_a_ring_on_the_other_side_of_a_branch_comes_through_memory_where_it_is_loaded() -> None:
    """Both sides give the product one name, in its registers; those of one side are not held over the other's way."""
    known = read_launches(CORPUS / "matmul_fused.launches.json")
    launches = [launch for launch in known if launch.kernel == "split_k_matmul_kernel"]
    made = convert(CORPUS / "matmul_fused.py", target="sm80", launches=launches, root=CORPUS, compile=False)
    body = made.text[made.text.index("def split_k_matmul_kernel") :]
    other = [line.strip() for line in body[body.index("            B_operand = gl.load(B, mask=") :].splitlines()]
    assert other[1].startswith("B_smem = gl.allocate_shared_memory(")
    assert other[2:4] == ["a = A_smem.load(lhs_layout)", "b = B_smem.load(rhs_layout)"]
    assert other[4] == "acc = mma_v2(a, b, acc)"


@pytest.mark.parametrize(("stages", "once"), [(1, True), (3, False)])
def test_what_wgmma_takes_from_registers_is_put_into_memory_beside_what_it_takes_from_there(
    tmp_path: Path, stages: int, once: bool
) -> None:
    """One barrier serves both where the other tile is put there in the same iteration; a ring's is there before."""
    file = tmp_path / "kernel.py"
    text = KERNEL.replace(
        "        b = tl.load", "        a = tl.cumsum(a, 1).to(b_ptr.dtype.element_ty)\n        b = tl.load"
    )
    file.write_text(text.replace("(b * 2).to(b.dtype)", "b"))
    pointers = {"a_ptr": "*fp32", "b_ptr": "*fp16", "c_ptr": "*fp32"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**pointers, "K": "i32", "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=(*pointers, "K"),
        options=Options(4, stages),
    )
    text = convert(file, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    stored = "a_smem = gl.allocate_shared_memory(a.dtype, [B, B], a_shared, a)\n        b = gl.load("
    assert (stored in text) == once
    read = "a_lhs = a_smem.load(lhs_layout)\n        fence_async_shared()\n        acc = warpgroup_mma(a_lhs, b_smem,"
    assert (read in text) == once
