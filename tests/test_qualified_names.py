"""What names mean, as LibCST's scopes say it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, QualifiedNameProvider

from tt2gl.qualified_names import QualifiedNames, children, walk

pytestmark = pytest.mark.once

GOLDEN = Path(__file__).parent / "golden"


def meaning(text: str) -> set[str]:
    """What the last expression statement of a text, or the value of a marked one, means."""
    module = cst.parse_module(text)
    calls = [node for node in walk(module) if isinstance(node, cst.Call) and cst_name(node.func) == "ask"]
    return QualifiedNames(module).of(calls[-1].args[0].value)


def cst_name(node: cst.CSTNode) -> str:
    return node.value if isinstance(node, cst.Name) else ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import triton\nask(other.jit)\n", set()),
        ("def f(tl):\n    import triton.language as tl2\n    ask(tl.load)\n", {"f.<locals>.tl.load"}),
        ("import triton.language as tl\ndef f():\n    tl = 1\n    ask(tl)\n", {"f.<locals>.tl"}),
        ("import a as tl\nclass C:\n    import b as tl\n    def f(self):\n        ask(tl)\n", {"a"}),
        ("import a as x\ny = [x for x in z]\nask(x)\n", {"a"}),
        ("import a as x\nf = lambda x: ask(x)\n", {"<locals>.x"}),
        ("f(ask=ask(name))\n", set()),
        ("import a\nask(a[0] + 1)\n", set()),
        ("import a\nx = a.language\nask(x.load)\n", {"x.load"}),
        ("import triton\nload = triton.language.load\nask(load)\n", {"load"}),
        ("import triton\nx = triton.language(1)\nask(x.load)\n", {"x.load"}),
        ("import triton\nx, y = triton.language\nask(x.load)\n", {"x.load"}),
        ("try:\n    import a as x\nexcept ImportError:\n    x = None\nask(x)\n", {"a", "x"}),
        ("try:\n    import a as x\nexcept ImportError:\n    x = None\nask(x.y)\n", {"a.y"}),
    ],
)
def test_what_shadows_an_import_is_not_it(text: str, expected: set[str]) -> None:
    assert meaning(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import triton.language as tl\nask(tl.load)\n", {"triton.language.load"}),
        ("import triton.language\nask(triton.language.load)\n", {"triton.language.load"}),
        ("from triton import language as tl\nask(tl.math.exp)\n", {"triton.language.math.exp"}),
        ("from .. import tiles\nask(tiles.load)\n", {"..tiles.load"}),
        ("from vllm.triton_utils import tl, triton\nask(tl.load)\n", {"triton.language.load"}),
        ('tl = importlib.import_module("triton.language")\nask(tl.load)\n', {"triton.language.load"}),
        ('_, tl = safe_import("triton.language")\nask(tl.load)\n', {"triton.language.load"}),
        ('_, tl = safe_import("triton")\nask(tl.load)\n', {"tl.load"}),
        ('_, other = safe_import("triton.language")\nask(other.load)\n', {"other.load"}),
        ("from .._triton import triton as t\nask(t.jit)\n", {"triton.jit"}),
        ("from .tl import load\nask(load)\n", {".tl.load"}),
        ("from ..ops.tiles import load\nask(load)\n", {"..ops.tiles.load"}),
        ("try:\n    from a import jit\nexcept ImportError:\n    from b import jit\nask(jit)\n", {"a.jit", "b.jit"}),
        ("def f():\n    global tl\n    import a as tl\nask(tl)\n", {"a"}),
        ("import a\ndef f(x=ask(a.b)):\n    a = 1\n", {"a.b"}),
        ("import a\nask(a.f(1)[2].to)\n", {"a.f.to"}),
        ("import triton\ntl = triton.language\nask(tl.load)\n", {"triton.language.load"}),
        ("import triton.language as _tl\nx = tl = _tl\nask(tl.load)\n", {"triton.language.load"}),
        ("if a:\n    import triton as t\n    x = t.language\nelse:\n    x = None\nask(x.f)\n", {"triton.language.f"}),
        ("for x in y: pass\nask(x)\n", {"x"}),
        ("with a as (x, [y]): pass\nask(y)\n", {"y"}),
        ("match v:\n    case {'a': 1, **rest}: ask(rest)\n", {"rest"}),
        ("if (n := 1): ask(n)\n", {"n"}),
        ("ask(range)\n", {"builtins.range"}),
    ],
)
def test_names_mean_what_is_bound_to_them(text: str, expected: set[str]) -> None:
    assert meaning(text) == expected


def test_all_meanings_have_imports_that_nobody_reads() -> None:
    names = QualifiedNames(cst.parse_module("import a.b as c\nfrom d import e\ne.f\n"))
    assert names.every == {"a.b", "d.e", "d.e.f"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*m*.py")), ids=lambda path: path.name)
def test_scopes_of_libcst_say_the_same(path: Path) -> None:
    wrapper = MetadataWrapper(cst.parse_module(path.read_text("utf-8")), unsafe_skip_copy=True)
    known = wrapper.resolve(QualifiedNameProvider)
    names = QualifiedNames(wrapper.module)
    asked = [node for node in expressions(wrapper.module) if node in known]
    assert len(asked) > 20
    for node in asked:
        found = known[node]
        expected = {each.name for each in (found() if callable(found) else found)}
        # Of an operation's attribute LibCST says that it is None.
        assert names.of(node) - {"builtins.None"} == expected - {"builtins.None"}, wrapper.module.code_for_node(node)


def expressions(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Names and attributes that are read or written; keywords and the names of definitions are none."""
    if isinstance(node, (cst.Name, cst.Attribute)):
        yield node
    skipped = (node.keyword,) if isinstance(node, cst.Arg) else (getattr(node, "name", None),)
    skipped = (node.attr,) if isinstance(node, cst.Attribute) else skipped
    for child in children(node):
        if not any(child is each for each in skipped) and not isinstance(child, (cst.Import, cst.ImportFrom)):
            yield from expressions(child)
