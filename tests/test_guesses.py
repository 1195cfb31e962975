"""Types that compile, where the likeliest guess does not; the cases that no type mends come first."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl import guesses
from tt2gl.convert import convert
from tt2gl.guesses import guessed_launches
from tt2gl.isolate import map_isolated
from tt2gl.launches import DtypeValue
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source

pytestmark = pytest.mark.once

HEADER = """\
import triton
import triton.language as tl

@triton.jit
def kernel(a_ptr, b_ptr, s_ptr, o_ptr, K, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    at = i[:, None] * BLOCK + i[None, :]
"""


def types(body: str, directory: Path) -> list[str]:
    """The types of the pointers under the launch that is guessed of a kernel."""
    text = HEADER + "".join(f"    {line}\n" for line in body.splitlines())
    source = read_source(directory / "kernel.py", text)
    (launch, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    return [launch.signature[name] for name in ("a_ptr", "b_ptr", "s_ptr", "o_ptr")]


def test_a_guess_that_compiles_stays(tmp_path: Path) -> None:
    body = "tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)) * tl.load(s_ptr + i))"
    assert types(body, tmp_path) == ["*fp16", "*fp16", "*fp32", "*fp32"]


def test_so_does_one_that_no_type_mends(tmp_path: Path) -> None:
    body = "tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at), trans_b=True))"
    assert types(body, tmp_path) == ["*fp16", "*fp16", "*fp32", "*fp32"]


def test_one_parameter_has_another_type(tmp_path: Path) -> None:
    body = "g = tl.load(b_ptr + at)\ntl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at).to(g.dtype), g) * tl.exp(g))"
    assert types(body, tmp_path) == ["*fp16", "*fp32", "*fp32", "*fp32"]


def test_several_have(tmp_path: Path) -> None:
    body = """\
acc = tl.zeros([BLOCK, BLOCK], tl.int32)
for k in range(0, K):
    acc += tl.dot(tl.load(a_ptr + at + k), tl.load(b_ptr + at + k))
tl.store(o_ptr + at, acc * tl.load(s_ptr + i))"""
    assert types(body, tmp_path) == ["*i8", "*i8", "*fp32", "*fp32"]


def test_a_type_leads_to_the_next(tmp_path: Path) -> None:
    body = """\
a = tl.load(a_ptr + at).to(tl.float16)
codes = tl.load(b_ptr + at)
g = tl.load(s_ptr + at)
b = (codes ^ codes).to(tl.float16)
tl.store(o_ptr + at, tl.dot(a, b) + tl.dot(g, g) * tl.exp(g))"""
    assert types(body, tmp_path) == ["*fp16", "*i8", "*fp32", "*fp32"]


def test_each_launch_of_a_kernel_that_is_loaded_once_is_compiled(tmp_path: Path) -> None:
    body = "tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b_ptr + at)) + (tl.load(s_ptr + i) & 1)[:, None])"
    source = read_source(tmp_path / "kernel.py", HEADER + f"    {body}\n")
    (found, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    launches = [replace(found, signature={**found.signature, "s_ptr": kind}) for kind in ("*i32", "*fp32", "*i32")]
    kernel = slice_kernel(source, "kernel", target="sm90")
    outcomes = map_isolated(guesses.frontend_job, [(kernel, each, "sm90") for each in launches], workers=1, family=_one)
    assert [outcome.value for outcome in outcomes] == [None, (8,), None]


def _one(*_: object) -> None:
    """All jobs are for one child."""


def test_a_table_of_pointers_that_is_a_matrix_here(tmp_path: Path) -> None:
    body = """\
b = b_ptr if BLOCK > 1 else tl.load(b_ptr + K).to(tl.pointer_type(tl.float16))
tl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at), tl.load(b + at)))"""
    assert types(body, tmp_path) == ["*fp16", "*fp16", "*fp32", "*fp32"]


def test_a_number_that_lies_in_memory_under_other_flags(tmp_path: Path) -> None:
    body = """\
n = tl.load(s_ptr) if BLOCK == 1 else s_ptr.to(tl.int32)
for k in range(n):
    tl.store(o_ptr + at + k, tl.load(a_ptr + at) + tl.load(b_ptr + at))"""
    assert types(body, tmp_path) == ["*fp32", "*fp32", "i32", "*fp32"]


def test_a_flag_is_turned(tmp_path: Path) -> None:
    text = HEADER.replace("BLOCK: tl", "PACKED: tl.constexpr, BLOCK: tl") + (
        "    if PACKED:\n        x = tl.load(a_ptr + at)\n    tl.store(o_ptr + at, x)\n"
    )
    source = read_source(tmp_path / "kernel.py", text)
    (launch, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert launch.constexprs["PACKED"] is True


def test_flags_that_triton_refuses_are_left_out_and_told(tmp_path: Path) -> None:
    text = HEADER.replace("BLOCK: tl", "HAS_A: tl.constexpr, HAS_B: tl.constexpr, BLOCK: tl") + (
        "    tl.static_assert(at.shape[0] == 1 or not (HAS_A and HAS_B))\n"
        "    tl.store(o_ptr + at, tl.load(a_ptr + at))\n"
    )
    source = read_source(tmp_path / "kernel.py", text)
    launches, (note,) = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert [launch.constexprs["HAS_A"] for launch in launches] == [False]
    assert note.message.endswith("Left out: 1 more, which Triton refuses.")


@pytest.mark.parametrize(
    ("target", "values"), [("sm90", [False, True]), ("sm80", [False, False]), ("gfx942", [False, False])]
)
@pytest.mark.parametrize("flag", ["launch_pdl", "USE_PDL"])
def test_kernels_overlap_where_a_target_has_that(tmp_path: Path, flag: str, target: str, values: list[bool]) -> None:
    parameters = f"{flag}: tl.constexpr, HAS_A: tl.constexpr, BLOCK: tl"
    waits = f"    if {flag}:\n        tl.extra.cuda.gdc_wait()\n"
    body = f"{waits}    if HAS_A:\n        tl.store(o_ptr + at, tl.load(a_ptr + at))\n"
    text = HEADER.replace("BLOCK: tl", parameters) + body
    source = read_source(tmp_path / "kernel.py", text)
    launches, _ = guessed_launches(source, source.kernel("kernel"), target, None)
    assert [launch.constexprs[flag] for launch in launches] == values
    assert [launch.constexprs["HAS_A"] for launch in launches] == [False, True]


@pytest.mark.parametrize(("target", "values"), [("sm100", [False, True]), ("sm90", [False]), ("gfx942", [False])])
@pytest.mark.parametrize("flag", ["warp_specialize", "WARPSPEC"])
def test_warps_have_parts_where_a_target_has_that(tmp_path: Path, flag: str, target: str, values: list[bool]) -> None:
    body = f"    for k in tl.range(0, K, warp_specialize={flag}):\n        tl.store(o_ptr + at + k, 1.0)\n"
    text = HEADER.replace("BLOCK: tl", f"{flag}: tl.constexpr, BLOCK: tl") + body
    source = read_source(tmp_path / "kernel.py", text)
    launches, _ = guessed_launches(source, source.kernel("kernel"), target, None)
    assert [launch.constexprs[flag] for launch in launches] == values


def test_a_float_is_made_a_wide_integer(tmp_path: Path) -> None:
    body = "last = tl.full((BLOCK, BLOCK), 0, tl.int64)\nfor _ in range(K):\n    last = tl.load(a_ptr + at)"
    assert types(f"{body}\ntl.store(o_ptr + at, last)", tmp_path)[0] == "*i64"


def test_a_dtype_is_changed(tmp_path: Path) -> None:
    text = HEADER.replace("BLOCK: tl", "KIND: tl.constexpr, BLOCK: tl") + (
        "    x = tl.load(a_ptr + at).to(KIND)\n    tl.store(o_ptr + at, x >> 3)\n"
    )
    source = read_source(tmp_path / "kernel.py", text)
    (launch, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert launch.constexprs["KIND"] == DtypeValue("i32")


def test_a_pointer_to_what_is_asserted_to_be_unsigned(tmp_path: Path) -> None:
    text = (
        HEADER
        + "    x = tl.load(a_ptr + at)\n    tl.static_assert(x.dtype == tl.uint32)\n    tl.store(o_ptr + at, x)\n"
    )
    source = read_source(tmp_path / "kernel.py", text)
    (launch, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert launch.signature["a_ptr"] == "*u32"


def test_a_size_is_changed(tmp_path: Path) -> None:
    text = HEADER.replace("BLOCK: tl", "ROWS: tl.constexpr, BLOCK: tl") + (
        "    rows = tl.arange(0, ROWS // 2)\n    tl.store(o_ptr + at, tl.load(a_ptr + at) + rows[:, None])\n"
    )
    source = read_source(tmp_path / "kernel.py", text)
    (launch, *_), notes = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert launch.constexprs["ROWS"] == 2 * launch.constexprs["BLOCK"]
    assert f"ROWS={launch.constexprs['ROWS']}" in notes[0].message


def test_nothing_is_tried_behind_the_first_that_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[tuple[int, int]] = []

    def counted(function: Any, jobs: Any, **options: Any) -> Any:
        outcomes = map_isolated(function, jobs, **options)
        ended.append((len(outcomes), len(jobs)))
        return outcomes

    monkeypatch.setattr(guesses, "map_isolated", counted)
    body = "g = tl.load(b_ptr + at)\ntl.store(o_ptr + at, tl.dot(tl.load(a_ptr + at).to(g.dtype), g) * tl.exp(g))"
    assert types(body, tmp_path)[1] == "*fp32"
    (first, (tried, known)) = ended[:2]
    assert first == (1, 1)
    assert tried < known


def test_a_descriptor_that_nothing_else_fits_stays(tmp_path: Path) -> None:
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef kernel(x):\n    x.load([0, 0]).wrong()\n"
    source = read_source(tmp_path / "kernel.py", text)
    (launch, *_), _ = guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert launch.signature == {"x": "tensordesc<fp16[64, 64]>"}


def test_a_kernel_that_is_not_even_read_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def counted(_: Any, jobs: Any, **options: Any) -> Any:
        tried.append(len(jobs))
        return map_isolated(os.abort, [()] * len(jobs), timeout=options["timeout"])

    monkeypatch.setattr(guesses, "map_isolated", counted)
    source = read_source(tmp_path / "kernel.py", HEADER + "    tl.store(o_ptr + at, K)\n")
    guessed_launches(source, source.kernel("kernel"), "sm90", None)
    assert tried == [1]


FLAG = """\
import triton
import triton.language as tl

@triton.jit
def kernel(a_ptr, o_ptr, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i)
    if WAIT:
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], dtype=tl.int32, is_pure=False, pack=1)
    tl.store(o_ptr + i, a)
"""


@pytest.mark.parametrize(("target", "flags"), [("sm90", [False, True]), ("gfx942", [False])])
def test_a_flag_that_leads_to_assembly_of_another_vendor_stays_off(
    tmp_path: Path, target: str, flags: list[bool]
) -> None:
    source = read_source(tmp_path / "kernel.py", FLAG)
    launches, notes = guessed_launches(source, source.kernel("kernel"), target, None)
    assert [launch.constexprs["WAIT"] for launch in launches] == flags
    assert any("Left out: 1 more" in note.message for note in notes) == (len(flags) == 1)


def test_a_kernel_with_such_a_flag_converts(tmp_path: Path) -> None:
    path = tmp_path / "kernel.py"
    path.write_text(FLAG)
    (report,) = convert(path, target="gfx942", compile=False).kernels
    assert report.status == "converted"
    assert not any(found.code == "TTG401" for found in report.diagnostics)


STORED_THROUGH_A_BLOCK = """\
import triton
import triton.language as tl


@triton.jit
def largest(q, k, r_block):
    p = tl.dot(q, tl.trans(k))
    tl.store(tl.advance(r_block, (0, 0)), tl.max(p, 1)[:, None].to(q.dtype))


@triton.jit
def kernel(q_ptr, k_ptr, r_ptr, N: tl.constexpr):
    at = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    r_block = tl.make_block_ptr(r_ptr, (N, 1), (1, 1), (0, 0), (N, 1), (1, 0))
    largest(tl.load(q_ptr + at), tl.load(k_ptr + at), r_block)
"""


def test_types_are_those_that_the_authors_text_takes(tmp_path: Path) -> None:
    # A block pointer takes elements of its own type alone, and a pointer, which it becomes, any.
    path = tmp_path / "kernel.py"
    path.write_text(STORED_THROUGH_A_BLOCK)
    (report,) = convert(path, target="sm90", compile=False).kernels
    assert "r_ptr: *fp16" in next(each.message for each in report.diagnostics if each.code == "TTG210")
