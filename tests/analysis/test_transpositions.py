"""Transpositions that products take from shared memory: of another name's memory, and of tiles of rings."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, b_ptr, s_ptr, y_ptr, B: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    y = tl.zeros([B, B], tl.float32)
    for i in range(N):
        x = tl.load(x_ptr + i * B * B + rows * B + columns)
        BODY
    tl.store(y_ptr + rows * B + columns, y)
"""


def ported(body: str, tmp_path: Path, stages: int, target: str = "sm90") -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("BODY", body)
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            "x_ptr": "*fp16",
            "b_ptr": "*i8",
            "s_ptr": "*fp32",
            "y_ptr": "*fp32",
            "B": "constexpr",
            "N": "constexpr",
        },
        constexprs={"B": 64, "N": 3},
        divisible_by_16=("x_ptr", "b_ptr", "s_ptr", "y_ptr"),
        options=Options(4, stages),
        grid=(1,),
        args={
            "x_ptr": TensorArg("float16", (192, 64), (64, 1), None),
            "b_ptr": TensorArg("int8", (64, 64), (64, 1), (-128, 127)),
            "s_ptr": TensorArg("float32", (64,), (1,), None),
            "y_ptr": TensorArg("float32", (64, 64), (64, 1), None),
        },
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x_t = tl.trans(x * 2)\n        y = tl.dot(x, x_t, y)", id="of what has no name"),
        pytest.param("x_t = tl.trans(x)\n        x_t += 1\n        y = tl.dot(x, x_t, y)", id="of two values"),
    ],
)
def test_names_that_are_stored_themselves(body: str, tmp_path: Path) -> None:
    assert "x_smem.permute" not in ported(body, tmp_path, 1)


def test_a_name_that_is_anothers_transposition_is_in_memory_with_that(tmp_path: Path) -> None:
    text = ported("x_t = tl.trans(x)\n        y = tl.dot(x, x_t, y)", tmp_path, 1)
    assert "warpgroup_mma(x_smem, x_smem.permute((1, 0)), y)" in text
    assert text.count("allocate_shared_memory") == 1


@pytest.mark.slow
def test_a_rings_tile_that_is_computed_on_is_stored_as_it_was_read(tmp_path: Path) -> None:
    scale = "tl.load(s_ptr + tl.arange(0, B))[:, None]"
    text = ported(f"y = tl.dot(x, tl.trans(x * {scale}).to(x.dtype), y)", tmp_path, 3)
    assert "x_buf.index(" in text
    assert "convert_layout(tl.trans(" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "read"),
    [
        pytest.param("y = tl.dot(x, tl.trans(PACKED), y)", "b_smem.permute((1, 0)).load(rhs_layout)", id="inline"),
        pytest.param(
            "w = PACKED\n        y = tl.dot(x, w.T, y)", "w_smem.permute((1, 0)).load(rhs_layout)", id="named"
        ),
        pytest.param(
            "w_t = tl.trans(PACKED)\n        y = tl.dot(x, w_t, y)", "w_t.load(rhs_layout)", id="named turned"
        ),
    ],
)
def test_what_is_computed_is_read_turned_from_shared_memory(body: str, read: str, tmp_path: Path) -> None:
    packed = "((tl.load(b_ptr + rows * B + columns // 2) >> (columns % 2 * 4)) & 15).to(tl.float16)"
    text = ported(body.replace("PACKED", packed), tmp_path, 3, "sm80")
    assert f"mma_v2(x, {read}, y)" in text
    assert "convert_layout(tl.trans" not in text


def test_what_two_products_take_turned_and_one_casts_is_in_memory_once(tmp_path: Path) -> None:
    body = """s = (tl.load(s_ptr + i) - tl.load(s_ptr + tl.arange(0, B)))[:, None]
        d = (x * s).to(x.dtype)
        y = tl.dot(tl.trans(d), x, y)
        y = tl.dot(tl.trans(d).to(tl.bfloat16), x.to(tl.bfloat16), y)"""
    text = ported(body, tmp_path, 3)
    assert "d_lhs = d_smem.load(" in text
    assert "warpgroup_mma(d_lhs.to(gl.bfloat16), " in text
    assert text.count("tl.trans(d)") == 1
