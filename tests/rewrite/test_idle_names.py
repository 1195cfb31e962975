"""What nothing reads any more is not computed: first what must stay."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.rewrite.idle_names import without_idle_names

HEAD = "from triton.experimental.gluon import language as gl\n\ndef k(p, n, buf, B):\n"


def kept(body: str, author: str = "") -> str:
    """A function's body without idle names."""
    made = without_idle_names(HEAD + textwrap.indent(body, "    "), {"k"}, author)
    return textwrap.dedent(made.removeprefix(HEAD))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("x = n * 2\ngl.store(p, x)\n", id="read"),
        pytest.param("x = n\nfor i in range(x):\n    gl.store(p, i)\n", id="read by a loop's head"),
        pytest.param("x = gl.load(p)\ngl.store(p, n)\n", id="loaded"),
        pytest.param("x = gl.atomic_add(p, 1)\ngl.store(p, n)\n", id="written"),
        pytest.param("x = helper(n)\ngl.store(p, n)\n", id="a call of a function"),
        pytest.param("x = other.to(n)\ngl.store(p, n)\n", id="a call of another module"),
        pytest.param("x = gl.allocate_shared_memory(n, [1], B)\ngl.store(p, n)\n", id="memory"),
        pytest.param("x = ()\ngl.store(p, n)\n", id="no longer a tuple of tiles"),
        pytest.param("x = n  # told\ngl.store(p, n)\n", id="a comment beside it"),
        pytest.param("if n:\n    x = n\ngl.store(p, n)\n", id="alone in its block"),
        pytest.param("if n:\n    x = n\n    y = n\ngl.store(p, n)\n", id="nothing else in its block"),
        pytest.param("x = n\nif n:\n    x = gl.load(p)\ngl.store(p, n)\n", id="loaded elsewhere"),
        pytest.param("x, y = n, 1\ngl.store(p, y)\n", id="a pair"),
        pytest.param("for x in range(n):\n    x = n\n    gl.store(p, n)\n", id="a counter"),
        pytest.param("x: gl.constexpr = B\ngl.store(p, n)\n", id="annotated"),
    ],
)
def test_what_stays(body: str) -> None:
    assert kept(body) == body


def test_what_the_author_reads_nowhere_stays() -> None:
    body = "x = n * 2\ny = n * 3\ngl.store(p, n)\n"
    assert kept(body, "def k(n):\n    x = n * 2\n    y = n * 3\n    f(y)\n") == "x = n * 2\ngl.store(p, n)\n"


def test_other_functions_stay() -> None:
    text = HEAD + "    x = n\n    return n\n"
    assert without_idle_names(text, {"other"}, "") == text


def test_names_go_with_those_that_only_they_read_and_comments_stay() -> None:
    body = """\
    # rows of one head
    rows = gl.program_id(0) * B + gl.arange(0, B, layout=gl.SliceLayout(1, n))
    tile = buf.index(0)
    if n:
        scaled = (
            rows[:, None].to(gl.int64)
            * n
        )
        gl.store(p, n)
    """
    assert kept(textwrap.dedent(body)) == "# rows of one head\nif n:\n    gl.store(p, n)\n"


def test_what_a_kept_name_reads_stays() -> None:
    body = "x = n * 2\ny = gl.load(p + x)\ngl.store(p, n)\n"
    assert kept(body) == body
