"""Rule `direct_to_lds`: on CDNA4, tiles that Triton has waves copy to LDS are copied there by ours, from file to file.

Triton's own knob says whether it does, which by itself it does since 3.8.
"""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.results import Conversion

KERNEL = """
    import triton
    import triton.language as tl

    @triton.jit
    def matmul_kernel(a_ptr, b_ptr, c_ptr, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
        offs_m, offs_n, offs_k = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_K)
        a_ptrs = a_ptr + offs_m[:, None] * K + offs_k[None, :]
        b_ptrs = b_ptr + offs_k[:, None] * BLOCK_N + offs_n[None, :]
        acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
        for k in range(0, K, BLOCK_K):
            a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k, other=0.0)
            b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k, other=0.0)
            acc = tl.dot(a, b, acc)
            a_ptrs += BLOCK_K
            b_ptrs += BLOCK_K * BLOCK_N
        tl.store(c_ptr + offs_m[:, None] * BLOCK_N + offs_n[None, :], acc)
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRITON_HIP_USE_ASYNC_COPY", "1")
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(KERNEL))
    return path


def launch(path: Path, k: int = 112, aligned: tuple[str, ...] = ("a_ptr", "b_ptr", "c_ptr", "K")) -> Launch:
    signature = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}
    blocks = {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 32}
    tensors = {
        "a_ptr": TensorArg("float16", (128, k), (k, 1)),
        "b_ptr": TensorArg("float16", (k, 128), (128, 1)),
        "c_ptr": TensorArg("float32", (128, 128), (128, 1)),
    }
    kinds = {**signature, **dict.fromkeys(blocks, "constexpr")}
    return Launch(str(path), "matmul_kernel", kinds, blocks, aligned, Options(4, 3), (1, 1, 1), {**tensors, "K": k})


def converted(path: Path, *without: str) -> Conversion:
    launches = [launch(path)]
    return convert(path, target="gfx950", launches=launches, root=path.parent, without=without, compile=False)


@pytest.mark.slow
def test_off_all_tiles_come_to_registers(file: Path) -> None:
    made = converted(file, "direct_to_lds")
    assert "async_copy" not in made.text
    assert "direct_to_lds" not in made.kernels[0].rules
    assert "pipeline" in made.kernels[0].rules


@pytest.mark.slow
def test_on_waves_copy_where_triton_has_them_do_so(file: Path) -> None:
    made = converted(file)
    assert made.kernels[0].rules == ("buffer_ops", "direct_to_lds", "pipeline")
    assert made.text.count("async_copy.buffer_load_to_shared(") == 4
    assert made.text.count("load_shared_relaxed(a_buf.index(slot)") == 1
    assert "from triton.experimental.gluon.language.amd.cdna4 import async_copy\n" in made.text


@pytest.mark.slow
def test_tiles_that_cannot_be_copied_by_waves_come_to_registers_without_a_spare_slot(file: Path) -> None:
    one = launch(file, aligned=("c_ptr",))
    made = convert(file, target="gfx950", launches=[one], root=file.parent, compile=False)
    assert made.kernels[0].rules == ("buffer_ops", "pipeline")
    assert "# rings of NUM_STAGES - 1 tiles; loads run NUM_STAGES - 1 iterations ahead\n" in made.text


@pytest.mark.slow
def test_without_buffer_operations_copies_go_by_pointers(file: Path) -> None:
    text = converted(file, "buffer_ops").text
    assert text.count("async_copy.global_load_to_shared(") == 4
    assert text.count("other=0.0") == 4


@pytest.mark.slow
def test_as_good_as_tritons_and_equal(file: Path) -> None:
    _, triton, gluon = compared(file, launch(file), "gfx950")
    assert gluon.shared_bytes == triton.shared_bytes
    assert gluon.copies.keys() == triton.copies.keys() == {"lds.16"}
    assert gluon.rings == triton.rings
