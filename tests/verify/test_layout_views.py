"""Layouts that a port names, as Triton places their elements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launches import Launch
from tt2gl.results import NamedLayout
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.layout_views import ViewJob, named_layouts

PORT = """
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def copy_kernel(x_ptr, out_ptr, COLUMNS: gl.constexpr):
    unused: gl.constexpr = gl.BlockedLayout([1, 1], [1, 32], [4, 1], [1, 0])
    rows_layout: gl.constexpr = gl.BlockedLayout([1, 4], [8, 4], [4, 1], [1, 0])
    x_shared: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 4, [1, 0])
    width: gl.constexpr = COLUMNS
    rows = gl.arange(0, 64, layout=gl.SliceLayout(1, rows_layout))
    columns = gl.arange(0, width, layout=gl.SliceLayout(0, rows_layout))
    offsets = rows[:, None] * width + columns[None, :]
    x_buf = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [2, 64, width], x_shared)
    x_buf.index(1).store(gl.load(x_ptr + offsets))
    gl.store(out_ptr + offsets, x_buf.index(1).load(rows_layout))


@gluon.jit
def broken_kernel(x_ptr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    gl.store(x_ptr + gl.arange(0, 128, layout=layout), missing)
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[NamedLayout, ...]]:
    path = tmp_path_factory.mktemp("views") / "port.py"
    path.write_text(PORT)
    source = read_source(Path(path))
    signature = {"x_ptr": "*fp16", "out_ptr": "*fp16", "COLUMNS": "constexpr"}
    launches = {
        "copy_kernel": Launch(str(path), "copy_kernel", signature, {"COLUMNS": 32}),
        "broken_kernel": Launch(str(path), "broken_kernel", {"x_ptr": "*fp16"}, {}),
    }
    jobs = [
        ViewJob(slice_kernel(source, name, target="sm90"), launch, "sm90")
        for name, launch in reversed(launches.items())
    ]
    return named_layouts(jobs)


def test_a_kernel_that_does_not_compile_shows_none_and_harms_no_other(found: list[tuple[NamedLayout, ...]]) -> None:
    assert [len(layouts) for layouts in found] == [0, 3]


def test_names_places_and_what_is_so_laid_out(found: list[tuple[NamedLayout, ...]]) -> None:
    unused, rows, shared = found[1]
    assert [(each.name, each.kind, each.shape) for each in found[1]] == [
        ("unused", "threads", ()),
        ("rows_layout", "threads", (64, 32)),
        ("x_shared", "shared", (64, 32)),
    ]
    assert PORT.split("\n")[rows.line - 1].strip().startswith("rows_layout")
    assert (
        rows.text
        == "BlockedLayout(size_per_thread=[1, 4], threads_per_warp=[8, 4], warps_per_cta=[4, 1], order=[1, 0])"
    )
    assert (shared.bits, unused.bases) == (16, {})


def test_bases_are_those_of_the_layout(found: list[tuple[NamedLayout, ...]]) -> None:
    assert found[1][1].bases == {
        "reg": ((0, 1), (0, 2), (0, 16), (32, 0)),
        "lane": ((0, 4), (0, 8), (1, 0), (2, 0), (4, 0)),
        "warp": ((8, 0), (16, 0)),
        "block": (),
    }


def test_offsets_in_shared_memory_where_triton_tells_them(found: list[tuple[NamedLayout, ...]]) -> None:
    bases = found[1][2].bases
    if not bases:
        pytest.skip("this Triton aborts when it is asked")
    assert bases["offset"][:7] == ((0, 1), (0, 2), (0, 4), (0, 8), (0, 16), (1, 4), (2, 8))
