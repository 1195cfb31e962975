"""The value graph of small kernels, from the facts of Triton's own frontend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.frames import Unsupported
from tt2gl.analysis.graph import Graph
from tt2gl.launches import Launch

Analysed = Callable[..., KernelAnalysis]
MakeLaunch = Callable[..., Launch]
GraphOf = Callable[..., Graph]

HEADER_LINES = 4
"""What stands above the text in its file."""

TYPES = "x_ptr=*fp16 y_ptr=*fp16 n=i32"

KERNEL = """
@triton.jit
def helper(x, by=2):
    return x * by

@triton.jit
def kernel(x_ptr, y_ptr, n, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    {}
    tl.store(y_ptr + offs, x)
"""


@pytest.fixture
def graph_of(analysed: Analysed, launch: MakeLaunch) -> GraphOf:
    """The graph of `KERNEL` with a statement in it."""

    def apply(statement: str, flag: bool = True) -> Graph:
        text = KERNEL.format(statement.replace("\n", "\n    "))
        return analysed(text, launch(TYPES, FLAG=flag, BLOCK=1024)).scenes[0].graph

    return apply


def kinds(graph: Graph) -> Counter[str]:
    """How many nodes of each kind."""
    return Counter(node.kind for node in graph.nodes)


def test_scalars_are_no_nodes(graph_of: GraphOf) -> None:
    assert kinds(graph_of("m = tl.program_id(0) * n + tl.load(y_ptr)")) == kinds(graph_of("pass"))


def test_a_scalar_load_is_no_load(graph_of: GraphOf) -> None:
    assert kinds(graph_of("m = tl.load(y_ptr + n)"))["load"] == 1


@pytest.mark.parametrize(
    ("statement", "kind", "count"),
    [
        ("x = x + tl.full([BLOCK], 1, tl.float16)", "create", 2),
        ("s = tl.sum(x.to(tl.float32), 0)", "reduce", 1),
        ("x = tl.cumsum(x, 0)", "scan", 1),
        ("x = tl.softmax(x)", "scan", 1),
        ("y = tl.softmax(x[None, :], 1, keep_dims=True)", "scan", 1),
        ("s = (x,)\nfor i in tl.static_range(2):\n    s = s + (x * 2,)\nx = s[2] + s[1]", "elementwise", 4),
        ("s = (n,)\nfor i in tl.static_range(2):\n    s = s + (n,)\nx *= s[2]", "elementwise", 3),
        ("s = ()\nfor i in tl.static_range(2):\n    s += (x * i,)\nx = s[0] + s[1]", "create", 1),
        ("y = x[None, :]", "expand", 1),
        ("y = tl.expand_dims(x, 0)", "expand", 1),
        ("y = tl.join(x, x)", "join", 1),
        ("y, z = tl.split(tl.join(x, x))", "split", 2),
        ("y = tl.reshape(x, (BLOCK // 2, 2))", "opaque", 1),
        ("tl.atomic_add(y_ptr + offs, x)", "atomic", 1),
        ("x = helper(x)", "call", 1),
        (
            "for i in tl.static_range(3):\n    if i:\n        t += helper(x)\n    else:\n        t = helper(x)",
            "call",
            2,
        ),
        ("for i in tl.static_range(3):\n    y = helper(x) if i == 1 else x * i", "call", 1),
        ("y = x.__mul__(x).__add__(x)", "elementwise", 4),
        ("pair = (x,) + (tl.cumsum(x, 0),); y = pair[1]", "scan", 1),
    ],
)
def test_an_operation_is_a_node_of_its_kind(graph_of: GraphOf, statement: str, kind: str, count: int) -> None:
    assert kinds(graph_of(statement))[kind] == count


@pytest.mark.parametrize(("flag", "loads"), [(True, 2), (False, 1)])
def test_a_static_branch_is_decided(graph_of: GraphOf, flag: bool, loads: int) -> None:
    graph = graph_of("if FLAG:\n    x += tl.load(y_ptr + offs)\nelse:\n    x = x * 2", flag)
    assert kinds(graph)["load"] == loads


def test_both_arms_of_a_runtime_branch_are_walked(graph_of: GraphOf) -> None:
    graph = graph_of("if n > 3:\n    x += tl.load(y_ptr + offs)\nelse:\n    x += tl.load(y_ptr + offs + n)")
    assert kinds(graph)["load"] == 3


def webs(graph: Graph, name: str) -> list[int]:
    """How many definitions each web of a name has."""
    return sorted(len(web.definitions) for web in graph.webs if web.name == name and web.merged is None)


@pytest.mark.parametrize(
    ("statement", "definitions"),
    [
        pytest.param("pass", [1], id="one definition"),
        pytest.param("x = x * 2", [1, 1], id="a second name of the same spelling"),
        pytest.param("for i in range(n):\n    x = x * 2", [2], id="carried by a loop"),
        pytest.param("while n > 0:\n    x = x * 2\n    n -= 1", [2], id="carried by a while loop"),
        pytest.param("if n > 3:\n    x = x * 2", [2], id="one arm"),
        pytest.param("if FLAG:\n    x = x * 2\nelse:\n    x = -x", [1, 1], id="one arm of a constant"),
        pytest.param("if n > 3:\n    x = x * 2\nelse:\n    x = -x", [3], id="both arms"),
        pytest.param("if n > 3:\n    y = x * 2\nelse:\n    y = -x", [1], id="a name of the arms alone"),
        pytest.param("for i in range(n):\n    x = x + 1\n    x = x * 2", [1, 2], id="twice in a loop"),
    ],
)
def test_definitions_that_meet_share_a_web(graph_of: GraphOf, statement: str, definitions: list[int]) -> None:
    assert webs(graph_of(statement), "x") == definitions


def test_extents_are_named(graph_of: GraphOf) -> None:
    graph = graph_of("y = tl.reshape(x, (BLOCK // 4, 4))[:, None, :] + 1")
    expanded = next(node for node in graph.nodes if node.kind == "expand")
    assert expanded.dims == ("BLOCK // 4", "1", "4")


def test_loads_know_their_parameter(graph_of: GraphOf) -> None:
    graph = graph_of("p = y_ptr + n\nx += tl.load(p + offs)\nq = x_ptr + offs\nq += 16\nx += tl.load(q)")
    assert [node.pointer for node in graph.nodes if node.kind == "load"] == ["x_ptr", "y_ptr", "x_ptr"]


def test_nodes_in_loops_are_deeper(graph_of: GraphOf) -> None:
    graph = graph_of("for i in range(n):\n    for j in range(n):\n        x += tl.load(y_ptr + offs)")
    assert [node.depth for node in graph.nodes if node.kind == "load"] == [0, 2]


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        (
            "d = tl.dot_scaled(tl.full((32, 32), 0, tl.uint8), tl.full((32, 1), 127, tl.uint8), 'e4m3',"
            " tl.full((32, 32), 0, tl.uint8), None, 'e4m3')",
            "TTG302",
        ),
        (
            "d = tl.dot(tl.full((32, 32), 1.0, tl.float32), tl.full((32, 32), 1.0, tl.float32),"
            " input_precision='tf32x3')",
            "TTG302",
        ),
        ("x = tl.standard.sort_impl(x)", "TTG301"),
    ],
)
def test_what_is_not_converted_has_its_code(graph_of: GraphOf, statement: str, code: str) -> None:
    with pytest.raises(Unsupported) as raised:
        graph_of(statement)
    assert raised.value.code == code
    assert raised.value.site[1] == HEADER_LINES + KERNEL.lstrip().partition("{}")[0].count("\n") + 1
