"""Decisions gathered by place: what one text cannot say of all contexts."""

from __future__ import annotations

from tt2gl.analysis.collected import Entry, Function
from tt2gl.analysis.decisions import NamedWeb
from tt2gl.analysis.terms import Operand, Root, Stored, Term
from tt2gl.analysis.versions import Context, Group

ONE: Context = (0, 0, (("kernel.py", 10, 4),))
OTHER: Context = (0, 0, (("kernel.py", 11, 4),))
PLACE = (3, 4, 3, 5)
TAKEN = Operand(1, Root("acc"), "1")


def given(**slots: dict[Context, Term]) -> Function:
    """A function with one statement, and what is wanted at one place of it."""
    entries = {
        (kind, PLACE): [Entry(context, None, term) for context, term in wanted.items()]
        for kind, wanted in slots.items()
    }
    return Function(slots=entries, statements={PLACE: (3, 0, 3, 9)})


def test_an_operand_that_all_callers_load_or_that_all_convert_is_one_text() -> None:
    assert not list(given(load={ONE: TAKEN, OTHER: TAKEN}).brought_apart(None, None))
    assert not list(given(convert={ONE: TAKEN}, unconverted={OTHER: TAKEN}).brought_apart(None, None))


def test_an_operand_that_one_caller_loads_and_another_converts_is_none() -> None:
    function = given(load={ONE: TAKEN}, unconverted={ONE: Root("acc")}, convert={OTHER: TAKEN})
    assert [position for position, _ in function.brought_apart(None, None)] == [PLACE]
    # The other one's is in registers, which no text can load.
    function = given(load={ONE: TAKEN}, convert={OTHER: TAKEN})
    assert [position for position, _ in function.brought_apart(None, None)] == [PLACE]


def test_shared_memory_of_one_launch_is_no_tensor_of_another() -> None:
    group = Group("q", {PLACE})
    group.add((0, 0, ()), [Root("q_layout")], converted=False)
    group.add((0, 1, ()), [Root("q_layout")], converted=False)
    group.add((0, 0, ()), [Stored(Root("q_shared"), in_place=False)], converted=True)
    group.add((0, 1, ()), [Root("tile_layout")], converted=True)
    assert [len(version.wanted) for version in group.versions] == [2, 1, 1]


def test_conversions_to_one_version_of_a_variable_are_one() -> None:
    """A helper's tile goes to shared memory once, in the layout that its caller's extents ask for."""
    q, small, large = Root("q_layout"), Stored(Root("small_shared")), Stored(Root("large_shared"))
    webs = [
        (context, NamedWeb(("kernel.py", 1), context[2], "q", (PLACE,), (q,), (stored,), True))
        for context, stored in ((ONE, small), (OTHER, large))
    ]
    function = Function(webs=webs, after={(PLACE, "q"): [(ONE, q, small), (OTHER, q, large)]})
    assert function.conversions(PLACE, "q") == [{ONE: (q, small), OTHER: (q, large)}]
    assert list(function.layouts()) == [{ONE: small, OTHER: large}]


def test_conversions_to_two_versions_are_two() -> None:
    q, shared, turned = Root("q_layout"), Stored(Root("q_shared")), Stored(Root("turned_shared"))
    web = NamedWeb(("kernel.py", 1), ONE[2], "q", (PLACE,), (q,), (shared, turned), True)
    function = Function(webs=[(ONE, web)], after={(PLACE, "q"): [(ONE, q, shared), (ONE, q, turned)]})
    assert function.conversions(PLACE, "q") == [{ONE: (q, shared)}, {ONE: (q, turned)}]
