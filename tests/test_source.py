"""Reading a file: kernels by what their decorators resolve to, their parameters, and who launches them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.source import SourceFile, constexpr_functions, launch_calls, read_source

BODY = "def kernel(x_ptr, n, BLOCK: tl.constexpr = 64):\n    tl.store(x_ptr, n)\n"


def parsed(text: str) -> SourceFile:
    return read_source(Path("kernel.py"), text)


def names(text: str) -> list[str]:
    return [function.name for function in parsed(text).functions]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "def kernel(x): pass\n",
        "import numba\n@numba.jit\ndef kernel(x): pass\n",
        "import jax\n@jax.jit\ndef kernel(x): pass\n",
        "def triton(f): return f\n@triton\ndef kernel(x): pass\n",
    ],
    ids=["empty", "plain", "numba", "jax", "own_decorator"],
)
def test_no_kernel_is_found(text: str) -> None:
    assert names(text) == []


@pytest.mark.parametrize(
    "head",
    [
        "import triton\n@triton.jit\n",
        "import triton\n@triton.jit()\n",
        "import triton\n@triton.jit(do_not_specialize=['n'])\n",
        "import triton as t\n@t.jit\n",
        "from triton import jit\n@jit\n",
        "from triton import jit as compiled\n@compiled\n",
        "from triton.runtime.jit import jit\n@jit\n",
        "import triton\njit = triton.jit\n@jit\n",
        "import functools, triton\njit = functools.partial(triton.jit, noinline=True)\n@jit\n",
        "import functools, triton\n@functools.partial(triton.jit, noinline=True)\n",
        "import triton\n@triton.autotune(configs=[], key=[])\n@triton.heuristics({})\n@triton.jit\n",
        "import triton\n@triton.heuristics({})\n@triton.autotune(configs=[], key=[])\n@triton.jit\n",
        "from vllm.triton_utils import triton\n@triton.jit\n",
        "try:\n    import triton\nexcept ImportError:\n    triton = None\n@triton.jit\n",
        "from triton.experimental import gluon\n@gluon.jit\n",
    ],
)
def test_a_kernel_is_found(head: str) -> None:
    assert names(head + BODY) == ["kernel"]


@pytest.mark.parametrize(
    "text",
    [
        "import triton\nif True:\n    @triton.jit\n    def kernel(x): pass\n",
        "import triton\ntry:\n    @triton.jit\n    def kernel(x): pass\nexcept Exception:\n    pass\n",
        "import triton\ndef make():\n    @triton.jit\n    def kernel(x): pass\n",
        "import triton\nclass A:\n    @staticmethod\n    @triton.jit\n    def kernel(x): pass\n",
    ],
    ids=["if", "try", "function", "class"],
)
def test_a_kernel_inside_a_block_is_found(text: str) -> None:
    assert names(text) == ["kernel"]


def test_nested_means_in_a_function_or_class() -> None:
    text = "import triton\nif 1:\n    @triton.jit\n    def a(x): pass\ndef f():\n    @triton.jit\n    def b(x): pass\n"
    assert [(function.name, function.nested) for function in parsed(text).functions] == [("a", False), ("b", True)]


def test_positions_are_those_of_def() -> None:
    text = "import triton\n\nclass A:\n    @triton.jit\n    # why\n    def kernel(x): pass\n"
    (function,) = parsed(text).functions
    assert (function.line, function.column) == (6, 4)


def test_dialects() -> None:
    text = (
        "import triton\nfrom triton.experimental import gluon\n@triton.jit\ndef a(): pass\n@gluon.jit\ndef b(): pass\n"
    )
    assert [function.dialect for function in parsed(text).functions] == ["triton", "gluon"]


def test_decorators_have_kinds() -> None:
    text = "import triton\n@other\n@triton.autotune(configs=[], key=[])\n@triton.heuristics({})\n@triton.jit\n" + BODY
    (function,) = parsed(text).functions
    assert [decorator.kind for decorator in function.decorators] == ["other", "autotune", "heuristics", "jit"]


def test_parameters() -> None:
    text = (
        "import triton\nimport triton.language as tl\nfrom triton.language import constexpr as ce\n"
        "@triton.jit\ndef kernel(x, n: tl.int32, *, B: tl.constexpr = 2 * 8, C: 'tl.constexpr' = None, D: ce = 1): pass\n"  # noqa: E501
    )
    (function,) = parsed(text).functions
    assert [(p.name, p.annotation, p.is_constexpr, p.default) for p in function.parameters] == [
        ("x", None, False, None),
        ("n", "tl.int32", False, None),
        ("B", "tl.constexpr", True, "2 * 8"),
        ("C", "'tl.constexpr'", True, "None"),
        ("D", "ce", True, "1"),
    ]


def test_constexpr_functions_are_no_kernels() -> None:
    text = "import triton\nimport triton.language as tl\n@triton.constexpr_function\ndef a(x): pass\n@tl.constexpr\ndef b(x): pass\n"  # noqa: E501
    source = parsed(text)
    assert source.functions == ()
    assert [node.name.value for node in constexpr_functions(source)] == ["a", "b"]


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


def test_entry_kernels_are_not_called_by_others() -> None:
    assert [kernel.name for kernel in parsed(HELPERS.format(launch="pass")).kernels] == ["entry"]


def test_a_launched_helper_is_an_entry_kernel() -> None:
    kernels = parsed(HELPERS.format(launch="used[(1,)](x)")).kernels
    assert [kernel.name for kernel in kernels] == ["used", "entry"]


def test_kernel_by_name() -> None:
    source = parsed(HELPERS.format(launch="pass"))
    assert source.kernel("returns").name == "returns"
    with pytest.raises(KeyError):
        source.kernel("absent")


@pytest.mark.parametrize(
    "launch", ["other[(1,)](x)", "x[0](1)", "entry(x)", "entry[(1,)]"], ids=["other", "index", "call", "no_call"]
)
def test_what_is_no_launch(launch: str) -> None:
    assert launch_calls(parsed(HELPERS.format(launch=launch))) == ()


@pytest.mark.parametrize(
    "launch",
    [
        "entry[(1,)](x)",
        "entry[lambda meta: (1,)](x, num_warps=4)",
        "k = entry; k[(1,)](x)",
        "entry.run(x, grid=(1,), warmup=False)",
        "entry.warmup(x, grid=(1,))",
        "self.entry[(1,)](x)",
    ],
)
def test_launches(launch: str) -> None:
    (call,) = launch_calls(parsed(HELPERS.format(launch=launch)))
    assert call.kernel == "entry"
    assert call.grid is not None
    assert len(call.positional) == 1


def test_a_launch_has_its_arguments() -> None:
    (call,) = launch_calls(parsed(HELPERS.format(launch="entry[2, 3](x, *rest, num_warps=8)")))
    assert list(call.keywords) == ["num_warps"]
    assert call.starred
    assert call.line == 22


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
