"""Small tiles that a helper is given for their pairs, and their maximum: they come as the pairs lie."""

from __future__ import annotations

from pathlib import Path

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def packed(x):
    scale = tl.max(tl.abs(x), axis=0)
    q = (x / scale * 15).to(tl.uint8)
    low, high = tl.split(tl.reshape(q, [16, 2]))
    return low | (high << 4), scale


@triton.jit
def kernel(x_ptr, out_ptr, scale_ptr):
    row = tl.program_id(0)
    at = tl.arange(0, 32)
    x = tl.load(x_ptr + row * 32 + at)
    both, scale = packed(x)
    tl.store(out_ptr + row * 16 + tl.arange(0, 16), both)
    tl.store(scale_ptr + row, scale)
"""


def launch(elements: int = 32) -> Launch:
    given = {
        "x_ptr": TensorArg("float32", (4 * elements,), (1,), None),
        "out_ptr": TensorArg("uint8", (2 * elements,), (1,), None),
        "scale_ptr": TensorArg("float32", (4,), (1,), None),
    }
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={"x_ptr": "*fp32", "out_ptr": "*u8", "scale_ptr": "*fp32"},
        constexprs={},
        divisible_by_16=tuple(given),
        options=Options(1, 3),
        grid=(4,),
        args=given,
    )


def ported(text: str, folder: Path, elements: int = 32) -> str:
    path = folder / "kernel.py"
    path.write_text(text)
    return convert(path, target="gfx950", launches=[launch(elements)], root=folder, compile=False).text


def test_a_tile_of_as_many_elements_as_threads_comes_as_it_is_accessed(tmp_path: Path) -> None:
    text = KERNEL.replace("32", "128").replace("16", "64")
    assert "at = gl.arange(0, 128, layout=x_layout)" in ported(text, tmp_path, 128)


def test_a_tile_that_is_stored_besides_comes_as_it_is_accessed(tmp_path: Path) -> None:
    text = KERNEL.replace("def packed(x):", "def packed(x, x_ptr, at):\n    tl.store(x_ptr + at, x)")
    text = text.replace("packed(x)\n", "packed(x, x_ptr, at)\n")
    assert "at = gl.arange(0, 32, layout=x_layout)" in ported(text, tmp_path)


def test_a_tile_is_loaded_once_and_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    _, triton, gluon = compared(path, launch(), "gfx950")
    assert gluon.convert_layouts == triton.convert_layouts == 0
    assert gluon.global_loads == {"64": 1}
