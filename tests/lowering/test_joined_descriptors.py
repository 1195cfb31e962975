"""Descriptors of one name that branches make: which become one, and that what becomes of it is equal."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tt2gl.launches import Launch, Options, TensorArg
from tt2gl.lowering.joined_descriptors import joined_descriptors
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source
from tt2gl.verify.api import verify

TOP = """import triton
import triton.language as tl


@triton.jit
def maybe(desc, shape, strides, block_shape):
    if isinstance(desc, tl.tensor_descriptor):
        return desc
    else:
        return tl.make_tensor_descriptor(desc, shape, strides, block_shape)


@triton.jit
def kernel(x, y, n, m, TURNED: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
"""
MAKE = "d = tl.make_tensor_descriptor"
BRANCHES = """if {test}:
    {one}
else:
    {other}
"""


def lower(body: str) -> Lowered:
    return joined_descriptors(read_source(Path("kernel.py"), TOP + textwrap.indent(body, "    ")))


def branches(test: str, one: str, other: str) -> str:
    return BRANCHES.format(test=test, one=one, other=other)


ONE = f"{MAKE}(x, [D, n], [m, 1], [D, B])"
OTHER = f"{MAKE}(x, [n, D], [D, 1], [B, D])"


@pytest.mark.parametrize(
    "body",
    [
        branches("n > 1", ONE, OTHER),
        branches("TURNED", ONE, OTHER.replace("d =", "e =")),
        branches("TURNED", ONE, f"{MAKE}(x, [n], [1], [B])"),
        branches("TURNED", ONE, f"{MAKE}(x, shape=[n, D], strides=[D, 1], block_shape=[B, D])"),
        branches("TURNED", ONE, OTHER + "; n = m"),
        branches("TURNED", ONE, "d = other(x, [n, D], [D, 1], [B, D])"),
        f"if TURNED:\n    {ONE}\nelif D > 2:\n    {OTHER}\nelse:\n    {ONE}\n",
        f"if TURNED:\n    {ONE}\n",
    ],
    ids=["runtime", "names", "ranks", "keywords", "more", "another function", "three", "one"],
)
def test_what_stays(body: str) -> None:
    assert lower(body).functions == ()


@pytest.mark.parametrize("test", ["TURNED", "not TURNED", "D == 8 and TURNED is not None"])
def test_one_is_made_of_what_the_condition_chooses(test: str) -> None:
    done = lower("# above\n" + branches(test, f"{ONE}  # turned", f"{OTHER}  # plain"))
    assert done.functions == ("kernel",)
    assert done.text.removeprefix(TOP) == textwrap.indent(
        "# above\n# turned\n"
        f"{MAKE}(x, [D if {test} else n, n if {test} else D], [m if {test} else D, 1], "
        f"[D if {test} else B, B if {test} else D])  # plain\n",
        "    ",
    )


def test_one_that_a_helper_makes() -> None:
    one, other = (text.replace("tl.make_tensor_descriptor", "maybe").replace("x,", "y,") for text in (ONE, OTHER))
    assert "    d = maybe(y, [D if TURNED else n," in lower(branches("TURNED", one, other)).text


@pytest.mark.parametrize("turned", [False, True])
def test_the_port_is_equal(turned: bool, tmp_path: Path) -> None:
    one = "x = maybe(x, shape=[D, n], strides=[m, 1], block_shape=[D, B])"
    other = "x = maybe(x, shape=[n, D], strides=[D, 1], block_shape=[B, D])"
    body = branches("TURNED", one, other) + branches("TURNED", "t = x.load([0, 4]).T", "t = x.load([4, 0])")
    at = "tl.arange(0, B)[:, None] * D + tl.arange(0, D)[None, :]"
    path = tmp_path / "kernel.py"
    path.write_text(TOP + textwrap.indent(f"{body}tl.store(y + {at}, t)\n", "    "))
    tensors = {name: TensorArg("float16", (1024,), (1,)) for name in ("x", "y")}
    types = (
        dict.fromkeys(tensors, "*fp16") | {"n": "i32", "m": "i32"} | dict.fromkeys(("TURNED", "B", "D"), "constexpr")
    )
    launch = Launch(
        str(path),
        "kernel",
        types,
        {"TURNED": turned, "B": 16, "D": 32},
        (*tensors, "m"),
        options=Options(4, 1),
        grid=(1, 1, 1),
        args={**tensors, "n": 19, "m": 32},
    )
    (report,) = verify(path, targets=["sm80"], launches=[launch], run="simulate")
    assert report.status == "converted", report.diagnostics
    assert report.simulate is not None
    assert report.simulate.bitwise
