"""Operands of products that no ring feeds, on AMD: loaded and put into LDS as Triton does both, from file to file."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """
    import triton
    import triton.language as tl

    @triton.jit
    def matmul_kernel(a_ptr, b_ptr, c_ptr, K, N, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
        rows, offs_k = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, K, DEPTH):
            rk = start + offs_k
            a = tl.load(a_ptr + rows[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + rows[None, :], mask=rk[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], acc)
"""


def launch(path: Path) -> Launch:
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "N": "i32"}
    tensors = {
        "a_ptr": TensorArg("float16", (64, 50), (50, 1)),
        "b_ptr": TensorArg("float16", (50, 70), (70, 1)),
        "c_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    blocks = {"BLOCK": 64, "DEPTH": 32}
    kinds = {**signature, **dict.fromkeys(blocks, "constexpr")}
    arguments = {**tensors, "K": 50, "N": 70}
    return Launch(str(path), "matmul_kernel", kinds, blocks, ("c_ptr",), Options(4, 2), (1, 1, 1), arguments)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(KERNEL))
    return path


def test_tiles_of_rows_that_are_not_aligned(file: Path) -> None:
    made = convert(file, target="gfx942", launches=[launch(file)], root=file.parent, compile=False)
    # Turned within its threads on Triton's way to LDS, the second is loaded four rows a thread.
    assert "[DEPTH, BLOCK], [1, 0], 128, gl.num_warps(), column_bits=b_ptr.dtype" in made.text
    assert "a_layout: gl.constexpr = coalesced([BLOCK, DEPTH], [1, 0], 128, gl.num_warps())" in made.text
    assert "a_smem = gl.allocate_shared_memory(a.dtype, [BLOCK, DEPTH], a_shared, a)" in made.text
    assert "gl.allocate_shared_memory(b.dtype, [DEPTH, BLOCK], b_shared, turned_in_threads(b))" in made.text
    assert "mfma(a_lhs, b_smem.load(rhs_layout), acc)" in made.text


def test_as_good_as_tritons_and_equal(file: Path) -> None:
    report, triton, gluon = compared(file, launch(file), "gfx942")
    assert (gluon.shared_bytes, gluon.buffered, gluon.unbuffered) == (4096, triton.buffered, 0)
    assert gluon.step_waits <= triton.step_waits
    assert not [found for found in report.diagnostics if found.code.startswith("TTG5")]


LINEAR = """
    import triton
    import triton.language as tl

    @triton.jit
    def linear_kernel(x_ptr, w_ptr, y_ptr, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
        rows, columns, offs_k = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
        x_ptrs, w_ptrs = x_ptr + rows[:, None] * K + offs_k[None, :], w_ptr + columns[:, None] * K + offs_k[None, :]
        acc = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
        for start in range(0, K, DEPTH):
            near = offs_k[None, :] < K - start
            x = tl.load(x_ptrs, mask=near, other=0.0)
            w = tl.load(w_ptrs, mask=near, other=0.0)
            acc = tl.dot(x, tl.trans(w), acc)
            x_ptrs += DEPTH
            w_ptrs += DEPTH
        tl.store(y_ptr + rows[:, None] * COLUMNS + columns[None, :], acc)
"""


def test_tiles_that_wait_in_registers_as_the_product_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(LINEAR))
    signature = {"x_ptr": "*bf16", "w_ptr": "*bf16", "y_ptr": "*fp32", "K": "i32"}
    tensors = {
        "x_ptr": TensorArg("bfloat16", (16, 200), (200, 1)),
        "w_ptr": TensorArg("bfloat16", (64, 200), (200, 1)),
        "y_ptr": TensorArg("float32", (16, 64), (64, 1)),
    }
    blocks = {"ROWS": 16, "COLUMNS": 64, "DEPTH": 64}
    kinds = {**signature, **dict.fromkeys(blocks, "constexpr")}
    aligned = ("x_ptr", "w_ptr", "y_ptr")
    options = Options(4, 3)
    known = Launch(str(path), "linear_kernel", kinds, blocks, aligned, options, (1, 1, 1), {**tensors, "K": 200})
    made = convert(path, target="gfx950", launches=[known], root=tmp_path, compile=False)
    assert "w_held = w_held[1:] + (w_next,)" in made.text
    assert "turned(" in made.text
    report, triton, gluon = compared(path, known, "gfx950")
    assert gluon.shared_bytes <= triton.shared_bytes
    assert not [found for found in report.diagnostics if found.code in ("TTG331", "TTG508")]
