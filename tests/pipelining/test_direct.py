"""Tiles that waves of CDNA4 copy directly to LDS: what is written, and that it computes what Triton's kernel does."""

from __future__ import annotations

import ast
from pathlib import Path

import libcst as cst
import pytest

from tests.pipelining import suite
from tests.pipelining.test_proof import compiled, simulated, slices
from tt2gl.pipelining.direct import Read, direct_copy
from tt2gl.pipelining.loads import Load, is_masked, needs
from tt2gl.pipelining.rings import LoopRings
from tt2gl.plan import Ring
from tt2gl.words import RING_MARK

A = Ring("a", "dtype", ("BLOCK_M", "BLOCK_K"), "a_shared", False, direct="async_copy.global_load_to_shared")
B = Ring("b", "dtype", ("BLOCK_K", "BLOCK_N"), "b_shared", False, direct="async_copy.global_load_to_shared")


def matmul(buffers: int) -> suite.Case:
    m, n, k = 100, 96, 208
    return suite.Case(
        "products",
        "gfx950",
        "matmul_kernel",
        {"matmul_kernel": ("NUM_BUFFERS", [A, B])},
        {"a_ptr": ("fp16", (128, k)), "b_ptr": ("fp16", (k, 128)), "c_ptr": ("fp16", (m, 128))},
        {"M": m, "N": n, "K": k, "stride_am": k, "stride_bk": 128, "stride_cm": 128},
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "NUM_BUFFERS": buffers},
        (2, 2, 1),
    )


@pytest.mark.parametrize(
    ("mask", "offsets", "exists", "said"),
    [
        (None, None, "", []),
        (None, None, "more", ["mask=more"]),
        ("m", None, "", ["mask=m", "other=0.0"]),
        ("m", "o", "more", ["o", "mask=m & more"]),
    ],
)
def test_what_a_copy_is_given(mask: str | None, offsets: str | None, exists: str, said: list[str]) -> None:
    load = Load("p", mask, (("cache_modifier", "'.cg'"), ("eviction_policy", "''")), offsets)
    assert direct_copy("slot", load, exists) == ["slot", "p", *said, "cache_modifier='.cg'"]


def test_offsets_are_what_a_load_needs_and_no_mask() -> None:
    call = ast.parse("f(p, offsets=o)", mode="eval").body
    assert isinstance(call, ast.Call)
    assert [ast.unparse(each) for each in needs(call)] == ["p", "o"]
    assert not is_masked(call)


@pytest.mark.parametrize(
    ("source", "made"),
    [
        ("_tt2gl_ring_a(p, m).load(layout)", "load_shared_relaxed(slot_a, layout)"),
        ("_tt2gl_ring_b(p).load(layout)", "slot_b.load(layout)"),
        ("_tt2gl_ring_a(p)", "slot_a"),
        ("other.load(layout)", "other.load(layout)"),
    ],
)
def test_only_loads_of_slots_filled_directly_are_relaxed(source: str, made: str) -> None:
    read = Read(RING_MARK, {"a": "slot_a", "b": "slot_b"}, ["a"])
    found = cst.parse_expression(source).visit(read)
    assert isinstance(found, cst.BaseExpression)
    assert cst.Module([]).code_for_node(found) == made


def test_a_ring_filled_directly_has_a_tile_to_spare() -> None:
    registers = Ring("c", "dtype", (), "c_shared", False, registers=True)
    spec = LoopRings("f", 1, (A, registers), "NUM_BUFFERS")
    assert [spec.depth(A).source, spec.depth(registers).source] == ["NUM_BUFFERS", "NUM_BUFFERS - 1"]
    assert spec.ahead.source == "NUM_BUFFERS - 1"


def test_copies_start_when_waves_have_met_and_before_the_product() -> None:
    text = matmul(3).port("never")
    loop = text[text.index("    for k in range(0") :]
    order = ["wait_group(NUM_BUFFERS - 2)", "buffer_load", "global_load", "commit_group()", "load_shared_", "mfma"]
    places = [loop.index(each) for each in order]
    assert places == sorted(places)
    assert "free_slot = slot\n" in loop


@pytest.mark.parametrize("buffers", [3, pytest.param(2, marks=pytest.mark.slow)])
def test_equal_to_triton(buffers: int, tmp_path: Path) -> None:
    case = matmul(buffers)
    kernels = slices(case, case.port("never"), tmp_path)
    _, gluon = compiled(case, kernels)
    assert gluon.ok, gluon.error
    assert gluon.metrics is not None
    assert gluon.metrics.step_copies.keys() == {"lds.16"}
    run = simulated(case, kernels)
    assert run.result is not None, run.trouble
    assert (run.result.equal, run.result.findings) == (True, ())


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        # One group too many may be under way.
        ("wait_group(NUM_BUFFERS - 2)", "wait_group(NUM_BUFFERS - 1)"),
        # The slot that is copied to is being read.
        ("b_buf.index(free_slot)", "b_buf.index(slot)"),
    ],
)
@pytest.mark.slow
def test_the_proof_can_fail(right: str, wrong: str, tmp_path: Path) -> None:
    case = matmul(3)
    text = case.port("never")
    assert right in text
    run = simulated(case, slices(case, text.replace(right, wrong), tmp_path))
    assert run.result is not None
    assert run.result.findings or not run.result.equal
