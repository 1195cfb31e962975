"""Functions that calls make kernels are decorated ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.source import SourceFile, read_source

HEAD = "import triton as tr\nfrom triton import language as tl\n\n\n"
BODY = "def add(x_ptr, n):\n    tl.store(x_ptr, n)\n"


def parsed(text: str) -> SourceFile:
    return read_source(Path("kernel.py"), HEAD + text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"{BODY}add(1, 2)\nfast = tr.jit(add)\n", id="used otherwise"),
        pytest.param(f"{BODY}if tr:\n    add = tr.jit(add)\n", id="conditional statement"),
        pytest.param(f"{BODY}add = tr.jit(add) if tr else add\n", id="conditional expression"),
        pytest.param(f"{BODY}DEBUG = True\nadd = tr.jit(add, debug=DEBUG)\n", id="option by name"),
        pytest.param(f"import jax\n{BODY}add = jax.jit(add)\n", id="not Triton's"),
        pytest.param("import functools\n@functools.cache\n" + BODY + "add = tr.jit(add)\n", id="decorated"),
        pytest.param("from other import add\nadd = tr.jit(add)\n", id="of another file"),
        pytest.param(f"{BODY}{BODY}add = tr.jit(add)\n", id="defined twice"),
    ],
)
def test_what_is_left_as_it_is(text: str) -> None:
    source = parsed(text)
    assert source.text == HEAD + text
    assert not source.functions


@pytest.mark.parametrize(
    ("text", "decorated"),
    [
        pytest.param(f"{BODY}\n\nadd = tr.jit(add)\n\n\nx = 1\n", f"@tr.jit\n{BODY}\n\nx = 1\n", id="same name"),
        pytest.param(f"{BODY}add = tr.jit(add)", f"@tr.jit\n{BODY}", id="last line"),
        pytest.param(f"{BODY}fast = tr.jit(add)\n", f"@tr.jit\n{BODY}fast = add\n", id="another name"),
        pytest.param(f"{BODY}add = tr.jit(add, debug=True)\n", f"@tr.jit(debug=True)\n{BODY}", id="with an option"),
        pytest.param(
            f"{BODY}add = tr.jit(do_not_specialize=['n'])(add)\n",
            f"@tr.jit(do_not_specialize=['n'])\n{BODY}",
            id="with options first",
        ),
        pytest.param(
            f"{BODY}add = tr.autotune([], [])(tr.jit(add))\n",
            f"@tr.jit\n{BODY}add = tr.autotune([], [])(add)\n",
            id="tuned",
        ),
        pytest.param(f"{BODY}tr.jit(add)[(1,)](x, 2)\n", f"@tr.jit\n{BODY}add[(1,)](x, 2)\n", id="launched at once"),
        pytest.param(
            "def made():\n    def add(x_ptr):\n        tl.store(x_ptr, 1)\n\n    return tr.jit(add)\n",
            "def made():\n    @tr.jit\n    def add(x_ptr):\n        tl.store(x_ptr, 1)\n\n    return add\n",
            id="in a function",
        ),
    ],
)
def test_the_function_is_decorated(text: str, decorated: str) -> None:
    source = parsed(text)
    assert source.text == HEAD + decorated
    assert [function.name for function in source.kernels] == ["add"]
    assert source.author_text == HEAD + text


def test_a_diagnostic_speaks_of_the_file_on_disk() -> None:
    source = parsed(f"{BODY}add = tr.jit(add)\n")
    kernel = source.kernel("add")
    assert HEAD.count("\n") + 2 == kernel.line
    told = source.told(Diagnostic("TTG210", Severity.NOTE, "kernel.py", kernel.line, 0, "", ""))
    assert told.line == HEAD.count("\n") + 1
