"""Loops of one turn: which are written out, how, and what runs ahead of the loop around them then."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.single_turns import without_single_turns
from tt2gl.source import read_source

BODY = """\
    rows = tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    for i in range(0, n, 32):
        qk = tl.zeros((32, 32), tl.float32)
        for d in range(0, D, B):  # the depth
            offs = d + tl.arange(0, B)
            # one part of it
            q = tl.load(q_ptr + rows[:, None] * D + offs[None, :])

            k = tl.load(k_ptr + (i + rows)[None, :] * D + offs[:, None])
            qk += tl.dot(q, k)
        acc += qk
    tl.store(o_ptr + rows[:, None] * 32 + rows[None, :], acc)
"""
TEXT = f"{HEADER}def kernel(q_ptr, k_ptr, o_ptr, n, D: tl.constexpr, B: tl.constexpr):\n{BODY}"
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"q_ptr": "*fp16", "k_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "D": "constexpr", "B": "constexpr"},
    constexprs={"D": 64, "B": 64},
    divisible_by_16=("q_ptr", "k_ptr", "o_ptr", "n"),
    grid=(1,),
    args={
        "q_ptr": TensorArg("float16", (32, 64), (64, 1), None),
        "k_ptr": TensorArg("float16", (96, 64), (64, 1), None),
        "o_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        "n": 96,
    },
)


def place(text: str) -> tuple[int, int]:
    line = next(number for number, each in enumerate(text.splitlines(), 1) if "for d in" in each)
    return line, 8


def port(path: Path, text: str, *launches: Launch) -> str:
    path.write_text(text)
    made = convert(path, target="sm90", launches=launches, root=path.parent, compile=False)
    assert [each.message for report in made.kernels for each in report.diagnostics] == []
    return made.text


@pytest.mark.slow
def test_its_tiles_are_copied_ahead_of_the_loop_around(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, TEXT, LAUNCH)
    assert "for d in" not in made
    assert made.index("k_buf = ") < made.index("for i in range(")
    equal(path, TEXT, made, LAUNCH)


@pytest.mark.slow
def test_so_are_those_of_one_that_counts_down(tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", TEXT.replace("(0, D, B)", "(D // B - 1, -1, -1)").replace("= d +", "= d * B +")
    made = port(path, text, LAUNCH)
    assert "for d in" not in made
    assert made.index("k_buf = ") < made.index("for i in range(")
    equal(path, text, made, LAUNCH)


STATIC = TEXT.replace("range(0, D, B)", "tl.static_range(0, D, B)")


@pytest.mark.slow
def test_so_are_those_of_one_that_the_compiler_writes_out(tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", STATIC.replace("offs = d +", "offs = (0 if d == 0 else n) +")
    made = port(path, text, LAUNCH)
    assert "for d in" not in made
    assert "d: gl.constexpr = 0" in made
    assert made.index("k_buf = ") < made.index("for i in range(")
    equal(path, text, made, LAUNCH)


ARGUMENT = TEXT.replace("n, D", "n, m, D").replace("(0, D, B)", "(0, m, B)")


@pytest.mark.parametrize(
    ("text", "launches"),
    [
        (TEXT, [replace(LAUNCH, constexprs={"D": 64, "B": 32})]),
        (TEXT, [LAUNCH, replace(LAUNCH, constexprs={"D": 64, "B": 32})]),
        (TEXT.replace("(0, D, B)", "(D - B, -1, -B)"), [replace(LAUNCH, constexprs={"D": 64, "B": 32})]),
        (TEXT.replace("(0, D, B)", "(0, n, B)"), [LAUNCH]),
        (ARGUMENT, [replace(LAUNCH, signature={**LAUNCH.signature, "m": "i32"}, args={**(LAUNCH.args or {}), "m": 1})]),
    ],
    ids=[
        "two turns",
        "one under some launches",
        "two turns downwards",
        "bounds that no launch knows",
        "an argument of one",
    ],
)
def test_other_loops_stay(text: str, launches: list[Launch], tmp_path: Path) -> None:
    assert re.search("for d in", port(tmp_path / "kernel.py", text, *launches))


@pytest.mark.parametrize(
    ("text", "turns"),
    [(STATIC, 2), (STATIC.replace("    acc = ", "    d = n\n    acc = "), 1)],
    ids=["two turns", "a name"],
)
def test_others_that_the_compiler_writes_out_stay(text: str, turns: int, tmp_path: Path) -> None:
    path, launch = tmp_path / "kernel.py", replace(LAUNCH, constexprs={"D": 64, "B": 64 // turns})
    path.write_text(text)
    assert "for d in" in convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text


def test_the_text(tmp_path: Path) -> None:
    done = without_single_turns(read_source(tmp_path / "kernel.py", TEXT), [place(TEXT)])
    assert (
        """\
        tl.static_assert(0 < D and D <= B, "the loop is taken to have one turn")
        d = 0  # the depth
        offs = d + tl.arange(0, B)
        # one part of it
        q = tl.load(q_ptr + rows[:, None] * D + offs[None, :])

        k = tl.load(k_ptr + (i + rows)[None, :] * D + offs[:, None])
        qk += tl.dot(q, k)
        acc += qk
"""
        in done.text
    )


@pytest.mark.parametrize(
    ("bounds", "asserted", "first"),
    [
        ("tl.cdiv(D, B)", "tl.cdiv(D, B) == 1", "0"),
        ("B, D", "B < D and D <= B + 1", "B"),
        ("D, 0, -1", "D == 0 + 1", "D"),
        ("D // B - 1, -1, -1", "D // B - 1 == 0", "D // B - 1"),
        ("D - B, -1, -B", "-1 < D - B and D - B <= -1 + B", "D - B"),
        ("-D, B, 2 * D", "-D < B and B <= -D + 2 * D", "-D"),
        ("2, D if B else 4, B", "2 < (D if B else 4) and (D if B else 4) <= 2 + B", "2"),
    ],
)
def test_bounds(bounds: str, asserted: str, first: str, tmp_path: Path) -> None:
    text = TEXT.replace("0, D, B", bounds)
    done = without_single_turns(read_source(tmp_path / "kernel.py", text), [place(text)])
    assert f'tl.static_assert({asserted}, "' in done.text
    assert f"d = {first}  #" in done.text


@pytest.mark.parametrize("change", [("# one part", '"""one\n            part"""  #'), ("tl.", "other.")])
def test_what_stays(change: tuple[str, str], tmp_path: Path) -> None:
    text = HEADER + TEXT.removeprefix(HEADER).replace(*change)
    assert without_single_turns(read_source(tmp_path / "kernel.py", text), [place(text)]).functions == ()
