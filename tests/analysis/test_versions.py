"""Layouts of one variable in several contexts: what launches convert for others' sake."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tt2gl.analysis.collected import Conflict, Function
from tt2gl.analysis.decisions import NamedWeb
from tt2gl.analysis.facts import Position
from tt2gl.analysis.labels import Labels
from tt2gl.analysis.terms import Cut, Root, Stored, Term
from tt2gl.analysis.versions import Context, Group, Wanted
from tt2gl.launches import Launch

PLACE, LATER = (3, 4, 3, 5), (7, 4, 7, 5)
ONE: Context = (0, 0, ())
OTHER: Context = (0, 1, ())
ROW, CUT = Root("row"), Cut(0, Root("acc"))


def a_row(context: Context, own: Term, cheap: bool = False) -> Group:
    """A row that one launch converts, and another has as `own`."""
    group = Group("b", {PLACE}, cheap=cheap)
    group.add(ONE, [ROW], converted=False)
    group.add(context, [own], converted=False)
    group.add(ONE, [CUT], converted=True)
    group.convert_alike()
    return group


@pytest.mark.parametrize(
    ("context", "own"),
    [
        pytest.param(OTHER, ROW, id="not in the layout that it is converted to"),
        pytest.param(OTHER, Stored(Root("acc")), id="in shared memory"),
        pytest.param((1, 0, ()), CUT, id="another kernel's, whose layouts have names of their own"),
        pytest.param((0, 1, (("kernel.py", 10, 4),)), CUT, id="another call's"),
    ],
)
def test_what_is_not_converted(context: Context, own: Term) -> None:
    assert all(not version.idle for version in a_row(context, own).versions)


def test_what_is_right_as_it_is_is_converted_where_another_launch_needs_it() -> None:
    computed, converted = a_row(OTHER, CUT).versions
    assert computed.wanted == {ONE: ROW, OTHER: CUT}
    assert (converted.wanted, converted.idle) == ({ONE: CUT, OTHER: CUT}, {OTHER})


def offsets(own: Term, *, cheap: bool = True, kernel: int = 0) -> Group:
    """Offsets that one launch computes for a kernel's row and for a tile, and another in `own`."""
    group = Group("offs", {PLACE}, cheap=cheap)
    group.add(ONE, [ROW, CUT], converted=False)
    group.add(OTHER, [own], converted=False)
    group.compute_alike({(kernel, ROW)})
    return group


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(offsets(ROW), id="the row's in both launches"),
        pytest.param(offsets(CUT, cheap=False), id="what is not computed twice"),
        pytest.param(offsets(CUT, kernel=1), id="another kernel's row"),
    ],
)
def test_what_is_not_computed_alike(group: Group) -> None:
    assert not any(version.idle for version in group.versions)


def test_what_one_launch_computes_for_a_row_all_do() -> None:
    for_row, for_tile = offsets(CUT).versions
    assert (for_row.wanted, for_row.idle) == ({ONE: ROW, OTHER: CUT}, {OTHER})
    assert (for_tile.wanted, for_tile.idle) == ({ONE: CUT, OTHER: CUT}, set())


@pytest.mark.parametrize(("cheap", "others"), [(True, [Root("d")]), (False, [Root("d")]), (True, [])])
def test_what_is_cheap_and_read_at_other_places_is_another(cheap: bool, others: list[Term]) -> None:
    both, one, other, last = [(LATER[0], column, 0, 0) for column in range(4)]
    places: dict[tuple[Context, Term], set[Position]] = {
        (ONE, ROW): {both, one},
        (OTHER, CUT): {both, other},
        (OTHER, Root("d")): {last},
    }
    group = Group("m", {PLACE}, cheap=cheap, reads=places)
    group.add(ONE, [ROW], converted=False)
    group.add(OTHER, [CUT, *others], converted=False)
    is_apart = {ONE: ROW} in [version.wanted for version in group.versions]
    assert is_apart == (cheap and bool(others))


def test_what_calls_read_in_the_same_place_is_one() -> None:
    first: Context = (0, 0, (("kernel.py", 20, 4),))
    second: Context = (0, 0, (("kernel.py", 30, 4),))
    wide = Cut(1, Root("wide"))
    reads: dict[tuple[Context, Term], set[Position]] = {(first, CUT): {PLACE}, (second, wide): {PLACE}}
    group = Group("offs", {PLACE}, reads=reads)
    group.add(first, [ROW, CUT], converted=False)
    group.add(second, [wide], converted=False)
    assert [version.wanted for version in group.versions] == [{first: ROW}, {first: CUT, second: wide}]
    without = Group("offs", {PLACE})
    without.add(first, [ROW, CUT], converted=False)
    without.add(second, [wide], converted=False)
    assert [version.wanted for version in without.versions] == [{first: ROW, second: wide}, {first: CUT}]


def named(*statements: tuple[int, int, int, int]) -> Labels:
    """The names of a row that is loaded at some places, and converted after the first of them by one launch."""
    webs = [
        (context, NamedWeb(("kernel.py", 1), (), "b", (at,), (own,), converted, False))
        for at in statements
        for context, own, converted in ((ONE, ROW, (CUT,) if at == PLACE else ()), (OTHER, CUT, ()))
    ]
    function = Function(webs=webs, after={(PLACE, "b"): [(ONE, ROW, CUT)]})
    assert function.conversions(PLACE, "b") == [{ONE: (ROW, CUT), OTHER: (CUT, CUT)}]
    said = {str({ONE: ROW, OTHER: CUT}): "chosen", str({ONE: CUT, OTHER: CUT}): "cut"}

    def spelled(wanted: Wanted, position: tuple[int, int, int, int]) -> str:
        return said[str(wanted)]

    return Labels(("kernel.py", 1, ""), function, spelled)


def test_all_read_what_was_converted() -> None:
    labels = named(PLACE)
    assert labels.common("b", {ONE: ROW, OTHER: CUT}, PLACE) == ""
    assert labels.common("b", {ONE: CUT, OTHER: CUT}, PLACE) not in ("", "b")


def test_none_reads_what_is_converted_after_another_definition_alone() -> None:
    with pytest.raises(Conflict):
        named(PLACE, LATER).common("b", {ONE: CUT, OTHER: CUT}, PLACE)


def test_what_is_read_after_a_definition_that_is_converted_has_its_name() -> None:
    labels = named(PLACE, LATER)
    name = labels.common("b", {ONE: CUT, OTHER: CUT}, PLACE, {ONE: PLACE, OTHER: PLACE})
    assert name not in ("", "b")
    with pytest.raises(Conflict):
        labels.common("b", {ONE: CUT, OTHER: CUT}, PLACE, {ONE: PLACE, OTHER: LATER})


KERNEL = """
@triton.jit
def kernel(x_ptr, w_ptr, b_ptr, y_ptr, T, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    w = tl.load(w_ptr + cols[:, None] * N + cols[None, :])
    b = tl.load(b_ptr + cols)
    x = tl.load(x_ptr + rows[:, None] * N + cols[None, :])
    for t in range(T):
        y = tl.dot(x, w) + b[None, :]
        x = y.to(x.dtype)
        tl.store(y_ptr + t * M * N + rows[:, None] * N + cols[None, :], x)
"""


@pytest.mark.slow
def test_a_row_that_a_loop_reads_and_that_fills_the_threads_of_some_launches(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    types = "x_ptr=*fp16 w_ptr=*fp16 b_ptr=*fp16 y_ptr=*fp16 T=i32"
    launches = [launch(types, num_warps=warps, M=32, N=64) for warps in (2, 4)]
    made = port(KERNEL, *launches, target="sm80")
    head, loop = made.split("for t in range(T)")
    assert " if N >= 32 * gl.num_warps() else gl.SliceLayout(0, mma_layout)" in head
    assert "b_mma = gl.convert_layout(b, gl.SliceLayout(0, mma_layout))" in head
    assert "b_mma[None, :]" in loop


CHANGED = """
@triton.jit
def kernel(q_ptr, d_ptr, y_ptr, S, T, M: tl.constexpr, N: tl.constexpr):
    rows, cols = tl.arange(0, M), tl.arange(0, N)
    for s in range(S):
        q = tl.load(q_ptr + s * N + cols)
        q = q.to(tl.int32) & 0xFF
        for t in range(T):
            d = tl.load(d_ptr + (t * M + rows[:, None]) * N + cols[None, :])
            tl.store(y_ptr + (s * T + t) * M + rows, tl.sum(q[None, :] ^ d, axis=1))
"""


def test_a_row_that_is_loaded_and_changed_under_one_name(
    port: Callable[..., str], launch: Callable[..., Launch]
) -> None:
    types = "q_ptr=*i32 d_ptr=*i32 y_ptr=*i32 S=i32 T=i32"
    made = port(CHANGED, *(launch(types, num_warps=warps, M=32, N=64) for warps in (2, 4)), target="sm90")
    _, loops = made.split("for s in range(S)")
    assert "q_cols = gl.convert_layout(q, gl.SliceLayout(0, " in loops
    assert "q_cols[None, :]" in loops
