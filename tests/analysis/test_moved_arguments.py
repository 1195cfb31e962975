"""Helpers that are given scalar pointers which their callers have moved: when they take by how much, and when not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tt2gl.launches import Launch, TensorArg
from tt2gl.results import Conversion

pytestmark = pytest.mark.once

Convert = Callable[..., Conversion]
MakeLaunch = Callable[..., Launch]

TYPES = "x_ptr=*fp16 y_ptr=*fp32 i_ptr=*i32 n=i32 stride=i32"

KERNEL = """
@triton.jit
def row_of(x_ptr, i_ptr, cols):
    {read}


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    {moved}
    {more}
    x = row_of(x_ptr, i_ptr, cols)
    tl.store(y_ptr + cols, x)
"""

LOADED = "return tl.load(x_ptr + tl.load(i_ptr + cols) * 8 + cols)"
MOVED = "x_ptr += tl.program_id(0).to(tl.int64) * stride"


@pytest.fixture
def helped(conversion: Convert, launch: MakeLaunch) -> Callable[..., Conversion]:
    """The kernel with statements of one's own, converted for gfx942."""

    def apply(read: str = LOADED, moved: str = MOVED, more: str = "", elements: int = 4096) -> Conversion:
        given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (elements,), (1,)))
        asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
        made = conversion(KERNEL.format(read=read, moved=moved, more=more), asked, target="gfx942")
        assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
        return made

    return apply


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"read": "return tl.load(x_ptr + tl.program_id(1) * 8 + cols)"}, id="proven as it is"),
        pytest.param({"moved": ""}, id="never moved"),
        pytest.param({"moved": "x_ptr -= tl.program_id(0) * stride"}, id="moved down"),
        pytest.param({"moved": "if n > 0:\n        x_ptr -= n\n        x_ptr = y_ptr.to(x_ptr.dtype)"}, id="another"),
        pytest.param({"read": "x_ptr += cols\n    return tl.load(x_ptr + tl.load(i_ptr))"}, id="a tensor in place"),
        pytest.param({"elements": 2**30}, id="too large"),
        pytest.param({"more": "y = row_of(y_ptr, i_ptr, cols)"}, id="another caller has not moved its own"),
        pytest.param(
            {"more": "if stride == 0:\n        x_ptr = tl.load(i_ptr).to(tl.int64).to(x_ptr.dtype)"},
            id="may be another tensor",
        ),
        pytest.param({"read": "x_ptr += tl.load(i_ptr)\n    return tl.load(x_ptr - cols)"}, id="the helper moves it"),
    ],
)
def test_helpers_that_take_pointers_alone(helped: Callable[..., Conversion], given: dict[str, str]) -> None:
    text = helped(**given).text
    assert "def row_of(x_ptr, i_ptr, cols" in text, text
    assert "_offsets=" not in text


def test_a_helper_takes_by_how_much_a_pointer_was_moved(helped: Callable[..., Conversion]) -> None:
    made = helped()
    assert "def row_of(x_ptr, i_ptr, cols, x_offsets):" in made.text, made.text
    assert "x_offsets + gl.amd.cdna3.buffer_load(i_ptr, cols) * 8 + cols" in made.text
    assert "    x_offsets = gl.cast(gl.program_id(0).to(gl.int64) * stride, gl.int32)" in made.text
    assert "row_of(x_ptr, i_ptr, cols, x_offsets=x_offsets)" in made.text
    assert not [each for each in made.kernels[0].diagnostics if each.code == "TTG340"]


def test_a_pointer_of_another_name_is_passed_as_what_it_was_moved_from(helped: Callable[..., Conversion]) -> None:
    made = helped(moved="own = x_ptr + tl.program_id(0) * stride", more="x_ptr = own").text
    assert "row_of(x_ptr, i_ptr, cols" in made


@pytest.mark.parametrize("given", ["x_ptr", "x_ptr + n"])
def test_a_helper_moves_what_it_is_given(helped: Callable[..., Conversion], given: str) -> None:
    read = "own = x_ptr + tl.load(i_ptr)\n    return tl.load(own + tl.load(i_ptr + cols))"
    text = helped(read, "more = x_ptr", f"x_ptr = {given}" if given != "x_ptr" else "").text
    line = "x_ptr, own_offsets + gl.amd.cdna3.buffer_load(i_ptr, cols)"
    assert (line in text) == (given == "x_ptr"), text


NESTED = """
@triton.jit
def inner(ptr, i_ptr, cols):
    return tl.load(ptr + tl.load(i_ptr + cols))


@triton.jit
def outer(ptr, i_ptr, cols, scale=2.0):
    return inner(ptr, i_ptr, cols) * scale + tl.load(ptr).to(tl.float32)


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row_ptr = x_ptr + tl.program_id(0) * stride
    tl.store(y_ptr + cols, outer(row_ptr, i_ptr, cols))
"""


def test_helpers_pass_it_on(conversion: Convert, launch: MakeLaunch) -> None:
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (4096,), (1,)))
    asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
    made = conversion(NESTED, asked, target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "def inner(ptr, i_ptr, cols, ptr_offsets):" in made.text, made.text
    assert "def outer(ptr, i_ptr, cols, scale=2.0, ptr_offsets=None):" in made.text
    assert "inner(ptr, i_ptr, cols, ptr_offsets=ptr_offsets) * scale" in made.text
    # What is read at its place is a pointer again.
    assert "gl.load((ptr + ptr_offsets))" in made.text
    assert "outer(x_ptr, i_ptr, cols, ptr_offsets=row_offsets)" in made.text


def test_what_is_moved_on_one_side_is_moved_by_nothing_on_the_other(helped: Callable[..., Conversion]) -> None:
    made = helped(moved="if n > 0:\n        x_ptr += n").text
    assert "    x_offsets = 0\n    if n > 0:\n        x_offsets += n\n" in made, made
    assert "row_of(x_ptr, i_ptr, cols, x_offsets=x_offsets)" in made


def test_a_helper_makes_tensors_of_what_it_is_given(helped: Callable[..., Conversion]) -> None:
    made = helped(read="x_ptr = x_ptr + cols\n    return tl.load(x_ptr - tl.load(i_ptr + cols))").text
    assert "    x_offsets = x_offsets + cols\n" in made, made
    assert "gl.amd.cdna3.buffer_load(x_ptr, x_offsets - gl.amd.cdna3.buffer_load(i_ptr, cols))" in made


IN_CALL = """
@triton.jit
def row_of(x_ptr, i_ptr, cols):
    return tl.load(x_ptr + tl.load(i_ptr + cols) * 8 + cols)


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    start = 0
    x = tl.zeros((BLOCK,), tl.float16)
    for i in range(n):
        x = row_of({given}, i_ptr, cols)
        start += tl.load(i_ptr + i)
    {more}
    tl.store(y_ptr + cols, x)
"""


@pytest.fixture
def called(conversion: Convert, launch: MakeLaunch) -> Callable[..., str]:
    """A kernel whose call says by how much a pointer is moved, converted for gfx942."""

    def apply(passed: str, more: str = "", elements: int = 4096) -> str:
        given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (elements,), (1,)))
        asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
        made = conversion(IN_CALL.format(given=passed, more=more), asked, target="gfx942")
        assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
        return made.text

    return apply


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"passed": "x_ptr"}, id="never moved"),
        pytest.param({"passed": "x_ptr - start"}, id="moved down"),
        pytest.param({"passed": "x_ptr + tl.load(i_ptr)"}, id="what is loaded in the call"),
        pytest.param({"passed": "x_ptr + start", "elements": 2**30}, id="too large"),
    ],
)
def test_calls_that_give_pointers_alone(called: Callable[..., str], given: dict[str, Any]) -> None:
    assert "_offsets=" not in called(**given)


@pytest.mark.parametrize(
    ("passed", "offsets"),
    [
        ("x_ptr + start", "start"),
        ("start * 8 + x_ptr", "start * 8"),
        ("x_ptr + start * stride + n", "(start * stride) + n"),
        ("x_ptr + start - n", "start - n"),
    ],
)
def test_a_call_says_by_how_much_a_pointer_is_moved(called: Callable[..., str], passed: str, offsets: str) -> None:
    text = called(passed, more="x += row_of(x_ptr, i_ptr, cols)")
    assert "def row_of(x_ptr, i_ptr, cols, x_offsets):" in text, text
    assert "x_ptr, x_offsets + gl.amd.cdna3.buffer_load(i_ptr, cols) * 8 + cols" in text
    assert f"row_of(x_ptr, i_ptr, cols, x_offsets={offsets})" in text
    assert "x += row_of(x_ptr, i_ptr, cols, x_offsets=0)" in text


def test_a_helper_moves_what_it_passes_on(conversion: Convert, launch: MakeLaunch) -> None:
    nested = NESTED.replace("return inner(ptr,", "return inner(ptr + scale_n,").replace(
        "scale=2.0", "scale_n, scale=2.0"
    )
    nested = nested.replace("outer(row_ptr, i_ptr, cols)", "outer(row_ptr, i_ptr, cols, n.to(tl.int64))")
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (4096,), (1,)))
    asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
    made = conversion(nested, asked, target="gfx942").text
    assert "inner(ptr, i_ptr, cols, ptr_offsets=ptr_offsets + gl.cast(scale_n, gl.int32)) * scale" in made, made
