"""Sums on Blackwell that one arm of a branch on a constant adds to: they stay in tensor memory, as in Triton."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(
    a_ptr, b_ptr, s_ptr, c_ptr, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    SCALED: tl.constexpr, EVEN: tl.constexpr
):
    rows = tl.arange(0, BLOCK_M)
    cols = tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN:
            a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :])
        else:
            a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :], mask=(k + ks)[None, :] < K, other=0.0)
        b = tl.load(b_ptr + (k + ks)[:, None] * BLOCK_N + cols[None, :])
        if SCALED:
            scale = tl.load(s_ptr + k // BLOCK_K)
            acc += tl.dot(a, b) * scale
        else:
            acc = tl.dot(a, b, acc=acc)
    tl.store(c_ptr + rows[:, None] * BLOCK_N + cols[None, :], acc)
"""
M, N, K, STEP = 128, 64, 256, 64
TYPES = {"a_ptr": "*fp16", "b_ptr": "*fp16", "s_ptr": "*fp32", "c_ptr": "*fp32", "K": "i32"}
CONSTEXPRS = {"BLOCK_M": M, "BLOCK_N": N, "BLOCK_K": STEP, "SCALED": False, "EVEN": True}
PLAIN = Launch(
    "kernel.py",
    "kernel",
    {**TYPES, **dict.fromkeys(CONSTEXPRS, "constexpr")},
    CONSTEXPRS,
    ("a_ptr", "b_ptr", "s_ptr", "c_ptr", "K"),
    Options(4, 3),
    (1, 1, 1),
    {
        "a_ptr": TensorArg("float16", (M, K), (K, 1)),
        "b_ptr": TensorArg("float16", (K, N), (N, 1)),
        "s_ptr": TensorArg("float32", (K // STEP,), (1,)),
        "c_ptr": TensorArg("float32", (M, N), (N, 1)),
        "K": K,
    },
)
SCALED = replace(PLAIN, constexprs={**CONSTEXPRS, "SCALED": True})
WITHOUT_SCALES = replace(
    PLAIN,
    signature={**PLAIN.signature, "s_ptr": "constexpr"},
    constexprs={**CONSTEXPRS, "s_ptr": None},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
    args={name: value for name, value in (PLAIN.args or {}).items() if name != "s_ptr"},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of the kernel."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    return path


def port(path: Path, *launches: Launch) -> str:
    """The kernel's port under some launches."""
    return convert(path, target="sm100", launches=launches, root=path.parent, compile=False).text


@pytest.mark.slow
def test_beside_a_product_that_no_launch_compiles(path: Path) -> None:
    text = port(path, WITHOUT_SCALES)
    assert "acc += tl.dot(a, b) * scale" in text
    assert "    acc_tmem.store(acc)\n    for k in range" in text
    assert "if not SCALED:" not in text
    _, triton, gluon = compared(path, WITHOUT_SCALES, "sm100")
    assert gluon.registers is not None
    assert triton.registers is not None
    assert gluon.registers <= 1.1 * triton.registers


@pytest.mark.slow
def test_beside_an_arm_that_another_launch_compiles(path: Path) -> None:
    text = port(path, PLAIN, SCALED)
    assert "    if not SCALED:\n        acc_tmem.store(acc)\n    for k in range" in text
    assert "    if not SCALED:\n        acc = acc_tmem.load(acc_layout)\n" in text
    reports = verify(path, targets=["sm100"], launches=[PLAIN, SCALED], root=path.parent, run="simulate")
    assert [report.status for report in reports] == ["converted", "converted"]
    assert all(report.simulate is not None and report.simulate.bitwise for report in reports)
    assert all(report.simulate is not None and not report.simulate.findings for report in reports)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("if SCALED:\n            scale", "if k > K // 2:\n            scale", id="a test of the turn"),
        pytest.param("acc += tl.dot(a, b) * scale", "acc = tl.dot(a, b, acc=acc)\n            acc *= scale", id="both"),
        pytest.param("    tl.store(c_ptr", "    acc = acc\n    tl.store(c_ptr", id="nothing"),
    ],
)
def test_sums_that_are_put_there_in_each_turn(path: Path, old: str, new: str) -> None:
    path.write_text(KERNEL.replace(old, new))
    text = port(path, PLAIN, SCALED)
    assert ("if not SCALED:\n        acc_tmem.store(acc)" in text) == (old == "    tl.store(c_ptr")


HELPED = KERNEL.replace(
    "@triton.jit\ndef kernel",
    """@triton.jit
def product(a, b, acc, IEEE: tl.constexpr):
    if IEEE:
        return tl.dot(a, b, acc, input_precision="ieee")
    return tl.dot(a, b, acc)


@triton.jit
def kernel""",
)
"""A helper with two ways for operands of 32 bits."""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "sm100"])
def test_a_helper_that_returns_one_of_two_products_that_are_the_same(path: Path, target: str) -> None:
    text = HELPED.replace("acc += tl.dot(a, b) * scale", "acc = product(a, b, acc, EVEN)")
    path.write_text(text.replace("acc = tl.dot(a, b, acc=acc)", "acc = product(a, b, acc, EVEN)"))
    made = convert(path, target=target, launches=[PLAIN, SCALED], root=path.parent, compile=False).text
    assert " result = " not in made
    running = {"sm90": "acc = warpgroup_mma(a, b, acc, is_async=True)", "sm100": "tcgen05_mma(a, b, acc_tmem)\n"}
    assert running[target] in made
    reports = verify(path, targets=[target], launches=[PLAIN, SCALED], root=path.parent, run="simulate")
    assert all(report.simulate is not None and report.simulate.bitwise for report in reports)
    assert all(report.simulate is not None and not report.simulate.findings for report in reports)
