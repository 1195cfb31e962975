"""A helper that looks up pages, of positions that it wants in two layouts, also where only names made of them are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def load_tile(cache_ptr, table_ptr, start, pos, dims, n, PAGE: tl.constexpr, D: tl.constexpr):
    at = start + pos
    valid = at < n
    page = tl.load(table_ptr + at // PAGE, mask=valid, other=0)
    offsets = page[None, :] * (PAGE * D) + (at % PAGE)[None, :] * D + dims[:, None]
    return tl.load(cache_ptr + offsets, mask=valid[None, :], other=0.0)


@triton.jit
def kernel(q_ptr, cache_ptr, table_ptr, out_ptr, n, PAGE: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    dims, pos = tl.arange(0, D), tl.arange(0, N)
    q = tl.load(q_ptr + dims)
    total = tl.zeros([N], tl.float32)
    for start in range(0, n, N):
        k = load_tile(cache_ptr, table_ptr, start, pos, dims, n, PAGE, D)
        total += tl.sum(q[:, None] * k, axis=0)
    tl.store(out_ptr + pos, total)
"""


@pytest.mark.parametrize("target", ["sm80", "sm90"])
def test_its_positions_are_given_and_its_names_made_in_each(tmp_path: Path, target: str) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    tensors = {
        "q_ptr": TensorArg("float32", (64,), (1,)),
        "cache_ptr": TensorArg("float32", (8, 16, 64), (1024, 64, 1)),
        "table_ptr": TensorArg("int32", (16,), (1,), (0, 7)),
        "out_ptr": TensorArg("float32", (128,), (1,)),
    }
    extents = {"PAGE": 16, "N": 128, "D": 64}
    kinds = {"q_ptr": "*fp32", "cache_ptr": "*fp32", "table_ptr": "*i32", "out_ptr": "*fp32", "n": "i32"}
    signature, values = kinds | dict.fromkeys(extents, "constexpr"), {**tensors, "n": 250, **extents}
    launch = Launch(path.name, "kernel", signature, extents, (*tensors, "n"), Options(4, 3), (1,), values)
    text = convert(path, target=target, launches=[launch], root=tmp_path, compile=False).text
    assert "start, pos, pos_2, dims" in text
    assert "pos_3" not in text
    _, theirs, ours = compared(path, launch, target)
    assert ours.convert_layouts <= theirs.convert_layouts
    assert ours.barriers <= theirs.barriers
