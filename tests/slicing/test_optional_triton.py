"""A `try` that imports Triton beside what may fail: its handler is taken only where that leaves Triton."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest

from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source

TRITON = "import triton\nimport triton.language as tl\n"
ABSENT = "from absent_package import extra\n"
KERNEL = """
@triton.jit
def kernel(x_ptr):
    tl.store(x_ptr, VALUE)
"""


def attempt(body: str, handler: str) -> str:
    """A `try` block of an import that may be missing."""
    return f"try:\n{indent(body, '    ')}except ImportError:\n{indent(handler, '    ')}"


TAKEN = {
    "triton_comes_from_elsewhere": TRITON + attempt("import triton\n" + ABSENT + "VALUE = 1\n", "VALUE = 2\n"),
    "triton_comes_below": attempt(TRITON + ABSENT + "VALUE = 1\n", "VALUE = 2\n") + TRITON,
    "handler_imports_it": attempt(TRITON + ABSENT + "VALUE = 1\n", TRITON + "VALUE = 2\n"),
    "triton_lacks_the_name": attempt(
        TRITON + "from triton.language import absent_name\nVALUE = 1\n", TRITON + "VALUE = 2\n"
    ),
    "no_triton_in_it": TRITON + attempt(ABSENT + "VALUE = 1\n", "VALUE = 2\n"),
    "what_fails_is_no_import": TRITON
    + attempt("import triton as other\nraise ImportError\nVALUE = 1\n", "VALUE = 2\n"),
}

NOT_TAKEN = {
    "none_of_both": attempt(TRITON + ABSENT + "VALUE = 1\n", "triton = tl = None\nVALUE = 2\n"),
    "absent_first": attempt(ABSENT + TRITON + "VALUE = 1\n", "triton = None\ntl = None\nVALUE = 2\n"),
    "from_import": attempt(
        "import triton\nfrom triton import language as tl\n" + ABSENT + "VALUE = 1\n", "triton = tl = None\nVALUE = 2\n"
    ),
    "raised_again": attempt(TRITON + ABSENT + "VALUE = 1\n", "raise\n"),
    "nothing_tells_if_it_fails": attempt(
        TRITON + "from triton.backends import backends\nfound = any(b.driver.is_active() for b in backends.values())\n"
        "VALUE = 1\n",
        "triton = tl = None\nVALUE = 2\n",
    ).replace("ImportError", "Exception"),
}


def text_of(tmp_path: Path, host: str) -> str:
    """The slice of a kernel below this host code."""
    path = tmp_path / "kernels.py"
    path.write_text(host + KERNEL)
    return slice_kernel(read_source(path), "kernel").modules[0].text


@pytest.mark.parametrize("host", TAKEN.values(), ids=TAKEN.keys())
def test_the_handler_is_taken(tmp_path: Path, host: str) -> None:
    assert "VALUE = 2" in text_of(tmp_path, host)


@pytest.mark.parametrize("host", NOT_TAKEN.values(), ids=NOT_TAKEN.keys())
def test_the_handler_would_leave_no_triton(tmp_path: Path, host: str) -> None:
    text = text_of(tmp_path, host)
    assert "VALUE = 1" in text
    assert "tl = None" not in text
