"""What the tests of rules share: a small file, edits said by the text that they are of, the file rewritten."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import libcst as cst
import pytest

from tt2gl.plan import Edits, FilePlan, FunctionPlan, Position
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.file import rewrite
from tt2gl.source import read_source

HEADER = "import triton\nimport triton.language as tl\n\n\n"


def place(text: str, fragment: str, occurrence: int = 0) -> Position:
    """The position of a fragment of the kernel's body, as plans have it; it begins and ends with whole words."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(fragment)}(?!\w)")
    body = text.index("\n", text.index("def kernel("))
    start = list(pattern.finditer(text, body))[occurrence].start()
    line_start = text.rfind("\n", 0, start) + 1
    line = text.count("\n", 0, start) + 1
    first = len(text[line_start:start].encode())
    last = fragment.count("\n")
    end = first + len(fragment.encode()) if not last else len(fragment.rpartition("\n")[2].encode())
    return (line, first, line + last, end)


@pytest.fixture(scope="session")
def code() -> Callable[[cst.CSTNode], str]:
    """A node's text, with the names of ours as they will stand."""
    return lambda node: cst.Module([]).code_for_node(node).replace(MARK, "")


@pytest.fixture(scope="session")
def rewritten() -> Callable[..., str]:
    """The function `kernel` of a text rewritten: edits by kind, each by the fragment of the text that it is of.

    `plan` holds what else the function's plan has; `renamed`: functions by line that it knows by other
    names; `helpers` are the file's.
    """

    def apply(
        text: str,
        plan: Mapping[str, Any] | None = None,
        helpers: tuple[str, ...] = (),
        renamed: Mapping[int, str] | None = None,
        header: str = HEADER,
        **edits: Mapping[str, Any],
    ) -> str:
        whole = header + textwrap.dedent(text).lstrip("\n")
        made = dict[str, Any](
            {kind: {place(whole, at): value for at, value in of.items()} for kind, of in edits.items()}
        )
        source = read_source("kernel.py", whole)
        line = source.kernel("kernel").line
        function = FunctionPlan("kernel.py", line, True, edits=Edits(**made), calls=renamed or {}, **(plan or {}))
        return rewrite(source, FilePlan((function,), (), helpers))

    return apply


@pytest.fixture(scope="session")
def body(rewritten: Callable[..., str]) -> Callable[..., str]:
    """One statement in a kernel, rewritten: the statement's text."""

    def apply(statement: str, **edits: Mapping[str, Any]) -> str:
        text = "@triton.jit\ndef kernel(x_ptr, BLOCK):\n" + textwrap.indent(textwrap.dedent(statement), "    ")
        made = rewritten(text.rstrip("\n") + "\n", **edits)
        return textwrap.dedent(made.partition("def kernel(x_ptr, BLOCK):\n")[2]).rstrip("\n")

    return apply


@pytest.fixture(scope="session")
def position() -> Callable[..., Position]:
    """`place`, for tests that make positions themselves."""
    return place
