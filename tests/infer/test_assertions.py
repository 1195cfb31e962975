"""Guessed constexprs are such as the kernel asserts them to be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tt2gl.infer.launches import infer_launches
from tt2gl.source import read_source

HEADER = "import triton\nimport triton.language as tl\n\n\n@triton.jit\ndef kernel({}):\n"


def constexprs(parameters: str, *body: str) -> dict[str, Any]:
    text = HEADER.format(parameters) + "".join(f"    {line}\n" for line in body)
    source = read_source(Path("kernel.py"), text)
    return dict(infer_launches(source, source.kernel("kernel"))[0][0].constexprs)


STORE = "tl.store(x + tl.arange(0, B), V)"


def test_what_is_asserted_of_arguments_changes_no_constant() -> None:
    plain = constexprs("x, n, B: tl.constexpr, V: tl.constexpr", STORE)
    assert constexprs("x, n, B: tl.constexpr, V: tl.constexpr", "assert n % 256 == 0", STORE) == plain


def test_a_value_that_is_given_stays() -> None:
    assert constexprs("x, B: tl.constexpr = 64, V: tl.constexpr = 3", "tl.static_assert(V == B // 8)", STORE)["V"] == 3


def test_what_cannot_be_met_changes_nothing() -> None:
    plain = constexprs("x, B: tl.constexpr, V: tl.constexpr", STORE)
    assert constexprs("x, B: tl.constexpr, V: tl.constexpr", "tl.static_assert(B == 3 * V + 5)", STORE) == plain


@pytest.mark.parametrize(
    ("assertion", "size"),
    [
        ("tl.static_assert(B % 2048 == 0)", 2048),
        ("assert B % 2048 == 0", 2048),
        ("tl.static_assert(B == 96 or B == 192)", 192),
        ("tl.static_assert(B in (16, 32))", 32),
        ("tl.static_assert(B <= 128 and B > 8)", 128),
        ("if B > 256: raise ValueError('too large')", 256),
    ],
    ids=["remainder", "python's", "alternatives", "one-of", "bounds", "raise"],
)
def test_a_size_is_the_nearest_that_is_asserted(assertion: str, size: int) -> None:
    assert constexprs("x, B: tl.constexpr, V: tl.constexpr", assertion, STORE)["B"] == size


def test_a_word_that_is_asserted_to_be_none() -> None:
    parameters = "x, B: tl.constexpr, V: tl.constexpr, K: tl.constexpr"
    chosen = f"if K == 'row': {STORE}"
    assert constexprs(parameters, chosen)["K"] == "row"
    assert constexprs(parameters, chosen, "tl.static_assert(K is None)")["K"] is None


def test_a_size_is_that_of_another_where_both_are_asserted_to_be_equal() -> None:
    found = constexprs("x, G: tl.constexpr, V: tl.constexpr, B: tl.constexpr = 96", "tl.static_assert(B == G)", STORE)
    assert found["G"] == 96


def test_a_name_stands_for_what_it_is_assigned() -> None:
    found = constexprs("x, B: tl.constexpr, V: tl.constexpr", "P = B // 4", "tl.static_assert(P == 16)", STORE)
    assert found["B"] == 64


def test_names_may_be_made_of_others_in_whatever_order_their_set_has_them() -> None:
    names = ["P", "Q", "R", "S", "T", "U"]
    made = [f"{name} = {other} * 2" for other, name in zip(["(B // 64)", *names], names, strict=False)]
    asserted = "tl.static_assert(P < Q and Q < R and R < S and S < T and T < U and U == 512)"
    assert constexprs("x, B: tl.constexpr, V: tl.constexpr", *made, asserted, STORE)["B"] == 512


def test_flags_are_those_that_go_together() -> None:
    parameters = "x, USE_A: tl.constexpr, USE_B: tl.constexpr"
    text = HEADER.format(parameters) + "    tl.static_assert(USE_A != USE_B)\n    tl.store(x, 1)\n"
    source = read_source(Path("kernel.py"), text)
    flags = [
        (each.constexprs["USE_A"], each.constexprs["USE_B"])
        for each in infer_launches(source, source.kernel("kernel"))[0]
    ]
    assert all(one is not other for one, other in flags)


def test_a_size_by_its_name_is_no_flag() -> None:
    found = constexprs(
        "x, n, NUM_DOCS: tl.constexpr, N: tl.constexpr",
        "i = n + tl.program_id(0)",
        "if i < NUM_DOCS:",
        "    tl.store(x, 1)",
    )
    assert {name: type(value) for name, value in found.items()} == {"NUM_DOCS": int, "N": int}


def test_what_is_compared_with_places_is_whole() -> None:
    body = ["rank = tl.load(p)", "at = tl.arange(0, 64)", "tl.store(x + at, 1.0, mask=at < rank)"]
    text = HEADER.format("x, p") + "".join(f"    {line}\n" for line in body)
    source = read_source(Path("kernel.py"), text)
    assert infer_launches(source, source.kernel("kernel"))[0][0].signature == {"x": "*fp32", "p": "*i32"}
