"""Rows that are summed up behind what reads them in slices of tiles: loaded once more, as they lie in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(q_ptr, l_ptr, y_ptr, t_ptr, M: tl.constexpr, N: tl.constexpr):
    rows = tl.arange(0, M)
    mask = rows < M - 3
    offs = rows[:, None] * N + tl.arange(0, N)[None, :]
    q = tl.load(q_ptr + offs, mask=mask[:, None], other=0.0)
    l = tl.load(l_ptr + rows, mask=mask, other=0.0)
    y = q - l[:, None]
    tl.store(y_ptr + offs, y)
    tl.store(t_ptr, tl.sum(SUMMED))
"""
ROW = "gl.arange(0, M, layout=row_layout)"


def written(folder: Path, summed: str) -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.replace("SUMMED", summed))
    return path


def launch() -> Launch:
    tile = TensorArg("float32", (32, 256), (256, 1), None)
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={**dict.fromkeys(("q_ptr", "l_ptr", "y_ptr", "t_ptr"), "*fp32"), "M": "constexpr", "N": "constexpr"},
        constexprs={"M": 32, "N": 256},
        divisible_by_16=("q_ptr", "l_ptr", "y_ptr", "t_ptr"),
        options=Options(4, 3),
        grid=(1,),
        args={
            "q_ptr": tile,
            "l_ptr": TensorArg("float32", (32,), (1,), None),
            "y_ptr": tile,
            "t_ptr": TensorArg("float32", (1,), (1,), None),
        },
    )


def port_of(path: Path, target: str) -> str:
    return convert(path, target=target, launches=[launch()], root=path.parent, compile=False).text


@pytest.mark.parametrize(
    "summed",
    [
        pytest.param("tl.max(y, axis=1)", id="computed of a tile"),
        pytest.param("tl.where(mask, 1.0, 0.0)", id="not loaded"),
        pytest.param("y", id="a tile"),
    ],
)
def test_what_has_a_layout_or_is_not_loaded_is_summed_up_as_it_is(tmp_path: Path, summed: str) -> None:
    assert ROW not in port_of(written(tmp_path, summed), "sm90")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
@pytest.mark.parametrize("summed", ["tl.where(mask, l * 2.0, 0.0)", "l"])
def test_a_row_that_is_summed_up_is_loaded_as_it_lies_in_memory(tmp_path: Path, summed: str, target: str) -> None:
    path = written(tmp_path, summed)
    assert ROW in port_of(path, target)
    report, triton, gluon = compared(path, launch(), target)
    assert report.simulate is not None
    assert report.simulate.bitwise
    assert gluon.global_loads == triton.global_loads
