"""Products that get the name of the sum that they are for, and branches whose arms are one: first what must stay."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

from tt2gl.rewrite.equal_arms import with_equal_arms
from tt2gl.rewrite.named_sums import with_named_sums

FIRST = "result = mma_v2(a, b, acc)\n"
SECOND = "result = gl.amd.cdna3.mfma(a_2, b, acc)\n"
GIVEN = "acc = result\n"


def branch(first: str, second: str, test: str = "IEEE") -> str:
    """A branch of two arms."""
    return f"if {test}:\n" + textwrap.indent(first, "    ") + "else:\n" + textwrap.indent(second, "    ")


def named(body: str) -> str:
    """A function's body with its products named."""
    return textwrap.dedent(cst.Module([with_named_sums(parsed(body))]).code.partition("\n")[2])


def joined(body: str) -> str:
    """A function's body with the arms that are equal."""
    return textwrap.dedent(cst.Module([with_equal_arms(parsed(body))]).code.partition("\n")[2])


def parsed(body: str) -> cst.FunctionDef:
    """A function of that body."""
    function = cst.parse_statement("def kernel(a, a_2, b, acc):\n" + textwrap.indent(body, "    "))
    assert isinstance(function, cst.FunctionDef)
    return function


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{FIRST}{GIVEN}store(result)\n", id="read again"),
        pytest.param(f"{FIRST}store(acc)\n{GIVEN}", id="given later"),
        pytest.param(f"result = a * b\n{GIVEN}", id="no product"),
        pytest.param(branch(FIRST, "result = a * b\n") + GIVEN, id="of one arm alone"),
        pytest.param(f"if IEEE:\n    {FIRST}{GIVEN}", id="without another arm"),
        pytest.param(branch(f"{FIRST}store(a)\n", SECOND) + GIVEN, id="not last in its arm"),
        pytest.param(f"for k in range(n):\n    {FIRST}{GIVEN}", id="in a loop"),
        pytest.param(f"{FIRST}result *= 2\n{GIVEN}", id="changed"),
        pytest.param(FIRST + "acc: gl.constexpr = result\n", id="annotated"),
    ],
)
def test_products_that_keep_their_names(body: str) -> None:
    assert named(body) == body


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(FIRST, id="alone"),
        pytest.param(branch(FIRST, SECOND), id="two arms"),
        pytest.param(branch(FIRST, SECOND).replace("else", "elif TF32", 1) + f"else:\n    {FIRST}", id="three arms"),
        pytest.param(branch(f"a = load(a)\n{FIRST}", branch(FIRST, SECOND, "TF32")), id="arms in arms"),
        pytest.param(f"for k in range(n):\n    a = load(a)\n    {FIRST}", id="in a loop"),
    ],
)
def test_products_get_the_name_of_their_sum(body: str) -> None:
    last = "    " if body.startswith("for") else ""
    assert named(f"{body}{last}{GIVEN}") == body.replace("result", "acc")


def test_comments_of_the_line_that_goes_stay() -> None:
    made = named(f"# the product\n{FIRST}# of both\nacc = result  # in fp32\n")
    assert made == "# the product\n# of both\n# in fp32\nacc = mma_v2(a, b, acc)\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(branch(FIRST, SECOND), id="others"),
        pytest.param(branch("x = a * b\n", "x = a * b\n"), id="no product"),
        pytest.param(branch(FIRST, f"# in another way\n{FIRST}"), id="a comment"),
        pytest.param(branch(FIRST, FIRST, "take(lock)"), id="a test that does something"),
        pytest.param(f"if IEEE:\n    {FIRST}", id="one arm"),
        pytest.param(f"if IEEE:\n    {FIRST}elif TF32:\n    {FIRST}", id="without an arm for the rest"),
    ],
)
def test_branches_that_stay(body: str) -> None:
    assert joined(body) == body


def test_arms_that_are_the_same() -> None:
    lines = f"a = load(a)\n{FIRST}"
    assert joined(f"# of 16 bits\n{branch(lines, lines)}store(result)\n") == f"# of 16 bits\n{lines}store(result)\n"
    assert joined(branch(FIRST, branch(FIRST, FIRST, "TF32"))) == FIRST
    below = textwrap.indent(lines, "    ")
    kept = f"if FP8:\n    a\nelif TF32:\n{below}else:\n{below}"
    assert joined(kept) == f"if FP8:\n    a\nelse:\n{below}"
