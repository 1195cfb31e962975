"""Decorators of a file's own: which stand for Triton's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.source import read_source

HEAD = "import functools\nimport triton\nimport triton.language as tl\n\n\n"
KERNEL = """
@OWN
def kernel(x_ptr, n, BLOCK: tl.constexpr):
    o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + o, tl.load(x_ptr + o, o < n) + 1, o < n)
"""
TUNED = 'triton.autotune([triton.Config({"BLOCK": 128})], key=["n"])'
ON_TRITON = "def own(fn):\n    'A kernel.'\n    if HAS:\n        return triton.jit(fn)\n    else:\n        return fn\n"


def written(path: Path, own: str, used: str = "own") -> Path:
    path.write_text(HEAD + own + KERNEL.replace("OWN", used))
    return path


@pytest.mark.parametrize(
    "own",
    [
        pytest.param("def own(fn):\n    print(fn)\n    return triton.jit(fn)\n", id="it does more"),
        pytest.param("def own(fn):\n    return functools.wraps(fn)(print)\n", id="it hands it to another"),
        pytest.param("def own(fn, other=None):\n    return triton.jit(fn)\n", id="it takes more"),
        pytest.param("def own(fn):\n    return triton.jit(fn, repr=fn)\n", id="it says what the function has"),
        pytest.param("def own(fn):\n    return triton.jit(fn) if fn else triton.jit(print)\n", id="two others"),
        pytest.param("own = print if HAS else triton.jit\n", id="another one where there is Triton"),
        pytest.param("def outer():\n    def own(fn):\n        return triton.jit(fn)\n", id="of another scope"),
    ],
)
def test_others_make_no_kernels(own: str, tmp_path: Path) -> None:
    assert not read_source(written(tmp_path / "kernel.py", own)).functions


@pytest.mark.parametrize(
    ("own", "stands"),
    [
        ("def own(fn):\n    return triton.jit(fn)\n", "@triton.jit"),
        ("def own(fn):\n    return triton.jit(fn) if HAS else fn\n", "@triton.jit"),
        (ON_TRITON, "@triton.jit"),
        ("def own(fn):\n    return triton.jit(fn, noinline=True)\n", "@triton.jit(noinline=True)"),
        ("def own(fn):\n    return triton.jit(noinline=True)(fn)\n", "@triton.jit(noinline=True)"),
        ("if HAS:\n    own = triton.jit if HAS else print\n", "@triton.jit"),
        (f"def own(fn):\n    return {TUNED}(triton.jit(fn))\n", f"@{TUNED}\n@triton.jit"),
    ],
)
def test_what_they_stand_for(own: str, stands: str, tmp_path: Path) -> None:
    path = written(tmp_path / "kernel.py", own)
    source = read_source(path)
    assert [each.name for each in source.kernels] == ["kernel"]
    assert source.text == path.read_text().replace("@own", stands)
    assert source.author_text == path.read_text()


def test_that_another_decorator_is_around_one(tmp_path: Path) -> None:
    own = f"jit = triton.jit if HAS else print\nown = {TUNED} if HAS else print\n"
    (kernel,) = read_source(written(tmp_path / "kernel.py", own, "own\n@jit")).functions
    assert [each.kind for each in kernel.decorators] == ["autotune", "jit"]


def test_such_a_kernel_is_converted(tmp_path: Path) -> None:
    made = convert(written(tmp_path / "kernel.py", f"HAS = True\n{ON_TRITON}"), target="sm90", compile=False)
    assert [each.status for each in made.kernels] == ["converted"]
    assert "@gluon.jit\ndef kernel(" in made.text
    assert ON_TRITON in made.text
