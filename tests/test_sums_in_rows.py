"""What is computed of a tile's sums alone is computed as the row that is stored is held."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.compared import compared
from tt2gl.convert import convert
from tt2gl.launches import Launch, Options, TensorArg

KERNEL = """import triton
import triton.language as tl


@triton.jit
def kernel(ids_ptr, offsets_ptr, n, SIZE: tl.constexpr, E: tl.constexpr, B: tl.constexpr):
    experts, columns = tl.arange(0, E), tl.arange(0, B)
    counts = tl.zeros((E,), tl.int32)
    for start in range(0, n, B):
        ids = tl.load(ids_ptr + start + columns, mask=start + columns < n, other=-1)
        counts += tl.sum((experts[:, None] == ids[None, :]).to(tl.int32), axis=1)
    padded = (counts + SIZE - 1) // SIZE * SIZE
    tl.store(offsets_ptr + experts, tl.cumsum(padded, axis=0) - padded)
"""


STORED = "tl.cumsum(padded, axis=0) - padded"


def launched(folder: Path, text: str = KERNEL) -> tuple[Path, Launch]:
    """The file of a kernel that counts to 32 by 256 at a time, and its launch."""
    path = folder / "kernel.py"
    path.write_text(text)
    tensors = {"ids_ptr": TensorArg("int32", (700,), (1,), (0, 31)), "offsets_ptr": TensorArg("int32", (64,), (1,))}
    extents = {"SIZE": 48, "E": 32, "B": 256}
    signature = dict.fromkeys(tensors, "*i32") | {"n": "i32"} | dict.fromkeys(extents, "constexpr")
    values = {**tensors, "n": 700, **extents}
    return path, Launch(path.name, "kernel", signature, extents, (*tensors, "n"), Options(8, 3), (1,), values)


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_it_takes_no_more_than_tritons(tmp_path: Path, target: str) -> None:
    """In slices of a tile whose threads have four neighbours each, it took three conversions for one."""
    _, theirs, ours = compared(*launched(tmp_path), target)
    assert ours.convert_layouts <= theirs.convert_layouts
    assert ours.barriers <= theirs.barriers
    assert ours.code_bytes <= 1.1 * theirs.code_bytes


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_row_that_sums_meet_is_loaded_once(tmp_path: Path, target: str) -> None:
    """In a slice of the tile each thread loaded all of it: 246 registers for 80 in a gradient of Mamba-3."""
    text = KERNEL.replace(STORED, "padded * tl.load(offsets_ptr + E + experts)")
    _, theirs, ours = compared(*launched(tmp_path, text), target)
    assert sum(ours.global_loads.values()) <= sum(theirs.global_loads.values())
    assert ours.convert_layouts <= theirs.convert_layouts


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(KERNEL.replace("== ids[None, :])", "== ids[None, :] + counts[:, None])"), id="meets the tile"),
        pytest.param(KERNEL.replace(STORED, "padded"), id="stored alone"),
    ],
)
def test_what_need_not_be_a_row_is_left_in_a_slice_of_the_tile(tmp_path: Path, text: str) -> None:
    path, launch = launched(tmp_path, text)
    assert "counts += gl.sum(" in convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
