"""Rule `collisions`: names that a conversion adds give way to the author's."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import defaultdict
from collections.abc import Callable, Mapping

import libcst as cst
import pytest

import tt2gl
from tt2gl.rewrite.build import ADDED, MARK, marked
from tt2gl.rewrite.collisions import Unmarked, collisions, own_builtins, with_builtins

Rewritten = Callable[..., str]

KERNEL = "\n\n@triton.jit\ndef kernel(x_ptr):\n    x = tl.load(x_ptr)\n"


def test_each_helper_has_a_name_of_its_own_that_gives_way() -> None:
    defined: dict[str, set[str]] = defaultdict(set)
    by_target: set[str] = set()
    for found in pkgutil.walk_packages(tt2gl.__path__, "tt2gl."):
        if found.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(found.name)).items():
            if not re.search("SOURCES?$", name):
                continue
            if isinstance(value, Mapping):
                by_target |= set(value.values())
            for text in [value] if isinstance(value, str) else value.values() if isinstance(value, Mapping) else value:
                for function in re.findall(r"^def (\w+)", text, re.M):
                    defined[function].add(text)
    assert len(defined) > 20
    # A file has but one of those by target.
    assert all(len(texts) == 1 or texts <= by_target for texts in defined.values()), defined
    assert set(defined) <= set(ADDED)


def test_no_name_is_taken() -> None:
    assert collisions(cst.parse_module("def f(x): return x.y"), ["gl", "coalesced"]) == {}


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('"""gl and coalesced"""\n# gl', id="in text"),
        pytest.param("glue = gluons = coalesced_ = 1", id="within other names"),
    ],
)
def test_the_same_letters_are_not_the_name(text: str) -> None:
    assert collisions(cst.parse_module(text), ["gl", "gluon", "coalesced"]) == {}


@pytest.mark.parametrize(
    ("text", "renamed"),
    [
        pytest.param("gl = 1", {"gl": "gl_2"}, id="a variable"),
        pytest.param("def coalesced(): pass", {"coalesced": "coalesced_2"}, id="a function"),
        pytest.param("import gluon", {"gluon": "gluon_2"}, id="an import"),
        pytest.param("def f(gl): pass", {"gl": "gl_2"}, id="a parameter"),
        pytest.param("gl = gl_2 = gl_3 = 1", {"gl": "gl_4"}, id="and the next ones"),
    ],
)
def test_a_taken_name_gets_a_number(text: str, renamed: dict[str, str]) -> None:
    assert collisions(cst.parse_module(text), ["gl", "gluon", "coalesced"]) == renamed


def test_only_our_names_are_renamed() -> None:
    module = cst.parse_module(f"gl.x = {MARK}gl.y + {MARK}coalesced(coalesced)")
    assert module.visit(Unmarked({"gl": "gl_2", "coalesced": "mine"})).code == "gl.x = gl_2.y + mine(coalesced)"


@pytest.mark.parametrize("name", ADDED)
def test_every_added_name_is_marked_where_it_is_ours(name: str) -> None:
    assert marked(f"{name}(x)") == f"{MARK}{name}(x)"
    assert marked(f"x.{name}(x)") == f"x.{name}(x)"
    assert marked(f"my{name}(x)") == f"my{name}(x)"


def test_a_file_with_a_gl_of_its_own(rewritten: Rewritten) -> None:
    made = rewritten("import graphics as gl" + KERNEL)
    assert "from triton.experimental.gluon import language as gl_2\n" in made
    assert "    x = gl_2.load(x_ptr)\n" in made
    assert "import graphics as gl\n" in made


def test_a_file_that_has_gluon_as_gl_already(rewritten: Rewritten) -> None:
    made = rewritten("from triton.experimental.gluon import language as gl\nF = gl.float32" + KERNEL)
    assert made.count("language as gl") == 1
    assert "    x = gl.load(x_ptr)\n" in made


def test_a_kernel_with_a_gluon_of_its_own(rewritten: Rewritten) -> None:
    made = rewritten("@triton.jit\ndef kernel(gluon):\n    tl.store(gluon, 1)\n")
    assert "from triton.experimental import gluon as gluon_2\n" in made
    assert "@gluon_2.jit\ndef kernel(gluon):\n    gl.store(gluon, 1)\n" in made


def test_a_helper_of_the_authors_name(rewritten: Rewritten) -> None:
    helper = "@gluon.constexpr_function\ndef coalesced(shape):\n    return gl.BlockedLayout(shape)\n"
    text = "def coalesced(x):\n    return x\n" + KERNEL
    made = rewritten(text, helpers=(helper,))
    assert "def coalesced(x):\n    return x\n" in made
    assert "@gluon.constexpr_function\ndef coalesced_2(shape):\n" in made


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("def f(x):\n    max = x\n    return max", set()),
        ("x = max(1, 2)\nclass C:\n    def min(self): ...", set()),
        ("def max(x): ...\nmaximum = 1", {"max"}),
        ("from m import maximum as max\nimport abs", {"max", "abs"}),
        ("try:\n    min = 1\nexcept E:\n    pass", {"min"}),
        ("\ufeffdef sum(x): ...", {"sum"}),
    ],
)
def test_what_a_file_has_of_its_own_for_python_s_functions(text: str, names: set[str]) -> None:
    assert own_builtins(text) == names


@pytest.mark.parametrize("said", ["", '    """Said."""\n'])
def test_an_added_function_means_python_s_where_it_reads_one(said: str) -> None:
    text = f"def added(x):\n{said}    return max(x, len(x))\n"
    helper = cst.parse_statement(text)
    assert isinstance(helper, cst.FunctionDef)
    module = cst.parse_module("")
    assert module.code_for_node(with_builtins(helper, {"sum"})) == text
    made = module.code_for_node(with_builtins(helper, {"max", "sum", "len"}))
    assert made == text.replace("    return", "    from builtins import len, max\n    return")


def test_a_file_with_a_function_that_is_called_as_one_of_python_s(rewritten: Rewritten) -> None:
    helper = f"def {marked('coalesced')}(a, b):\n    return max(a, b)\n"
    text = "def max(x):\n    return x" + KERNEL
    made = rewritten(text, helpers=(helper,))
    assert "def coalesced(a, b):\n    from builtins import max\n    return max(a, b)\n" in made
    assert "builtins" not in rewritten(text.replace("max", "most"), helpers=(helper,))
