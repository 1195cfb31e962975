"""Warps of their own for attention's loop on Blackwell: first loops that stay whole, then whole kernels compared."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tests.test_partitions import apart
from tests.test_persistent import launch as persistent
from tt2gl.convert import convert
from tt2gl.launches import Launch

ATTENTION = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, c_ptr, N, K, P: tl.constexpr, B: tl.constexpr, BK: tl.constexpr):
    a = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [B, BK])
    kv = tl.make_tensor_descriptor(a_ptr, [N, K], [K, 1], [BK, BK])
    c = tl.make_tensor_descriptor(c_ptr, [N, N], [N, 1], [B, BK])
    row = tl.program_id(0) * B
    q = a.load([row, 0])
    most = tl.full([B], float("-inf"), tl.float32)
    total = tl.zeros([B], tl.float32)
    acc = tl.zeros([B, BK], tl.float32)
    at = 0
    for _ in tl.range(0, N, BK, warp_specialize=True):
        # keys
        k = kv.load([at, 0]).T
        s = tl.dot(q, k)
        bigger = tl.maximum(most, tl.max(s, 1))
        p = tl.exp2(s - bigger[:, None])
        alpha = tl.exp2(most - bigger)
        total = total * alpha + tl.sum(p, 1)
        # older weights count for less
        acc = acc * alpha[:, None]
        v = kv.load([N - BK - at, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        most = bigger
        at += BK
    c.store([row, 0], (acc / total[:, None]).to(tl.float16))
"""
SCALED = "        acc = acc * alpha[:, None]\n"


def launch(rows: int = 128) -> Launch:
    return persistent(rows, 64, block=128, step=64)


WHOLE = {
    "the factor is none of rows": (SCALED, "        acc = acc * tl.sum(p, 0)[None, :]\n"),
    "the sum is read for something else": (SCALED, f"{SCALED}        total += tl.sum(acc, 1) * 0\n"),
    "the factor is made again": (SCALED, f"{SCALED}        alpha = bigger\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize("reason", WHOLE)
def test_loops_that_stay_whole(reason: str, tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", ATTENTION.replace(*WHOLE[reason])
    assert text != ATTENTION
    path.write_text(text)
    made = convert(path, target="sm100", launches=[launch()], root=tmp_path, compile=False)
    assert "warp_specialize(" not in made.text
    assert made.kernels[0].status == "converted"


@pytest.mark.slow
def test_attention(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made, codes = apart(path, ATTENTION, launch())
    assert codes == []
    _, rest, scaling, products, loads, kernel = made.split("@gluon.jit\ndef kernel")
    assert rest.count("tcgen05_mma(") + scaling.count("tcgen05_mma(") + loads.count("tcgen05_mma(") == 0
    assert products.count("tcgen05_mma(") == 3
    assert "# older weights count for less" in scaling
    assert "    tma_load(kv, [at, 0], " in loads
    assert "    tma_load(kv, [N - BK - at, 0], " in loads
    assert "at += BK" in loads
    assert "at += BK" not in rest + products
    assert "    total, phase = gl.warp_specialize(" in kernel
    equal(path, ATTENTION, made, launch(), "sm100")
    # A count that is wrong is found.
    wrong = made.replace("    # at first all is free\n    phase = 1\n", "    # at first all is free\n    phase = 0\n")
    assert wrong != made
    with pytest.raises(AssertionError):
        equal(path, ATTENTION, wrong, launch(), "sm100")


@pytest.mark.slow
def test_a_sum_that_is_scaled_in_branches_and_a_number_that_is_read_later(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    twice = (
        "        if P > 1:\n            acc = acc * alpha[:, None]\n        else:\n            acc *= alpha[:, None]\n"
    )
    text = ATTENTION.replace(SCALED, twice).replace("c.store([row, 0]", "c.store([row, at - N]")
    made, codes = apart(path, text, launch())
    assert codes == []
    assert "        if P > 1:\n" in made.split("@gluon.jit\ndef kernel")[2]
    equal(path, text, made, launch(), "sm100")
