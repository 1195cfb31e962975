"""What is turned for a product's result, and can be made again, is made as its transposition lies there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, N: tl.constexpr):
    rows = tl.arange(0, N)
    offs = rows[:, None] * N + rows[None, :]
    x = tl.load(x_ptr + offs)
    decay = DECAY
    scores = tl.dot(x, tl.trans(x)) * decay
    turned = tl.dot(tl.trans(x), x) * tl.trans(decay)
    tl.store(y_ptr + offs, scores + turned)
"""
MADE = "tl.where(rows[:, None] >= rows[None, :], 0.5, 0.0)"
LOADED = "tl.load(y_ptr + offs)"


def ported(decay: str, tmp_path: Path, target: str) -> str:
    path, text = tmp_path / "kernel.py", KERNEL.replace("DECAY", decay)
    path.write_text(text)
    launch = Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp16", "y_ptr": "*fp32", "N": "constexpr"},
        constexprs={"N": 32},
        divisible_by_16=("x_ptr", "y_ptr"),
        options=Options(4, 1),
        grid=(1,),
        args={
            "x_ptr": TensorArg("float16", (32, 32), (32, 1), None),
            "y_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        },
    )
    made = convert(path, target=target, launches=[launch], root=path.parent)
    assert [report.status for report in made.kernels] == ["converted"]
    equal(path, text, made.text, launch, target)
    return made.text


@pytest.mark.parametrize("target", ["sm90", "gfx950"])
def test_a_mask_is_made_as_it_is_turned(target: str, tmp_path: Path) -> None:
    assert "tl.trans(decay_scores_turned)" in ported(MADE, tmp_path, target)


def test_what_is_loaded_is_converted(tmp_path: Path) -> None:
    assert "decay_scores_turned" not in ported(LOADED, tmp_path, "sm90")
