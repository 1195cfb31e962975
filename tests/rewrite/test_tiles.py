"""Rule `tiles`: a load or store through a tensor descriptor becomes a copy by TMA."""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst
import pytest

from tt2gl.rewrite.imports import with_instructions
from tt2gl.rewrite.tiles import through_tile

Code = Callable[[cst.CSTNode], str]
Body = Callable[..., str]


def test_a_load_that_the_plan_does_not_name_stays(body: Body) -> None:
    assert body("a = a_desc.load([i, 0])\nb = a + 1") == "a = a_desc.load([i, 0])\nb = a + 1"


@pytest.mark.parametrize(
    ("before", "kind", "after"),
    [
        ("a_desc.load([i, 0])", "load", "load_tile(a_desc, [i, 0])"),
        ("a_desc.load(offsets=[i, 0])", "load", "load_tile(a_desc, offsets=[i, 0])"),
        ("tl.load_tensor_descriptor(a_desc, [i, 0])", "load", "load_tile(a_desc, [i, 0])"),
        ("a_desc.store([i, 0], a + 1)", "store", "store_tile(a_desc, [i, 0], a + 1)"),
        ("tl.store_tensor_descriptor(a_desc, [i, 0], a)", "store", "store_tile(a_desc, [i, 0], a)"),
    ],
)
def test_methods_and_functions_become_calls_of_the_files_own(code: Code, before: str, kind: str, after: str) -> None:
    call = cst.parse_expression(before)
    assert isinstance(call, cst.Call)
    assert code(through_tile(call, kind)) == after


@pytest.mark.parametrize(
    ("staged", "after"),
    [
        (("", ""), "a = load_tile(a_desc, [i, 0])"),
        (("", "layout"), "a = load_tile(a_desc, [i, 0]).load(layout)"),
        (("a", ""), "a = _tt2gl_ring_a(a_desc, [i, 0])"),
        (("a", "layout"), "a = _tt2gl_ring_a(a_desc, [i, 0]).load(layout)"),
    ],
    ids=["in place", "in registers", "a ring's", "a ring's, in registers"],
)
def test_where_a_tile_goes(body: Body, staged: tuple[str, str], after: str) -> None:
    at = "a_desc.load([i, 0])"
    assert body(f"a = {at}", tiles={at: "load"}, staged={at: staged}) == after


def test_the_copies_are_imported_as_either_triton_calls_them() -> None:
    made = with_instructions("from triton.experimental.gluon import language as gl\ntma_load(a)\n")
    assert "hopper.tma import async_load as tma_load\n" in made
    assert "hopper.tma import async_copy_global_to_shared as tma_load\n" in made
    assert "tma_store" not in made
    assert with_instructions(made) == made
