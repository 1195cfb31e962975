"""Jit functions by what their decorators resolve to, and their parameters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.source import SourceFile, read_source

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
    assert names(text) == []
