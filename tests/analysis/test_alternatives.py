"""Layouts that launches want in two ways, in one formula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tt2gl.analysis.alternatives import Way, alternative, less_aligned, with_aligning
from tt2gl.analysis.conditions import Case
from tt2gl.analysis.facts import Access, CallChain, DotFact, DotOperandFact, LaunchFacts, Lowered
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch

MakeLaunch = Callable[..., Launch]

LOAD: CallChain = (("kernel.py", 1, 0),)
OTHER: CallChain = (("kernel.py", 2, 0),)
WIDE, NARROW = Way("f([M], ", "16", ", w)", frozenset({0})), Way("f([M], ", "128", ", w)", frozenset({1}))


def asked(
    one: Launch, other: Launch, aligning: Sequence[tuple[str, ...]] = (), ways: Sequence[Way] = (WIDE, NARROW)
) -> str | None:
    """The formula for two launches, of which the first has the wide access."""
    cases = {index: Case(launch, LaunchFacts("kernel", {}, {}), "") for index, launch in enumerate((one, other))}
    found = alternative(ways, cases, aligning)
    return None if found is None else found.source


def aligned(launch: Launch, *names: str) -> Launch:
    """A launch of which these arguments are multiples of 16, and no others."""
    return replace(launch, divisible_by_16=names)


def facts(*widths: int) -> LaunchFacts:
    """A launch with a product, and accesses of so many elements at once."""
    layout = DialectAttr("ttg.blocked", ())
    operand = DotOperandFact(False, (16, 32), "f16", layout)
    accesses = {
        chain: Access("tt.load", (16, 32), (1, width), (8, 4), (1, 1), (1, 0))
        for chain, width in zip((LOAD, OTHER), widths, strict=False)
    }
    dots = {OTHER: DotFact("mfma", layout, operand, operand, False)}
    return LaunchFacts("kernel", {}, accesses, Lowered(dots))


def test_a_stride_that_is_1_tells(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 stride=i32", stride=1), launch("x=*fp16 stride=i32")
    assert asked(one, other) == "f([M], 16 if isinstance(stride, int) else 128, w)"


def test_formulas_that_differ_in_more_stand_whole(launch: MakeLaunch) -> None:
    one, other = launch("x=*fp16 stride=i32", stride=1), launch("x=*fp16 stride=i32")
    turned = replace(NARROW, before="g([M], ")
    assert asked(one, other, ways=(WIDE, turned)) == "f([M], 16, w) if isinstance(stride, int) else g([M], 128, w)"


def test_that_one_of_two_flags_is_set_tells(launch: MakeLaunch) -> None:
    made = [launch("x=*fp16", A=one, B=other) for one, other in ((True, False), (False, True), (False, False))]
    cases = {index: Case(each, LaunchFacts("kernel", {}, {}), "") for index, each in enumerate(made)}
    ways = (replace(WIDE, exact=frozenset({0, 1})), replace(NARROW, exact=frozenset({2})))
    found = alternative(ways, cases, ())
    assert found is not None
    assert found.source == "f([M], 16 if A or B else 128, w)"


def test_a_size_of_tiles_is_no_reason(launch: MakeLaunch) -> None:
    assert asked(launch("x=*fp16", BM=64), launch("x=*fp16", BM=16)) is None


def test_alignment_is_asked_of_the_launch(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32 stride=i32")
    cases = {0: aligned(both, "x", "n", "stride"), 1: aligned(both, "x")}
    assert asked(cases[0], cases[1], [("stride",)]) == "f([M], 16 if ALIGNED_stride else 128, w)"
    made = {index: Case(each, facts(), "") for index, each in cases.items()}
    found = alternative((WIDE, NARROW), made, [("n", "stride")])
    assert found is not None
    assert found.flags == {"ALIGNED_n_stride": ("n", "stride")}


def test_one_of_several_is_enough_where_another_access_lends_its_width(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32 stride=i32")
    enough = [("n",), ("stride",)]
    said = "f([M], 16 if ALIGNED_n or ALIGNED_stride else 128, w)"
    assert asked(aligned(both, "x", "n", "stride"), aligned(both, "x"), enough) == said
    assert asked(aligned(both, "x", "n"), aligned(both, "x"), enough) == said
    # What is aligned under the narrow one is not enough.
    assert asked(aligned(both, "x", "n", "stride"), aligned(both, "x", "n"), enough) is None


def test_an_argument_that_has_no_bearing_is_not_asked_for(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32 stride=i32")
    assert asked(aligned(both, "x", "n"), aligned(both, "x"), []) is None
    # A launch that gives none cannot be asked whether that is a multiple.
    without = launch("x=*fp16 stride=i32", n=None)
    assert asked(aligned(both, "x", "n"), aligned(without, "x"), [("n",)]) == "f([M], 128 if n is None else 16, w)"
    # It is aligned under both: something else makes the difference.
    assert asked(aligned(both, "x", "n"), aligned(both, "x", "n"), [("n",)]) is None


def test_which_arguments_have_a_bearing_is_seen_without_them(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32 stride=i32")
    launches = {0: aligned(both, "x"), 1: aligned(both, "x", "n", "stride")}
    known = {0: facts(1, 8), 1: facts(8, 8)}
    less = less_aligned(launches, known)
    assert [(each.index, sorted(each.gone), each.launch.divisible_by_16) for each in less] == [
        (1, ["n"], ("x", "stride")),
        (1, ["stride"], ("x", "n")),
        (1, ["n", "stride"], ("x",)),
    ]
    seen = [(each, facts(1 if "stride" in each.gone else 8, 8).accesses) for each in less]
    assert [each.aligning for each in with_aligning(known, seen).values()] == [{LOAD: (("stride",),)}] * 2
    # Any of them makes it wide.
    seen = [(each, facts(8 if each.kept else 1, 8).accesses) for each in less]
    assert with_aligning(known, seen)[0].aligning == {LOAD: (("n",), ("stride",))}


def test_nothing_is_asked_where_accesses_are_alike(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32")
    launches = {0: aligned(both, "x", "n"), 1: aligned(both, "x")}
    assert less_aligned(launches, {0: facts(8), 1: facts(8)}) == []


def test_kernels_without_products_ask_too(launch: MakeLaunch) -> None:
    both = launch("x=*fp16 n=i32")
    launches = {0: aligned(both, "x", "n"), 1: aligned(both, "x")}
    without = {index: replace(facts(width), lowered=Lowered()) for index, width in enumerate((8, 1))}
    assert [each.gone for each in less_aligned(launches, without)] == [{"n"}]
