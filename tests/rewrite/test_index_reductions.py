"""Rule `index_reductions`: reductions with indices go through a helper."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.index_reductions import combine_sources, helper_source, with_helper

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("m = gl.max(x, axis=0)", id="values alone"),
        pytest.param("m = gl.sum(x, axis=0)", id="a sum"),
    ],
)
def test_a_reduction_without_indices_is_left_alone(body: Body, statement: str) -> None:
    assert body(statement.replace("gl.", "tl.")) == statement


def test_no_call_is_left_alone(code: Code) -> None:
    assert code(with_helper(cst.parse_expression("x"), False, "max")) == "x"


@pytest.mark.parametrize(
    ("before", "what", "after"),
    [
        ("tl.max(x, axis=1, return_indices=True)", "max", "max_with_index(x, axis=1)"),
        ("tl.max(x, 1, True)", "max", "max_with_index(x, 1)"),
        ("tl.argmax(x, axis=1)", "max index", "max_with_index(x, axis=1)[1]"),
        ("tl.argmin(x, 0)", "min index", "min_with_index(x, 0)[1]"),
        ("tl.argmax(x, 0, tie_break_left=False)", "max index", "max_with_index(x, 0, tie_break_left=False)[1]"),
        (
            "tl.min(x, 0, return_indices=True, return_indices_tie_break_left=False)",
            "min",
            "min_with_index(x, 0, tie_break_left=False)",
        ),
        ("tl.max(x, return_indices=True, axis=0)", "max", "max_with_index(x, axis=0)"),
        ("tl.max(x, 0, keep_dims=True, return_indices=True)", "max", "max_with_index(x, 0, keep_dims=True)"),
    ],
)
def test_a_call_goes_through_its_helper(code: Code, before: str, what: str, after: str) -> None:
    assert code(with_helper(cst.parse_expression(before), False, what)) == after


def test_a_method_gives_its_tensor_first(code: Code) -> None:
    assert code(with_helper(cst.parse_expression("x.argmax(0)"), True, "max index")) == "max_with_index(x, 0)[1]"


@pytest.mark.parametrize(
    ("statement", "call", "expected"),
    [
        ("i = tl.argmax(x, 0)", "tl.argmax(x, 0)", "i = max_with_index(x, 0)[1]"),
        ("i = x.argmax(0)", "x.argmax(0)", "i = max_with_index(x, 0)[1]"),
        ("i = (tl.argmax(x, 0))", "tl.argmax(x, 0)", "i = (max_with_index(x, 0)[1])"),
    ],
)
def test_in_a_kernel(body: Body, statement: str, call: str, expected: str) -> None:
    assert body(statement, indexed={call: "max index"}) == expected


@pytest.mark.parametrize("name", ["max", "min"])
def test_the_helpers_are_functions_of_the_names_that_calls_use(name: str) -> None:
    sources = [*combine_sources(name), helper_source(name)]
    names = [cst.ensure_type(cst.parse_statement(source), cst.FunctionDef).name.value for source in sources]
    assert names == [f"_first_{name}", f"_any_{name}", f"{name}_with_index"]
