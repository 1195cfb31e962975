"""Operands that are cast to more bits as they are loaded: a product has them from memory as they were loaded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, w_ptr, y_ptr, z_ptr, B: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    w = tl.load(w_ptr + rows * B + columns).to(tl.float32)
    LOAD
    y = tl.dot(x, w)
    z = tl.dot(y, x)
    tl.store(y_ptr + rows * B + columns, y)
    tl.store(z_ptr + rows * B + columns, z)
"""


def ported(load: str, tmp_path: Path, target: str, dtype: str = "float16") -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("LOAD", load)
    path.write_text(text)
    short = {"float16": "*fp16", "float32": "*fp32"}
    types = {"x_ptr": dtype, "w_ptr": dtype, "y_ptr": "float32", "z_ptr": "float32"}
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**{name: short[each] for name, each in types.items()}, "B": "constexpr"},
        constexprs={"B": 64},
        divisible_by_16=tuple(types),
        options=Options(4, 3),
        grid=(1,),
        args={name: TensorArg(each, (64, 64), (64, 1), None) for name, each in types.items()},
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("load", "target", "dtype"),
    [
        pytest.param("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", "sm90", "float32", id="as wide"),
        pytest.param("x = tl.load(x_ptr + rows * B + columns).to(tl.float32) * 2", "sm90", "float16", id="computed"),
        pytest.param("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", "gfx942", "float32", id="as wide, AMD"),
        pytest.param(
            "x = tl.load(x_ptr + rows * B + columns).to(tl.float32) * 2", "gfx942", "float16", id="computed, AMD"
        ),
    ],
)
def test_operands_that_come_as_they_are(load: str, target: str, dtype: str, tmp_path: Path) -> None:
    text = ported(load, tmp_path, target, dtype)
    assert "narrow" not in text
    assert ".to(x.dtype)" not in text


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "gfx950"])
@pytest.mark.parametrize(
    "load",
    [
        pytest.param("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", id="at once"),
        pytest.param("half = tl.load(x_ptr + rows * B + columns)\n    x = half.to(tl.float32)", id="by another name"),
    ],
)
def test_amd_converts_tiles_as_they_were_loaded(load: str, target: str, tmp_path: Path) -> None:
    text = ported(load, tmp_path, target)
    # The second product's is converted above, before its other operand takes shared memory.
    converted = r"gl\.convert_layout\(x\.to\(x_ptr\.dtype\.element_ty\), \w+\)"
    assert len(re.findall(rf"{converted}\.to\(x\.dtype\)", text)) == 1, text
    (above,) = re.findall(rf"(\w+) = {converted}\n", text)
    assert f", {above}.to(x.dtype), " in text
    assert "narrow" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    "load",
    [
        pytest.param("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", id="at once"),
        pytest.param("half = tl.load(x_ptr + rows * B + columns)\n    x = half.to(tl.float32)", id="by another name"),
    ],
)
def test_a_tile_that_one_product_widens_and_another_has_in_memory(load: str, tmp_path: Path) -> None:
    text = ported(load, tmp_path, "sm90")
    assert "gl.allocate_shared_memory(x_ptr.dtype.element_ty, [B, B], x_narrow_shared, x.to(x_ptr.dtype." in text
    assert re.search(r"warpgroup_mma\(x_smem(_2)?\.load\(y_\w*lhs_layout\)\.to\(x\.dtype\), w_smem", text)


@pytest.mark.slow
def test_a_tile_that_a_product_casts_as_it_takes_it_is_cast_behind_its_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = KERNEL.replace("y = tl.dot(x, w)", "y = tl.dot(x.to(tl.float32), w)").replace("tl.dot(y, x)", "tl.sum(y)")
    monkeypatch.setitem(globals(), "KERNEL", here)
    text = ported("x = tl.load(x_ptr + rows * B + columns)", tmp_path, "sm80")
    assert "x_smem = gl.allocate_shared_memory(x.dtype, [B, B], x_shared, x)" in text
    assert re.search(r"mma_v2\(\s*x_smem\.load\(\w*lhs_layout\)\.to\(gl\.float32\),", text)


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["tl.trans(x)", "x.trans()", "x.T"])
def test_its_transposition_is_read_from_the_same_memory(
    turned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = KERNEL.replace("z = tl.dot(y, x)", f"z = tl.dot(y, {turned})")
    monkeypatch.setitem(globals(), "KERNEL", here)
    text = ported("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", tmp_path, "sm80")
    assert text.count("gl.allocate_shared_memory(x_ptr.dtype.element_ty, [B, B], x_narrow_shared") == 1
    assert re.search(r"x_smem\.permute\(\(1, 0\)\)\.load\(\w*rhs_layout\)\.to\(x\.dtype\)", text)
    assert re.search(r"x_smem\.load\(y_\w*lhs_layout\)\.to\(x\.dtype\)", text)


@pytest.mark.slow
@pytest.mark.parametrize("turned", ["tl.trans(x)", "x.T"])
def test_its_transposition_that_a_product_has_in_memory_is_a_view_of_it_as_it_was_cast(
    turned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = KERNEL.replace("z = tl.dot(y, x)", f"z = tl.dot(y, {turned})")
    monkeypatch.setitem(globals(), "KERNEL", here)
    text = ported("x = tl.load(x_ptr + rows * B + columns).to(tl.float32)", tmp_path, "sm90")
    assert text.count("gl.allocate_shared_memory(x_ptr.dtype.element_ty, [B, B], x_narrow_shared") == 1
    assert re.search(r"gl\.allocate_shared_memory\(x\.dtype, \[B, B\], x_\w*shared, x\)", text), text
    assert "rhs_layout" not in text
