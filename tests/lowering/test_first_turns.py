"""Loops that the compiler writes out, whose first turn alone copies loads ahead: what is found, and written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.test_descriptors import equal
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.first_turns import with_first_turns_apart
from tt2gl.source import read_source

TEXT = f"""{HEADER}def kernel(a_ptr, b_ptr, ends_ptr, o_ptr, DIMS: tl.constexpr, D: tl.constexpr):
    rows, cols = tl.arange(0, 32), tl.arange(0, 32)
    acc = tl.zeros((32, 32), tl.float32)
    lo = 0
    for k in tl.static_range(DIMS):
        hi = tl.load(ends_ptr + k)

        for start in range(lo, hi, 32):
            d = start + cols
            a = tl.load(a_ptr + rows[:, None] * D + d[None, :])
            b = tl.load(b_ptr + rows[:, None] * D + d[None, :])
            acc = tl.dot(a, tl.trans(b), acc)
        tl.store(o_ptr + k * 1024 + rows[:, None] * 32 + cols[None, :], acc)
        lo = hi
"""
LAUNCH = Launch(
    file="kernel.py",
    kernel="kernel",
    signature={
        "a_ptr": "*fp16",
        "b_ptr": "*fp16",
        "ends_ptr": "*i32",
        "o_ptr": "*fp32",
        "DIMS": "constexpr",
        "D": "constexpr",
    },
    constexprs={"DIMS": 3, "D": 256},
    divisible_by_16=("a_ptr", "b_ptr", "ends_ptr", "o_ptr"),
    options=Options(num_stages=3),
    grid=(1,),
    args={
        "a_ptr": TensorArg("float16", (32, 256), (256, 1), None),
        "b_ptr": TensorArg("float16", (32, 256), (256, 1), None),
        "ends_ptr": TensorArg("int32", (3,), (1,), (64, 160)),
        "o_ptr": TensorArg("float32", (3, 32, 32), (1024, 32, 1), None),
    },
)


def port(path: Path, text: str) -> str:
    path.write_text(text)
    made = convert(path, target="sm80", launches=[LAUNCH], root=path.parent, compile=False)
    assert [report.status for report in made.kernels] == ["converted"]
    return made.text


@pytest.mark.parametrize(
    "text",
    [TEXT.replace("range(lo, hi, 32)", "range(0, hi, 32)"), TEXT.replace("tl.static_range(DIMS)", "range(DIMS)")],
    ids=["all turns copy ahead", "a loop of the compiler's"],
)
def test_other_loops_stay(text: str, tmp_path: Path) -> None:
    assert "if k == 0:" not in port(tmp_path / "kernel.py", text)


def test_a_loop_with_a_string_of_several_lines_stays() -> None:
    text = TEXT.replace("        lo = hi\n", '        """to the\nnext"""\n        lo = hi\n')
    assert with_first_turns_apart(read_source(Path("kernel.py"), text), [(10, 4)]).functions == ()


def test_the_body_is_written_twice() -> None:
    text = TEXT.replace("static_range(DIMS):", "static_range(1, DIMS):  # dims")
    done = with_first_turns_apart(read_source(Path("kernel.py"), text), [(10, 4)]).text
    assert (
        """\
    for k in tl.static_range(1, DIMS):  # dims
        if k == 1:
            hi = tl.load(ends_ptr + k)

            for start in range(lo, hi, 32):
                d = start + cols
"""
        in done
    )
    assert done.endswith("acc)\n            lo = hi\n")
    assert done.count("        else:\n            hi = tl.load(ends_ptr + k)\n") == 1


@pytest.mark.slow
def test_a_first_turn_that_alone_copies_ahead_is_apart(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    made = port(path, TEXT)
    assert made.count("if k == 0:") == 1
    assert made.count("async_copy.wait_group(0)") == 1
    equal(path, TEXT, made, LAUNCH, "sm80")
