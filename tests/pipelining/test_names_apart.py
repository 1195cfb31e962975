"""A name for several things is told apart where Gluon would have a loop carry one into the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.pipelining.names_apart import carried_otherwise, with_names_apart

TWO_LOOPS = """def kernel(n):
    for i in range(n):
        y = slots[0]
        use(y.load())
    z = 0
    for i in range(n):
        y = load(i)
        use(y)
"""


def test_a_name_of_two_loops_is_numbered_in_the_second() -> None:
    """Each of the two is read by what follows it alone."""
    error = (
        "kernel.py:6:4: AssertionError: Loop carried variable y changed type, was <class 'a'> but is now <class 'b'>."
    )
    assert carried_otherwise(error, TWO_LOOPS) == ("kernel", "y")
    assert with_names_apart(TWO_LOOPS, {"kernel": {"y"}}) == TWO_LOOPS.replace("y = load(i)", "y_2 = load(i)").replace(
        "use(y)\n", "use(y_2)\n"
    )


@pytest.mark.parametrize(
    "text",
    [
        TWO_LOOPS.replace("z = 0", "use(y.load())").replace("y = load(i)", "y = load(i) if i else y"),
        TWO_LOOPS.replace("y = load(i)", "y += load(i)"),
        TWO_LOOPS.replace("for i in range(n):\n        y = load(i)", "for y in range(n):\n        pass"),
        TWO_LOOPS.replace("    z = 0\n", "").replace("        y = load(i)\n", ""),
    ],
    ids=["carried on", "added to", "counted", "read in the next loop"],
)
def test_one_thing_stays_one(text: str) -> None:
    """What a loop does carry keeps its name, and its error."""
    error = "kernel.py:5:4: AssertionError: Loop-carried variable y has initial type <a> but is re-assigned to <b>."
    assert carried_otherwise(error, text) is None
    assert with_names_apart(text, {"kernel": {"y"}}) == text


def test_other_errors_name_nothing() -> None:
    """What the compiler says of something else is nobody's name."""
    assert (
        carried_otherwise("kernel.py:6:4: Mismatched type for y between then block and else block.", TWO_LOOPS) is None
    )


KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr, y_ptr, o_ptr, n, B: tl.constexpr, K: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, K)
    scores = tl.zeros((B, B), tl.float32)
    for start in range(0, n, K):
        x = tl.load(x_ptr + rows[:, None] * n + start + cols[None, :])
        y = tl.load(y_ptr + rows[:, None] * n + start + cols[None, :])
        scores = tl.dot(x, tl.trans(y), scores)
    for start in range(0, n, K):
        y = tl.load(y_ptr + rows[:, None] * n + start + cols[None, :]).to(tl.float32)
        o = tl.dot(scores, y)
        tl.store(o_ptr + rows[:, None] * n + start + cols[None, :], o)
"""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["gfx942", "sm90"])
def test_two_loops_that_call_their_tiles_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str) -> None:
    """On gfx942 the first loop's tile is a slot of LDS behind it, unless its last iterations see the loop below."""
    monkeypatch.setattr("tt2gl.pipelining.endings.rivals", lambda *_: frozenset[str]())
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    tile = TensorArg("float16", (64, 128), (128, 1))
    args = {"x_ptr": tile, "y_ptr": tile, "o_ptr": TensorArg("float32", (64, 128), (128, 1))}
    types = {"x_ptr": "*fp16", "y_ptr": "*fp16", "o_ptr": "*fp32", "n": "i32", "B": "constexpr", "K": "constexpr"}
    launch = Launch(
        "kernel.py",
        "kernel",
        types,
        {"B": 64, "K": 32},
        (*args, "n"),
        Options(4, 2),
        (1,),
        {**args, "n": 128},
    )
    first = convert(file, target=target, launches=[launch], root=tmp_path, compile=False).text
    made = convert(file, target=target, launches=[launch], root=tmp_path)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert (made.text != first) == (target == "gfx942")
    compared(file, launch, target)
