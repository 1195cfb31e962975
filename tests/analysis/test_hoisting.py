"""Rule `hoist`: ranges that loops make stand before them."""

from __future__ import annotations

import ast
from collections.abc import Callable

import pytest

from tt2gl.analysis.hoisting import hoisted
from tt2gl.analysis.statics import position_of
from tt2gl.launches import Launch
from tt2gl.plan import Edits, FunctionPlan

pytestmark = pytest.mark.once

Port = Callable[..., str]
MakeLaunch = Callable[..., Launch]

TYPES = "x_ptr=*fp16 y_ptr=*fp32 n=i32"

KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    acc = tl.zeros([BLOCK], tl.float32)
    {}
    tl.store(y_ptr, tl.sum(acc, 0))
"""


@pytest.fixture
def loop(port: Port, launch: MakeLaunch) -> Port:
    """Statements before the last one of a kernel, ported."""

    def apply(statements: str, **options: object) -> str:
        text = KERNEL.format(statements.strip("\n").replace("\n", "\n    "))
        return port(text, launch(TYPES, BLOCK=1024), **options)

    return apply


@pytest.mark.parametrize(
    "statements",
    [
        pytest.param("acc += tl.load(x_ptr + tl.arange(0, BLOCK))", id="no loop"),
        pytest.param(
            "for i in tl.static_range(2):\n    acc += tl.load(x_ptr + i * n + tl.arange(0, BLOCK))",
            id="an unrolled loop",
        ),
        pytest.param(
            "for i in range(n):\n    acc += tl.zeros([BLOCK], tl.float32)\n    acc += tl.load(x_ptr + i)",
            id="no range",
        ),
    ],
)
def test_nothing_to_hoist(loop: Port, statements: str) -> None:
    assert "_range = " not in loop(statements)


def test_a_rule_turned_off(loop: Port) -> None:
    made = loop("for i in range(n):\n    acc += tl.load(x_ptr + i + tl.arange(0, BLOCK))", without=["hoist"])
    assert "_range" not in made


@pytest.mark.parametrize("head", ["for i in range(0, n, BLOCK):", "while n > 0:"])
def test_a_range_stands_before_the_loop(loop: Port, head: str) -> None:
    made = loop(f"""
{head}
    cols = n + tl.arange(0, BLOCK)
    acc += tl.load(x_ptr + cols)
    n -= BLOCK
""")
    assert made.index("cols_range = gl.arange(0, BLOCK, layout=") < made.index(head)
    assert "        cols = n + cols_range\n" in made


def test_before_the_outermost_loop(loop: Port) -> None:
    made = loop("""
for i in range(n):
    for j in range(n):
        cols = i * n + j + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols)
""")
    assert made.index("cols_range = ") < made.index("for i in")


def test_loops_of_one_block_share_a_range(loop: Port) -> None:
    made = loop("""
for i in range(n):
    acc += tl.load(x_ptr + i * n + tl.arange(0, BLOCK))
for j in range(n):
    acc += tl.load(x_ptr + j * n + tl.arange(0, BLOCK))
""")
    assert made.count("gl.arange(") == 1


def test_a_loop_in_a_branch(loop: Port) -> None:
    made = loop("""
if n > 3:
    for i in range(n):
        cols = i * n + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + cols)
""")
    assert "    if n > 3:\n        cols_range = gl.arange(" in made


def test_a_name_that_is_taken(loop: Port) -> None:
    made = loop("""
cols_range = n
for i in range(n):
    cols = cols_range + i + tl.arange(0, BLOCK)
    acc += tl.load(x_ptr + cols)
""")
    assert "    cols_row_range = gl.arange(" in made


def test_a_second_range_is_named_after_its_layout() -> None:
    tree = ast.parse("def kernel():\n    for i in range(n):\n        cols = i + gl.arange(0, BLOCK)\n")
    function, call = tree.body[0], next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args[1:])
    assert isinstance(function, ast.FunctionDef)
    first, second = (
        Edits(creations={position_of(call): layout}) for layout in ("x_layout", "gl.SliceLayout(0, qk_layout)")
    )
    plan = FunctionPlan("kernel.py", 1, True, edits=first, copies={position_of(function.body[0]): (second,)})
    assert [hoist.name for hoist in hoisted(plan, function).hoists[2, 4]] == ["cols_range", "cols_qk_range"]


@pytest.mark.parametrize(("parameters", "stays"), [((), False), (("x_layout",), True)])
def test_a_range_under_a_condition_whose_layout_callers_give(parameters: tuple[str, ...], *, stays: bool) -> None:
    body = "def kernel(n):\n    for i in range(n):\n        if FLAG:\n            cols = i + gl.arange(0, BLOCK)\n"
    tree = ast.parse(body)
    function, call = tree.body[0], next(node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args[1:])
    assert isinstance(function, ast.FunctionDef)
    creations = {position_of(call): "gl.SliceLayout(0, x_layout)"}
    plan = FunctionPlan("kernel.py", 1, False, parameters=parameters, edits=Edits(creations=creations))
    assert (hoisted(plan, function).hoists == {}) == stays
