"""Loads and products that make what a name has: which are found, and what is asked for them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tt2gl.analysis.equal_values import _joined, equal_values
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.kernel import parsed
from tt2gl.launches import Launch
from tt2gl.slicing.slices import Slice

Observed = Callable[..., tuple[Slice, list[LaunchFacts]]]

TEXT = """
@triton.jit
def parts(X: tl.constexpr, Y: tl.constexpr = None):
    pid = tl.program_id(0)
    if Y is None:
        return pid % X, pid // X
    else:
        return pid % X, (pid // X) % Y


@triton.jit
def noted(y_ptr):
    tl.store(y_ptr, 1.0)
    return 0


@triton.jit
def drawn(n):
    while n > 0:
        n -= 1
    return n, n + 1


@triton.jit
def kernel(x_ptr, y_ptr, n, K: tl.constexpr, V: tl.constexpr, M: tl.constexpr, FLAG: tl.constexpr):
    rows = tl.arange(0, 32)
BODY
    if K == 0:
        USE
"""
TYPES = "x_ptr=*fp16 y_ptr=*fp32 n=i32"


@pytest.fixture(scope="module")
def found(observed: Observed, launch: Callable[..., Launch]) -> Callable[..., list[tuple[str, str]]]:
    """What a body makes again, by name and test, under launches of these flags."""

    def apply(
        body: str, *flags: bool, guessed: bool = False, use: str = "tl.store(y_ptr + rows, a)"
    ) -> list[tuple[str, str]]:
        text = TEXT.replace("BODY", textwrap.indent(body, "    ")).replace("USE", use)
        launches = [launch(TYPES, K=64, V=64, M=1, FLAG=flag) for flag in flags or (False,)]
        kernel, facts = observed(text, *launches, target="sm80")
        path = Path(facts[0].functions[facts[0].entry].path)
        equal = equal_values(facts, parsed(kernel), path, ["kernel"] if guessed else ())
        return sorted((each.name, each.test) for each in equal)

    return apply


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("a = tl.load(x_ptr + rows)\ntl.store(y_ptr, 0.0)\nb = tl.load(x_ptr + rows)", id="a store"),
        pytest.param("a = tl.load(x_ptr + rows)\nnoted(y_ptr)\nb = tl.load(x_ptr + rows)", id="a helper that stores"),
        pytest.param("a = tl.load(x_ptr + rows)\nx_ptr += 32\nb = tl.load(x_ptr + rows)", id="a pointer that moves"),
        pytest.param("a = tl.load(x_ptr + rows)\nb = tl.load(x_ptr + rows, mask=rows < n)", id="a mask"),
        pytest.param("a = tl.load(x_ptr + rows)\nb = tl.load(x_ptr + rows).to(tl.float32)", id="another type"),
        pytest.param("b = tl.load(x_ptr + rows)\nfor i in range(n):\n    a = tl.load(x_ptr + rows)", id="a loop"),
        pytest.param(
            "a = tl.load(x_ptr + rows)\nif n > 0:\n    b = tl.load(x_ptr + rows)\nelse:\n    b = a", id="an arm"
        ),
        pytest.param(
            "a = tl.load(x_ptr + rows, volatile=True)\nb = tl.load(x_ptr + rows, volatile=True)", id="volatile"
        ),
        pytest.param(
            "i, j = drawn(n)\na = tl.load(x_ptr + i + rows)\nb = tl.load(x_ptr + j + rows)", id="two unknowns"
        ),
        pytest.param("a = tl.load(x_ptr + rows * K)\nb = tl.load(x_ptr + rows * M)", id="other constants"),
        pytest.param(
            "a = tl.load(x_ptr + rows)\nif FLAG:\n    noted(y_ptr)\nb = tl.load(x_ptr + rows)", id="a flag that stores"
        ),
        pytest.param("a = rows * K\nb = rows * V", id="nothing that is loaded"),
    ],
)
def test_what_may_be_another_value_is_made_again(found: Callable[..., list[tuple[str, str]]], body: str) -> None:
    assert found(body) == []


def test_what_is_loaded_for_nothing_is_gone_before_another_is_looked_for(
    found: Callable[..., list[tuple[str, str]]],
) -> None:
    body = "a = tl.load(x_ptr + rows)\nb = tl.load(x_ptr + rows)"
    assert found(body) == [("a", "")]
    assert found(body, use="tl.store(y_ptr + rows, b)") == []


@pytest.mark.parametrize(
    ("body", "test"),
    [
        pytest.param("a = tl.load(x_ptr + rows)\nat = x_ptr + rows\nb = tl.load(at)", "", id="always"),
        pytest.param("a = tl.load(x_ptr + rows * K)\nb = tl.load(x_ptr + rows * V)", "K == V", id="equal constants"),
        pytest.param(
            "a = tl.load(x_ptr + K * 2 + rows)\nb = tl.load(x_ptr + V * 2 + rows)", "K == V", id="in a number"
        ),
        pytest.param(
            "i, j = parts(M, V // 64)\na = tl.load(x_ptr + i + rows)\nb = tl.load(x_ptr + j + rows)",
            "(V // 64) == 1 and M == 1",
            id="remainders of one",
        ),
        pytest.param(
            "a = tl.load(x_ptr + rows)\nat = x_ptr + rows\nif FLAG:\n    at += 32\nb = tl.load(at)",
            "not FLAG",
            id="a flag",
        ),
    ],
)
def test_what_is_made_again_is_found(found: Callable[..., list[tuple[str, str]]], body: str, test: str) -> None:
    assert found(body) == [("a", test)]
    assert found(body, guessed=True) == [("a", test)] * (not test)


def test_a_quotient_of_constants_is_one_where_triton_has_a_scalar(found: Callable[..., list[tuple[str, str]]]) -> None:
    body = "i, j = parts(M, tl.cdiv(V, 64))\na = tl.load(x_ptr + i + rows)\nb = tl.load(x_ptr + j + rows)"
    (name, test), *others = found(body)
    assert (name, others) == ("a", [])
    # Triton 3.6 has it as a scalar, which no branch of the compilation may ask for.
    assert test in ("M == 1 and tl.cdiv(V, 64) == 1", "(V + 64 - 1) // 64 == 1 and M == 1")
    assert found(body.replace("V, 64", "V, n")) == []


PRODUCTS = """\
x = tl.load(x_ptr + rows[:, None] * 32 + rows[None, :])
s = x * 2
a = tl.dot(x.to(s.dtype), x)
if FLAG:
    r = s * 3
    a = tl.dot(r, x)
    used = r
else:
    used = x
b = tl.dot(used.to(x.dtype), x)
"""


def test_what_each_launch_finds_is_joined(found: Callable[..., list[tuple[str, str]]]) -> None:
    assert found(PRODUCTS, False) == [("a", "not FLAG and s.dtype == x.dtype")]
    text = PRODUCTS.replace("used.to(x.dtype)", "used").replace("x.to(s.dtype)", "x")
    assert found(text, True) == [("a", "FLAG")]
    assert found(text, False) == [("a", "not FLAG")]
    assert found(text, True, False) == [("a", "")]


@pytest.mark.parametrize(("a", "b"), ["AB", "CD", "FG", "KM", "PQ", "VW"])
def test_tests_are_joined_alike_in_whatever_order_their_set_has_them(a: str, b: str) -> None:
    tests = {frozenset((a, b)), frozenset((a, f"not {b}")), frozenset((f"not {a}", b))}
    assert _joined(tests) == f"({a} and not {b}) or ({b})"
