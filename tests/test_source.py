"""Reading a file: which kernels it has, its exact text, and what is said of a bad one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.source import SourceFile, read_source

HELPERS = """\
import triton
import triton.language as tl

@triton.jit
def used(x):
    tl.store(x, 1)

@triton.jit
def returns(x):
    return x

@triton.jit
def combine(a, b):
    tl.device_print("", a)

@triton.jit
def entry(x):
    used(x)
    tl.reduce(x, 0, combine)

def host(x):
    {launch}
"""


def parsed(text: str) -> SourceFile:
    return read_source(Path("kernel.py"), text)


def test_entry_kernels_are_not_called_by_others() -> None:
    assert [kernel.name for kernel in parsed(HELPERS.format(launch="pass")).kernels] == ["entry"]


def test_a_launched_helper_is_an_entry_kernel() -> None:
    kernels = parsed(HELPERS.format(launch="used[(1,)](x)")).kernels
    assert [kernel.name for kernel in kernels] == ["used", "entry"]


def test_a_method_is_no_entry_kernel() -> None:
    methods = "\nclass Rows:\n    @triton.jit\n    def put(self, x):\n        tl.store(x, self.n)\n"
    assert [kernel.name for kernel in parsed(HELPERS.format(launch="pass") + methods).kernels] == ["entry"]


@pytest.mark.parametrize(
    ("more", "kernels"),
    [
        ("other = helper\n@triton.jit\ndef late(x):\n    other(x)\n", ["late"]),
        ("if True:\n    other = again = helper\n@triton.jit\ndef late(x):\n    again(x)\n", ["late"]),
        ("def host():\n    other = helper\n@triton.jit\ndef late(x):\n    other = x\n", ["helper", "late"]),
    ],
    ids=["by another name", "in a branch", "a name of a function's own"],
)
def test_a_helper_by_another_name_is_no_entry(more: str, kernels: list[str]) -> None:
    text = "import triton\n\n@triton.jit\ndef helper(x):\n    pass\n\n"
    assert [kernel.name for kernel in parsed(text + more).kernels] == kernels


def test_kernel_by_name() -> None:
    source = parsed(HELPERS.format(launch="pass"))
    assert source.kernel("returns").name == "returns"
    with pytest.raises(KeyError):
        source.kernel("absent")


def test_text_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    text = "import triton\r\n\r\n@triton.jit\r\ndef kernel(x):\r\n\tpass\x0c\r\n# é"
    path.write_bytes(text.encode())
    source = read_source(path)
    assert source.text == text
    assert source.module.code == text


@pytest.mark.parametrize(
    ("raw", "code", "line"),
    [
        (None, "TTG001", 0),
        (b"\x89PNG\0\1", "TTG002", 0),
        (b"x = 1\ny = '\xff'\n", "TTG002", 2),
        (b"x = 1\ndef f(:\n", "TTG003", 2),
        (b"print 'python 2'\n", "TTG003", 1),
        (b"if x:\n", "TTG003", 1),
    ],
    ids=["missing", "binary", "latin1", "syntax", "python2", "incomplete"],
)
def test_bad_files_are_diagnosed(tmp_path: Path, raw: bytes | None, code: str, line: int) -> None:
    path = tmp_path / "a.py"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(DiagnosticError) as caught:
        read_source(path)
    assert (caught.value.diagnostic.code, caught.value.diagnostic.line) == (code, line)
    assert caught.value.exit_code == (ExitCode.NO_INPUT if raw is None else ExitCode.BAD_SOURCE)


def test_a_directory_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(DiagnosticError, match="TTG002"):
        read_source(tmp_path)
