"""Buffer operations at the size where 32 bits are just enough, simulated, and beyond."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.lowered import lowered
from tt2gl.ir.types import IntegerType
from tt2gl.launches import Launch, TensorArg
from tt2gl.results import Conversion
from tt2gl.simulate.api import Simulation, TensorInput, simulate

I16 = IntegerType(16)
BLOCK = 1024
ENOUGH = 2**30 - 1
"""Elements of two bytes that a buffer has at most."""

KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, start, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    offs = start + cols
    x = tl.load(x_ptr + offs, mask=offs < n, other=3)
    tl.store(y_ptr + cols, x)
"""


MOVED = """
@triton.jit
def kernel(x_ptr, y_ptr, start, n, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x_ptr += (start.to(tl.int64) + BLOCK) * 4
    x = tl.load(x_ptr + (cols - start) - start - start - 4 * BLOCK, mask=start + cols < n, other=3)
    tl.store(y_ptr + cols, x)
"""


def run(made: Conversion, elements: int) -> Simulation:
    """The converted kernel on the end of a tensor of so many elements, which count from 0 to 12 and again."""
    path = Path(made.path).with_name("port.py")
    path.write_text(made.text)
    spec = importlib.util.spec_from_file_location("port", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    signature = {"x_ptr": "*i16", "y_ptr": "*i16", "start": "i32", "n": "i32"}
    ir = lowered(module.kernel, "gfx942", signature, BLOCK=BLOCK)
    x = TensorInput("x", I16, np.arange(13, dtype=np.int16), length=elements)
    y = TensorInput("y", I16, np.zeros(BLOCK, np.int16))
    return simulate(ir, [x, y, elements - 100, elements], (1, 1, 1))


def read(elements: int) -> list[int]:
    """What the kernel is to read of it: 100 elements, and what it says of those beyond."""
    return [*(place % 13 for place in range(elements - 100, elements)), *[3] * (BLOCK - 100)]


@pytest.fixture
def made_for(conversion: Callable[..., Conversion], launch: Callable[..., Launch]) -> Callable[..., Conversion]:
    """The kernel converted for a tensor of so many elements."""

    def apply(size: int, text: str = KERNEL) -> Conversion:
        given = {
            "x_ptr": TensorArg("int16", (size,), (1,)),
            "y_ptr": TensorArg("int16", (BLOCK,), (1,)),
            "start": size - 100,
            "n": size,
        }
        asked: Any = launch("x_ptr=*i16 y_ptr=*i16 start=i32 n=i32", BLOCK=BLOCK)
        return conversion(text, replace(asked, args=given), target="gfx942", compile=False)

    return apply


def test_the_last_element_that_32_bits_reach(made_for: Callable[..., Conversion]) -> None:
    made = made_for(ENOUGH)
    assert "buffer_load(x_ptr, offs, mask=offs < n, other=3)" in made.text
    done = run(made, ENOUGH)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, read(ENOUGH))


def test_it_is_reached_from_a_pointer_that_was_moved_beyond(made_for: Callable[..., Conversion]) -> None:
    made = made_for(ENOUGH, MOVED)
    assert "buffer_load(x_ptr, x_offsets + " in made.text.replace("\n", "").replace("        ", "")
    done = run(made, ENOUGH)
    assert done.findings == ()
    np.testing.assert_array_equal(done.tensors[1].elements, read(ENOUGH))


def test_a_tensor_of_one_element_more_is_refused(made_for: Callable[..., Conversion]) -> None:
    made = made_for(ENOUGH + 1)
    assert "gl.load(x_ptr + offs, mask=offs < n, other=3)" in made.text
    (told,) = [each.message for each in made.kernels[0].diagnostics if each.code == "TTG340"]
    assert "the tensor of x_ptr has 2147483648 bytes under some launch" in told


def test_what_the_refusal_is_for(made_for: Callable[..., Conversion]) -> None:
    """The port for small tensors, run on a larger one all the same: the element past the buffer reads as zero."""
    done = run(made_for(ENOUGH), ENOUGH + 1)
    assert done.tensors[1].elements[99] == 0 != read(ENOUGH + 1)[99]
    plain = run(made_for(ENOUGH + 1), ENOUGH + 1)
    assert plain.findings == ()
    np.testing.assert_array_equal(plain.tensors[1].elements, read(ENOUGH + 1))
