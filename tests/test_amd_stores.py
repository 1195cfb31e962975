"""Products of 16 bits that CDNA4 stores: lanes exchange elements for wide stores, as in Triton's, from file to file."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.verify.api import verify

KERNEL = """
    import triton
    import triton.language as tl

    @triton.jit
    def product_kernel(a_ptr, b_ptr, c_ptr, M, BLOCK: tl.constexpr, DEPTH: tl.constexpr):
        rows, offs_k = tl.arange(0, BLOCK), tl.arange(0, DEPTH)
        a = tl.load(a_ptr + rows[:, None] * DEPTH + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * BLOCK + rows[None, :])
        c = tl.dot(a, b)
        tl.store(c_ptr + rows[:, None] * BLOCK + rows[None, :], c.to(c_ptr.dtype.element_ty), mask=rows[:, None] < M)
"""


def launch_of(path: Path, dtype: str = "float16") -> Launch:
    kinds = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp16" if dtype == "float16" else "*fp32", "M": "i32"}
    arguments = {
        "a_ptr": TensorArg("float16", (64, 32), (32, 1)),
        "b_ptr": TensorArg("float16", (32, 64), (64, 1)),
        "c_ptr": TensorArg(dtype, (64, 64), (64, 1)),
        "M": 50,
    }
    given = {**kinds, "BLOCK": "constexpr", "DEPTH": "constexpr"}
    blocks, pointers = {"BLOCK": 64, "DEPTH": 32}, ("a_ptr", "b_ptr", "c_ptr")
    return Launch(str(path), "product_kernel", given, blocks, pointers, Options(4, 2), (1, 1, 1), arguments)


@pytest.mark.slow
def test_stores_as_wide_as_tritons_without_shared_memory(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(KERNEL))
    report, triton, gluon = compared(path, launch_of(path), "gfx950")
    assert gluon.global_stores == triton.global_stores == {"128": 2}
    assert gluon.barriers <= triton.barriers
    assert not [found for found in report.diagnostics if found.code.startswith("TTG5")]


@pytest.mark.slow
def test_lanes_exchange_elements_under_the_launches_that_triton_does_it_for(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(textwrap.dedent(KERNEL))
    launches = [launch_of(path), launch_of(path, "float32")]
    for report in verify(path, targets=["gfx950"], launches=launches, root=tmp_path, run="simulate"):
        assert report.simulate is not None
        assert report.simulate.equal
        metrics = [made.metrics for made in (report.triton, report.gluon) if made is not None and made.metrics]
        triton, gluon = metrics
        assert gluon.convert_layouts == triton.convert_layouts == (3 if report.launch == 0 else 2)
        assert gluon.global_stores == triton.global_stores
