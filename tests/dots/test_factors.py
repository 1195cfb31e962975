"""A carried sum and what scales it: the factor converts, and not the sum."""

from __future__ import annotations

from pathlib import Path

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, k_ptr, v_ptr, o_ptr, N, M: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    rows, cols, inner = tl.arange(0, M), tl.arange(0, B), tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + inner[None, :])
    high = tl.zeros([M], tl.float32) - float("inf")
    acc = tl.zeros([M, D], tl.float32)
    for n in range(0, N, B):
        k = tl.load(k_ptr + (n + cols)[None, :] * D + inner[:, None])
        s = tl.dot(q, k)
        higher = tl.maximum(high, tl.max(s, 1))
        alpha = tl.exp2(high - higher)
        p = tl.exp2(s - higher[:, None])
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + (n + cols)[:, None] * D + inner[None, :])
        acc += tl.dot(p.to(tl.float16), v, out_dtype=tl.float16)
        high = higher
    tl.store(o_ptr + rows[:, None] * D + inner[None, :], acc)
"""


def test_the_factor_of_a_sum_that_a_product_is_added_to_converts(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    pointers = {"q_ptr": "*fp16", "k_ptr": "*fp16", "v_ptr": "*fp16", "o_ptr": "*fp32"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**pointers, "N": "i32", "M": "constexpr", "B": "constexpr", "D": "constexpr"},
        constexprs={"M": 128, "B": 64, "D": 128},
        divisible_by_16=(*pointers, "N"),
        options=Options(8, 2),
    )
    text = convert(file, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    loop = text[text.index("for n in range(") :]
    assert "acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, acc_layout))[:, None]\n" in loop
    assert "gl.convert_layout(acc, " not in loop[: loop.index("gl.store(")]
