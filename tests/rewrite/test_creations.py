"""Rule `creations`: a call that makes a tensor says its layout."""

from __future__ import annotations

import textwrap
from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.creations import with_keywords, with_layout

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("x", id="no call"),
        pytest.param("gl.arange(0, 8, layout=mine)", id="it has a layout already"),
    ],
)
def test_left_alone(code: Code, source: str) -> None:
    assert code(with_layout(cst.parse_expression(source), "layout")) == source


def test_a_creation_elsewhere_is_left_alone(body: Body) -> None:
    text = "a = tl.arange(0, BLOCK)\nb = tl.arange(0, BLOCK) + 1"
    made = body(text, creations={"tl.arange(0, BLOCK)": "layout"})
    assert made == "a = gl.arange(0, BLOCK, layout=layout)\nb = gl.arange(0, BLOCK) + 1"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gl.arange(0, 8)", "gl.arange(0, 8, layout=layout)"),
        ("gl.arange(0,8)", "gl.arange(0,8,layout=layout)"),
        pytest.param("gl.zeros([8],)", "gl.zeros([8], layout=layout,)", id="a trailing comma stays last"),
        ("gl.zeros(shape=[8], dtype=gl.int32)", "gl.zeros(shape=[8], dtype=gl.int32, layout=layout)"),
        pytest.param("f()", "f(layout=layout)", id="no arguments"),
        pytest.param("(gl.arange(0, 8))", "(gl.arange(0, 8, layout=layout))", id="parentheses stay"),
    ],
)
def test_a_layout_is_added(code: Code, before: str, after: str) -> None:
    assert code(with_layout(cst.parse_expression(before), "layout")) == after


def test_a_method_that_can_be_told_no_layout_becomes_a_function(body: Body) -> None:
    made = body("a = (x + 1).histogram(8, mask=ok)", creations={"(x + 1).histogram(8, mask=ok)": "row"})
    assert made == "a = gl.histogram(x + 1, 8, mask=ok, layout=row)"


@pytest.mark.parametrize(("mover", "option"), [("tma", ", padding_option='nan'"), ("tdm", "")])
def test_what_stands_where_gluon_has_the_layout_gets_its_name(code: Code, mover: str, option: str) -> None:
    before = "gl.make_tensor_descriptor(p, [M, N], [N, 1], [16, 16], 'nan')"
    after = f"{mover}.make_tensor_descriptor(p, [M, N], [N, 1], [16, 16]{option}, layout=layout)"
    assert code(with_layout(cst.parse_expression(before), "layout", mover)) == after


def test_arguments_on_lines_of_their_own_stay_so(code: Code) -> None:
    before = "gl.full(\n    [8],\n    1.0,\n    gl.float32,\n)"
    after = "gl.full(\n    [8],\n    1.0,\n    gl.float32,\n    layout=layout,\n)"
    assert code(with_layout(cst.parse_expression(before), "layout")) == after


def test_several_keywords_keep_their_order(code: Code) -> None:
    made = with_keywords(cst.parse_expression("f(x)"), [("layout_0", "a"), ("layout_1", "b")])
    assert code(made) == "f(x, layout_0=a, layout_1=b)"


def test_creations_inside_each_other(body: Body) -> None:
    text = textwrap.dedent("x = tl.zeros_like(tl.arange(0, 8))")
    made = body(text, creations={"tl.arange(0, 8)": "a", "tl.zeros_like(tl.arange(0, 8))": "b"})
    assert made == "x = gl.zeros_like(gl.arange(0, 8, layout=a), layout=b)"


def test_columns_count_bytes(body: Body) -> None:
    made = body('x = f("é", tl.arange(0, 8))', creations={"tl.arange(0, 8)": "layout"})
    assert made == 'x = f("é", gl.arange(0, 8, layout=layout))'


def test_a_descriptor_by_an_imported_name_is_made_by_gluon(code: Code) -> None:
    """A package may have Triton's function under a name of its own module, which knows no layout."""
    made = with_layout(cst.parse_expression("gl.make_tensor_descriptor(p, [n], [1], [8])"), "layout")
    assert code(made).replace("_tt2gl_", "") == "tma.make_tensor_descriptor(p, [n], [1], [8], layout=layout)"
