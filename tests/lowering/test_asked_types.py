"""Numbers made tensors for their type alone: which stay, which need no layout any more, and what reduces by them."""

from __future__ import annotations

from pathlib import Path

import pytest
import triton

from tests.lowering.conftest import HEADER
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.asked_types import asked_types, made_for_types
from tt2gl.source import read_source
from tt2gl.verify.api import verify

VERSION = tuple(map(int, triton.__version__.split(".")[:2]))

PROMOTED = """def promoted(x):
    # a number becomes a tensor
    return x + tl.zeros((1,), tl.int1)


@triton.jit
def is_floating(x):
    return promoted(x).dtype.is_floating()
"""
COMBINED = """

@triton.jit
def largest(a, b):
    mask = a > b
    if is_floating(a):
        mask |= a != a
    return tl.where(mask, a, b)
"""
IMPORTS = HEADER.partition("@triton")[0]
KERNEL = """

@triton.jit
def kernel(x_ptr, y_ptr, B: tl.constexpr):
    rows = tl.arange(0, B)
    x = tl.load(x_ptr + rows[:, None] * B + rows[None, :])
    x = largest(x, tl.full([1, 1], 0, tl.float32))
    tl.store(y_ptr + rows, tl.reduce(x, 1, largest))
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("promoted(x).dtype", "promoted(x)"),
        ("x + tl.zeros((1,), tl.int1)", "x * tl.zeros((1,), tl.int1)"),
        ("x + tl.zeros((1,), tl.int1)", "x + tl.zeros((2,), tl.int1)"),
        ("x + tl.zeros((1,), tl.int1)", "x + tl.full((1,), 1, tl.int1)"),
        ("def is_floating(x):", "def is_floating(x, promoted):"),
    ],
    ids=["its value", "another operation", "more elements", "another number", "another function"],
)
def test_what_is_asked_for_more_stays(before: str, after: str) -> None:
    assert before in PROMOTED
    text = HEADER + PROMOTED.replace(before, after)
    assert asked_types(read_source(Path("kernel.py"), text)).functions == ()


@pytest.mark.parametrize("zeros", ["tl.zeros((1,), tl.int1)", "tl.zeros([1], tl.int1)"])
def test_a_number_has_the_type_too(zeros: str) -> None:
    text = HEADER + PROMOTED.replace("tl.zeros((1,), tl.int1)", zeros)
    done = asked_types(read_source(Path("kernel.py"), text))
    assert done.functions == ("promoted",)
    assert done.text == text.replace(zeros, "tl.cast(0, tl.int1)")


def test_what_leads_to_one_is_found_with_it(tmp_path: Path) -> None:
    path = tmp_path / "types.py"
    path.write_text(HEADER + PROMOTED + COMBINED + "\n\n@triton.jit\ndef other(x):\n    return x\n")
    lines = {function.name: function.line for function in read_source(path).functions}
    found = made_for_types((str(path), line) for line in lines.values())
    assert {line for _, line in found} == {lines[name] for name in ("promoted", "is_floating", "largest")}


@pytest.mark.skipif(VERSION < (3, 7), reason="this Triton's Gluon folds no branch of a reduction's helper")
@pytest.mark.parametrize("module", ["", "types_of"], ids=["own", "imported"])
def test_a_reduction_that_asks_for_a_type_is_converted(module: str, tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    helpers = HEADER + PROMOTED + COMBINED
    if module:
        (tmp_path / f"{module}.py").write_text(helpers)
        path.write_text(f"{IMPORTS.rstrip()}\nfrom {module} import largest\n{KERNEL}")
    else:
        path.write_text(helpers + KERNEL)
    kinds = {"x_ptr": "*fp32", "y_ptr": "*fp32", "B": "constexpr"}
    args = {"x_ptr": TensorArg("float32", (32, 32), (32, 1)), "y_ptr": TensorArg("float32", (32,), (1,))}
    launch = Launch(path.name, "kernel", kinds, {"B": 32}, tuple(args), Options(4, 3), (1, 1, 1), args)
    (report,) = verify(path, targets=["sm90"], launches=[launch], root=tmp_path, run="simulate")
    assert report.status == "converted"
    assert report.simulate is not None
    assert report.simulate.bitwise
