"""Triton that a function of the author's is asked for: its names are Triton's, and the port's are Gluon's."""

from __future__ import annotations

from pathlib import Path

from tt2gl.convert import convert
from tt2gl.launches import Launch

TEXT = """import importlib


def safe_import(name):
    try:
        return True, importlib.import_module(name)
    except ImportError:
        return False, None


_HAVE_TRITON, triton = safe_import("triton")
_HAVE_LANGUAGE, tl = safe_import("triton.language")


@triton.jit
def kernel(x_ptr, B: tl.constexpr):
    places = tl.arange(0, B)
    tl.store(x_ptr + places, tl.load(x_ptr + places) + 1)
"""


def test_a_module_that_a_function_imports_becomes_gluons(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(TEXT)
    launch = Launch(path.name, "kernel", {"x_ptr": "*fp32", "B": "constexpr"}, {"B": 256}, ("x_ptr",))
    made = convert(path, target="sm90", launches=[launch], root=tmp_path)
    assert [report.status for report in made.kernels] == ["converted"]
    assert "gl.arange(0, B, layout=" in made.text
    assert '_HAVE_LANGUAGE, tl = safe_import("triton.language")\n' in made.text
