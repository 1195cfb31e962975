"""Rule `buffer_ops`, its edits: what becomes of addresses, masks and stored values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tt2gl.plan import BufferAccess

Rewritten = Callable[..., str]

KERNEL = "@triton.jit\ndef kernel(x_ptr, cols, n, v):\n    {}\n"


def load(**said: Any) -> BufferAccess:
    return BufferAccess("gl.amd.cdna3.buffer_load", "x_ptr", **said)


def test_without_an_edit_nothing_moves(rewritten: Rewritten) -> None:
    statement = "x = tl.load(x_ptr + cols, mask=cols < n)"
    assert rewritten(KERNEL.format(statement)).endswith(f"    {statement.replace('tl.', 'gl.')}\n")


@pytest.mark.parametrize(
    ("call", "said", "expected"),
    [
        pytest.param("tl.load(x_ptr + cols)", {}, "buffer_load(x_ptr, cols)", id="plain"),
        pytest.param("tl.load(x_ptr + cols, n > 0, 1.0)", {},
                     "buffer_load(x_ptr, cols, mask=n > 0, other=1.0)", id="places"),
        pytest.param("tl.load(x_ptr + cols, n > 0, 0.0)", {"keeps_other": False},
                     "buffer_load(x_ptr, cols, mask=n > 0)", id="zero"),
        pytest.param("tl.load(x_ptr + cols, None)", {"masked": False}, "buffer_load(x_ptr, cols)", id="no mask"),
        pytest.param('tl.load(x_ptr + cols, cache_modifier=".cg")', {},
                     'buffer_load(x_ptr, cols, cache=".cg")', id="cache"),
        pytest.param('tl.load(x_ptr + cols, eviction_policy="evict_first")', {},
                     "buffer_load(x_ptr, cols)", id="eviction"),
    ],
)  # fmt: skip
def test_loads(rewritten: Rewritten, call: str, said: dict[str, Any], expected: str) -> None:
    made = rewritten(KERNEL.format(f"x = {call}"), buffers={call: load(**said)}, sides={"x_ptr + cols": "right"})
    assert made.endswith(f"    x = gl.amd.cdna3.{expected}\n")


@pytest.mark.parametrize(
    ("value", "constant", "expected"),
    [
        ("v", False, "v.to(x_ptr.dtype.element_ty)"),
        ("v", True, "gl.cast(v, x_ptr.dtype.element_ty)"),
        ("1.0", True, "gl.cast(1.0, x_ptr.dtype.element_ty)"),
        ("v + 1", False, "gl.cast(v + 1, x_ptr.dtype.element_ty)"),
        ("v.to(x_ptr.dtype.element_ty)", False, "v.to(x_ptr.dtype.element_ty)"),
        ("v.to(y_ptr.dtype.element_ty)", False, "v.to(y_ptr.dtype.element_ty).to(x_ptr.dtype.element_ty)"),
        ("g.full([8], 1, x_ptr.dtype.element_ty)", False, "g.full([8], 1, x_ptr.dtype.element_ty)"),
        ("g.full([8], 1, g.int32)", False, "g.full([8], 1, g.int32).to(x_ptr.dtype.element_ty)"),
        (
            "g.convert_layout(v.to(x_ptr.dtype.element_ty), b)",
            False,
            "g.convert_layout(v.to(x_ptr.dtype.element_ty), b)",
        ),
    ],
)
def test_stored_values_get_the_dtype(rewritten: Rewritten, value: str, constant: bool, expected: str) -> None:
    call = f"tl.store(x_ptr + cols, {value}, cols < n)"
    access = BufferAccess("gl.amd.cdna3.buffer_store", "x_ptr", element="x_ptr.dtype.element_ty", constant=constant)
    made = rewritten(KERNEL.format(call), buffers={call: access}, sides={"x_ptr + cols": "right"})
    assert made.endswith(f"    gl.amd.cdna3.buffer_store({expected}, x_ptr, cols, mask=cols < n)\n")


def test_an_atomic_keeps_its_order_and_scope(rewritten: Rewritten) -> None:
    call = 'tl.atomic_add(x_ptr + cols, v, sem="relaxed", scope="cta")'
    access = BufferAccess("gl.amd.cdna3.buffer_atomic_add", "x_ptr")
    made = rewritten(KERNEL.format(call), buffers={call: access}, sides={"x_ptr + cols": "right"})
    assert made.endswith('buffer_atomic_add(x_ptr, cols, v, sem="relaxed", scope="cta")\n')


def test_what_stays_of_a_sum_keeps_its_parentheses(rewritten: Rewritten) -> None:
    call = "tl.load((x_ptr + cols * 2)[:, None])"
    made = rewritten(KERNEL.format(f"x = {call}"), buffers={call: load()}, sides={"x_ptr + cols * 2": "right"})
    assert made.endswith("buffer_load(x_ptr, (cols * 2)[:, None])\n")


def test_a_sum_in_place_begins_an_offset(rewritten: Rewritten) -> None:
    statement = "x_ptr += cols * n\n    x = tl.load(x_ptr)"
    made = rewritten(
        KERNEL.format(statement),
        buffers={"tl.load(x_ptr)": load()},
        begun={"x_ptr": "x_offsets"},
        narrowed={"cols * n": "gl.int32"},
    )
    assert "    x_offsets = gl.cast(cols * n, gl.int32)\n" in made


def test_what_is_assumed_is_told_below_the_docstring(rewritten: Rewritten) -> None:
    text = '@triton.jit\ndef kernel(x_ptr):\n    """Says what it does."""\n\n    # The first.\n    x = 1\n'
    made = rewritten(text, plan={"notes": ("less than 2 GiB",)})
    assert made.endswith('"""Says what it does."""\n\n    # less than 2 GiB\n\n    # The first.\n    x = 1\n')
