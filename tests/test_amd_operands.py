"""Operands of products that no ring feeds, on AMD: loaded and put into LDS as Triton does both, from file to file."""

from __future__ import annotations

import textwrap
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

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


@pytest.mark.slow
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


def linear(path: Path, stages: int) -> Launch:
    signature = {"x_ptr": "*bf16", "w_ptr": "*bf16", "y_ptr": "*fp32", "K": "i32"}
    tensors = {
        "x_ptr": TensorArg("bfloat16", (16, 200), (200, 1)),
        "w_ptr": TensorArg("bfloat16", (64, 200), (200, 1)),
        "y_ptr": TensorArg("float32", (16, 64), (64, 1)),
    }
    blocks = {"ROWS": 16, "COLUMNS": 64, "DEPTH": 64}
    kinds = {**signature, **dict.fromkeys(blocks, "constexpr")}
    aligned = ("x_ptr", "w_ptr", "y_ptr")
    arguments = {**tensors, "K": 200}
    return Launch(str(path), "linear_kernel", kinds, blocks, aligned, Options(4, stages), (1, 1, 1), arguments)


@pytest.mark.slow
def test_tiles_that_wait_in_registers_as_the_product_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(LINEAR))
    known = linear(path, 3)
    made = convert(path, target="gfx950", launches=[known], root=tmp_path, compile=False)
    assert "w_held = w_held[1:] + (w_next,)" in made.text
    assert "turned(" in made.text
    report, triton, gluon = compared(path, known, "gfx950")
    assert gluon.shared_bytes <= triton.shared_bytes
    assert not [found for found in report.diagnostics if found.code in ("TTG331", "TTG508")]


LOADING = """
    @triton.jit
    def loaded(ptrs, offs_k, left):
        return tl.load(ptrs, mask=offs_k[None, :] < left, other=0.0)

    @triton.jit
    def linear_kernel("""


@pytest.mark.slow
def test_a_helper_that_loads_such_tiles_is_written_out_where_they_run_ahead(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    text = LINEAR.replace("tl.load(w_ptrs, mask=near, other=0.0)", "loaded(w_ptrs, offs_k, K - start)")
    path.write_text(textwrap.dedent(text.replace("\n    @triton.jit\n    def linear_kernel(", LOADING)))
    made = convert(path, target="gfx950", launches=[linear(path, 1)], root=tmp_path, compile=False)
    assert "w = loaded(" in made.text
    known = linear(path, 3)
    made = convert(path, target="gfx950", launches=[known], root=tmp_path, compile=False)
    assert "w_held = w_held[1:] + (w_next,)" in made.text
    report, triton, gluon = compared(path, known, "gfx950")
    assert gluon.step_waits <= triton.step_waits
    assert not [found for found in report.diagnostics if found.code in ("TTG331", "TTG508")]


GROUPED = """
    import triton
    import triton.language as tl

    @triton.jit
    def grouped_kernel(a_ptr, w_ptr, s_ptr, g_ptr, c_ptr, K, N: tl.constexpr, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
        rows, columns, offs_k = tl.arange(0, BLOCK), tl.arange(0, N), tl.arange(0, DEPTH)
        a_ptrs, g_ptrs = a_ptr + rows[:, None] * K + offs_k[None, :], g_ptr + offs_k
        w_ptrs, s_ptrs = w_ptr + (offs_k[:, None] // 8) * N + columns[None, :], s_ptr + columns[None, :]
        acc = tl.zeros((BLOCK, N), dtype=tl.float32)
        for start in range(0, tl.cdiv(K, DEPTH)):
            group = tl.load(g_ptrs)
            scales = tl.load(s_ptrs + group[:, None] * N)
            a = tl.load(a_ptrs)
            w = tl.load(w_ptrs)
            b = ((w >> (offs_k[:, None] % 8) * 4) & 15) * scales
            acc = tl.dot(a, b, acc)
            a_ptrs += DEPTH
            w_ptrs += (DEPTH // 8) * N
            g_ptrs += DEPTH
        tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("turns", [2, 5])
def test_tiles_that_wait_in_registers_and_are_looked_up_earlier(tmp_path: Path, turns: int) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(GROUPED))
    size = turns * 32
    signature = {"a_ptr": "*fp16", "w_ptr": "*i32", "s_ptr": "*fp16", "g_ptr": "*i32", "c_ptr": "*fp32", "K": "i32"}
    tensors = {
        "a_ptr": TensorArg("float16", (64, size), (size, 1)),
        "w_ptr": TensorArg("int32", (size // 8, 128), (128, 1)),
        "s_ptr": TensorArg("float16", (4, 128), (128, 1)),
        "g_ptr": TensorArg("int32", (size,), (1,), (0, 3)),
        "c_ptr": TensorArg("float32", (64, 128), (128, 1)),
    }
    blocks = {"N": 128, "BLOCK": 64, "DEPTH": 32}
    kinds = {**signature, **dict.fromkeys(blocks, "constexpr")}
    options = Options(4, 4)
    known = Launch(
        str(path), "grouped_kernel", kinds, blocks, (*signature,), options, (1, 1, 1), {**tensors, "K": size}
    )
    made = convert(path, target="gfx942", launches=[known], root=tmp_path, compile=False)
    assert "scales_held = scales_held[1:] + (scales_next,)" in made.text
    assert "w_held = w_held[1:] + (w_next,)" in made.text
    assert "# where the next tiles are, looked up one iteration before they are copied" in made.text
    report, triton, gluon = compared(path, known, "gfx942")
    assert gluon.step_waits <= triton.step_waits
    assert not [found for found in report.diagnostics if found.code == "TTG331" or found.code.startswith("TTG5")]


CHAINED = """
    import triton
    import triton.language as tl

    @triton.jit
    def attention_kernel(q_ptr, k_ptr, v_ptr, o_ptr, N, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DEPTH: tl.constexpr):
        rows, columns, offs_d = tl.arange(0, ROWS), tl.arange(0, COLUMNS), tl.arange(0, DEPTH)
        q = tl.load(q_ptr + rows[:, None] * DEPTH + offs_d[None, :])
        acc = tl.zeros((ROWS, DEPTH), dtype=tl.float32)
        for start in range(0, N, COLUMNS):
            at = start + columns
            k = tl.load(k_ptr + at[None, :] * DEPTH + offs_d[:, None], mask=at[None, :] < N, other=0.0)
            p = tl.exp(tl.dot(q, k))STATEMENT
            v = tl.load(v_ptr + at[:, None] * DEPTH + offs_d[None, :], mask=at[:, None] < N, other=0.0)
            acc = tl.dot(OPERAND, v, acc)
        tl.store(o_ptr + rows[:, None] * DEPTH + offs_d[None, :], acc)
"""


def chained(folder: Path, statement: str, operand: str) -> tuple[Path, list[Launch]]:
    """A file, and launches of which the first alone has other warps read what a product is made into."""
    path = folder / "kernel.py"
    path.write_text(textwrap.dedent(CHAINED.replace("STATEMENT", statement).replace("OPERAND", operand)))
    launches = []
    for rows in (64, 128):
        blocks = {"ROWS": rows, "COLUMNS": 64, "DEPTH": 64}
        tensors = {name: TensorArg("float16", (100, 64), (64, 1)) for name in ("k_ptr", "v_ptr")}
        tensors["q_ptr"] = TensorArg("float16", (rows, 64), (64, 1))
        tensors["o_ptr"] = TensorArg("float32", (rows, 64), (64, 1))
        kinds = {**dict.fromkeys(tensors, "*fp16"), "o_ptr": "*fp32", "N": "i32", **dict.fromkeys(blocks, "constexpr")}
        given = {**tensors, "N": 100}
        known = Launch(str(path), "attention_kernel", kinds, blocks, tuple(tensors), Options(4, 2), (1, 1, 1), given)
        launches.append(known)
    return path, launches


@pytest.mark.slow
def test_what_other_warps_read_passes_lds_once_as_in_triton(tmp_path: Path) -> None:
    path, launches = chained(tmp_path, "", "p.to(v.dtype)")
    reports = verify(path, targets=["gfx942"], launches=launches, root=tmp_path, run="simulate")
    assert len(reports) == 2
    for report in reports:
        assert report.simulate is not None
        assert report.simulate.equal
        for made in (report.triton, report.gluon):
            assert made is not None
            assert made.metrics is not None
            # Both rings, and p where warps exchange it: their own part of it threads have from their own warp.
            assert made.metrics.shared_bytes == 16384 + (8192 if report.launch == 0 else 0)


def test_a_name_passes_lds_where_a_product_reads_it(tmp_path: Path) -> None:
    path, launches = chained(tmp_path, "\n            p = p.to(v_ptr.dtype.element_ty)", "p")
    made = convert(path, target="gfx950", launches=launches, root=tmp_path, compile=False)
    assert "acc = gl.amd.cdna4.mfma(as_operand(p, acc_lhs_layout, [0, 1], 64), v, acc)" in made.text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_what_a_mask_leaves_out_of_a_tile_in_registers_is_what_the_load_says(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(
        textwrap.dedent(KERNEL).replace("mask=rk[None, :] < K, other=0.0", "mask=rk[None, :] < K - 9, other=1.0")
    )
    tensors = {
        "a_ptr": TensorArg("float16", (64, 96), (96, 1)),
        "b_ptr": TensorArg("float16", (96, 64), (64, 1)),
        "c_ptr": TensorArg("float32", (64, 64), (64, 1)),
    }
    given = replace(launch(path), divisible_by_16=(*tensors, "K", "N"), args={**tensors, "K": 96, "N": 64})
    report, triton, gluon = compared(path, given, target)
    assert report.simulate is not None
    assert report.simulate.bitwise
    assert triton.rings
    assert gluon.rings == triton.rings


TURNED = """
    import triton
    import triton.language as tl

    @triton.jit
    def matmul_kernel(a_ptr, b_ptr, c_ptr, K, N, BLOCK: tl.constexpr, DEPTH: tl.constexpr, TURNED: tl.constexpr):
        rows, offs_k = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, K, DEPTH):
            rk = start + offs_k
            a = tl.load(a_ptr + rows[:, None] * K + rk[None, :], mask=rk[None, :] < K, other=0.0)
            b = tl.load(b_ptr + rk[:, None] * N + rows[None, :], mask=rk[:, None] < K, other=0.0)
            acc = tl.dot(a, b, acc)
        if TURNED:
            c_ptrs = c_ptr + rows[None, :] + rows[:, None] * BLOCK
        else:
            c_ptrs = c_ptr + rows[:, None] * BLOCK + rows[None, :]
        tl.store(c_ptrs, tl.trans(acc) if TURNED else acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("turned", "stored"), [(True, "gl.convert_layout(acc, c_layout)"), (False, "acc")])
def test_a_sum_is_stored_as_the_launches_that_there_are_have_it(tmp_path: Path, turned: bool, stored: str) -> None:
    """What a flag would do that no launch turns changes nothing of how it is stored."""
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(TURNED))
    plain = launch(path)
    kinds = {**plain.signature, "TURNED": "constexpr"}
    asked = replace(plain, signature=kinds, constexprs={**plain.constexprs, "TURNED": turned})
    made = convert(path, target="gfx942", launches=[asked], root=tmp_path, compile=False)
    assert f" if TURNED else {stored}," in made.text
    (report,) = verify(path, targets=["gfx942"], launches=[asked], root=tmp_path, run="simulate")
    assert report.simulate is not None
    assert report.simulate.equal


BOTH = """
    import triton
    import triton.language as tl

    @triton.jit
    def both_kernel(q_ptr, k_ptr, o_ptr, n, BLOCK: tl.constexpr):
        rows = tl.arange(0, BLOCK)
        tile = rows[:, None] * BLOCK + rows[None, :]
        q, r = tl.load(q_ptr + tile), tl.load(q_ptr + BLOCK * BLOCK + tile)
        acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
        for start in range(0, n, BLOCK):
            k = tl.load(k_ptr + start * BLOCK + tile) * 2
            qk = tl.dot(q, tl.trans(k))
            weight = tl.exp2(qk - tl.max(qk, axis=1)[:, None])
            acc += weight * tl.dot(r, tl.trans(k))
        tl.store(o_ptr + tile, acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
def test_what_two_products_take_turned_goes_through_lds_once(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(BOTH))
    kinds = {"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"}
    halves = {"q_ptr": TensorArg("float16", (128, 64), (64, 1)), "k_ptr": TensorArg("float16", (192, 64), (64, 1))}
    given = {**halves, "o_ptr": TensorArg("float32", (64, 64), (64, 1)), "n": 192}
    asked = Launch(
        str(path), "both_kernel", kinds, {"BLOCK": 64}, ("q_ptr", "k_ptr", "o_ptr"), Options(4, 2), (1, 1, 1), given
    )
    made = convert(path, target=target, launches=[asked], root=tmp_path, compile=False)
    body = made.text[made.text.index("for start in range(") :]
    assert body.count("tl.trans(k)") == body.count("gl.allocate_shared_memory(") == made.text.count("k_smem.load(")
    report, triton, gluon = compared(path, asked, target)
    assert report.status == "converted"
    assert gluon.barriers <= triton.barriers
