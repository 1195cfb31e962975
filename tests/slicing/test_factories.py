"""Kernels that a function makes: what it is given, where its file's calls agree."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tt2gl.host import factories
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source

HEAD = """import functools
import triton
import triton.language as tl

@triton.jit
def largest(a, b):
    return tl.maximum(a, b)

@triton.jit
def total(a, b):
    return a + b

"""
MAKER = """def make(kind, op=largest):
    if kind == "first":
        combine = op
    else:
        combine = total

    @triton.jit
    def kernel(x_ptr, B: tl.constexpr):
        tl.store(x_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, B)), 0, combine))

    return kernel

"""


def sliced(path: Path, calls: str, maker: str = MAKER) -> tuple[str, list[str]]:
    """The slice's text, and the codes of what is told."""
    path.write_text(HEAD + maker + calls)
    made = slice_kernel(read_source(path), "kernel")
    return "".join(module.text for module in made.modules), [each.code for each in made.diagnostics]


@pytest.mark.parametrize(
    ("calls", "maker"),
    [
        pytest.param("", MAKER, id="nobody calls it"),
        pytest.param('made = make("first"), make("second")\n', MAKER, id="its calls differ"),
        pytest.param('made = make("first")\nothers = map(make, "abc")\n', MAKER, id="others may call it"),
        pytest.param("made = make(*open('x'))\n", MAKER, id="what it is given is not said"),
        pytest.param('def outer(op):\n    return make("first", op)\n', MAKER, id="what a caller is given"),
        pytest.param('made = make("first")\n', f"@functools.wraps(print)\n{MAKER}", id="it may be another function"),
    ],
)
def test_undecided(calls: str, maker: str, tmp_path: Path) -> None:
    assert sliced(tmp_path / "kernel.py", calls, maker)[1] == ["TTG110"]


@pytest.mark.parametrize(
    ("calls", "named"),
    [
        ('made = make("first")\n', "largest"),
        ('made = make(kind="first", op=total)\n', "total"),
        ('made = [make("second"), make("second")]\n', "total"),
        ('def first():\n    return make("first", op=largest) if largest else None\n', ""),
        ('def first():\n    return make("second", "")\n', "total"),
    ],
)
def test_decided(calls: str, named: str, tmp_path: Path) -> None:
    text, told = sliced(tmp_path / "kernel.py", calls)
    assert told == ([] if named else ["TTG110"])
    assert not named or f"def {named}(" in text


def test_a_maker_that_keeps_what_it_made(tmp_path: Path) -> None:
    maker = f"@functools.lru_cache(maxsize=None)\n{MAKER}"
    assert sliced(tmp_path / "kernel.py", 'made = make("first")\n', maker)[1] == []


def test_a_file_is_searched_once_for_what_a_function_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its names are resolved for everything that is evaluated in it: a file of 2600 lines then took minutes.
    tree = ast.parse("def made_for(op): ...\nlargest = made_for(maximum)\n")
    (owner, _) = tree.body
    assert isinstance(owner, ast.FunctionDef)
    walked: list[ast.AST] = []
    walk = ast.walk

    def noting(node: ast.AST) -> Iterator[ast.AST]:
        walked.append(node)
        return walk(node)

    monkeypatch.setattr(ast, "walk", noting)
    found = [factories._given(tree, owner, "op") for _ in range(3)]
    assert [ast.unparse(each) for each in found if each is not None] == ["maximum"] * 3
    assert walked.count(tree) == 1
