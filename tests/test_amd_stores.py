"""Products of 16 bits that CDNA4 stores: lanes exchange elements for wide stores, as in Triton's, from file to file."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """
    import triton
    import triton.language as tl

    @triton.jit
    def product_kernel(a_ptr, b_ptr, c_ptr, M, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
        rows, offs_k = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
        a = tl.load(a_ptr + rows[:, None] * DEPTH + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * BLOCK + rows[None, :])
        c = tl.dot(a, b)
        tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], c.to(tl.float16), mask=rows[:, None] < M)
"""


def test_stores_as_wide_as_tritons_without_shared_memory(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(KERNEL))
    kinds = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16", "M": "i32", "BLOCK": "constexpr"}
    arguments = {
        "a_ptr": TensorArg("float16", (64, 32), (32, 1)),
        "b_ptr": TensorArg("float16", (32, 64), (64, 1)),
        "c_ptr": TensorArg("float16", (64, 64), (64, 1)),
        "M": 50,
    }
    blocks = {"BLOCK": 64, "DEPTH": 32}
    pointers = ("a_ptr", "b_ptr", "c_ptr")
    given = {**kinds, "DEPTH": "constexpr"}
    launch = Launch(str(path), "product_kernel", given, blocks, pointers, Options(4, 2), (1, 1, 1), arguments)
    report, triton, gluon = compared(path, launch, "gfx950")
    assert gluon.global_stores == triton.global_stores == {"128": 2}
    assert gluon.barriers <= triton.barriers
    assert not [found for found in report.diagnostics if found.code.startswith("TTG5")]
