"""Tensors that are made and returned behind a branch that returns: first the functions that stay as they are."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.compared import compared
from tests.lowering.conftest import HEADER
from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.early_returns import early_returns
from tt2gl.source import read_source

BRANCH = "if FLAG:\n    return x * 2\n"


def lowered(body: str) -> str:
    head = f"{HEADER}def helper(x, FLAG: tl.constexpr):\n"
    text = head + textwrap.indent(body, "    ")
    made = early_returns(read_source(Path("kernel.py"), text)).text
    assert made.startswith(head)
    return textwrap.dedent(made.removeprefix(head))


@pytest.mark.once
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"{BRANCH}return x\n", id="nothing is made"),
        pytest.param(f"{BRANCH}x = x + tl.zeros_like(x)\nreturn x\n", id="made of a tensor"),
        pytest.param("if FLAG:\n    x = x * 2\nreturn tl.full(x.shape, 1.0, tl.float32)\n", id="no return before"),
        pytest.param(f"{BRANCH}else:\n    return tl.full(x.shape, 1.0, tl.float32)\n", id="in the other side"),
    ],
)
def test_stays(body: str) -> None:
    assert lowered(body) == body


@pytest.mark.once
def test_returned_by_the_other_side() -> None:
    body = f"{BRANCH}\n# as many\nreturn tl.full(\n    x.shape, 1.0, tl.float32\n)  # ones\n"
    other = "else:\n    # as many\n    return tl.full(\n        x.shape, 1.0, tl.float32\n    )  # ones\n"
    assert lowered(body) == BRANCH + other


INNER = "if x == -1:\n    if FLAG:\n        # nobody reads them\n        return\n"
BEHIND = "    # zeros, then\n    zeros(\n        x,\n    )\n\n    return  # done\n"


def test_what_a_flag_leaves_out_within_a_branch_goes_to_the_other_side() -> None:
    other = "    else:\n        # zeros, then\n        zeros(\n            x,\n        )\n        return  # done\n"
    assert lowered(f"{INNER}{BEHIND}x += 1\n") == f"{INNER}{other}x += 1\n"


def test_a_test_within_what_goes_to_the_other_side_goes_with_it() -> None:
    inner = "    if x == 2:\n        if FLAG:\n            return\n        x += 1\n    return\n"
    other = f"    else:\n{textwrap.indent(inner, '    ')}"
    assert lowered(f"{INNER}{inner}x += 1\n") == f"{INNER}{other}x += 1\n"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(INNER.replace("FLAG", "x > 2") + BEHIND, id="known at run time only"),
        pytest.param(INNER + "x += 1\n", id="nothing behind"),
        pytest.param(textwrap.dedent(INNER.partition("\n")[2] + BEHIND), id="in no branch"),
        pytest.param(INNER.replace("return", "x += 1") + BEHIND, id="no return"),
        pytest.param(INNER + BEHIND.replace("x,", 'tl.constexpr("""a\nb"""),'), id="a text of several lines"),
    ],
)
def test_what_stays_behind_a_test(body: str) -> None:
    assert lowered(body) == body


HELPERS = """import triton
import triton.language as tl


@triton.jit
def gate(ptr, at, FLAG: tl.constexpr):
    if FLAG:
        return tl.load(ptr + at) * 2
    return tl.full(at.shape, 1.0, tl.float32)
"""
KERNEL = """import triton
import triton.language as tl

from .helpers import gate


@triton.jit
def kernel(x_ptr, out_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    tl.store(out_ptr + at, gate(x_ptr, at, True) + 1)
"""


def test_a_helper_of_another_file_that_makes_a_tensor_for_others_is_converted(tmp_path: Path) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package/__init__.py").write_text("")
    (tmp_path / "package/helpers.py").write_text(HELPERS)
    path = tmp_path / "package/kernel.py"
    path.write_text(KERNEL)
    tensors = {name: TensorArg("float32", (512,), (1,), None) for name in ("x_ptr", "out_ptr")}
    launch = Launch(
        "kernel.py",
        "kernel",
        {**dict.fromkeys(tensors, "*fp32"), "N": "constexpr"},
        {"N": 512},
        tuple(tensors),
        Options(4, 3),
        (1,),
        tensors,
    )
    _, triton, gluon = compared(path, launch, "sm90")
    assert gluon.global_loads == triton.global_loads
