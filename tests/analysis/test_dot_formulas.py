"""Formulas of the layouts that dots ask for, over what a launch says of the kernel's pointers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest

from tt2gl.analysis.dot_formulas import Formulas
from tt2gl.analysis.facts import Lowered
from tt2gl.analysis.graph import Graph, Node, Site
from tt2gl.analysis.memory import Scene
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch

SWIZZLED = DialectAttr("ttg.swizzled_shared", (("vec", 8), ("perPhase", 2), ("maxPhase", 4), ("order", (1, 0))))


def test_a_pointer_to_wider_elements_than_a_register_says_no_k_width(launch: Callable[..., Launch]) -> None:
    facts = SimpleNamespace(lowered=Lowered())
    scene = SimpleNamespace(launch=launch("starts=*i64 a=*fp16", K=32), facts=facts, lanes=32)
    formulas = Formulas([cast(Scene, scene)])
    found = formulas.written(("64", "K"), {0: (64, 32)}, {0: SWIZZLED})
    assert found.exact
    assert found.source == "swizzled_layout([64, K], [1, 0], a.dtype.element_ty.primitive_bitwidth, k_dim=1, k_width=2)"


@pytest.mark.parametrize(("pointer", "said"), [("b", "b"), (None, "a"), ("wide", "a")])
def test_a_tile_s_elements_are_said_by_its_own_pointer_where_that_is_right(
    launch: Callable[..., Launch], pointer: str | None, said: str
) -> None:
    facts = SimpleNamespace(lowered=Lowered())
    scene = SimpleNamespace(launch=launch("a=*fp16 b=*fp16 wide=*fp32", K=32), facts=facts, lanes=32)
    found = Formulas([cast(Scene, scene)]).written(("64", "K"), {0: (64, 32)}, {0: SWIZZLED}, pointer)
    assert f"{said}.dtype.element_ty.primitive_bitwidth" in found.source


def test_a_pointer_that_another_launch_has_none_for_says_no_elements(launch: Callable[..., Launch]) -> None:
    facts = SimpleNamespace(lowered=Lowered())
    launches = [launch("a=*fp16 g=*fp16", K=32), launch("a=*fp16 g=constexpr", K=32)]
    scenes = [cast(Scene, SimpleNamespace(launch=each, facts=facts, lanes=32)) for each in launches]
    found = Formulas(scenes).written(("64", "K"), {0: (64, 32)}, {0: SWIZZLED}, "g")
    assert "a.dtype.element_ty.primitive_bitwidth" in found.source


@pytest.mark.parametrize(("columns", "per_phase", "max_phase"), [(128, 1, 16), (64, 2, 8)])
def test_launches_apart_say_their_second_operands_by_one_formula(
    launch: Callable[..., Launch], columns: int, per_phase: int, max_phase: int
) -> None:
    """Loads in two arms of a branch fill one ring, which has one layout."""
    facts = SimpleNamespace(lowered=Lowered())
    scene = SimpleNamespace(launch=launch("w=*i8", K=64, N=columns), facts=facts, lanes=32)
    fields = (("vec", 8), ("perPhase", per_phase), ("maxPhase", max_phase), ("order", (1, 0)))
    layout = DialectAttr("ttg.swizzled_shared", fields)
    found = Formulas([cast(Scene, scene)]).written(("K", "N"), {0: (64, columns)}, {0: layout})
    assert found.source == "swizzled_layout([K, N], [1, 0], w.dtype.element_ty.primitive_bitwidth, k_dim=0, k_width=4)"


def test_a_width_that_differs_is_what_fills_a_register(launch: Callable[..., Launch]) -> None:
    scenes = [SimpleNamespace(launch=launch(f"a=*{dtype}"), lanes=32) for dtype in ("fp16", "fp8e5")]
    formulas = Formulas([cast(Scene, scene) for scene in scenes])
    assert formulas.k_width({0: 2, 1: 2}, ("K", {0: 16, 1: 32})) == "2"
    assert formulas.k_width({0: 2, 1: 4}, ("K", {0: 64, 1: 64})) == "32 // a.dtype.element_ty.primitive_bitwidth"


def test_a_width_that_a_flag_decides_is_said_by_the_flag(launch: Callable[..., Launch]) -> None:
    """A mask of bytes, say, that Triton counts among what an operand is made of."""
    launches = [launch("a=*fp16", K=64, MASKED=masked, CAUSAL=True) for masked in (False, True)]
    formulas = Formulas([cast(Scene, SimpleNamespace(launch=one, lanes=32)) for one in launches])
    assert formulas.k_width({0: 2, 1: 4}, ("K", {0: 64, 1: 64})) == "4 if MASKED else 2"
    alike = Formulas([cast(Scene, SimpleNamespace(launch=launches[0], lanes=32))] * 2)
    assert alike.k_width({0: 2, 1: 4}, ("K", {0: 64, 1: 64})) == "4"


def test_a_width_in_a_helper_is_said_by_a_flag_that_it_is_given(launch: Callable[..., Launch]) -> None:
    """The kernel's first flag tells as much, but the helper has no word for that."""
    launches = [launch("a=*fp16", K=64, RAGGED=there, GATED=there) for there in (False, True)]
    formulas = Formulas([cast(Scene, SimpleNamespace(launch=one, lanes=64)) for one in launches])
    graph, helper, chain = Graph(), ("k.py", 9), (("k.py", 3, 4),)
    graph.words[helper, chain] = {"GATED": "USE_G", "K": "N"}
    inside = partial(graph.word, Node("dot", Site(helper, (9, 0, 9, 1), (9, 0, 9, 1), chain), (), (), 32))
    outside = partial(graph.word, Node("dot", Site(("k.py", 1), (2, 0, 2, 1), (2, 0, 2, 1), ()), (), (), 32))
    widths, inner = {0: 8, 1: 4}, ("K", {0: 64, 1: 64})
    assert formulas.k_width(widths, inner, inside) == "4 if USE_G else 8"
    assert formulas.k_width(widths, inner, outside) == "4 if RAGGED else 8"
    graph.words[helper, chain] = {"K": "N"}
    assert formulas.k_width(widths, inner, inside) == "8"


def test_launches_of_elements_of_two_widths_have_a_formula_each(launch: Callable[..., Launch]) -> None:
    dots = {(("k.py", 1, 0),): SimpleNamespace(instruction="mfma")}
    facts = SimpleNamespace(lowered=SimpleNamespace(dots=dots))
    launches = [launch(f"a=*{dtype}", K=32) for dtype in ("fp16", "fp32")]
    formulas = Formulas([cast(Scene, SimpleNamespace(launch=one, facts=facts, lanes=64)) for one in launches])
    plain = DialectAttr("ttg.swizzled_shared", (("vec", 1), ("perPhase", 1), ("maxPhase", 1), ("order", (1, 0))))
    found = formulas.written(("64", "K"), dict.fromkeys((0, 1), (64, 32)), {0: SWIZZLED, 1: plain})
    assert found.exact
    bits = "a.dtype.element_ty.primitive_bitwidth"
    swizzled = f"banked_layout([64, K], [1, 0], {bits}, 8)"
    assert found.source == f"{swizzled} if {bits} == 16 else gl.SwizzledSharedLayout(1, 1, 1, [1, 0])"
    assert formulas.k_width({0: 8, 1: 1}, ("K", {0: 64, 1: 64})) == f"8 if {bits} == 16 else 1"


@pytest.mark.parametrize(
    ("sizes", "warps", "test"),
    [
        pytest.param(({"K": 32}, {"K": 32}), (2, 4), "gl.num_warps() >= 4", id="warps"),
        pytest.param(({"K": 32}, {"K": 64}), (4, 4), "K >= 64", id="extents"),
        pytest.param(({"K": 32}, {"K": 32}), (4, 4), None, id="neither"),
        pytest.param(({"K": 32, "M": 1}, {"K": 32, "M": 2}), (4, 4), None, id="another's-extents"),
    ],
)
def test_launches_of_two_sizes_have_a_formula_each(
    launch: Callable[..., Launch], sizes: tuple[dict[str, int], ...], warps: tuple[int, ...], test: str | None
) -> None:
    dots = {(("k.py", 1, 0),): SimpleNamespace(instruction="mfma")}
    facts = SimpleNamespace(lowered=SimpleNamespace(dots=dots))
    launches = [launch("a=*fp16", num_warps=count, **own) for own, count in zip(sizes, warps, strict=True)]
    formulas = Formulas([cast(Scene, SimpleNamespace(launch=one, facts=facts, lanes=64)) for one in launches])
    by_columns = DialectAttr("ttg.swizzled_shared", (("vec", 1), ("perPhase", 1), ("maxPhase", 1), ("order", (0, 1))))
    shapes = {index: (64, own["K"]) for index, own in enumerate(sizes)}
    found = formulas.written(("64", "K"), shapes, {0: SWIZZLED, 1: by_columns})
    assert found.exact == (test is not None)
    if test is not None:
        swizzled = "banked_layout([64, K], [1, 0], a.dtype.element_ty.primitive_bitwidth, 8)"
        assert found.source == f"gl.SwizzledSharedLayout(1, 1, 1, [0, 1]) if {test} else {swizzled}"


def test_tiles_that_mfma_reads_are_swizzled_by_its_banks(launch: Callable[..., Launch]) -> None:
    dots = {(("k.py", 1, 0),): SimpleNamespace(instruction="mfma")}
    facts = SimpleNamespace(lowered=SimpleNamespace(dots=dots))
    scene = SimpleNamespace(launch=launch("a=*fp16", K=32), facts=facts, lanes=64)
    found = Formulas([cast(Scene, scene)]).written(("64", "K"), {0: (64, 32)}, {0: SWIZZLED})
    assert found.exact
    assert found.source == "banked_layout([64, K], [1, 0], a.dtype.element_ty.primitive_bitwidth, 8)"
