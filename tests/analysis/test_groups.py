"""Which launches of a kernel one text can serve."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.facts import (
    Access,
    DotFact,
    DotOperandFact,
    Instruction,
    LaunchFacts,
    Lowered,
    RingFact,
    without_lookups,
)
from tt2gl.analysis.groups import fitting, grouped, labels, misaligned, parted
from tt2gl.analysis.terms import Root
from tt2gl.analysis.versions import Wanted
from tt2gl.ir.attributes import DialectAttr
from tt2gl.launches import Launch

LAYOUT = DialectAttr("ttg.blocked", ())


def at(line: int) -> tuple[tuple[str, int, int], ...]:
    """A place in the kernel."""
    return (("kernel.py", line, 0),)


def facts(
    instruction: Instruction | None = None, rings: dict[int, str] | None = None, plain: Sequence[int] = (), dot: int = 9
) -> LaunchFacts:
    """A launch with a dot on line `dot`, loads in rings by line and layout, and plain loads."""
    accesses = {at(line): Access("tt.load", (32,), (1,), (32,), (1,), (0,)) for line in (*plain, *(rings or {}))}
    found = {at(line): RingFact(3, (32, 32), DialectAttr(name, ())) for line, name in (rings or {}).items()}
    operand = DotOperandFact(False, (64, 32), "f16", LAYOUT)
    dots = {at(dot): DotFact(instruction, LAYOUT, operand, operand, False)} if instruction else {}
    return LaunchFacts("kernel", {}, accesses, Lowered(dots, found))


def of_shape(*shape: int) -> LaunchFacts:
    """A launch with a load of a tensor on line 1."""
    ones = (1,) * len(shape)
    return LaunchFacts("kernel", {}, {at(1): Access("tt.load", shape, ones, ones, ones, tuple(range(len(shape))))})


@pytest.mark.parametrize(
    "launches",
    [
        pytest.param([facts(plain=[1]), facts(plain=[1])], id="without dots"),
        pytest.param([facts("wgmma"), facts("wgmma")], id="one instruction"),
        pytest.param([facts("wgmma", {1: "a"}), facts("wgmma", {1: "a"})], id="the same rings"),
        pytest.param([facts("wgmma", dot=1), facts("mma_v2", dot=2)], id="dots of two branches"),
        pytest.param([facts(rings={1: "a"}), facts(plain=[2])], id="loads of two branches"),
        pytest.param([facts(plain=[1]), of_shape(64)], id="other extents"),
    ],
)
def test_one_text_serves(launches: list[LaunchFacts]) -> None:
    assert grouped(launches) == [[0, 1]]


def test_launches_with_and_without_a_stage_for_what_says_where_tiles_are() -> None:
    plain = facts("mma_v2", {1: "a"})
    slot = RingFact(1, (1,), DialectAttr("ttg.swizzled_shared", (("vec", 1), ("maxPhase", 1), ("order", (0,)))))
    slot = replace(slot, looked_up=True)
    copied = replace(plain, lowered=replace(plain.lowered, rings={**plain.lowered.rings, at(2): slot}))
    assert grouped([plain, copied, plain]) == [[0, 2], [1]]
    assert grouped([without_lookups(copied), plain]) == [[0, 1]]


@pytest.mark.parametrize(
    "launches",
    [
        pytest.param([facts("mma_v2"), facts("wgmma")], id="two instructions"),
        pytest.param([facts("wgmma", plain=[1]), facts("wgmma", {1: "a"})], id="one runs ahead"),
        pytest.param([facts("fma", {1: "a"}), facts("mma_v2", {1: "b"})], id="rings for two readers"),
    ],
)
def test_two_texts_serve_the_fastest_first(launches: list[LaunchFacts]) -> None:
    assert grouped(launches) == [[1], [0]]


def test_as_many_dimensions() -> None:
    assert grouped([of_shape(64), of_shape(1, 64), of_shape(32)]) == [[0, 2], [1]]


def test_what_says_where_tiles_are_keeps_none_apart() -> None:
    """Triton copies it ahead or does not; the port looks it up in registers in both cases."""
    launches = [facts("mma_v2", {1: "a", 2: "a"}), facts("mma_v2", {1: "a"}, plain=[2])]
    assert grouped(launches) == [[0], [1]]
    rings = launches[0].lowered.rings
    rings[at(2)] = replace(rings[at(2)], looked_up=True)
    assert grouped(launches) == [[0, 1]]


def test_what_a_launch_adds_keeps_later_ones_apart() -> None:
    assert grouped([facts("wgmma", dot=1), facts("wgmma", dot=2), facts("mma_v2", dot=2)]) == [[0, 1], [2]]


@pytest.mark.parametrize(
    ("layout", "chip", "groups"),
    [("b", "gfx950", [[0], [1]]), ("a", "", [[0], [1]]), ("a", "gfx950", [[0, 1]])],
)
def test_loads_of_two_branches_share_rings_of_lds(layout: str, chip: str, groups: list[list[int]]) -> None:
    order = (("order", (1, 0)),)
    made = (("a", "gfx950"), (layout, chip))
    rings = [RingFact(3, (32, 32), DialectAttr(name, order), registers=not d, direct=d) for name, d in made]
    launches = [LaunchFacts("kernel", {}, {}, Lowered({}, {at(line): rings[line]})) for line in (0, 1)]
    assert grouped(launches) == groups


@pytest.mark.parametrize(
    ("launches", "expected"),
    [
        pytest.param([facts("wgmma"), facts("mma_v2")], ["wgmma", "mma_v2"], id="instructions"),
        pytest.param([facts("wgmma", {1: "a"}), facts("wgmma", plain=[1])], ["pipelined", "plain"], id="loads"),
        pytest.param(
            [facts("wgmma", {1: "a"}), facts("wgmma", plain=[1]), facts("fma")],
            ["wgmma_pipelined", "wgmma_plain", "fma"],
            id="both",
        ),
        pytest.param(
            [facts(rings={1: "a", 2: "a"}), facts(rings={1: "a"}, plain=[2])],
            ["pipelined", "partly_pipelined"],
            id="some loads",
        ),
        pytest.param([facts(), facts()], ["", ""], id="neither"),
    ],
)
def test_labels(launches: list[LaunchFacts], expected: list[str]) -> None:
    assert labels(launches, [[place] for place in range(len(launches))]) == expected


def test_parts_by_what_launches_want() -> None:
    here: list[Wanted] = [{(0, 0, ()): Root("a"), (0, 2, ()): Root("b"), (0, 3, ()): Root("a")}]
    assert parted(Conflict(("kernel.py", 1, ""), (1, 0, 1, 1), here), 4) == [[0, 1, 3], [2]]


def test_no_parts_where_callers_differ() -> None:
    one, other = at(1), at(2)
    here: Wanted = {(0, launch, chain): Root(name) for launch in (0, 1) for chain, name in ((one, "a"), (other, "b"))}
    assert parted(Conflict(("kernel.py", 1, ""), (1, 0, 1, 1), [here]), 2) == [[0, 1]]


def test_the_body_that_serves_best() -> None:
    bodies = {
        "both": [facts("wgmma", {1: "a", 2: "a"})],
        "one": [facts("wgmma", {1: "a"}, [2])],
        "none": [facts("wgmma", plain=[1, 2])],
        "other": [facts("mma_v2", {1: "a", 2: "a"})],
    }
    assert fitting(bodies, facts("wgmma", {1: "a", 2: "a"})) == "both"
    assert fitting(bodies, facts("wgmma", {1: "a"}, [2])) == "one"
    assert fitting(bodies, facts("wgmma", {2: "a"}, [1])) == "none"
    assert fitting(bodies, facts("fma", plain=[1, 2])) is None


def test_launches_with_one_argument_less_that_is_aligned() -> None:
    signature = {"x": "*fp16", "m": "i32", "n": "i32"}
    whole, lacking = (Launch("kernel.py", "kernel", signature, {}, names) for names in (("x", "m", "n"), ("x", "m")))
    both = [facts("wgmma", {1: "a"}), facts("wgmma", plain=[1])]
    assert [launch.divisible_by_16 for launch in misaligned([whole, lacking], both)] == [("x", "m")]
    assert misaligned([whole, whole], both) == []
    assert misaligned([whole, lacking], [facts("wgmma", {1: "a"}), facts("mma_v2", plain=[1])]) == []
