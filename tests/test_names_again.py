"""What a loop loads under a name that was another thing before: a name of its own, where nothing carries that."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, p_ptr, n, M: tl.constexpr, D: tl.constexpr):
    rows = tl.arange(0, M)
    ds = tl.arange(0, D)
    at = rows[:, None] * D + ds[None, :]
    acc = tl.zeros([D, D], tl.float32)
    out = tl.zeros([M, M], tl.float32)
    {before}
    for i in range(n):
        y = tl.load(y_ptr + i * M * D + at)
        {early}
        x = tl.load(x_ptr + i * M * D + at)
        acc = tl.dot(tl.trans(y), x, acc)
        out = tl.dot(x, tl.trans(y), out)
    {behind}
    tl.store(o_ptr + ds[:, None] * D + ds[None, :], acc)
    tl.store(p_ptr + rows[:, None] * M + rows[None, :], out)
"""
FIRST = "x = tl.load(x_ptr + at)\n    out = tl.dot(x, tl.trans(x), out)"
IN_A_LOOP = "for j in range(n):\n        x = tl.load(x_ptr + at)\n        out = tl.dot(x, tl.trans(x), out)"
SIZE, TURNS = 64, 3
LAUNCH = Launch(
    "kernel.py",
    "kernel",
    {**dict.fromkeys(["x_ptr", "y_ptr"], "*fp16"), "o_ptr": "*fp32", "p_ptr": "*fp32", "n": "i32"}
    | dict.fromkeys(["M", "D"], "constexpr"),
    {"M": SIZE, "D": SIZE},
    ("x_ptr", "y_ptr", "o_ptr", "p_ptr"),
    Options(4, 3),
    (1, 1, 1),
    {
        "x_ptr": TensorArg("float16", (TURNS, SIZE, SIZE), (SIZE * SIZE, SIZE, 1)),
        "y_ptr": TensorArg("float16", (TURNS, SIZE, SIZE), (SIZE * SIZE, SIZE, 1)),
        "o_ptr": TensorArg("float32", (SIZE, SIZE), (SIZE, 1)),
        "p_ptr": TensorArg("float32", (SIZE, SIZE), (SIZE, 1)),
        "n": TURNS,
    },
)


def written(folder: Path, before: str, early: str = "pass", behind: str = "pass") -> Path:
    path = folder / "kernel.py"
    path.write_text(KERNEL.format(before=before, early=early, behind=behind))
    return path


def text(path: Path) -> str:
    made = convert(path, target="sm80", launches=[LAUNCH], root=path.parent, compile=False)
    assert [each.status for each in made.kernels] == ["converted"]
    return made.text


def test_what_a_loop_loads_has_a_name_of_its_own(tmp_path: Path) -> None:
    made = text(written(tmp_path, FIRST))
    assert "x_2 = x_2_buf.index(slot).load(" in made
    assert "convert_layout(x_2" not in made


def test_its_products_read_it_as_they_take_it(tmp_path: Path) -> None:
    _, triton, gluon = compared(written(tmp_path, FIRST), LAUNCH, "sm80")
    assert gluon.convert_layouts <= triton.convert_layouts


@pytest.mark.parametrize(
    ("before", "early", "behind"),
    [
        pytest.param(FIRST, "out = tl.dot(x, tl.trans(y), out)", "pass", id="the loop reads what was before"),
        pytest.param(FIRST, "pass", "tl.store(x_ptr + at, x)", id="it is read behind"),
        pytest.param(IN_A_LOOP, "pass", "pass", id="gone"),
        pytest.param("pass", "pass", "pass", id="nothing before"),
    ],
)
def test_other_names_stay(tmp_path: Path, before: str, early: str, behind: str) -> None:
    assert "x_2 = " not in text(written(tmp_path, before, early, behind))
