"""Loops that the compiler writes out: whose turns are written out in the text, how, and what layouts they have then."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.turns_apart import with_turns_apart
from tt2gl.plan import TurnsApart
from tt2gl.source import read_source

BODY = """\
    x = tl.load(x_ptr + tl.arange(0, B))
    at = 0
    for s in tl.static_range(LEVELS):  # from fine to coarse
        x = tl.max(tl.reshape(x, (B >> (s + 1), 2)), 1)
        tl.store(y_ptr + at + tl.arange(0, B >> (s + 1)), x)

        at += B >> (s + 1)
"""
TEXT = f"{HEADER}def kernel(x_ptr, y_ptr, B: tl.constexpr, LEVELS: tl.constexpr):\n{BODY}"
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "B": "constexpr", "LEVELS": "constexpr"},
    constexprs={"B": 512, "LEVELS": 2},
    divisible_by_16=("x_ptr", "y_ptr"),
    grid=(1,),
    args={"x_ptr": TensorArg("float32", (512,), (1,), None), "y_ptr": TensorArg("float32", (512,), (1,), None)},
)
LONGER = replace(LAUNCH, constexprs={"B": 512, "LEVELS": 3})


IN_A_HELPER = f"""{HEADER}def exchange(x, s: tl.constexpr, B: tl.constexpr):
    pairs = tl.permute(tl.reshape(x, (B // (2 << s), 2, 1 << s)), (0, 2, 1))
    a, b = tl.split(pairs)
    return tl.reshape(tl.permute(tl.join(b, a), (0, 2, 1)), (B,))


@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr, LEVELS: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, B))
    for s in tl.static_range(LEVELS):
        x = exchange(x, s, B)
    tl.store(y_ptr + tl.arange(0, B), x)
"""


COARSER = f"""{HEADER}def coarser(x, s: tl.constexpr, B: tl.constexpr):
    a, b = tl.split(tl.reshape(x, (B >> (s + 1), 2)))
    return tl.maximum(a, b)


@triton.jit
{TEXT.partition("@triton.jit")[2].strip()}
""".replace("tl.max(tl.reshape(x, (B >> (s + 1), 2)), 1)", "coarser(x, s, B)")


def port(path: Path, text: str, *launches: Launch, compiled: bool = False) -> str:
    path.write_text(text)
    made = convert(path, target="sm90", launches=launches, root=path.parent, compile=compiled)
    assert [each.message for report in made.kernels for each in report.diagnostics] == []
    return made.text


@pytest.mark.parametrize(
    "text",
    [
        TEXT.replace("B >> (s + 1)", "B // 2")
        .replace("x = tl.max", "z = tl.max")
        .replace("s + 1)), x)", "s + 1)), z)"),
        TEXT.replace("static_range(LEVELS)", "range(2)")
        .replace("B >> (s + 1)", "B // 2")
        .replace(" x = tl.max", " z = tl.max"),
        TEXT + "    tl.store(y_ptr, s)\n",
        IN_A_HELPER.replace("2 << s", "4").replace("1 << s", "2"),
    ],
    ids=["equal shapes", "a loop of the compiler's", "what it counts by is read after it", "equal shapes in a helper"],
)
def test_other_loops_stay(text: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(text)
    assert "for s in" in convert(path, target="sm90", launches=[LAUNCH], root=tmp_path, compile=False).text


def test_turns_of_other_shapes_have_layouts_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, TEXT, LAUNCH)
    assert "for s in" not in made
    assert 'gl.static_assert(LEVELS == 2, "the loop is taken to have so many turns")' in made
    assert made.count("gl.max(") == 2
    equal(path, TEXT, made, LAUNCH)


def test_so_have_turns_that_some_launches_have(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, TEXT, LAUNCH, LONGER)
    assert "if 2 < LEVELS:" in made
    assert made.count("gl.max(") == 3
    for launch in (LAUNCH, LONGER):
        equal(path, TEXT, made, launch)


@pytest.mark.slow
def test_so_have_those_that_a_helper_does(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, COARSER, LAUNCH, compiled=True)  # as it fails to compile otherwise
    assert "static_range" not in made
    assert made.count(" = coarser(") == 2
    equal(path, COARSER, made, LAUNCH)


def test_a_helper_without_layouts_of_its_own_stays(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, IN_A_HELPER, LAUNCH, compiled=True)
    assert "static_range(LEVELS)" in made
    equal(path, IN_A_HELPER, made, LAUNCH)


def loop(text: str, *values: int, fewest: int | None = None) -> TurnsApart:
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "for s in" in each)
    return TurnsApart((line, 4), values, len(values) if fewest is None else fewest)


def written(path: Path, text: str, *loops: TurnsApart) -> str:
    return with_turns_apart(read_source(path, text), loops).text


def test_the_text(tmp_path: Path) -> None:
    text = written(tmp_path / "kernel.py", TEXT, loop(TEXT, 0, 1, fewest=1))
    assert (
        """\
    # from fine to coarse
    tl.static_assert(LEVELS <= 2, "the loop is taken to have so many turns")
    x = tl.max(tl.reshape(x, (B >> (0 + 1), 2)), 1)
    tl.store(y_ptr + at + tl.arange(0, B >> (0 + 1)), x)

    at += B >> (0 + 1)
    if 1 < LEVELS:
        x = tl.max(tl.reshape(x, (B >> (1 + 1), 2)), 1)
"""
        in text
    )


@pytest.mark.parametrize(
    ("bounds", "values", "said"),
    [
        ("2", (0, 1), None),
        ("FIRST, 3", (1, 2), "FIRST == 1"),
        ("1, LEVELS + 1", (1, 2), "(LEVELS + 1) == 3"),
        ("0, LEVELS, 2", (0, 2), "3 <= LEVELS and LEVELS <= 4"),
        ("LEVELS, -1, -1", (1, 0), "LEVELS == 1"),
        ("3, LEVELS, STEP", (3, 1), "STEP == -2 and -1 <= LEVELS and LEVELS <= 0"),
    ],
)
def test_what_it_is_taken_to_count_is_said(
    bounds: str, values: tuple[int, ...], said: str | None, tmp_path: Path
) -> None:
    text = TEXT.replace("static_range(LEVELS)", f"static_range({bounds})")
    made = written(tmp_path / "kernel.py", text, loop(text, *values))
    assert f"tl.static_assert({said}," in made if said else "static_assert" not in made


def test_kernels_that_count_otherwise_keep_it(tmp_path: Path) -> None:
    assert written(tmp_path / "kernel.py", TEXT, loop(TEXT, 0, 1), loop(TEXT, 1, 2)) == TEXT
    assert "if 1 < LEVELS" in written(tmp_path / "kernel.py", TEXT, loop(TEXT, 0, 1), loop(TEXT, 0))
