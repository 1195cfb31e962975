"""A plan applied to a whole file: what the plan does not name stays as it is, byte for byte."""

from __future__ import annotations

import pytest

from tt2gl.plan import FilePlan, FunctionPlan, KeptFunction
from tt2gl.rewrite.file import rewrite
from tt2gl.source import read_source

FILE = '''"""Doc – with a dash."""
import triton
import triton.language as tl

X = {"a" :1,
\t'b':  2}   # two


@triton.jit
def helper(x):
    return x*2


@triton.jit
def one(x_ptr):
    tl.store(x_ptr, helper(1))


@triton.jit
def two(x_ptr):  # the second
    tl.store(x_ptr,helper(2))


def host( x ):
    one[(1,)](x); two[(1, )](x)
'''


def line_of(name: str, text: str = FILE) -> int:
    """The line of a function's `def`."""
    return text[: text.index(f"def {name}(")].count("\n") + 1


@pytest.mark.parametrize("newline", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_an_empty_plan_changes_nothing(newline: str) -> None:
    text = FILE.replace("\n", newline)
    assert rewrite(read_source("f.py", text), FilePlan((), ())) == text


def test_a_kept_kernel_gets_its_comment_and_nothing_else() -> None:
    plan = FilePlan((), (KeptFunction(line_of("two"), "tt2gl: kept as Triton, for a reason"),))
    expected = FILE.replace("@triton.jit\ndef two", "# tt2gl: kept as Triton, for a reason\n@triton.jit\ndef two")
    assert rewrite(read_source("f.py", FILE), plan) == expected


def test_a_comment_stands_once() -> None:
    first = FilePlan((), (KeptFunction(line_of("two"), "tt2gl: kept as Triton (line 20)."),))
    once = rewrite(read_source("f.py", FILE), first)
    second = FilePlan((), (KeptFunction(line_of("two", once), "tt2gl: kept as Triton (line 21)."),))
    again = rewrite(read_source("f.py", once), second)
    assert again.count("# tt2gl: kept as Triton (line ") == 1


def test_only_the_planned_kernel_changes() -> None:
    made = rewrite(read_source("f.py", FILE), FilePlan((FunctionPlan("f.py", line_of("one"), True),), ()))
    expected = FILE.replace(
        "import triton.language as tl\n",
        "import triton.language as tl\n"
        "from triton.experimental import gluon\nfrom triton.experimental.gluon import language as gl\n",
    ).replace("@triton.jit\ndef one(x_ptr):\n    tl.", "@gluon.jit\ndef one(x_ptr):\n    gl.")
    assert made == expected


def test_a_twin_stands_beside_the_helper_and_is_what_converted_kernels_call() -> None:
    line = line_of("helper")
    functions = (
        FunctionPlan("f.py", line, False, name="helper_gluon"),
        FunctionPlan("f.py", line_of("one"), True, calls={line: "helper_gluon"}),
    )
    made = rewrite(read_source("f.py", FILE), FilePlan(functions, (), originals=frozenset({line})))
    assert "@triton.jit\ndef helper(x):\n    return x*2\n\n\n@gluon.jit\ndef helper_gluon(x):\n    return x*2\n" in made
    assert "    gl.store(x_ptr, helper_gluon(1))\n" in made
    assert "    tl.store(x_ptr,helper(2))\n" in made


def test_a_kept_kernel_that_another_calls_has_a_twin_below_it() -> None:
    line = line_of("helper")
    functions = (
        FunctionPlan("f.py", line, False, name="helper_gluon"),
        FunctionPlan("f.py", line_of("one"), True, calls={line: "helper_gluon"}),
    )
    kept = (KeptFunction(line, "tt2gl: kept as Triton, for a reason"),)
    made = rewrite(read_source("f.py", FILE), FilePlan(functions, kept, originals=frozenset({line})))
    assert "for a reason\n@triton.jit\ndef helper(x):\n    return x*2\n\n\n@gluon.jit\ndef helper_gluon(x):\n" in made
    assert "    gl.store(x_ptr, helper_gluon(1))\n" in made


def test_helpers_come_before_the_first_converted_function() -> None:
    plan = FilePlan((FunctionPlan("f.py", line_of("two"), True),), (), ("def paired(x):\n    return gl.a(x)\n",))
    made = rewrite(read_source("f.py", FILE), plan)
    assert made.index("def one(") < made.index("def paired(") < made.index("def two(")


def test_crlf_files_stay_so() -> None:
    text = FILE.replace("\n", "\r\n")
    plan = FilePlan(
        (FunctionPlan("f.py", line_of("one"), True),), (KeptFunction(line_of("two"), "why"),), ("def p(): pass\n",)
    )
    made = rewrite(read_source("f.py", text), plan)
    assert made.count("\n") == made.count("\r\n")
