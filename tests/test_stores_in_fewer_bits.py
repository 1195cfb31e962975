"""Values that are stored in fewer bits than they have are converted to the layout of the store in those."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch

KERNEL = """import triton
import triton.language as tl


@triton.jit
def raised(x, out, N: tl.constexpr):
    rows, cols = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    y = tl.load(x + rows * N + cols) + 1
    tl.store(out + cols * N + rows, y)
"""


MOVED = KERNEL.replace("tl.store(out + cols * N + rows, y)", "out += cols * N + rows\n    tl.store(out, y)")
CAST = MOVED.replace("out += cols", "out = out.to(tl.pointer_type(tl.int8)) + cols")


@pytest.mark.parametrize(
    ("types", "stored"),
    [
        ([("*i32", "*i64")], "gl.convert_layout(y, out_layout)"),
        ([("*i64", "*i1")], "gl.convert_layout(y, out_layout)"),
        ([("*i64", "*i32"), ("*i16", "*i32")], "gl.convert_layout(y, out_layout)"),
        ([("*i64", "*i32")], "gl.convert_layout(y.to(out.dtype.element_ty), out_layout)"),
        ([("*fp32", "*fp16"), ("*fp16", "*fp16")], "gl.convert_layout(y.to(out.dtype.element_ty), out_layout)"),
    ],
)
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_under_every_launch(tmp_path: Path, types: list[tuple[str, str]], stored: str, target: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL)
    launches = [
        Launch("kernels.py", "raised", {"x": x, "out": out, "N": "constexpr"}, {"N": 64}, ("x", "out"))
        for x, out in types
    ]
    made = convert(path, target=target, launches=launches, root=tmp_path, compile=False)
    assert stored in made.text


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        pytest.param(CAST, "gl.convert_layout(y, tile_layout)", id="another type by now"),
        pytest.param(MOVED, "gl.convert_layout(y.to(out.dtype.element_ty), out_layout)", id="a tile of its pointers"),
    ],
)
def test_a_pointer_that_is_moved_under_its_own_name(tmp_path: Path, text: str, stored: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(text)
    given = Launch("kernels.py", "raised", {"x": "*fp32", "out": "*fp16", "N": "constexpr"}, {"N": 64}, ("x", "out"))
    made = convert(path, target="sm90", launches=[given], root=tmp_path)
    assert [each.status for each in made.kernels] == ["converted"]
    assert stored in made.text


def test_what_an_atomic_adds(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(KERNEL.replace("tl.store(out + cols * N + rows, y)", "tl.atomic_add(out + cols * N + rows, y)"))
    given = Launch("kernels.py", "raised", {"x": "*fp32", "out": "*fp16", "N": "constexpr"}, {"N": 64}, ("x", "out"))
    made = convert(path, target="sm90", launches=[given], root=tmp_path, compile=False)
    assert "gl.convert_layout(y.to(out.dtype.element_ty), out_layout)" in made.text
