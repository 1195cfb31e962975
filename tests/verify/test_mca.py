"""Loops are taken out of assembly whole, and without what llvm-mca has no model of."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.verify import mca

NESTED = """
	v_mov_b32_e32 v9, 0
.LBB0_1:                                ; =>This Loop Header: Depth=1
                                        ;     Child Loop BB0_2 Depth 2
	v_add_u32_e32 v0, 1, v0
.LBB0_2:                                ;   Parent Loop BB0_1 Depth=1
                                        ; =>  This Inner Loop Header: Depth=2
	s_waitcnt vmcnt(0)
	v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]
	s_barrier
	s_cbranch_scc1 .LBB0_2
; %bb.3:                                ;   in Loop: Header=BB0_1 Depth=1
	s_cbranch_scc1 .LBB0_1
.LBB0_4:                                ; =>This Inner Loop Header: Depth=1
	v_add_u32_e32 v1, 2, v1
	s_cbranch_scc1 .LBB0_4
"""


def test_only_innermost_loops_and_of_those_only_ones_with_products() -> None:
    (loop,) = mca.inner_loops(NESTED)
    assert [line.split()[0] for line in loop.splitlines()] == ["v_mfma_f32_32x32x16_f16", "s_cbranch_scc1"]


def test_without_products_every_innermost_loop_counts() -> None:
    assert len(mca.inner_loops(NESTED.replace("v_mfma_f32_32x32x16_f16", "v_foo"))) == 2


def test_a_loop_that_only_ends_another_is_left_out() -> None:
    drain = """.LBB0_5:                                ; =>This Inner Loop Header: Depth=1
	v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]
"""
    step = drain.replace("BB0_5", "BB0_4") + "\tbuffer_load_dwordx4 v[16:19], v0, s[8:11], 0 offen\n"
    (loop,) = mca.inner_loops(step + drain)
    assert len(loop.splitlines()) == 2
    assert len(mca.inner_loops(step + step.replace("BB0_4", "BB0_5"))) == 2


def test_buffers_are_global_memory_to_the_analyser() -> None:
    accesses = """	buffer_load_dwordx4 v[16:19], v0, s[8:11], 0 offen offset:16
	buffer_store_b32 v3, v0, s[12:15], null offen
"""
    (loop,) = mca.inner_loops(
        f".LBB0_5:                                ; =>This Inner Loop Header: Depth=1\n{accesses}"
    )
    assert [line.strip() for line in loop.splitlines()] == [
        "global_load_dwordx4 v[16:19], v0, s[8:9]",
        "global_store_b32 v0, v3, s[12:13]",
    ]


def test_no_loop_no_estimate() -> None:
    assert mca.step_cycles("\tv_add_u32_e32 v0, 1, v0\n", "gfx950") is None


def test_without_the_tool_there_is_no_estimate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    mca.analyser.cache_clear()
    try:
        assert mca.step_cycles(NESTED, "gfx950") is None
    finally:
        mca.analyser.cache_clear()


@pytest.mark.skipif(mca.analyser("gfx942") is None, reason="no llvm-mca that knows gfx942")
def test_more_products_take_longer() -> None:
    product = "\tv_mfma_f32_32x32x8_f16 v[0:15], v[16:17], v[20:21], v[0:15]\n"
    buffer = "\tbuffer_load_dwordx4 v[16:19], v0, s[8:11], 0 offen\n"
    text = NESTED.replace(
        "v_mfma_f32_32x32x16_f16 v[0:15], v[16:19], v[20:23], v[0:15]\n", product.strip() + "\n" + buffer
    )
    one, two = (mca.step_cycles(text.replace(product, product * times), "gfx942") for times in (1, 2))
    assert one is not None
    assert two is not None
    assert one < two


@pytest.mark.skipif(mca.analyser("gfx950") is None, reason="no llvm-mca that knows gfx950")
def test_an_instruction_that_it_does_not_know_means_no_estimate() -> None:
    assert mca.step_cycles(NESTED.replace("v_mfma_", "v_mfma_unheard_of_"), "gfx950") is None
