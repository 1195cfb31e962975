"""Imports go down the floors of the house: the table here is the one in docs/architecture.md."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.once

ROOT = Path(__file__).parent.parent

FLOORS = (
    ("__main__",),
    ("cli",),
    ("commands",),
    ("port",),
    ("verify.api", "check", "doctor", "explain", "record"),
    ("convert",),
    ("observed_steps",),
    ("decision", "observation"),
    ("file_plan", "shared_memory"),
    ("buffers", "layout_helpers"),
    ("kernel_state",),
    ("variants",),
    ("analysis", "guesses", "verify"),
    ("compiler", "failures", "infer", "launch_file", "pipeline", "rewrite"),
    ("launches", "lowering", "pipelining", "slicing"),
    ("plan",),
    ("amd_shared_layouts", "padded_layouts", "scale_layouts"),
    ("shared_layouts", "tensor_memory_layouts"),
    ("amd_matrix_layouts", "matrix_layouts"),
    ("formulas", "layouts", "source"),
    ("jit_calls", "jit_decorators"),
    ("jit_functions", "launch_calls", "report.page"),
    ("host", "report", "simulate"),
    ("files", "config", "results", "stages", "targets"),
    ("visitors",),
    (
        "descriptor_parts",
        "diagnostics",
        "edits",
        "formatting",
        "ir",
        "ledger",
        "product_sums",
        "qualified_names",
        "reaching",
        "spawned",
    ),
    ("integers", "isolate", "names", "syntax", "trees", "words"),
    ("children", "cores"),
)
"""From the top: a module imports modules of floors below its own, or of its own package."""

PACKAGE = ROOT / "tt2gl"
# The package itself offers names of every floor, imported on use.
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(module: str) -> str:
    """The entry of the table that a module belongs to; the longest that fits."""
    names = [name for floor in FLOORS for name in floor if f"{module}.".startswith(f"{name}.")]
    assert names, f"tt2gl.{module} has no floor"
    return max(names, key=len)


def floor(module: str) -> int:
    return next(index for index, names in enumerate(FLOORS) if room(module) in names)


KNOWN = frozenset(map(module_name, MODULES))


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Modules of tt2gl that a file imports, wherever in it and whatever for."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.removeprefix("tt2gl.") for alias in node.names if alias.name.startswith("tt2gl."))
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "tt2gl":
            base = node.module.removeprefix("tt2gl").removeprefix(".")
            for alias in node.names:
                inner = f"{base}.{alias.name}".removeprefix(".")
                if inner in KNOWN or base:
                    yield inner if inner in KNOWN else base


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_down(path: Path) -> None:
    module = module_name(path)
    abroad = [other for other in imports(path) if room(other) != room(module)]
    assert [other for other in abroad if floor(other) <= floor(module)] == []


def test_analysis_and_rewrite_meet_in_the_plan_alone() -> None:
    met = {(module_name(path), other) for path in MODULES for other in imports(path)}
    assert {pair for pair in met if {room(pair[0]), room(pair[1])} == {"analysis", "rewrite"}} == set()


def test_every_room_of_the_table_is_there() -> None:
    assert {name for names in FLOORS for name in names} - {room(module_name(path)) for path in MODULES} == set()


def test_the_table_is_the_documented_one() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    table = page.split("<!-- floors -->")[1].split("<!-- /floors -->")[0]
    rows = [line.split("|")[1:-1] for line in table.strip().splitlines()[2:]]
    documented = tuple(tuple(name.strip(" `") for name in row[0].split(",")) for row in rows)
    assert documented == FLOORS


def test_the_map_has_every_module() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    names = {module_name(path) for path in MODULES if path.name != "__init__.py" and path.parent.name != "targets"}
    shown = set(re.findall(r"`([\w.]+)`", page))
    assert {name for name in names if not {name, name.removeprefix("host.")} & shown} == set()


def test_the_package_imports_nothing_heavy() -> None:
    for path in (PACKAGE / "__init__.py", PACKAGE / "cli.py", *(PACKAGE / "commands").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        named = {node.module for node in tree.body if isinstance(node, ast.ImportFrom) and node.module}
        assert not {name for name in named if name.split(".")[0] in ("triton", "libcst", "rich")}


def test_no_module_is_two_ideas() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in sorted((ROOT / "tt2gl").rglob("*.py"))}
    assert lengths
    assert {str(path.relative_to(ROOT)): length for path, length in lengths.items() if length > 400} == {}


def test_no_module_imports_matchers() -> None:
    # LibCST's own take a quarter of a second of every command to import: `tt2gl.syntax` answers in their stead.
    imported = re.compile(r"libcst(\.| import .*)\bmatchers")
    assert [path.name for path in MODULES if imported.search(path.read_text("utf-8"))] == []


_WITHOUT_ORDER = frozenset(("all", "any", "frozenset", "len", "max", "min", "set", "sorted", "sum", "union", "update"))


def _is_set(node: ast.expr) -> bool:
    """Whether an expression says of itself that it is a set."""
    match node:
        case ast.Set() | ast.SetComp() | ast.Call(func=ast.Name(id="set" | "frozenset")):
            return True
        case ast.Call(func=ast.Subscript(value=ast.Name(id="set" | "frozenset"))):
            return True
        case ast.BinOp(left=left, op=ast.BitAnd() | ast.BitOr() | ast.Sub() | ast.BitXor(), right=right):
            return any(_is_set(each) or _is_keys(each) for each in (left, right))
    return False


def _is_keys(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"


def _in_order_of_sets(tree: ast.AST) -> Iterator[int]:
    """The lines that go through a set in its order: Python gives another one to each process."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = [getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls]
    idle = {arg for call, name in zip(calls, names, strict=True) if name in _WITHOUT_ORDER for arg in call.args}
    for call, name in zip(calls, names, strict=True):
        if name in ("iter", "list", "tuple", "join", "enumerate", "fromkeys") and any(map(_is_set, call.args)):
            yield call.lineno
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=taken) if _is_set(taken):
                yield node.lineno
            case ast.ListComp(generators=parts) | ast.DictComp(generators=parts) | ast.GeneratorExp(generators=parts):
                if node not in idle and any(_is_set(each.iter) for each in parts):
                    yield node.lineno
            case ast.List(elts=items) | ast.Tuple(elts=items):
                if any(isinstance(each, ast.Starred) and _is_set(each.value) for each in items):
                    yield node.lineno


@pytest.mark.parametrize(
    ("text", "found"),
    [
        *[("next(iter({a, b}))", True), ("for x in set(a): pass", True), ("[x for x in {y for y in a}]", True)],
        *[("{x: 1 for x in a.keys() & b}", True), ("(*{a, b}, c)", True), ("', '.join(set[str](a))", True)],
        *[("sorted({a, b})", False), ("any(x for x in a.keys() - b)", False), ("{x for x in {a, b}}", False)],
    ],
)
def test_what_goes_through_a_set_in_its_order(text: str, found: bool) -> None:
    assert bool([*_in_order_of_sets(ast.parse(text))]) is found


def test_nothing_goes_through_a_set_in_its_order() -> None:
    # What is decided, and the text, would be another with each hash seed: sort it, or keep the order with a dict.
    found = {path: [*_in_order_of_sets(ast.parse(path.read_text("utf-8")))] for path in MODULES}
    assert {str(path.relative_to(ROOT)): lines for path, lines in found.items() if lines} == {}
