"""A loop with loads ahead, and its names in another branch, or a branch or loop below: last iterations have their own.

And names that both arms of a branch give a product: they have its layout before it, too.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.launches import Launch, Options, TensorArg

HEAD = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, tail, B: tl.constexpr):
    rows, cols = tl.arange(0, B), tl.arange(0, B)
    acc = tl.zeros((B, B), tl.float32)
"""

OTHER_BRANCH = """    if tail == 0:
        for k in range(0, K, B):
            a = tl.load(a_ptr + rows[:, None] * K + k + cols[None, :])
            b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
            acc += tl.dot(a, b)
    else:
        a = tl.load(a_ptr + rows[:, None] * K + cols[None, :], mask=cols[None, :] < tail)
        b = tl.load(b_ptr + rows[:, None] * B + cols[None, :], mask=rows[:, None] < tail)
        acc += tl.dot(a, b)
"""

BELOW = """    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + cols[None, :])
        b = tl.load(b_ptr + (k + rows[:, None]) * B + cols[None, :])
        acc += tl.dot(a, b)
    if tail != 0:
        a = tl.load(a_ptr + rows[:, None] * K + cols[None, :], mask=cols[None, :] < tail)
        b = tl.load(b_ptr + rows[:, None] * B + cols[None, :], mask=rows[:, None] < tail)
        acc += tl.dot(a, b)
"""

LOOP_BELOW = BELOW.replace("if tail != 0:", "for k in range(0, 16, B):").replace("b_ptr + rows", "b_ptr + (k + rows)")
LOOP_BELOW = LOOP_BELOW.replace("(k + rows)[:, None]", "(k + rows[:, None])")

STORE = """    tl.store(c_ptr + rows[:, None] * B + cols[None, :], acc)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "tail"),
    [(OTHER_BRANCH, 0), (BELOW, 16), (LOOP_BELOW, 16)],
    ids=["the other branch", "a branch below", "a loop below"],
)
def test_tiles_of_the_last_iterations_meet_none_of(tmp_path: Path, loop: str, tail: int) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(HEAD + loop + STORE)
    args = {
        "a_ptr": TensorArg("float16", (32, 128), (128, 1)),
        "b_ptr": TensorArg("float16", (128, 32), (32, 1)),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1)),
    }
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32", "tail": "i32", "B": "constexpr"}
    launch = Launch(
        "kernels.py",
        "kernel",
        types,
        {"B": 32},
        (*args, "K"),
        Options(4, 2),
        (1, 1, 1),
        {**args, "K": 128, "tail": tail},
    )
    compared(path, launch, "gfx942")


@pytest.mark.slow
def test_what_a_branch_overwrites_has_the_layout_of_what_it_becomes(tmp_path: Path) -> None:
    path = tmp_path / "kernels.py"
    path.write_text(
        HEAD.replace("K, tail,", "tail,")
        + """    a = tl.load(a_ptr + rows[:, None] * B + cols[None, :])
    b = tl.load(b_ptr + rows[:, None] * B + cols[None, :])
    if tail == 0:
        acc = tl.dot(a, b)
    else:
        acc = tl.dot(b, a)
"""
        + STORE
    )
    args = {
        "a_ptr": TensorArg("float16", (32, 32), (32, 1)),
        "b_ptr": TensorArg("float16", (32, 32), (32, 1)),
        "c_ptr": TensorArg("float32", (32, 32), (32, 1)),
    }
    types = {"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "tail": "i32", "B": "constexpr"}
    for target in ("sm80", "gfx942"):
        launch = Launch(
            "kernels.py", "kernel", types, {"B": 32}, tuple(args), Options(4, 2), (1, 1, 1), {**args, "tail": 16}
        )
        compared(path, launch, target)
