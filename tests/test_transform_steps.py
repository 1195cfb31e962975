"""Steps of a transform: what is rearranged for the next split is converted once, there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg

TEXT = f"""{HEADER}def kernel(x_ptr, y_ptr, D: tl.constexpr):
    offs = tl.arange(0, D)
    x = tl.load(x_ptr + offs)
    a, b = tl.split(tl.permute(tl.reshape(x, (D // 8, 2, 4)), (0, 2, 1)))
    x = tl.permute(tl.join(a + b, a - b), (0, 2, 1))
    x = tl.reshape(x, (D,))
    x = tl.permute(tl.reshape(x, (D // 32, 2, 16)), (0, 2, 1))
    a, b = tl.split(x)
    x = tl.permute(tl.join(a + b, a - b), (0, 2, 1))
    tl.store(y_ptr + offs, tl.reshape(x, (D,)))
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "D": "constexpr"},
    constexprs={"D": 512},
    divisible_by_16=("x_ptr", "y_ptr"),
    grid=(1,),
    args={"x_ptr": TensorArg("float32", (512,), (1,), None), "y_ptr": TensorArg("float32", (512,), (1,), None)},
)
ADDED = TEXT.replace(
    "    a, b = tl.split(x)\n",
    "    x_ptr += tl.sum(tl.sum(tl.sum(x * 0, 0), 0), 0).to(tl.int32)\n    a, b = tl.split(x)\n",
)


def port(path: Path, text: str, target: str = "sm90") -> str:
    path.write_text(text)
    made = convert(path, target=target, launches=[LAUNCH], root=path.parent, compile=False)
    assert [each.message for report in made.kernels for each in report.diagnostics] == []
    return made.text


def converted(text: str) -> int:
    return text[text.index("def kernel") :].count("convert_layout(")


def test_what_is_read_otherwise_too_is_converted(tmp_path: Path) -> None:
    assert converted(port(tmp_path / "kernel.py", ADDED)) > converted(port(tmp_path / "kernel.py", TEXT))
    equal(tmp_path / "kernel.py", ADDED, port(tmp_path / "kernel.py", ADDED), LAUNCH)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_what_is_split_next_is_converted_there(target: str, tmp_path: Path) -> None:
    made = port(tmp_path / "kernel.py", TEXT, target)
    assert (
        "x = gl.permute(gl.join(a + b, a - b), (0, 2, 1))\n    x = gl.reshape(x, (D,))\n    x = gl.permute(gl.reshape("
        in made
    )
    assert "a, b = gl.split(gl.convert_layout(x, paired(" in made
    equal(tmp_path / "kernel.py", TEXT, made, LAUNCH, target)
