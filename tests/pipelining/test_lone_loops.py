"""Operands of loops that turn once are put into memory at their products; those that stay first."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tt2gl.convert import convert
from tt2gl.launches import Launch, Options
from tt2gl.pipelining.lone_loops import with_operands_in_lone_loops

HEAD = "def kernel(a, out, n, shared, lhs, rhs, V: gl.constexpr, BLOCK: gl.constexpr):\n"
WAY = """\
a_smem = gl.allocate_shared_memory(a.dtype, [BLOCK, BLOCK], shared, a)
a_lhs = a_smem.load(lhs)
"""
BODY = """\
    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK, BLOCK], shared, x)
    x = mfma(q, x_smem.load(rhs), x)
    d_smem = gl.allocate_shared_memory(d.dtype, [BLOCK, BLOCK], shared, d)
    out = mfma(a_lhs, d_smem.load(rhs), zeros)
"""
ONCE = {"V": 64, "BLOCK": 64}


def written(body: str, *launches: dict[str, object]) -> str:
    """The text of a kernel's body after the rule."""
    text = HEAD + textwrap.indent(body, "    ")
    made = with_operands_in_lone_loops(text, {"kernel": launches or (ONCE,)})
    return textwrap.dedent(made.removeprefix(HEAD))


LOOP = "for i in range(gl.cdiv(V, BLOCK)):\n"
FIRST = "for k in range(n):\n    q += 1\n"
AGAIN = "out += a_smem.load(rhs)\n"


@pytest.mark.parametrize(
    ("body", "launches"),
    [
        pytest.param(f"{WAY}{LOOP}{BODY}", [{"V": 128, "BLOCK": 64}], id="two turns"),
        pytest.param(f"{WAY}{LOOP}{BODY}", [ONCE, {"V": 128, "BLOCK": 64}], id="two turns under one launch"),
        pytest.param(f"{WAY}for i in range(n):\n{BODY}", [{"n": 1}], id="an argument"),
        pytest.param(f"{WAY}while n < V:\n{BODY}", [ONCE], id="turns not counted"),
        pytest.param(f"for k in range(n):\n{textwrap.indent(WAY + LOOP + BODY, '    ')}", [ONCE], id="a loop around"),
        pytest.param(f"{WAY}{LOOP}{BODY}out += a_lhs\n", [ONCE], id="read behind the loop"),
        pytest.param(f"{WAY}{LOOP}    a = a + 1\n{BODY}", [ONCE], id="another value in the loop"),
        pytest.param(f"{WAY}lhs = rhs\n{LOOP}{BODY}", [ONCE], id="another layout"),
        pytest.param(f"{WAY}{LOOP}{BODY}    a_lhs = out\n", [ONCE], id="given in the loop, too"),
        pytest.param(f"{WAY}a_smem.store(n)\n{LOOP}{BODY}", [ONCE], id="memory that is written to"),
        pytest.param(f"{WAY}{LOOP}    x = mfma(q, x_smem.load(rhs), x)\n", [ONCE], id="not read"),
        pytest.param(f"{WAY}{FIRST}    out += a_lhs\n{LOOP}{BODY}{AGAIN}", [ONCE], id="read in a loop above"),
        pytest.param(f"{WAY}{FIRST}    a_smem.store(out)\n{LOOP}{BODY}{AGAIN}", [ONCE], id="written in a loop above"),
        pytest.param(f"{WAY}{FIRST}    a = a + 1\n{LOOP}{BODY}{AGAIN}", [ONCE], id="another value in a loop above"),
        pytest.param(f"{WAY}q += 1\n{LOOP}{BODY}{AGAIN}", [ONCE], id="read again, and no loop above"),
    ],
)
def test_operands_stay(body: str, launches: list[dict[str, object]]) -> None:
    assert written(body, *launches) == body


def test_functions_of_no_launch_stay() -> None:
    text = HEAD + textwrap.indent(f"{WAY}{LOOP}{BODY}", "    ")
    assert with_operands_in_lone_loops(text, {}) == with_operands_in_lone_loops(text, {"kernel": ()}) == text


@pytest.mark.parametrize(
    "loop", [LOOP, *(f"for i in range({each}):\n" for each in ("0, V, BLOCK", "V - BLOCK, V, 2 * BLOCK", "V // BLOCK"))]
)
def test_an_operand_goes_above_the_other_one_of_its_product(loop: str) -> None:
    before, _, after = BODY.partition("    d_smem")
    said = textwrap.indent(f"# what it is of\n{WAY}", "    ")
    assert written(f"# what it is of\n{WAY}{loop}{BODY}") == f"{loop}{before}{said}    d_smem{after}"


def test_an_operand_that_is_read_again_goes_below_the_loops_above() -> None:
    assert written(f"{WAY}{FIRST}{LOOP}{BODY}{AGAIN}") == f"{FIRST}{WAY}{LOOP}{BODY}{AGAIN}"


KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(a_ptr, d_ptr, v_ptr, o_ptr, s_ptr, B: tl.constexpr, V: tl.constexpr, BV: tl.constexpr):
    rows = tl.arange(0, B)
    a = tl.load(a_ptr + rows[:, None] + rows[None, :] * B)
    s = tl.zeros((B, B), tl.float32)
    for i in range(tl.cdiv(V, BV)):
        columns = i * BV + tl.arange(0, BV)
        d = tl.load(d_ptr + rows[:, None] * V + columns[None, :])
        v = tl.load(v_ptr + rows[None, :] * V + columns[:, None])
        s = tl.dot(d, v, s)
        o = tl.dot(a, d)
        tl.store(o_ptr + rows[:, None] * V + columns[None, :], o)
    tl.store(s_ptr + rows[:, None] * B + rows[None, :], s)
"""


def launch(columns: int) -> Launch:
    return Launch(
        file="kernel.py",
        kernel="kernel",
        signature={
            **dict.fromkeys(("a_ptr", "d_ptr", "v_ptr"), "*bf16"),
            **dict.fromkeys(("o_ptr", "s_ptr"), "*fp32"),
            **dict.fromkeys(("B", "V", "BV"), "constexpr"),
        },
        constexprs={"B": 64, "V": columns, "BV": 64},
        divisible_by_16=("a_ptr", "d_ptr", "v_ptr", "o_ptr", "s_ptr"),
        options=Options(4, 2),
    )


@pytest.mark.slow
@pytest.mark.parametrize(("columns", "is_inside"), [(64, True), (128, False)])
def test_launches_say_how_often_a_kernels_loop_turns(tmp_path: Path, columns: int, is_inside: bool) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    made = convert(path, target="gfx942", launches=[launch(columns)], root=tmp_path, compile=False).text
    lines = [line.strip() for line in made.splitlines()]
    loop = next(number for number, line in enumerate(lines) if line.startswith("for i in range("))
    read = next(number for number, line in enumerate(lines) if line.startswith("a_smem ="))
    assert (read > loop) == is_inside
