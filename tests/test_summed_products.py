"""Sums of what rows and columns multiply to: products, where Triton's compiler makes such of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    ms, ks, ns = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    x = tl.load(x_ptr + ms[:, None] * K + ks[None, :])
    y = tl.load(y_ptr + ks[:, None] * N + ns[None, :])
    o = SUM
    tl.store(o_ptr + ms[:, None] * N + ns[None, :], o)
"""
SUM = "tl.sum(x[:, :, None] * y[None, :, :], 1)"


def written(folder: Path, added: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.replace("SUM", added))
    return path


def launch(m: int = 32, k: int = 16, n: int = 64, dtype: str = "fp32") -> Launch:
    kind = {"fp32": "float32", "i32": "int32"}[dtype]
    tensors = {
        "x_ptr": TensorArg(kind, (m, k), (k, 1), None),
        "y_ptr": TensorArg(kind, (k, n), (n, 1), None),
        "o_ptr": TensorArg(kind, (m, n), (n, 1), None),
    }
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature=dict.fromkeys(tensors, f"*{dtype}") | dict.fromkeys("MKN", "constexpr"),
        constexprs={"M": m, "K": k, "N": n},
        divisible_by_16=tuple(tensors),
        options=Options(4, 3),
        grid=(1,),
        args=tensors,
    )


@pytest.mark.parametrize("target", ["sm80", "sm90", "sm100", "gfx942", "gfx950"])
@pytest.mark.parametrize("added", [SUM, SUM.replace(", 1)", ", axis=1)")], ids=["by place", "by keyword"])
def test_a_sum_that_is_a_product_multiplies_as_triton_does(added: str, target: str, tmp_path: Path) -> None:
    path = written(tmp_path, added)
    _, triton, gluon = compared(path, launch(), target)
    assert gluon.mma == triton.mma
    assert "gl.sum(" not in convert(path, target=target, launches=[launch()], root=tmp_path, compile=False).text


@pytest.mark.parametrize(
    ("added", "given"),
    [
        pytest.param(SUM, launch(m=8), id="too few rows"),
        pytest.param(SUM, launch(dtype="i32"), id="of integers"),
        pytest.param("tl.sum(y[None, :, :] * x[:, :, None], 1)", launch(), id="columns times rows"),
        pytest.param("tl.max(x[:, :, None] * y[None, :, :], 1)", launch(), id="no sum"),
        pytest.param("tl.sum(x[:, :, None] + y[None, :, :], 1)", launch(), id="of sums"),
    ],
)
def test_other_reductions_stay_what_they_are_in_both(added: str, given: Launch, tmp_path: Path) -> None:
    path = written(tmp_path, added)
    _, triton, gluon = compared(path, given, "sm90")
    assert gluon.mma == triton.mma == {}
    assert "dot" not in convert(path, target="sm90", launches=[given], root=tmp_path, compile=False).text


def test_a_sum_is_written_as_a_product_where_it_is_one_under_every_launch(tmp_path: Path) -> None:
    path = written(tmp_path, SUM)
    made = convert(path, target="sm90", launches=[launch(), launch(m=8)], root=tmp_path, compile=False)
    assert "gl.sum(" in made.text
