"""Rule `buffer_ops`: which accesses become buffer operations, by which offsets, and what keeps the others plain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tt2gl.analysis.collected import Conflict
from tt2gl.analysis.planner import Planner
from tt2gl.analysis.terms import Root
from tt2gl.analysis.versions import Wanted
from tt2gl.launches import Launch, TensorArg
from tt2gl.plan import FunctionPlan
from tt2gl.results import Conversion
from tt2gl.rewrite.guards import FITS_BUFFERS_SOURCE

pytestmark = pytest.mark.once

Convert = Callable[..., Conversion]
MakeLaunch = Callable[..., Launch]

TYPES = "x_ptr=*fp16 y_ptr=*fp32 i_ptr=*i64 n=i32 stride=i32"
ENOUGH = 2**30 - 1
"""Elements of two bytes that a buffer has at most."""

KERNEL = """
@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    {}
    tl.store(y_ptr + cols, x)
"""


def told(made: Conversion) -> list[str]:
    """Why accesses stay plain."""
    return [d.message.partition(": ")[2].rstrip(".") for d in made.kernels[0].diagnostics if d.code == "TTG340"]


@pytest.fixture
def buffers(conversion: Convert, launch: MakeLaunch) -> Callable[..., Conversion]:
    """Statements before the last one of a kernel, converted for a tensor of so many elements."""

    def apply(statements: str, elements: int | None = 4096, stride: int = 8, **options: Any) -> Conversion:
        text = KERNEL.format(statements.strip("\n").replace("\n", "\n    "))
        given = None
        if elements is not None:
            small = TensorArg("float32", (1024,), (1,))
            x = TensorArg("float16", (elements,), (1,))
            given = {"x_ptr": x, "y_ptr": small, "i_ptr": small, "n": 500, "stride": stride}
        return conversion(text, replace(launch(TYPES, BLOCK=1024), args=given), **{"target": "gfx942", **options})

    return apply


@pytest.mark.parametrize(
    ("statements", "elements", "reason"),
    [
        pytest.param("x = tl.load(x_ptr + row * n + cols * n)", None, "no launch says how large", id="no size"),
        pytest.param(
            "ptrs = x_ptr + cols * n\nx = tl.load(ptrs)", None, "no launch says how large", id="no size, a variable"
        ),
        pytest.param(
            "ptrs = x_ptr + cols * n\nx = tl.load(ptrs)\nx += tl.sum(ptrs.to(tl.int64)) % 2",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="not only in addresses",
        ),
        pytest.param(
            "ptrs, k = x_ptr + cols, 0\nx = tl.zeros([BLOCK], tl.float32)\n"
            "for k in range(n):\n    x += tl.load(ptrs)\n    ptrs += 8",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="one of several at once",
        ),
        pytest.param(
            "base = x_ptr + row\nptrs = base + cols\nx = tl.zeros([BLOCK], tl.float32)\n"
            "for k in range(n):\n    x += tl.load(ptrs)\n    base += stride\n    ptrs = base + cols",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="a scalar pointer that moves under it",
        ),
        pytest.param(
            "x = tl.zeros([BLOCK], tl.float32)\n"
            "for k in range(n):\n    ptrs = x_ptr + cols\n    x_ptr += stride\n    x += tl.load(ptrs)",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="a scalar pointer that moves before it is read",
        ),
        pytest.param(
            "x = tl.zeros([BLOCK], tl.float32)\nptrs = x_ptr + cols\n"
            "for k in range(n):\n    if k > 3:\n        ptrs = x_ptr + cols\n    x += tl.load(ptrs)\n    x_ptr += n",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="made anew in some iterations",
        ),
        pytest.param(
            "own = x_ptr + row\nx_ptr += tl.load(i_ptr)\nx = tl.load(own + cols - n) + tl.load(x_ptr)",
            4096,
            "`n` may be positive",
            id="made of a pointer before that is moved",
        ),
        pytest.param("x = tl.load(x_ptr + cols * n)", ENOUGH + 1, "has 2147483648 bytes under", id="too large"),
        pytest.param(
            "x_ptr -= row\nx = tl.load(x_ptr + cols * n)", 4096, "`x_ptr` may be negative", id="moved down"
        ),
        pytest.param(
            "if BLOCK > 512:\n    x = tl.load(x_ptr + cols * n)\n    x_ptr += tl.load(i_ptr)\n"
            "    x += tl.load(x_ptr + cols * n)",
            4096,
            "`x_ptr` may be negative",
            id="a pointer that a flag moves, read before",
        ),
        pytest.param(
            "x = tl.load(x_ptr + cols * n)\nx_ptr += tl.load(i_ptr)\nx += tl.load(x_ptr + cols * n)",
            4096,
            "`x_ptr` may be negative",
            id="a pointer that moves, read before",
        ),
        pytest.param("x = tl.load(x_ptr + cols, volatile=True)", 4096, "it is volatile", id="volatile"),
        pytest.param(
            "x_ptr = tl.load(i_ptr).to(tl.pointer_type(tl.float16))\nx = tl.load(x_ptr + cols * n)",
            4096,
            "`x_ptr` is no parameter",
            id="a parameter that becomes another pointer",
        ),
        pytest.param(
            "ptrs = tl.multiple_of(x_ptr + row * n + cols, 8)\nx = cols * 1.0\n"
            "for k in range(n):\n    x += tl.load(ptrs)\n    ptrs += stride",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="a multiple of so few bytes is none of so many elements",
        ),
        pytest.param(
            "p = tl.load(i_ptr).to(tl.pointer_type(tl.float16))\nx = tl.load(p + cols * n)",
            4096,
            "`p` is no parameter",
            id="loaded pointer",
        ),
        pytest.param(
            "ptrs = x_ptr + cols\nif n > 3:\n    ptrs = y_ptr.to(x_ptr.dtype) + cols\nx = tl.load(ptrs)",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="two pointers",
        ),
        pytest.param(
            "ptrs = x_ptr + cols\nif BLOCK > 4096:\n    ptrs = y_ptr + cols\nx = tl.load(ptrs)",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="another pointer where no launch comes",
        ),
        pytest.param(
            "y = y_ptr + cols\nptrs = x_ptr + cols\nif BLOCK > 4096:\n    ptrs = y + 8\nx = tl.load(ptrs)",
            4096,
            "`ptrs` is not an offset from one scalar pointer throughout",
            id="a tensor of another where no launch comes",
        ),
    ],
)  # fmt: skip
def test_what_stays_plain(
    buffers: Callable[..., Conversion], statements: str, elements: int | None, reason: str
) -> None:
    made = buffers(statements, elements, compile=False)
    assert [message for message in told(made) if reason in message], told(made)
    assert "buffer_load(x_ptr" not in made.text


def test_other_makers_gpus_have_none(buffers: Callable[..., Conversion]) -> None:
    made = buffers("x = tl.load(x_ptr + cols)", target="sm90", compile=False)
    assert ".buffer_" not in made.text
    assert told(made) == []


def test_one_value_for_all_stays_plain_where_buffers_do_not_spread_it(
    buffers: Callable[..., Conversion], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tt2gl.analysis.buffer_sites.buffers_spread", lambda: False)
    made = buffers("tl.store(y_ptr + cols, 0.0, mask=cols < n)\nx = tl.load(x_ptr + cols)", compile=False)
    assert "gl.store(y_ptr + cols, 0.0, mask=cols < n)" in made.text
    assert made.text.count("buffer_store(") == 1


def test_the_rule_can_be_turned_off(buffers: Callable[..., Conversion]) -> None:
    assert "buffer_" not in buffers("x = tl.load(x_ptr + cols)", without=("buffer_ops",), compile=False).text


@pytest.mark.parametrize(
    ("statements", "lines"),
    [
        pytest.param(
            "x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=0.0)",
            ["x = gl.amd.cdna3.buffer_load(x_ptr + row * stride, cols, mask=cols < n)"],
            id="scalars stay with the base",
        ),
        pytest.param(
            "x = tl.load(x_ptr + row * stride + cols, mask=cols < n, other=1.0)",
            ["x = gl.amd.cdna3.buffer_load(x_ptr + row * stride, cols, mask=cols < n, other=1.0)"],
            id="other",
        ),
        pytest.param(
            "x = tl.load(x_ptr + row.to(tl.int64) * stride + cols * n)",
            [
                "# buffer operations, as under the launches: less than 2 GiB from x_ptr on",
                "x = gl.amd.cdna3.buffer_load(x_ptr, gl.cast(row.to(gl.int64) * stride, gl.int32) + cols * n)",
            ],
            id="all from the start of the tensor",
        ),
        pytest.param(
            "x = tl.load(x_ptr + tl.load(i_ptr + cols))",
            [
                "# buffer operations, as under the launches: less than 2 GiB from x_ptr on",
                "x = gl.amd.cdna3.buffer_load(x_ptr, gl.amd.cdna3.buffer_load(i_ptr, cols).to(gl.int32))",
            ],
            id="an index from memory",
        ),
        pytest.param(
            "x_ptr += row * stride\nx = tl.load(x_ptr + cols * n)",
            [
                "# buffer operations, as under the launches: less than 2 GiB from x_ptr on; n and stride not negative",
                "x = gl.amd.cdna3.buffer_load(x_ptr, cols * n)",
            ],
            id="a pointer that has moved up",
        ),
        pytest.param(
            "tl.assume(n >= 0)\ntl.assume(stride >= 0)\nx_ptr += row * stride\nx = tl.load(x_ptr + cols * n)",
            ["# buffer operations, as under the launches: less than 2 GiB from x_ptr on"],
            id="assumed by the author",
        ),
        pytest.param(
            """
ptrs = x_ptr + row * stride + cols
x = tl.zeros([BLOCK], tl.float32)
for k in range(0, n, BLOCK):
    x += tl.load(ptrs, mask=cols < n - k, other=0)
    ptrs += BLOCK
""",
            [
                "offsets = row * stride + cols",
                "x += gl.amd.cdna3.buffer_load(x_ptr, offsets, mask=cols < n - k)",
                "offsets += BLOCK",
            ],
            id="a pointer that a loop carries",
        ),
        pytest.param(
            "x_ptr += row * stride + cols\nx = tl.load(x_ptr)",
            ["x_offsets = row * stride + cols", "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets)"],
            id="a parameter that becomes a tensor",
        ),
        pytest.param(
            """
if BLOCK > 4096:
    ptrs = x_ptr + cols * n - row
else:
    ptrs = x_ptr + row * stride + cols
x = tl.load(ptrs)
""",
            [
                "offsets = gl.cast(cols * n, gl.int32) - gl.cast(row, gl.int32)",
                "offsets = row * stride + cols",
                "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)",
            ],
            id="made where no launch comes",
        ),
        pytest.param(
            """
if BLOCK > 4096:
    ptrs = x_ptr + cols * n
else:
    ptrs = x_ptr + cols
for k in range(n):
    tl.store(ptrs, cols * 1.0)
    if BLOCK > 4096:
        ptrs += stride.to(tl.int64) * n
    else:
        ptrs += stride
x = cols * 1.0
""",
            [
                "offsets = gl.cast(cols * n, gl.int32)",
                "offsets = cols",
                "offsets += gl.cast(stride.to(gl.int64) * n, gl.int32)",
                "offsets += stride",
            ],
            id="stepped where no launch comes",
        ),
        pytest.param(
            """
ptrs = x_ptr + cols
if BLOCK > 4096:
    ptrs += n * stride
if BLOCK > 4096:
    x = tl.load(ptrs, mask=cols < n)
else:
    x = tl.load(ptrs)
""",
            [
                "offsets = cols",
                "offsets += gl.cast(n * stride, gl.int32)",
                "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)",
                "x = gl.load((x_ptr + offsets), mask=cols < n)",
            ],
            id="stepped, and read, where no launch comes",
        ),
        pytest.param(
            """
ptrs = x_ptr + row * stride + cols
x = tl.load(ptrs)
if BLOCK > 4096:
    ptrs = x_ptr + cols * n
    x += tl.load(ptrs)
""",
            [
                "offsets = row * stride + cols",
                "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)",
                "ptrs = x_ptr + cols * n",
                "x += gl.load(ptrs)",
            ],
            id="made and read where no launch comes",
        ),
        pytest.param(
            """
x_ptr += tl.load(i_ptr)
for k in range(n):
    if BLOCK > 4096:
        ptrs = x_ptr + k * n + cols * stride
    else:
        ptrs = x_ptr + k * stride + cols
    tl.store(ptrs, cols * 1.0)
x = cols * 1.0
""",
            [
                "x_offsets = gl.load(i_ptr).to(gl.int32)",
                "offsets = x_offsets + gl.cast(k * n, gl.int32) + gl.cast(cols * stride, gl.int32)",
                "offsets = x_offsets + k * stride + cols",
            ],
            id="made of a moved pointer where no launch comes",
        ),
        pytest.param(
            "x = tl.load(y_ptr + cols)\ntl.store(y_ptr + cols, x)\n"
            "tl.store(x_ptr + cols, x.to(x_ptr.dtype.element_ty))",
            [
                "gl.amd.cdna3.buffer_store(x.to(y_ptr.dtype.element_ty), y_ptr, cols)",
                "gl.amd.cdna3.buffer_store(x.to(x_ptr.dtype.element_ty), x_ptr, cols)",
            ],
            id="stored as the element's type, whatever a launch's is",
        ),
        pytest.param(
            """
if BLOCK > 512:
    x_ptr += tl.load(i_ptr)
x = cols * 1.0
for k in range(n):
    if BLOCK > 512:
        x += tl.load(x_ptr + k * stride + cols * n)
""",
            [
                "x_offsets = gl.load(i_ptr).to(gl.int32)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, k * stride + (x_offsets + cols * n))",
            ],
            id="a pointer that a flag moves, read under it",
        ),
        pytest.param(
            """
x = cols * 1.0
if BLOCK > 512:
    x_ptr += tl.load(i_ptr)
    x += tl.load(x_ptr + cols * n)
else:
    x += stride
""",
            [
                "x_offsets = gl.load(i_ptr).to(gl.int32)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, x_offsets + cols * n)",
            ],
            id="a pointer that one arm moves and reads",
        ),
        pytest.param(
            """
for k in range(n):
    if BLOCK > 4096:
        ptrs = x_ptr + k * n + cols * stride
    else:
        ptrs = x_ptr + k * stride + cols
    tl.store(ptrs, cols * 1.0)
if BLOCK > 4096:
    if n > 3:
        ptrs = y_ptr + cols * n
    else:
        ptrs = y_ptr + cols
    tl.store(ptrs, cols * 1.0)
x = cols * 1.0
""",
            ["offsets = k * stride + cols", "ptrs = y_ptr + cols * n", "gl.store(ptrs, cols * 1.0)"],
            id="arms of two branches",
        ),
        pytest.param(
            "ptrs = x_ptr + row * stride + cols\nx = tl.load(ptrs).to(ptrs.dtype.element_ty)",
            ["x = gl.amd.cdna3.buffer_load(x_ptr, offsets).to(x_ptr.dtype.element_ty)"],
            id="a variable asked for its dtype",
        ),
        pytest.param(
            "x_ptr += row\nx = tl.load(x_ptr + tl.load(i_ptr + cols))\nx += tl.load(x_ptr)",
            [
                "x_offsets = row",
                "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets + gl.amd.cdna3.buffer_load(i_ptr, cols).to(gl.int32))",
                "x += gl.load((x_ptr + x_offsets))",
            ],
            id="an index, from what has moved",
        ),
        pytest.param(
            "if n > 3:\n    x_ptr = x_ptr + tl.load(i_ptr) * n\nelse:\n    x_ptr += row\n"
            "ptrs = x_ptr + cols - n\nx = tl.load(ptrs)",
            ["x_offsets = gl.cast(gl.load(i_ptr) * n, gl.int32)", "x_offsets = row", "offsets = x_offsets + cols - n"],
            id="moved in either branch",
        ),
        pytest.param(
            "x = cols * 1.0\nif BLOCK > 4096:\n    x *= n\nelse:\n    if n > 3:\n"
            "        x_ptr += tl.load(i_ptr) * n\n        x += tl.load(x_ptr + cols - n)",
            [
                "x_offsets = gl.cast(gl.load(i_ptr) * n, gl.int32)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, x_offsets + cols - n)",
            ],
            id="moved and read on the side of a branch",
        ),
        pytest.param(
            "x_ptr += tl.load(i_ptr) * n\nx_ptr = x_ptr + (cols - n)\nx = tl.load(x_ptr)",
            [
                "x_offsets = gl.cast(gl.load(i_ptr) * n, gl.int32)",
                "x_offsets = x_offsets + (cols - n)",
                "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets)",
            ],
            id="moved, and a tensor after that",
        ),
        pytest.param(
            "base = x_ptr + tl.load(i_ptr) * 8\nbase += 2\nx = tl.load(base + cols - n).to(base.dtype.element_ty)",
            [
                "base_offsets = gl.cast(gl.load(i_ptr) * 8, gl.int32)",
                "base_offsets += 2",
                "x = gl.amd.cdna3.buffer_load(x_ptr, base_offsets + cols - n).to(x_ptr.dtype.element_ty)",
            ],
            id="moved by what is loaded",
        ),
        pytest.param(
            "base = x_ptr + tl.load(i_ptr) * 8\nown, k = base + row, 0\nfirst = base\nsecond = base + n\n"
            "x = tl.load(first + cols - n)\nx += tl.load(second + cols - n)",
            [
                "base_offsets = gl.cast(gl.load(i_ptr) * 8, gl.int32)",
                "own, k = (x_ptr + base_offsets) + row, 0",
                "first_offsets = base_offsets",
                "second_offsets = base_offsets + n",
                "x = gl.amd.cdna3.buffer_load(x_ptr, first_offsets + cols - n)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, second_offsets + cols - n)",
            ],
            id="made of a moved pointer",
        ),
        pytest.param(
            "if n > 3:\n    x_ptr += row * stride\nptrs = x_ptr + cols\nx = tl.load(ptrs)",
            ["offsets = cols", "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)"],
            id="a pointer that a branch has moved",
        ),
        pytest.param(
            "x_ptr = x_ptr + row * stride\nx_ptr = x_ptr + cols\nx = tl.load(x_ptr)",
            ["x_offsets = cols", "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets)"],
            id="a parameter that is moved and becomes a tensor",
        ),
        pytest.param(
            """
if BLOCK > 4096:
    x_ptr = x_ptr + tl.load(i_ptr) * 8
else:
    x_ptr = x_ptr + row * stride
if BLOCK > 2048:
    x_ptr = x_ptr + cols * n
    x = tl.load(x_ptr)
else:
    x_ptr = x_ptr + cols
    x = tl.load(x_ptr - n)
""",
            [
                "x_offsets = gl.cast(gl.load(i_ptr) * 8, gl.int32)",
                "x_offsets = row * stride",
                "x_offsets = x_offsets + cols_y * n",
                "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets)",
                "x_offsets = x_offsets + cols",
                "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets - n)",
            ],
            id="a parameter that is moved otherwise where no launch comes, and becomes a tensor",
        ),
        pytest.param(
            """
x = tl.zeros([BLOCK], tl.float32)
for k in range(n):
    base = x_ptr + k * stride
    ptrs = base + cols
    x += tl.load(ptrs)
""",
            ["offsets = cols", "x += gl.amd.cdna3.buffer_load(base, offsets)"],
            id="a pointer of one iteration",
        ),
        pytest.param(
            "x = tl.zeros([BLOCK], tl.float32)\n"
            "for k in range(n):\n    ptrs = x_ptr + cols\n    x += tl.load(ptrs)\n    x_ptr += stride",
            ["offsets = cols", "x += gl.amd.cdna3.buffer_load(x_ptr, offsets)", "x_ptr += stride"],
            id="a pointer that is stepped behind its reads",
        ),
        pytest.param(
            "p = x_ptr + cols\nx = tl.load(p).to(tl.float32)\np = y_ptr + cols + 1\nif n > 3:\n    tl.store(p, x)\n"
            "p = x_ptr + cols + n\nx += tl.load(p)",
            [
                "p_offsets = cols",
                "p_offsets = cols_y + 1",
                "gl.amd.cdna3.buffer_store("
                "gl.convert_layout(x, y_layout).to(y_ptr.dtype.element_ty), y_ptr, p_offsets)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, p_offsets)",
            ],
            id="a name for one thing after the other",
        ),
        pytest.param(
            "x = cols * 1.0\np = x_ptr + cols if BLOCK > 512 else None\nif BLOCK > 512:\n    p = x_ptr + cols * n\n"
            "    x += tl.load(p)",
            [
                "p = x_ptr + cols if BLOCK > 512 else None",
                "p_offsets = cols * n",
                "x += gl.amd.cdna3.buffer_load(x_ptr, p_offsets)",
            ],
            id="a name that is given what nothing reads",
        ),
        pytest.param(
            "p = x_ptr + cols\nq = p + n\nx = tl.load(p)\nq = x_ptr + cols * n\nx += tl.load(q)",
            ["p_offsets = cols", "q_offsets = p_offsets + n", "q_offsets = cols * n"],
            id="a name that is given what nothing reads, made of another",
        ),
        pytest.param(
            "p = i_ptr + row\nk = tl.load(p)\np = x_ptr + cols\nx = tl.load(p + k)",
            ["p_offsets = cols", "k = gl.load(p)"],
            id="a name that has been a scalar pointer",
        ),
        pytest.param(
            "ptrs = x_ptr + cols * n\nx = tl.load(ptrs)\nif stride is None:\n    x += tl.load(ptrs + n, volatile=True)",
            ["x = gl.amd.cdna3.buffer_load(x_ptr, offsets)", "x += gl.load((x_ptr + offsets) + n, volatile=True)"],
            id="where no launch comes",
        ),
        pytest.param(
            "row = row.to(tl.int64)\nx = tl.load(x_ptr + row * n + cols)\n"
            "tl.store(x_ptr + n + row[None], tl.sum(x, 0)[None])",
            ["n + gl.full([1], row, gl.int64, x_layout_2).to(gl.int32),"],
            id="a number as a tensor of one element",
        ),
        pytest.param(
            "x_ptr += row // n * stride + row % n\nx = tl.load(x_ptr + cols * stride)",
            [
                "# buffer operations, as under the launches: less than 2 GiB from x_ptr on; n and stride not negative",
                "x = gl.amd.cdna3.buffer_load(x_ptr, cols * stride)",
            ],
            id="a batch and a head",
        ),
        pytest.param(
            "x_ptr = tl.load(x_ptr + cols * n)\nx = x_ptr * 2",
            ["x_ptr = gl.amd.cdna3.buffer_load(x_ptr, cols * n)"],
            id="a parameter that becomes what it points to",
        ),
        pytest.param(
            "if BLOCK > 512:\n    x_ptr = tl.load(x_ptr + cols * n)\nx = x_ptr * 2",
            ["x_ptr = gl.amd.cdna3.buffer_load(x_ptr, cols * n)"],
            id="a parameter that becomes that under a flag",
        ),
        pytest.param(
            "ptrs = tl.max_contiguous(tl.multiple_of(x_ptr + row * n + cols, 16), 8)\nx = cols * 1.0\n"
            "for k in range(n):\n    x += tl.load(ptrs)\n    ptrs += stride",
            [
                "offsets = gl.max_contiguous(gl.multiple_of(row * n + cols, 16), 8)",
                "x += gl.amd.cdna3.buffer_load(x_ptr, offsets)",
            ],
            id="hints",
        ),
        pytest.param(
            "if n > 3:\n    x_ptr += row\nx = tl.load(x_ptr + tl.load(i_ptr + cols))",
            [
                "x_offsets = 0",
                "x_offsets += row",
                "x = gl.amd.cdna3.buffer_load(x_ptr, x_offsets + gl.amd.cdna3.buffer_load(i_ptr, cols).to(gl.int32))",
            ],
            id="an index, from what may have moved",
        ),
        pytest.param(
            "if BLOCK > 512:\n    x_ptr += tl.load(i_ptr)\nx = tl.load(x_ptr + cols * n)",
            ["x_offsets = 0", "x_offsets += gl.load(i_ptr).to(gl.int32)"],
            id="a pointer that a flag moves, read without it",
        ),
        pytest.param(
            "x = cols * 1.0\nfor k in range(n):\n    x += tl.load(x_ptr + cols - k)\n"
            "    x_ptr = x_ptr + tl.load(i_ptr)",
            [
                "x_offsets = 0",
                "x += gl.amd.cdna3.buffer_load(x_ptr, x_offsets + cols - k)",
                "x_offsets = x_offsets + gl.load(i_ptr).to(gl.int32)",
            ],
            id="a pointer that a loop moves",
        ),
        pytest.param(
            "x = cols * 1.0\nfor k in range(n):\n    ptrs = x_ptr + cols * n\n"
            "    ptrs = tl.load(ptrs) * 2\n    x += ptrs",
            ["offsets = cols * n", "ptrs = gl.amd.cdna3.buffer_load(x_ptr, offsets) * 2", "x += ptrs"],
            id="a name of pointers, then of what they point to",
        ),
        pytest.param(
            """
if n > 3:
    own = x_ptr + tl.load(i_ptr)
    ptrs = own + cols - n
    x = tl.load(ptrs)
else:
    own = x_ptr + row * stride
    ptrs = own + cols * n
    x = tl.load(ptrs)
""",
            [
                "own_offsets = gl.load(i_ptr).to(gl.int32)",
                "offsets = own_offsets + cols - n",
                "own_offsets = row * stride",
                "offsets = own_offsets + cols * n",
                "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)",
            ],
            id="scalar pointers of one name in two branches",
        ),
        pytest.param(
            """
if BLOCK > 512:
    ptrs = x_ptr + cols * n
    x = tl.load(ptrs)
else:
    x_ptr += row * n
    x = tl.load(x_ptr + cols)
""",
            ["offsets = cols * n", "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)"],
            id="moved where the variable is not",
        ),
        pytest.param(
            "ptrs = x_ptr + cols * n if BLOCK > 512 else None\nx = tl.load(ptrs)",
            ["offsets = cols * n if BLOCK > 512 else None", "x = gl.amd.cdna3.buffer_load(x_ptr, offsets)"],
            id="None without a flag",
        ),
    ],
)
def test_what_becomes_a_buffer_operation(buffers: Callable[..., Conversion], statements: str, lines: list[str]) -> None:
    made = buffers(statements)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert told(made) == []
    written = [line.strip() for line in made.text.splitlines()]
    assert [line for line in lines if line not in written] == [], made.text


GROUPS = """
x = tl.zeros([BLOCK], tl.float32)
acc = tl.zeros([16, 16], tl.float32)
for k in range(0, n, 16):
    group = {group}
    a = tl.load(x_ptr + tl.arange(0, 16)[:, None] * stride + k + tl.arange(0, 16)[None, :])
    {product}
    x += tl.load(x_ptr + group * stride + cols)
x += tl.sum(acc)
"""


@pytest.mark.parametrize(
    ("group", "product", "elements", "access"),
    [
        ("k // 8", "acc += a", 4096, "(x_ptr + group * stride, cols)"),
        ("tl.load(i_ptr + k).to(tl.int32)", "acc = tl.dot(a, a, acc)", 4096, "(x_ptr + group * stride, cols)"),
        ("n // 8", "acc = tl.dot(a, a, acc)", 4096, "(x_ptr + group * stride, cols)"),
        ("k // 8", "acc = tl.dot(a, a, acc)", None, "(x_ptr + group * stride, cols)"),
        ("k // 8", "acc = tl.dot(a, a, acc)", 4096, "(x_ptr, group * stride + cols)"),
    ],
    ids=["no product", "by what is loaded", "not by the loop", "no size", "by the loop's counter"],
)
def test_what_a_loop_of_products_moves_a_pointer_by_is_offset(
    buffers: Callable[..., Conversion], group: str, product: str, elements: int | None, access: str
) -> None:
    made = buffers(GROUPS.format(group=group, product=product), elements, compile=False)
    assert f"buffer_load{access}" in made.text, made.text


def test_at_the_size_where_32_bits_are_just_enough_offsets_are_used(buffers: Callable[..., Conversion]) -> None:
    assert "buffer_load(x_ptr" in buffers("x = tl.load(x_ptr + cols * n)", ENOUGH, compile=False).text


@pytest.mark.parametrize(("stride", "is_buffer"), [(8, True), (-8, False)])
def test_no_launch_may_give_a_negative_stride(buffers: Callable[..., Conversion], stride: int, is_buffer: bool) -> None:
    made = buffers("x_ptr -= row * -stride\nx = tl.load(x_ptr + cols * n)", stride=stride, compile=False)
    assert ("buffer_load(x_ptr" in made.text) == is_buffer
    assert bool(told(made)) != is_buffer


@pytest.mark.parametrize("target", ["gfx942", "gfx950", "gfx1250", "gfx1100", "gfx1201"])
def test_every_chip_compiles_them(buffers: Callable[..., Conversion], target: str) -> None:
    statements = "x = tl.load(x_ptr + cols, mask=cols < n, other=2.0)\ntl.atomic_add(y_ptr + cols, x.to(tl.float32))"
    made = buffers(statements, target=target)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "buffer_load(x_ptr, cols, mask=cols < n, other=2.0)" in made.text
    # Triton's own compiler makes no atomics of gfx1100 and gfx1250 buffer operations.
    assert ("buffer_atomic_add(" in made.text) == (target not in ("gfx1100", "gfx1250"))


SUMS = """
@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + tl.load(i_ptr + cols), tl.load(y_ptr + cols), sem="relaxed")
"""


@pytest.mark.parametrize(
    ("kinds", "line"),
    [
        (["bf16"], "gl.atomic_add("),
        (["fp32"], "gl.amd.cdna3.buffer_atomic_add("),
        (["fp32", "bf16"], "atomic_add_by_buffer("),
        (["i32", "fp32"], "gl.atomic_add("),
        (["i32", "i64"], "signed_atomic_add("),
    ],
)
def test_sums_of_launches_of_several_types(
    conversion: Convert, launch: MakeLaunch, kinds: list[str], line: str
) -> None:
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float32", (1024,), (1,)))
    launches = [
        replace(launch(TYPES.replace("x_ptr=*fp16", f"x_ptr=*{kind}"), BLOCK=1024), args={**given, "n": 3, "stride": 1})
        for kind in kinds
    ]
    made = conversion(SUMS, *launches, target="gfx942")
    assert [report.status for report in made.kernels] == ["converted"] * len(kinds), made.kernels[0].diagnostics
    body = made.text[made.text.index("def kernel(") :].splitlines()
    assert next(each.strip() for each in body if "atomic_add" in each).startswith(line), made.text


@pytest.mark.parametrize(("kind", "is_buffer"), [("i32", False), ("u32", True)])
def test_the_greatest_of_signed_integers_is_of_addresses(
    conversion: Convert, launch: MakeLaunch, kind: str, is_buffer: bool
) -> None:
    greatest = SUMS.replace("atomic_add", "atomic_max")
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("int32", (1024,), (1,)))
    types = TYPES.replace("x_ptr=*fp16", f"x_ptr=*{kind}").replace("y_ptr=*fp32", f"y_ptr=*{kind}")
    made = conversion(
        greatest, replace(launch(types, BLOCK=1024), args={**given, "n": 3, "stride": 1}), target="gfx942"
    )
    assert [report.status for report in made.kernels] == ["converted"], made.kernels[0].diagnostics
    assert ("buffer_atomic_max(" in made.text) == is_buffer
    assert ("gl.atomic_max(" in made.text) != is_buffer


HELPERS = """
@triton.jit
def read(ptr, offs):
    return tl.load(ptr + offs)


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    tl.store(y_ptr + cols, read(x_ptr, cols * n){})
"""


@pytest.mark.parametrize(("more", "is_buffer"), [("", True), (" + read(i_ptr + n, cols - n)", False)])
def test_a_helper_is_asked_for_all_its_callers(
    conversion: Convert, launch: MakeLaunch, more: str, is_buffer: bool
) -> None:
    tensor = TensorArg("float16", (4096,), (1,))
    given = dict[str, Any](x_ptr=tensor, y_ptr=tensor, i_ptr=tensor, n=3, stride=1)
    made = conversion(HELPERS.format(more), replace(launch(TYPES, BLOCK=1024), args=given), target="gfx942")
    assert ("buffer_load(ptr, offs)" in made.text) == is_buffer, made.text


STEPS = """
@triton.jit
def walked(x, ptr, start, steps, stride, BLOCK: tl.constexpr):
    ptrs = ptr + (start + tl.arange(0, BLOCK)) * stride
    for _ in range(steps):
        x += tl.load(ptrs)
        ptrs += BLOCK * stride
    return x


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x_ptr += tl.program_id(1) * stride
    start, steps = tl.program_id(0) * BLOCK, 2
    x = walked(tl.zeros([BLOCK], tl.float32), x_ptr, start, steps, stride, BLOCK)
    start += steps * BLOCK
    steps = {}
    x = walked(x, x_ptr, start, steps, stride, BLOCK)
    end = start + BLOCK
    steps = end // BLOCK
    x = walked(x, x_ptr, end - steps * BLOCK, steps, stride, BLOCK)
    tl.store(y_ptr + cols, x)
"""
"""As in attention's backward: what is in the diagonal first, what is after it, and what is before."""


@pytest.mark.parametrize(
    ("steps", "is_proven"),
    [
        pytest.param("(n - start) // BLOCK", True, id="after the start is counted"),
        pytest.param("(n - start) // BLOCK\n    start += steps", False, id="and counted"),
    ],
)
def test_an_integer_is_what_it_was_when_it_was_read(
    conversion: Convert, launch: MakeLaunch, steps: str, is_proven: bool
) -> None:
    tensor = TensorArg("float16", (4096,), (1,))
    given = dict[str, Any](x_ptr=tensor, y_ptr=tensor, i_ptr=tensor, n=300, stride=8)
    made = conversion(STEPS.format(steps), replace(launch(TYPES, BLOCK=64), args=given), target="gfx942")
    assert "buffer_load(ptr, offsets)" in made.text, made.text
    # Else the helper is told by how much its pointer was moved.
    assert ("ptr_offsets" not in made.text) == is_proven, made.text


@pytest.mark.parametrize(
    ("statements", "line"),
    [
        pytest.param(
            "ptrs = y_ptr + cols\ntl.atomic_add(ptrs, 1.0)",
            "gl.amd.cdna3.buffer_atomic_add(y_ptr, offsets, gl.full([BLOCK], 1.0, y_ptr.dtype.element_ty, ",
            id="a variable of pointers",
        ),
        pytest.param(
            "base = y_ptr + tl.load(i_ptr) * 8\ntl.atomic_add(base + cols - n, n, mask=cols < 9)",
            "gl.full([BLOCK], n, y_ptr.dtype.element_ty, ",
            id="a moved pointer",
        ),
        pytest.param(
            "base = y_ptr + tl.load(i_ptr) * 8\ntl.store(base + cols - n, cols)\ntl.atomic_xchg(base + cols, 1.0)",
            "gl.full([BLOCK], 1.0, y_ptr.dtype.element_ty, ",
            id="what no buffer does, by one",
        ),
    ],
)
def test_a_scalar_that_atomics_take_is_of_what_a_pointer_is_of(
    buffers: Callable[..., Conversion], statements: str, line: str
) -> None:
    made = buffers(f"{statements}\nx = tl.zeros([BLOCK], tl.float32)")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert line in made.text, made.text


MOVED = "x_ptr += row * stride\nx = tl.load(x_ptr + cols * n)"


def test_on_request_what_is_assumed_is_checked_at_each_launch(buffers: Callable[..., Conversion]) -> None:
    assert "buffer_load(x_ptr" not in buffers(MOVED, None, compile=False).text
    made = buffers(MOVED, None, buffer_guard=True)
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert told(made) == []
    assert "buffer_load(x_ptr, cols * n)" in made.text
    lines = made.text.splitlines()
    place = lines.index('@triton.heuristics({"FITS_BUFFERS": fits_buffers(["x_ptr"], ["n", "stride"])})')
    assert lines[place + 1 : place + 3] == [
        "@gluon.jit",
        "def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: gl.constexpr, FITS_BUFFERS: gl.constexpr = True):",
    ]


def test_what_is_not_assumed_is_not_checked(buffers: Callable[..., Conversion]) -> None:
    assert "fits_buffers" not in buffers("x = tl.load(x_ptr + cols)", None, buffer_guard=True, compile=False).text


def test_a_guard_does_not_make_a_large_tensor_small(buffers: Callable[..., Conversion]) -> None:
    assert "buffer_load(x_ptr" not in buffers(MOVED, ENOUGH + 1, buffer_guard=True, compile=False).text


class Apart(Planner):
    """Has a body for each launch."""

    def plans(self) -> list[FunctionPlan]:
        """The plans, where no text is for two launches."""
        for place, analysis in enumerate(self.analyses):
            if len(analysis.scenes) == 2:
                wanted: Wanted = {(place, 0, ()): Root("rows"), (place, 1, ()): Root("columns")}
                raise Conflict(analysis.body(analysis.function), (1, 0, 1, 1), [wanted])
        return super().plans()


def test_a_kernel_with_several_bodies_is_checked_once(
    conversion: Convert, launch: MakeLaunch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tt2gl.variants.Planner", Apart)
    launches = [launch(TYPES, BLOCK=block) for block in (512, 1024)]
    made = conversion(KERNEL.format(MOVED.replace("\n", "\n    ")), *launches, target="gfx942", buffer_guard=True)
    assert [report.status for report in made.kernels] == ["converted"] * 2, made.kernels[0].diagnostics
    assert made.text.count("buffer_load(x_ptr, cols * n)") == 2
    assert made.text.count("fits_buffers([") == 1
    chooses = made.text[made.text.index("@triton.heuristics") :].splitlines()
    assert chooses[:4] == [
        '@triton.heuristics({"FITS_BUFFERS": fits_buffers(["x_ptr"], ["n", "stride"])})',
        "@gluon.jit",
        "def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: gl.constexpr, FITS_BUFFERS: gl.constexpr = True):",
        '    gl.static_assert(FITS_BUFFERS, "a tensor is too large for buffer operations, or a stride negative")',
    ]


class Tensor:
    """As much of torch's tensor as the check asks for."""

    def __init__(self, size: int) -> None:
        self.size = size

    def untyped_storage(self) -> Tensor:
        """Itself, which has `nbytes`."""
        return self

    def nbytes(self) -> int:
        """Bytes."""
        return self.size


@pytest.mark.parametrize(
    ("size", "stride", "fits"), [(2**31 - 2, 0, True), (2**31 - 1, 0, False), (8, -1, False), (None, 3, True)]
)
def test_the_check(size: int | None, stride: int, fits: bool) -> None:
    scope: dict[str, Any] = {}
    exec(FITS_BUFFERS_SOURCE, scope)
    check = scope["fits_buffers"](["x_ptr"], ["stride"])
    assert check({"x_ptr": None if size is None else Tensor(size), "stride": stride}) == fits


def test_pointers_to_constants(conversion: Convert, launch: MakeLaunch) -> None:
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (4096,), (1,)))
    types = TYPES.replace("x_ptr=*fp16", "x_ptr=*kfp16")
    asked = replace(launch(types, BLOCK=1024), args={**given, "n": 300, "stride": 8})
    made = conversion(KERNEL.format("x = tl.load(x_ptr + row * stride + cols)"), asked, target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "x = gl.amd.cdna3.buffer_load(x_ptr + row * stride, cols)" in made.text, made.text


TENSORS = """
@triton.jit
def summed(x, ptrs, more_ptrs, n, BLOCK: tl.constexpr):
    for k in range(0, n, BLOCK):
        x += tl.load(ptrs) + tl.load(more_ptrs)
        ptrs += BLOCK
        more_ptrs += BLOCK
    return x


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    x_base = x_ptr + tl.program_id(0) * stride
    x_ptrs = x_base + cols
    x = summed(tl.zeros((BLOCK,), tl.float32), x_ptrs, i_ptr + cols, n, BLOCK)
    x = summed(x, x_ptrs, {}, n, BLOCK)
    tl.store(y_ptr + cols, x)
"""


@pytest.mark.parametrize(
    ("last", "both"), [("x_ptrs + BLOCK", True), ("tl.load(i_ptr).to(x_ptrs.dtype) + cols", False)]
)
def test_helpers_take_offsets_for_tensors_of_pointers(
    conversion: Convert, launch: MakeLaunch, last: str, both: bool
) -> None:
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (4096,), (1,)))
    asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
    made = conversion(TENSORS.format(last), asked, target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    written = [line.strip() for line in made.text.splitlines()]
    head = "def summed(x, offsets, more_offsets, n, BLOCK: gl.constexpr, ptr, more_ptr"
    if not both:
        head = "def summed(x, offsets, more_ptrs, n, BLOCK: gl.constexpr, ptr"
    assert [line for line in written if line.startswith(head)], made.text
    assert ("gl.amd.cdna3.buffer_load(more_ptr, more_offsets)" in made.text) == both
    assert "gl.amd.cdna3.buffer_load(ptr, offsets)" in made.text
    assert "x_offsets = cols" in written
    assert ("x_offsets + BLOCK, n, BLOCK, layout=y_layout, ptr=x_base, more_ptr=x_base)" in made.text) == both
    assert "ptr=x_base" in made.text


NESTED = """
@triton.jit
def inner(ptrs):
    return tl.load(ptrs)


@triton.jit
def outer(x_ptrs, scale=2.0):
    return inner(x_ptrs {sign} 8) * scale


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = x_ptr + tl.program_id(0) * BLOCK
    tl.store(y_ptr + cols, outer({given} + cols))
"""


@pytest.mark.parametrize(
    ("pointer", "sign", "passed"),
    # What counts from where a tensor begins is right in 32 bits whatever its parts are.
    [("row", "+", True), ("row", "-", False), ("x_ptr + tl.program_id(0) * BLOCK", "-", True)],
)
def test_helpers_pass_offsets_on(
    conversion: Convert, launch: MakeLaunch, pointer: str, sign: str, passed: bool
) -> None:
    given = dict.fromkeys(("x_ptr", "y_ptr", "i_ptr"), TensorArg("float16", (4096,), (1,)))
    asked = replace(launch(TYPES, BLOCK=1024), args={**given, "n": 2048, "stride": 8})
    made = conversion(NESTED.format(given=pointer, sign=sign), asked, target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert ("def inner(offsets, ptr)" in made.text) == passed
    assert ("def outer(x_offsets, scale=2.0, x_ptr=None)" in made.text) == passed
    reasons = [each.message for each in made.kernels[0].diagnostics if each.code == "TTG340"]
    assert [": `ptrs` may reach beyond 2 GiB." in each for each in reasons] == [True] * (not passed)


LOOKUP = """
@triton.jit
def kernel(t_ptr, i_ptr, y_ptr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    index = tl.load(i_ptr + cols[:, None] + cols[None, :] * BLOCK)
    tl.store(y_ptr + cols[:, None] * BLOCK + cols[None, :], tl.load(t_ptr + index))
"""


@pytest.mark.parametrize(
    ("kind", "dtype", "offset"),
    [
        pytest.param("*i64", "int64", "gl.convert_layout(gl.cast(index, gl.int32), t_layout)", id="long"),
        pytest.param("*i32", "int32", "gl.convert_layout(index, t_layout)", id="as long as offsets"),
        pytest.param("*u8", "uint8", "gl.convert_layout(index, t_layout).to(gl.int32)", id="short"),
    ],
)
def test_an_index_is_converted_while_it_is_short(
    conversion: Convert, launch: MakeLaunch, kind: str, dtype: str, offset: str
) -> None:
    given = {name: TensorArg("float32", (4096,), (1,)) for name in ("t_ptr", "y_ptr")}
    given["i_ptr"] = TensorArg(dtype, (4096,), (1,))
    asked = replace(launch(f"t_ptr=*fp32 i_ptr={kind} y_ptr=*fp32", BLOCK=64), args=given)
    made = conversion(LOOKUP, asked, target="gfx942")
    assert made.kernels[0].status == "converted"
    # Triton 3.6 gives both loads one layout, and nothing is converted.
    if "t_layout: gl.constexpr" in made.text:
        assert f"gl.amd.cdna3.buffer_load(t_ptr, {offset})" in made.text, made.text
    else:
        assert "gl.convert_layout(index" not in made.text


EITHER = """
@triton.jit
def kernel(x_ptr, y_ptr, n, stride, EACH: tl.constexpr, BLOCK: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    row = tl.program_id(0).to(tl.int64)
    if EACH:
        ptrs = x_ptr + row * stride + cols
    else:
        ptrs = x_ptr + row * n - 1
    acc = tl.zeros([BLOCK], tl.float32)
    for _ in range(n):
        if EACH:
            acc += tl.load(ptrs)
        else:
            acc += tl.load(ptrs)
        ptrs += BLOCK if EACH else 1
    {more}
    tl.store(y_ptr + cols, acc)
"""


@pytest.mark.parametrize(
    "more",
    ["ptrs = y_ptr + cols", "x_ptr += n\n    acc += tl.load(ptrs)", "acc += tl.load(ptrs)", "acc += tl.load(x_ptr)"],
)
def test_one_name_for_a_pointer_and_for_several(conversion: Convert, launch: MakeLaunch, more: str) -> None:
    small = TensorArg("float32", (1024,), (1,))
    args = {"x_ptr": small, "y_ptr": small, "n": 3, "stride": 4}
    types = "x_ptr=*fp32 y_ptr=*fp32 n=i32 stride=i32"
    launches = [replace(launch(types, EACH=each, BLOCK=64), args=args) for each in (True, False)]
    made = conversion(EITHER.format(more=more), *launches, target="gfx942")
    assert made.kernels[0].status == made.kernels[1].status == "converted", made.kernels[0].diagnostics
    held = [
        "offsets = gl.cast(row * stride, gl.int32) + cols",
        "offsets = gl.cast(row * n, gl.int32) - 1",
        "acc += gl.amd.cdna3.buffer_load(x_ptr, offsets)",
        "acc += gl.load((x_ptr + offsets))",
        "offsets += BLOCK if EACH else 1",
    ]
    assert all((line in made.text) == (more[:3] == "acc") for line in held), made.text


RENAMED = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, B: tl.constexpr):
    rows = tl.arange(0, B)
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, K, B):
        a = tl.load(a_ptr + rows[:, None] * K + k + rows[None, :])
        b = b_ptr + (k + rows[:, None]) * B + rows[None, :]
        b = tl.load(b)
        acc += tl.dot(a, b)
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


def test_a_ring_keeps_its_name_where_that_is_of_what_was_loaded_too(conversion: Convert, launch: MakeLaunch) -> None:
    tile, types = TensorArg("float16", (128, 32), (32, 1)), "a_ptr=*fp16 b_ptr=*fp16 c_ptr=*fp32 K=i32"
    args = {"a_ptr": tile, "b_ptr": tile, "c_ptr": tile, "K": 128}
    made = conversion(RENAMED, replace(launch(types, B=32), args=args), target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "b_buf = gl.allocate_shared_memory(b_ptr.dtype.element_ty" in made.text
    assert "gl.amd.cdna3.buffer_load(b_ptr, b_offsets" in made.text


STEPPED = """
@triton.jit
def kernel(a_ptr, b_ptr, c_ptr, K, FORM: tl.constexpr, B: tl.constexpr):
    rows = tl.arange(0, B)
    b_ptr += rows[:, None] * B + rows[None, :]
    b_ptrs = b_ptr
    if FORM == "later":
        b_next = b_ptr + B * B
    acc = tl.zeros((B, B), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, B)):
        a = tl.load(a_ptr + rows[:, None] * K + k * B + rows[None, :])
        acc += tl.dot(a, tl.load(b_ptrs))
        if FORM == "late":
            b_ptrs = b_ptr + (k + 1) * B * B
        elif FORM == "later":
            b_ptrs = b_next
            b_next = b_ptr + (k + 2) * B * B
    tl.store(c_ptr + rows[:, None] * B + rows[None, :], acc)
"""


@pytest.mark.slow
def test_a_ring_is_of_what_the_scalar_pointer_of_its_offsets_is_of(conversion: Convert, launch: MakeLaunch) -> None:
    tile, types = TensorArg("float16", (128, 32), (32, 1)), "a_ptr=*fp16 b_ptr=*fp16 c_ptr=*fp32 K=i32"
    args = {"a_ptr": tile, "b_ptr": tile, "c_ptr": tile, "K": 128}
    launches = [replace(launch(types, FORM=form, B=32), args=args) for form in ("late", "later")]
    made = conversion(STEPPED, *launches, target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "b_buf = gl.allocate_shared_memory(b_ptr.dtype.element_ty" in made.text


LOADED = """
@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, BLOCK: tl.constexpr):
    ptrs = x_ptr + tl.arange(0, BLOCK)
    x_ptr = tl.load(ptrs)
    tl.store(ptrs, x_ptr + 1.0)
    tl.store(y_ptr + tl.arange(0, BLOCK), x_ptr)
"""


def test_a_parameter_that_gets_what_was_loaded_from_it_stays_the_pointer(
    conversion: Convert, launch: MakeLaunch
) -> None:
    given = TensorArg("float16", (1024,), (1,))
    args = {"x_ptr": given, "y_ptr": given, "i_ptr": given, "n": 8, "stride": 8}
    made = conversion(LOADED, replace(launch(TYPES, BLOCK=1024), args=args), target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    assert "x_ptr_2 = gl.amd.cdna3.buffer_load(x_ptr, offsets)" in made.text
    assert "gl.cast(x_ptr_2 + 1.0, x_ptr.dtype.element_ty), x_ptr, offsets)" in made.text


OPTIONAL = """
@triton.jit
def inner(x, g_ptr, n, stride, GATED: tl.constexpr, BLOCK: tl.constexpr):
    for i in range(0, n, BLOCK):
        rows = i + tl.arange(0, BLOCK)
        if GATED:
            x += tl.load(g_ptr + rows.to(tl.int64) * stride, mask=rows < n, other=0.0)
    return x


@triton.jit
def kernel(x_ptr, y_ptr, i_ptr, n, stride, GATED: tl.constexpr, BLOCK: tl.constexpr):
    if GATED:
        g_ptr = x_ptr + tl.program_id(0) * stride
    else:
        g_ptr = None
    g_2_ptr = x_ptr + tl.program_id(1) * stride if GATED else None
    x = inner(tl.zeros((BLOCK,), tl.float32), g_ptr, n, stride, GATED, BLOCK)
    x = inner(x, g_2_ptr, n, stride, GATED, BLOCK)
    tl.store(y_ptr + tl.arange(0, BLOCK), x)
"""


def test_a_pointer_that_is_none_under_a_flag_is_of_its_tensor_all_the_same(
    conversion: Convert, launch: MakeLaunch
) -> None:
    given = TensorArg("float16", (4096,), (1,))
    args = {"x_ptr": given, "y_ptr": given, "i_ptr": given, "n": 500, "stride": 8}
    made = conversion(OPTIONAL, replace(launch(TYPES, GATED=True, BLOCK=256), args=args), target="gfx942")
    assert told(made) == []
    assert "buffer_load(g_ptr, " in made.text


MOVED_FOR_TWO = """
@triton.jit
def kernel(x_ptr, y_ptr, m_ptr, r_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr, B: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    y_ptr += rows * N
    x_ptr += rows * N
    out_ptr += rows * N
    m_ptr += rows
    r_ptr += rows
    mean = tl.load(m_ptr, mask=rows < N)
    scale = tl.load(r_ptr, mask=rows < N)
    total = tl.zeros([M, B], tl.float32)
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        y = tl.load(y_ptr + cols[None, :])
        x = tl.load(x_ptr + cols[None, :])
        total += y * (x - mean) * scale
    whole = tl.sum(total, 1)[:, None]
    for start in range(0, N, B):
        cols = start + tl.arange(0, B)
        y = tl.load(y_ptr + cols[None, :])
        x = tl.load(x_ptr + cols[None, :])
        x_hat = (x - mean) * scale
        tl.store(out_ptr + cols, scale * (y - x_hat * whole))
"""


def test_offsets_that_a_sum_in_place_begins_are_named_for_each_layout(conversion: Convert, launch: MakeLaunch) -> None:
    types = "x_ptr=*fp16 y_ptr=*fp8e4nv m_ptr=*fp32 r_ptr=*fp32 out_ptr=*fp32"
    made = conversion(MOVED_FOR_TWO, launch(types, M=64, N=64, B=64), target="gfx942")
    assert made.kernels[0].status == "converted", made.kernels[0].diagnostics
    for offsets in ("m_offsets = ", "m_offsets_out = "):
        assert offsets in made.text, made.text
