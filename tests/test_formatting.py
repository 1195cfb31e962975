"""Width of converted files."""

from __future__ import annotations

import ast

import pytest

from tt2gl.formatting import WIDTH, fitted

NAMES = ", ".join(f"argument_{number}" for number in range(12))


@pytest.mark.parametrize(
    "statement",
    [
        f"total = combine({NAMES})",
        f"return combine({NAMES})",
        f"if combine({NAMES}):\n        pass",
        f"while combine({NAMES}):\n        # why\n        pass",
        f"total = combine(  # a reason\n        {NAMES})",
        f"total = combine({NAMES})  # a reason",
        f"layout: gl.constexpr = coalesced([BLOCK_M, BLOCK_N], {NAMES})",
        f"@heuristics({{'A': lambda args: all(args[name] for name in ({NAMES}))}})\n    def g():\n        pass",
        f"total = combine(\n        first, second,\n        {NAMES},{NAMES},\n    )  # fmt: skip",
        f"total = combine('a, b', {NAMES})  # fmt: skip",
    ],
)
def test_long_statements_are_broken(statement: str) -> None:
    text = f"def f():\n    x = 'kept as  it is'  ;y=2\n    {statement}\n"
    made = fitted(text, "")
    assert max(map(len, made.splitlines())) <= WIDTH
    assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(text))
    assert "    x = 'kept as  it is'  ;y=2\n" in made
    assert made.count("#") == text.count("#")


def test_what_is_not_to_be_formatted_is_broken_at_commas_alone() -> None:
    kept = "    total = combine(\n        x,y,  z,\n"
    text = f"def f():\n{kept}        {NAMES},\n    )  # fmt: skip\n"
    made = fitted(text, "")
    assert made.startswith(f"def f():\n{kept}        argument_0, ")
    assert made.endswith(" argument_8,\n        argument_9, argument_10, argument_11,\n    )  # fmt: skip\n")


def test_the_authors_own_lines_stay() -> None:
    text = f"def f():\n    return combine({NAMES})\n"
    assert fitted(text, text) == text


def test_what_cannot_be_broken_stays() -> None:
    text = "x = '" + "long " * 40 + "'\n"
    assert fitted(text, "") == text


def test_a_string_of_several_lines_keeps_its_text() -> None:
    text = f'def f():\n    return combine({NAMES}, """a\n  b""")\n'
    assert ast.dump(ast.parse(fitted(text, ""))) == ast.dump(ast.parse(text))


def test_line_ends_stay() -> None:
    text = f"def f():\r\n    return combine({NAMES})\r\n"
    made = fitted(text, "")
    assert max(map(len, made.splitlines())) <= WIDTH
    assert "\n" not in made.replace("\r\n", "")


def test_a_byte_order_mark_stays() -> None:
    made = fitted(f"\ufeffx = combine({NAMES})\n", "")
    assert made.startswith("\ufeffx = combine(\n")
