"""Rule `dispatches`: a kernel with several bodies, and the choice between them."""

from __future__ import annotations

import textwrap

import pytest

from tt2gl.plan import Choice, Dispatch, FilePlan, FunctionPlan
from tt2gl.rewrite.file import rewrite
from tt2gl.source import read_source
from tt2gl.stages import Stages

KERNEL = '''
import triton
import triton.language as tl


# what it is for
@triton.autotune(configs=[], key=[])
@triton.jit
def kernel(x_ptr, n, BLOCK: tl.constexpr = 64, *, FLAG: tl.constexpr):
    """What it does."""

    # a comment
    tl.store(x_ptr, n)


@triton.jit
def other(x_ptr):
    kernel(x_ptr, 1, FLAG=True)
'''

CHOICE = Choice("BLOCK >= 64", "kernel_wgmma", "kernel_mma_v2", "a reason")


def written(choice: Choice = CHOICE, text: str = KERNEL, **plan: object) -> str:
    """The kernel with the bodies that a choice names."""
    source = read_source("f.py", text)
    line = source.kernels[0].line if "def other" not in text else source.kernel("kernel").line
    names = dict.fromkeys(name for name in ("kernel_wgmma", "kernel_mma_v2", "kernel_fma") if name in repr(choice))
    functions = tuple(FunctionPlan("f.py", line, True, name=name) for name in names)
    return rewrite(source, FilePlan(functions, (), dispatches=(Dispatch(line, choice, **plan),)))  # type: ignore[arg-type]


def the_choice(made: str) -> str:
    """The body of the kernel itself, after its docstring."""
    body = made[made.index("def kernel(") :].partition("\n\n\n")[0]
    return textwrap.dedent(body[body.index('"""\n') + 4 :]).strip("\n")


def test_no_dispatch_no_bodies() -> None:
    source = read_source("f.py", KERNEL)
    made = rewrite(source, FilePlan((FunctionPlan("f.py", source.kernel("kernel").line, True),), ()))
    assert made.count("def kernel") == 1
    assert "gl.store(x_ptr, n)" in made


def test_what_a_launch_sees_stays_with_the_kernel() -> None:
    made = written()
    bodies, _, kernel = made.partition("# what it is for\n")
    assert "autotune" not in bodies
    assert '"""What it does."""' not in bodies
    signature = "def kernel_wgmma(x_ptr, n, BLOCK: gl.constexpr, *, FLAG: gl.constexpr):"
    assert f"@gluon.jit\n{signature}\n    # a comment\n" in bodies
    assert kernel.startswith(
        "@triton.autotune(configs=[], key=[])\n@gluon.jit\n"
        'def kernel(x_ptr, n, BLOCK: gl.constexpr = 64, *, FLAG: gl.constexpr):\n    """What it does."""\n'
    )


def test_other_functions_call_the_kernel_as_before() -> None:
    assert made_other(written()) == made_other(KERNEL)


def made_other(text: str) -> str:
    """The function after the kernel."""
    return text[text.index("@triton.jit\ndef other") :]


def test_the_choice_passes_every_parameter() -> None:
    assert the_choice(written()) == (
        "# a reason\nif BLOCK >= 64:\n    kernel_wgmma(x_ptr, n, BLOCK, FLAG=FLAG)\n"
        "else:\n    kernel_mma_v2(x_ptr, n, BLOCK, FLAG=FLAG)"
    )


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        pytest.param(
            Choice("A", "kernel_wgmma", Choice("B", "kernel_mma_v2", "kernel_fma", "why")),
            "if A:\n    kernel_wgmma()\nelif B:\n    # why\n    kernel_mma_v2()\nelse:\n    kernel_fma()",
            id="on the other side",
        ),
        pytest.param(
            Choice("A", Choice("B", "kernel_wgmma", "kernel_mma_v2", "why"), "kernel_fma"),
            "if A:\n    # why\n    if B:\n        kernel_wgmma()\n    else:\n        kernel_mma_v2()\n"
            "else:\n    kernel_fma()",
            id="on this side",
        ),
    ],
)
def test_a_choice_in_a_choice(choice: Choice, expected: str) -> None:
    made = the_choice(written(choice))
    assert made.replace("x_ptr, n, BLOCK, FLAG=FLAG", "") == expected


def test_a_long_condition_takes_several_lines() -> None:
    parts = [f"gl.num_warps() == {number} and BLOCK == {number}" for number in (16, 32, 64)]
    made = the_choice(written(Choice(" or ".join(parts), "kernel_wgmma", "kernel_mma_v2")))
    assert made.startswith(f"if (\n    {parts[0]}\n    or {parts[1]}\n    or {parts[2]}\n):\n    kernel_wgmma(")


def test_stages_are_told_to_the_kernel_and_passed_to_the_bodies_that_ask() -> None:
    stages = Stages("NUM_STAGES", True, 3, True)
    text = KERNEL.replace(" = 64, *, FLAG", ", FLAG")
    made = written(text=text, passed={"kernel_wgmma": ("NUM_STAGES",)}, stages=stages)
    assert made.count("@triton.heuristics(") == 1
    assert "def kernel(x_ptr, n, BLOCK: gl.constexpr, FLAG: gl.constexpr, NUM_STAGES: gl.constexpr = 3):" in made
    assert "kernel_wgmma(x_ptr, n, BLOCK, FLAG, NUM_STAGES=NUM_STAGES)\n" in made
    assert "kernel_mma_v2(x_ptr, n, BLOCK, FLAG)\n" in made


def test_flags_are_taken_from_the_arguments() -> None:
    made = written(Choice("ALIGNED", "kernel_wgmma", "kernel_mma_v2"), flags={"ALIGNED": ("n",)})
    given = '{"ALIGNED": lambda args: args["n"] % 16 == 0}'
    assert made.count(f"@triton.heuristics({given})\n@gluon.jit\n") == 1
    assert "ALIGNED: gl.constexpr" in made[made.index("def kernel(") :]
    assert "ALIGNED" not in made[: made.index("# what it is for")]


def test_flags_that_layouts_ask_are_the_kernels_or_passed_on() -> None:
    source = read_source("f.py", KERNEL)
    line = source.kernel("kernel").line
    flags = {"ALIGNED_n": ("n",)}
    alone = rewrite(source, FilePlan((FunctionPlan("f.py", line, True, flags=flags),), ()))
    given = '{"ALIGNED_n": lambda args: args["n"] % 16 == 0}'
    assert alone.count(f"@triton.heuristics({given})\n@gluon.jit\n") == 1
    assert alone.count("ALIGNED_n: gl.constexpr") == 1
    body = FunctionPlan("f.py", line, True, name="kernel_wgmma", flags=flags)
    choice = Choice("BLOCK >= 64", "kernel_wgmma", "kernel_wgmma")
    dispatch = Dispatch(line, choice, {"kernel_wgmma": ("ALIGNED_n",)}, flags)
    several = rewrite(source, FilePlan((body,), (), dispatches=(dispatch,)))
    assert several.count("@triton.heuristics(") == 1
    assert several.count("ALIGNED_n: gl.constexpr") == 2
    assert "kernel_wgmma(x_ptr, n, BLOCK, FLAG=FLAG, ALIGNED_n=ALIGNED_n)" in several
