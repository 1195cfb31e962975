"""Jit functions that a launch passes to a kernel, which does not name them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import JitValue, Launch
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.api import verify

HEADER = "import triton\nimport triton.language as tl\n\n\n"

ACTIVATIONS = """@triton.jit
def relu(x):
    return tl.maximum(x, tl.full(x.shape, 0, x.dtype))


@triton.jit
def double(x):
    return x + x
"""

KERNEL = """@triton.jit
def apply_kernel(x_ptr, n, BLOCK: tl.constexpr, ACTIVATION: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(x_ptr + at, ACTIVATION(x), mask=at < n)
"""


def launch(path: Path, function: str) -> Launch:
    """A launch that passes the function of that reference."""
    types = {"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr", "ACTIVATION": "constexpr"}
    return Launch(str(path), "apply_kernel", types, {"BLOCK": 1024, "ACTIVATION": JitValue(function)})


@pytest.mark.parametrize("reference", ["elsewhere:double", "kernels:nothing", "kernels:HEADER"])
def test_what_is_no_function_of_a_module_at_hand_is_left_out(tmp_path: Path, reference: str) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + KERNEL + "\n\nHEADER = 1\n")
    assert "_tt2gl_passed" not in slice_kernel(read_source(path), "apply_kernel", passed=[reference]).modules[0].text


def test_functions_of_other_files_are_passed_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEADER + KERNEL)
    (tmp_path / "activations.py").write_text(HEADER + ACTIVATIONS)
    made = convert(path, target="gfx942", launches=[launch(path, "activations:double")])
    assert [report.status for report in made.kernels] == ["converted"], made.kernels[0].diagnostics
    assert "ACTIVATION(x)" in made.text


def test_functions_of_the_file_are_ported_with_the_kernel_and_verified_there(tmp_path: Path) -> None:
    path, port = tmp_path / "kernels.py", tmp_path / "kernels_gluon.py"
    path.write_text(HEADER + ACTIVATIONS + "\n\n" + KERNEL)
    launches = [launch(path, "kernels:relu")]
    made = convert(path, target="gfx942", launches=launches)
    assert [report.status for report in made.kernels] == ["converted"], made.kernels[0].diagnostics
    assert "@gluon.jit\ndef relu(x" in made.text
    port.write_text(made.text)
    assert [report.status for report in verify(path, port, targets=["gfx942"], launches=launches)] == ["converted"]
