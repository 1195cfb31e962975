"""Casts of products to the type that they have: which go, and what becomes of the sum."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.idle_casts import without_idle_casts
from tt2gl.source import read_source

BODY = """\
    rows = tl.arange(0, 32)
    at = rows[:, None] * 32 + rows[None, :]
    acc = tl.zeros((32, 32), tl.float32)
    for i in range(0, n):
        a = tl.load(a_ptr + i * 1024 + at)
        b = tl.load(b_ptr + i * 1024 + at)
        SUM
    tl.store(o_ptr + at, acc)
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32"},
    constexprs={},
    divisible_by_16=("a_ptr", "b_ptr", "o_ptr"),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (96, 32), (32, 1), None),
        "b_ptr": TensorArg("float16", (96, 32), (32, 1), None),
        "o_ptr": TensorArg("float32", (32, 32), (32, 1), None),
        "n": 3,
    },
)
INTEGERS = replace(
    LAUNCH,
    signature={**LAUNCH.signature, "a_ptr": "*i8", "b_ptr": "*i8"},
    args={
        **(LAUNCH.args or {}),
        "a_ptr": TensorArg("int8", (96, 32), (32, 1), (-9, 9)),
        "b_ptr": TensorArg("int8", (96, 32), (32, 1), (-9, 9)),
    },
)


def text(summed: str) -> str:
    return f"{HEADER}def kernel(a_ptr, b_ptr, o_ptr, n):\n{BODY.replace('SUM', summed)}"


def port(path: Path, summed: str, *launches: Launch) -> str:
    path.write_text(text(summed))
    made = convert(path, target="sm80", launches=launches, root=path.parent, compile=False)
    assert [report.status for report in made.kernels] == ["converted"] * len(launches)
    return made.text


@pytest.mark.parametrize(
    ("summed", "launches"),
    [
        pytest.param("acc += tl.dot(a, b).to(tl.float16)", [LAUNCH], id="rounded"),
        pytest.param("acc += tl.dot(a, b).to(tl.float32)", [INTEGERS], id="of integers"),
        pytest.param("acc += tl.dot(a, b).to(acc.dtype)", [LAUNCH], id="to a type that launches decide"),
        pytest.param("acc += tl.sum(a, 1)[:, None].to(tl.float32)", [LAUNCH], id="no product"),
    ],
)
def test_a_cast_stays(tmp_path: Path, summed: str, launches: list[Launch]) -> None:
    assert ".to(" in port(tmp_path / "kernel.py", summed, *launches)


@pytest.mark.parametrize(
    "summed",
    [
        "acc += tl.dot(a, b).to(tl.float32)",
        "acc = acc + tl.dot(\n            a,\n            b,  # turned\n        ).to(tl.float32)",
        "acc = (tl.dot(a, b)).to(tl.float32) + acc",
    ],
)
def test_a_cast_that_changes_nothing_goes(tmp_path: Path, summed: str) -> None:
    made = port(tmp_path / "kernel.py", summed, LAUNCH)
    assert ".to(" not in made
    assert "acc = mma_v2(a, b, acc)" in made
    equal(tmp_path / "kernel.py", text(summed), made, LAUNCH, "sm80")


def test_only_casts_by_name_at_the_places_are_taken_away() -> None:
    summed = "acc += tl.dot(a, b).to(tl.float32) + tl.dot(b, a).to(tl.float32)"
    source = read_source(Path("kernel.py"), text(summed))
    line = next(number for number, each in enumerate(source.text.splitlines(), 1) if "acc +=" in each)
    assert without_idle_casts(source, [(line, 8)]).functions == ()
    done = without_idle_casts(source, [(line, 15)])
    assert "acc += tl.dot(a, b) + tl.dot(b, a).to(tl.float32)" in done.text
    other = read_source(Path("kernel.py"), text("acc += tl.dot(a, b).to(a.dtype)"))
    assert without_idle_casts(other, [(line, 15)]).functions == ()
