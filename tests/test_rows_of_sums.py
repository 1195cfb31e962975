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


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_it_takes_no_more_than_tritons(tmp_path: Path, target: str) -> None:
    """In slices of a tile whose threads have four neighbours each, it took three conversions for one."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL)
    tensors = {"ids_ptr": TensorArg("int32", (700,), (1,), (0, 31)), "offsets_ptr": TensorArg("int32", (32,), (1,))}
    extents = {"SIZE": 48, "E": 32, "B": 256}
    signature = dict.fromkeys(tensors, "*i32") | {"n": "i32"} | dict.fromkeys(extents, "constexpr")
    values = {**tensors, "n": 700, **extents}
    launch = Launch(path.name, "kernel", signature, extents, (*tensors, "n"), Options(8, 3), (1,), values)
    _, theirs, ours = compared(path, launch, target)
    assert ours.convert_layouts <= theirs.convert_layouts
    assert ours.barriers <= theirs.barriers
    assert ours.code_bytes <= 1.1 * theirs.code_bytes


def test_what_meets_the_tile_is_left_in_a_slice_of_it(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("== ids[None, :])", "== ids[None, :] + counts[:, None])"))
    kinds = {"ids_ptr": "*i32", "offsets_ptr": "*i32", "n": "i32"} | dict.fromkeys(("SIZE", "E", "B"), "constexpr")
    launch = Launch(path.name, "kernel", kinds, {"SIZE": 48, "E": 32, "B": 256}, ("ids_ptr", "offsets_ptr"))
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert "counts += gl.sum(" in text


def test_what_is_stored_as_it_is_summed_is_not_converted(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("tl.cumsum(padded, axis=0) - padded", "padded"))
    kinds = {"ids_ptr": "*i32", "offsets_ptr": "*i32", "n": "i32"} | dict.fromkeys(("SIZE", "E", "B"), "constexpr")
    launch = Launch(path.name, "kernel", kinds, {"SIZE": 48, "E": 32, "B": 256}, ("ids_ptr", "offsets_ptr"))
    text = convert(path, target="sm90", launches=[launch], root=tmp_path, compile=False).text
    assert "convert_layout(counts" not in text
    assert "convert_layout(padded" not in text
    assert "counts += gl.sum(" in text


@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_a_row_that_sums_meet_is_loaded_once(tmp_path: Path, target: str) -> None:
    """In a slice of the tile each thread loaded all of it: 246 registers for 80 in a gradient of Mamba-3."""
    path = tmp_path / "kernel.py"
    path.write_text(KERNEL.replace("tl.cumsum(padded, axis=0) - padded", "padded * tl.load(offsets_ptr + E + experts)"))
    tensors = {"ids_ptr": TensorArg("int32", (700,), (1,), (0, 31)), "offsets_ptr": TensorArg("int32", (64,), (1,))}
    extents = {"SIZE": 48, "E": 32, "B": 256}
    signature = dict.fromkeys(tensors, "*i32") | {"n": "i32"} | dict.fromkeys(extents, "constexpr")
    values = {**tensors, "n": 700, **extents}
    launch = Launch(path.name, "kernel", signature, extents, (*tensors, "n"), Options(8, 3), (1,), values)
    _, theirs, ours = compared(path, launch, target)
    assert sum(ours.global_loads.values()) <= sum(theirs.global_loads.values())
    assert ours.convert_layouts <= theirs.convert_layouts
