"""What is made of a product and turned for the next one: kept in the layout that follows, as Triton keeps it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, D: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    places = rows[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + places)
    s = tl.dot(q, tl.trans(tl.load(k_ptr + places)))
    TURNED
    tl.store(o_ptr + places, tl.dot(p, q))
"""


@pytest.mark.parametrize(
    ("turned", "written"),
    [
        ("p = tl.trans(tl.exp(s)).to(q.dtype)", "p = tl.trans(gl.exp(s)).to(q.dtype)"),
        ("p = tl.trans(tl.exp(s).to(q.dtype))", "p = s_smem.permute((1, 0))\n"),
    ],
)
def test_it_is_converted_once_at_most(turned: str, written: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("TURNED", turned))
    pointers = ("q_ptr", "k_ptr", "o_ptr")
    kinds = {**dict.fromkeys(pointers, "*fp16"), "D": "constexpr", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"D": 64, "B": 32}, pointers, Options(4, 3))
    made = convert(path, target="sm80", launches=[launch], root=tmp_path, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    assert written in made.text


LOOP = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, N, D: tl.constexpr, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + cols[None, :])
    acc = tl.zeros((B, D), tl.float32)
    for start in range(0, N, B):
        k = tl.load(k_ptr + (start + rows)[:, None] * D + cols[None, :])
        p = tl.exp(tl.dot(k, tl.trans(q))).to(q.dtype)
        acc += tl.dot(tl.trans(p), k)
    tl.store(o_ptr + rows[:, None] * D + cols[None, :], acc)
"""


def test_in_a_loop_it_is_turned_where_it_is_read_from_shared_memory(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(LOOP)
    pointers = ("q_ptr", "k_ptr", "o_ptr")
    kinds = {**dict.fromkeys(pointers, "*fp32"), "N": "i32", "D": "constexpr", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"D": 64, "B": 32}, pointers, Options(4, 3))
    made = convert(path, target="sm80", launches=[launch], root=tmp_path).text
    loop = made[made.index("for start") :]
    assert "gl.allocate_shared_memory(p.dtype, [B, B], p_shared, p)" in loop
    assert "p_smem.permute((1, 0)).load(acc_lhs_layout)" in loop
    assert "convert_layout(tl.trans(p)" not in made


STATES = """import triton
import triton.language as tl


@triton.jit
def product(lhs, rhs, precision: tl.constexpr = None):
    return tl.dot(lhs, rhs, input_precision=precision)


@triton.jit
def kernel(k_ptr, v_ptr, g_ptr, o_ptr, T, D: tl.constexpr, B: tl.constexpr):
    cols = tl.arange(0, D)
    acc = tl.zeros((D, D), tl.float32)
    for start in range(0, T, B):
        rows = start + tl.arange(0, B)
        k = tl.load(k_ptr + rows[:, None] * D + cols[None, :])
        v = tl.load(v_ptr + rows[:, None] * D + cols[None, :])
        gates = tl.load(g_ptr + rows)
        gated = (k * tl.exp2(gates)[:, None]).to(k.dtype)
        acc += PRODUCT
    tl.store(o_ptr + cols[:, None] * D + cols[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm80"])
@pytest.mark.parametrize(
    "said",
    [
        "tl.dot(tl.trans(gated), v)",
        "tl.dot(tl.trans(gated).to(v.dtype), v)",
        "product(tl.trans(gated), v)",
        "product(tl.trans(gated).to(v.dtype), v)",
    ],
)
def test_what_is_computed_and_turned_goes_to_shared_memory_as_it_lies(said: str, target: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(STATES.replace("PRODUCT", said))
    kinds = {"k_ptr": "*bf16", "v_ptr": "*bf16", "g_ptr": "*fp32", "o_ptr": "*fp32", "T": "i32"}
    kinds |= {"D": "constexpr", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"D": 64, "B": 64}, tuple(kinds)[:5], Options(4, 3))
    made = convert(path, target=target, launches=[launch], root=tmp_path).text
    assert "gl.convert_layout(tl.trans(" not in made
    assert "gated_smem.load(" in made


MIRRORED = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, o_ptr, K, B: tl.constexpr):
    rows, cols = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    acc = tl.zeros((B, B), tl.float32)
    for k in range(0, K, B):
        acc = tl.dot(tl.load(a_ptr + rows * K + k + cols), tl.load(a_ptr + k + rows + cols * K), acc)
    turned = tl.trans(acc)
    tl.store(o_ptr + rows * B + cols, turned)
"""


@pytest.mark.parametrize(
    ("kind", "named", "stored"),
    [
        ("*fp32", "gl.convert_layout(tl.trans(acc), o_layout)", "turned)"),
        ("*fp16", "tl.trans(acc)", "gl.convert_layout(turned.to(o_ptr.dtype.element_ty), "),
    ],
    ids=["in as many bits", "in fewer"],
)
def test_a_sum_that_is_turned_to_be_stored(kind: str, named: str, stored: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(MIRRORED)
    kinds = {"a_ptr": "*fp16", "o_ptr": kind, "K": "i32", "B": "constexpr"}
    launch = Launch(path.name, "kernel", kinds, {"B": 64}, ("a_ptr", "o_ptr", "K"), Options(4, 3))
    made = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert f"turned = {named}\n" in made
    assert stored in made


OF_ITS_OWN = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, o_ptr, B: tl.constexpr):
    places = tl.arange(0, B)[:, None] * B + tl.arange(0, B)[None, :]
    q = tl.load(q_ptr + places)
    k = tl.load(k_ptr + places)
    turned = tl.trans(q * k)
    made = tl.dot(q + k, turned, out_dtype=q.dtype)
    tl.store(o_ptr + places, made)
"""


def test_an_operand_turned_in_a_statement_of_its_own_is_fenced_there(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(OF_ITS_OWN)
    pointers = ("q_ptr", "k_ptr", "o_ptr")
    launch = Launch(
        path.name, "kernel", {**dict.fromkeys(pointers, "*fp16"), "B": "constexpr"}, {"B": 64}, pointers, Options(4, 3)
    )
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    stored = text.index("_smem = gl.allocate_shared_memory")
    assert stored < text.index("fence_async_shared()\n", stored) < text.index("warpgroup_mma(", stored)
    # Other products read it from registers.
    assert (
        "fence_async_shared" not in convert(path, target="sm80", launches=[launch], root=tmp_path, compile=False).text
    )
