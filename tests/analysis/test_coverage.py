"""What no launch reaches, and the flags that are turned to reach it."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tt2gl.analysis.coverage import MOST_VARIANTS, unreached, unreached_creations, variants
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.kernel import parsed
from tt2gl.launches import Launch
from tt2gl.slicing.slices import Slice

Observed = Callable[..., tuple[Slice, list[LaunchFacts]]]
MakeLaunch = Callable[..., Launch]

TYPES = "x_ptr=*fp16 y_ptr=*fp16 n=i32"

KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, n, FLAG: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if {}:
        x += tl.zeros([BLOCK], tl.float16)
    tl.store(y_ptr + offs, x)
"""


def conditions(observed: Observed, test: str, *launches: Launch) -> list[str]:
    """The conditions of branches with a side that no launch took."""
    kernel, facts = observed(KERNEL.format(test), *launches)
    return [ast.unparse(node.test) for nodes in unreached(parsed(kernel), facts).values() for node in nodes]


@pytest.mark.parametrize("test", ["not FLAG", "n > 3", "MODE == 'b' or n > 3"])
def test_reached(observed: Observed, launch: MakeLaunch, test: str) -> None:
    assert conditions(observed, test, launch(TYPES, FLAG=False, MODE="b", BLOCK=1024)) == []


@pytest.mark.parametrize("test", ["FLAG", "MODE == 'b'", "FLAG and n > 3"])
def test_unreached(observed: Observed, launch: MakeLaunch, test: str) -> None:
    assert conditions(observed, test, launch(TYPES, FLAG=False, MODE="a", BLOCK=1024)) == [test]


def test_one_launch_of_several_is_enough(observed: Observed, launch: MakeLaunch) -> None:
    launches = [launch(TYPES, FLAG=flag, MODE="a", BLOCK=1024) for flag in (False, True)]
    assert conditions(observed, "FLAG", *launches) == []


def test_creations_out_of_reach(observed: Observed, launch: MakeLaunch) -> None:
    kernel, facts = observed(KERNEL.format("FLAG"), launch(TYPES, FLAG=False, MODE="a", BLOCK=1024))
    ((place,),) = unreached_creations(parsed(kernel), facts).values()
    line = kernel.modules[0].text.splitlines()[place[0] - 1]
    assert line[place[1] : place[3]] == "tl.zeros([BLOCK], tl.float16)"


def turned(launch: Launch, *tests: str) -> list[dict[str, object]]:
    """What the launches tried have for FLAG and MODE."""
    branches = [ast.parse(f"if {test}: pass").body[0] for test in tests]
    nodes = [node for node in branches if isinstance(node, ast.If)]
    made = variants([launch], {("kernel.py", 1): nodes})
    return [{name: other.constexprs[name] for name in ("FLAG", "MODE")} for other in made]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("FLAG", [{"FLAG": True, "MODE": "a"}]),
        ("not FLAG", [{"FLAG": True, "MODE": "a"}]),
        ("MODE == 'b'", [{"FLAG": False, "MODE": "b"}]),
        ("FLAG or MODE == 'b'", [{"FLAG": True, "MODE": "a"}, {"FLAG": False, "MODE": "b"}]),
        pytest.param("MODE == 3", [], id="a value of another type"),
        pytest.param("OTHER", [], id="no parameter"),
        pytest.param("MODE is None", [], id="nothing to compare with"),
    ],
)
def test_flags_are_turned_one_at_a_time(launch: MakeLaunch, test: str, expected: list[dict[str, object]]) -> None:
    assert turned(launch(TYPES, FLAG=False, MODE="a", BLOCK=1024), test) == expected


@pytest.mark.parametrize("test", ["FLAG and MODE == 'b'", "FLAG & (MODE == 'b')", "not (not FLAG or MODE != 'b')"])
def test_flags_are_turned_together_where_one_is_not_enough(launch: MakeLaunch, test: str) -> None:
    first = launch(TYPES, FLAG=False, MODE="a", BLOCK=1024)
    assert turned(first, test)[-1] == {"FLAG": True, "MODE": "b"}
    assert len(turned(first, "FLAG and not FLAG and MODE == 'b'")) == 2


def test_flags_are_turned_together_for_a_branch_in_a_branch(launch: MakeLaunch) -> None:
    first = launch(TYPES, FLAG=False, MODE=False, BLOCK=1024)
    nested = ast.parse("if FLAG:\n  for i in x:\n    if MODE: a\n    else: b\nelse:\n  c").body[0]
    assert isinstance(nested, ast.If)
    made = variants([first], {("kernel.py", 1): [nested]})
    flags = [(other.constexprs["FLAG"], other.constexprs["MODE"]) for other in made]
    assert flags == [(True, False), (False, True), (True, True)]


def test_no_launch_is_tried_twice(launch: MakeLaunch) -> None:
    assert len(turned(launch(TYPES, FLAG=False, MODE="a", BLOCK=1024), "FLAG", "FLAG", "not FLAG")) == 1


def test_the_number_of_launches_tried_is_bounded(launch: MakeLaunch) -> None:
    tests = [f"MODE == '{value}'" for value in range(3 * MOST_VARIANTS)]
    assert len(turned(launch(TYPES, FLAG=False, MODE="a", BLOCK=1024), *tests)) == MOST_VARIANTS
