"""Tiles read for all their products where their slots are named; others where they are."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.pipelining.turned_reads import with_turned_reads

HEAD = "def kernel(x, n, FLAG: gl.constexpr):\n"
PLAIN = "k_rhs = k_slots[0].load(rhs)\n"
NAMED = "k = k_slots[0]\n"
BETWEEN = "v_next = buffer_load(v_ptr, offsets)\n"
OTHER = "dv = mfma(p, v, dv)\n"
READ = "k.permute((1, 0)).load(lhs)"
PRODUCT = f"qk = mfma(q, {READ}, zeros)\n"
EARLY = "k_turned = k_slots[0].permute((1, 0)).load(lhs)\n"
MADE = "qk = mfma(q, k_turned, zeros)\n"


def written(body: str) -> str:
    """The text of a loop's body after the rule."""
    text = HEAD + "    for i in range(n):\n" + textwrap.indent(body, " " * 8)
    return textwrap.dedent(with_turned_reads(text, {"kernel"}).partition("range(n):\n")[2])


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(PLAIN + NAMED + PRODUCT, id="right below"),
        pytest.param(PLAIN + NAMED + "v = v_slots[0]\n" + PRODUCT, id="below another slot's name"),
        pytest.param(NAMED + BETWEEN + PRODUCT, id="the first product"),
        pytest.param(NAMED + PLAIN + BETWEEN + PRODUCT, id="beside MFMA, a read below the name"),
        pytest.param("k = x\n" + BETWEEN + PRODUCT, id="no slot"),
        pytest.param(PLAIN + NAMED + BETWEEN + "if FLAG:\n    " + PRODUCT, id="in a branch"),
        pytest.param(PLAIN + NAMED + BETWEEN + "k_slots[-1].store(x)\n" + PRODUCT, id="behind a store"),
        pytest.param(PLAIN + NAMED + BETWEEN + "async_load(k_slots[0], x)\n" + PRODUCT, id="behind a copy"),
        pytest.param(PLAIN + NAMED + "lhs = x.layout\n" + PRODUCT, id="a layout that is made in between"),
        pytest.param(PLAIN + NAMED + BETWEEN + "k = x\n" + PRODUCT, id="another value"),
        pytest.param(PLAIN + NAMED + OTHER + OTHER + PRODUCT, id="below two products"),
        pytest.param(PLAIN + NAMED + BETWEEN + "qk = mfma(q, k.load([0, 0]), zeros)\n", id="a descriptor"),
    ],
)
def test_nothing_changes(body: str) -> None:
    assert written(body) == body


@pytest.mark.parametrize("between", [OTHER, OTHER + "if FLAG:\n    x += 1\n", "gl.store(ptr, x)\n" + OTHER])
def test_a_tile_is_read_where_its_slot_is_named(between: str) -> None:
    assert written(NAMED + between + PRODUCT) == EARLY + NAMED + between + MADE


@pytest.mark.parametrize("between", [BETWEEN, OTHER])
def test_what_is_turned_is_read_first(between: str) -> None:
    assert written(PLAIN + NAMED + between + PRODUCT) == EARLY + PLAIN + NAMED + between + MADE


def test_beside_wmma_what_is_turned_is_read_above_a_read_below_the_name_too() -> None:
    product, made = PRODUCT.replace("mfma", "wmma"), MADE.replace("mfma", "wmma")
    assert written(NAMED + PLAIN + BETWEEN + product) == EARLY + NAMED + PLAIN + BETWEEN + made


def test_what_is_not_turned_is_read_below_what_is() -> None:
    named = NAMED.replace("k =", "k_tile =") + BETWEEN
    early = named + "qk = mfma(q, k_read, zeros)\n"
    assert written(PLAIN + named + "qk = mfma(q, k_tile.load(lhs), zeros)\n") == (
        PLAIN + "k_read = k_slots[0].load(lhs)\n" + early
    )


def test_a_read_with_a_name_keeps_it() -> None:
    guarded = "if more:\n    qk = mfma(q, rhs_2, qk)\n"
    early = "rhs_2 = k_slots[0].permute((1, 0)).load(lhs)\n"
    assert written(NAMED + OTHER + f"rhs_2 = {READ}\n" + guarded) == early + NAMED + OTHER + guarded


def test_what_two_statements_read_is_read_once() -> None:
    again = f"x += {READ}\n"
    assert written(NAMED + OTHER + again + PRODUCT) == EARLY + NAMED + OTHER + "x += k_turned\n" + MADE


def test_a_name_that_is_taken_is_numbered() -> None:
    text = written("k_turned = x\n" + NAMED + OTHER + PRODUCT)
    assert "k_turned_2 = k_slots[0]" in text
    assert "mfma(q, k_turned_2, zeros)" in text
