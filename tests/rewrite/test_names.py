"""Rule `names`: `tl.*` becomes `gl.*` where both have it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from tt2gl.convert import convert
from tt2gl.rewrite.names import GLUON, gluon_name, rewrite_name

Rewritten = Callable[..., str]
Body = Callable[..., str]

KERNEL = """
@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    {}
"""


@pytest.mark.parametrize(
    "qualified",
    [
        pytest.param("triton.language.cumsum", id="only in triton"),
        pytest.param("triton.language.dot", id="a dot"),
        pytest.param("triton.language.core.dot", id="a dot of the core module"),
        pytest.param("triton.language.extra.libdevice.exp", id="libdevice"),
        pytest.param("triton.cdiv", id="of triton itself"),
        pytest.param("numpy.exp", id="of another package"),
        pytest.param("load", id="a bare name"),
        pytest.param("mine.triton.language.load", id="a package with such a name inside"),
    ],
)
def test_a_name_that_stays(qualified: str) -> None:
    assert gluon_name(qualified) is None


def test_a_descriptor_stays_where_nothing_copies_tiles() -> None:
    made = cst.parse_expression("tl.make_tensor_descriptor")
    assert rewrite_name(made, {"triton.language.make_tensor_descriptor"}, "") is made


@pytest.mark.parametrize(
    ("qualified", "name"),
    [
        ("triton.language.load", "load"),
        ("triton.language.float32", "float32"),
        ("triton.language.constexpr", "constexpr"),
        pytest.param("triton.language.math.exp2", "exp2", id="of the math module"),
        pytest.param("triton.language.core.arange", "arange", id="of the core module"),
        pytest.param("triton.language.standard.cdiv", "cdiv", id="of the standard module"),
    ],
)
def test_a_name_that_gluon_has(qualified: str, name: str) -> None:
    assert gluon_name(qualified) == name


ALIASES = """
if hasattr(tl, "make_tensor_descriptor"):
    describe = tl.make_tensor_descriptor
else:
    describe = None
square = tl.exp if FAST else tl.exp2
power = tl.exp


"""


def test_a_name_of_the_module_for_what_makes_tensors(rewritten: Rewritten) -> None:
    made = rewritten(ALIASES + KERNEL.format("x = describe(x_ptr, square(1.0), power(1.0))").lstrip("\n"))
    assert "x = tma.make_tensor_descriptor(x_ptr, square(1.0), power(1.0))" in made


def test_a_name_that_means_several_functions_stays(rewritten: Rewritten) -> None:
    text = ALIASES.replace("None", "tl.zeros") + KERNEL.format("x = describe(x_ptr)").lstrip("\n")
    assert "x = describe(x_ptr)" in rewritten(text)


@pytest.mark.parametrize("name", sorted(GLUON))
def test_every_listed_name_is_in_both_languages(name: str) -> None:
    triton_language = pytest.importorskip("triton.language")
    gluon_language = pytest.importorskip("triton.experimental.gluon.language")
    assert hasattr(triton_language, name)
    assert hasattr(gluon_language, name)


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param("y = x_ptr.load(1)", id="a method of that name"),
        pytest.param("y = other.load(x_ptr)", id="another module's"),
        pytest.param("load = 1", id="a variable of that name"),
        pytest.param("y = tl.cumsum(x_ptr, 0)", id="not in gluon"),
        pytest.param("y = tl.extra.cuda.globaltimer()", id="of a submodule"),
        pytest.param("y = 'tl.load'", id="in a string"),
        pytest.param("y = 1  # tl.load", id="in a comment"),
    ],
)
def test_a_statement_that_stays(body: Body, statement: str) -> None:
    assert body(statement) == statement


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        pytest.param("x = tl.load(x_ptr).to(tl.float32)", "x = gl.load(x_ptr).to(gl.float32)", id="calls and dtypes"),
        pytest.param("x = (tl.float32)", "x = (gl.float32)", id="parentheses stay"),
        pytest.param("x = tl.math.exp(x_ptr)", "x = gl.exp(x_ptr)", id="the math module's"),
        pytest.param(
            "x = tl.sum(tl.cumsum(x_ptr, 0), 0)", "x = gl.sum(tl.cumsum(x_ptr, 0), 0)", id="one stays inside another"
        ),
    ],
)
def test_a_statement_that_changes(body: Body, statement: str, expected: str) -> None:
    assert body(statement) == expected


@pytest.mark.parametrize(
    ("header", "spelled"),
    [
        ("import triton\nimport triton.language as T\n\n\n", "T.load"),
        ("import triton\nfrom triton import language\n\n\n", "language.load"),
        ("import triton\nfrom triton.language import load\n\n\n", "load"),
        ("import triton\nfrom triton.language import load as ld\n\n\n", "ld"),
        ("import triton\nimport triton.language\n\n\n", "triton.language.load"),
    ],
)
def test_a_name_is_known_by_its_meaning(rewritten: Rewritten, header: str, spelled: str) -> None:
    text = f"@triton.jit\ndef kernel(x_ptr):\n    x = {spelled}(x_ptr)\n"
    assert rewritten(text, header=header).endswith("    x = gl.load(x_ptr)\n")


def test_host_code_is_left_alone(rewritten: Rewritten) -> None:
    text = KERNEL.format("pass") + "\n\nDTYPE = tl.float32\n"
    assert "\nDTYPE = tl.float32\n" in rewritten(text)


ASSIGNED = """
import triton

tl = triton.language


@triton.jit
def kernel(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, tl.load(x_ptr + i) + 1)


def run(x):
    kernel[(1,)](x, BLOCK=256)
"""


def test_a_module_that_a_name_is_assigned(tmp_path: Path) -> None:
    file = tmp_path / "assigned.py"
    file.write_text(ASSIGNED, "utf-8")
    converted = convert(file, target="sm90")
    assert [each.status for each in converted.kernels] == ["converted"]
    assert "gl.store(x_ptr + i, gl.load(x_ptr + i) + 1)" in converted.text
