"""AMD's assembly is counted as it is spelled."""

from __future__ import annotations

import pytest

from tt2gl.results import Place
from tt2gl.verify.amdgcn import amd_resources, count_amdgcn

pytestmark = pytest.mark.once

AMD_LOADS = [
    ("global_load_dwordx4 v[0:3], v0, s[2:3]", 128),
    ("global_load_dwordx2 v[0:1], v[2:3], off", 64),
    ("global_load_ushort v1, v[2:3], off", 16),
    ("global_load_short_d16_hi v1, v[2:3], off", 16),
    ("global_load_d16_hi_b16 v1, v[2:3], off", 16),
    ("global_load_d16_u8 v1, v[2:3], off", 8),
    ("buffer_load_dwordx4 v[4:7], v0, s[8:11], 0 offen", 128),
    ("buffer_load_b96 v[4:6], v0, s[8:11], null offen", 96),
    ("flat_load_dword v0, v[2:3]", 32),
    ("global_load_u8 v0, v[2:3], off", 8),
]


@pytest.mark.parametrize(("text", "bits"), AMD_LOADS, ids=[text for text, _ in AMD_LOADS])
def test_amd_loads_by_width(text: str, bits: int) -> None:
    counts = count_amdgcn(f"\t{text}\n")
    assert counts.loads == {bits: 1}
    assert counts.async_copies == 0


@pytest.mark.parametrize(
    "text",
    [
        "s_load_dwordx4 s[0:3], s[4:5], 0x0",
        "scratch_load_dword v0, off, off offset:4",
        "global_atomic_add_f32 v0, v1, s[0:1]",
        "buffer_atomic_cmpswap v0, v1, s[0:3], 0 offen",
        "buffer_inv sc1",
        "global_wb",
        "; global_load_dword",
    ],
)
def test_amd_without_a_global_access(text: str) -> None:
    counts = count_amdgcn(f"\t{text}\n")
    assert not counts.loads
    assert not counts.stores


def test_amd_copies_to_lds_are_loads_too() -> None:
    text = """
	buffer_load_dwordx4 v0, s[8:11], 0 offen lds
	global_load_lds_dword v[0:1], off
	global_load_async_to_lds_b128 v0, v[2:3], off
	tensor_load_to_lds s[0:3], s[4:11]
	global_store_async_from_lds_b64 v[0:1], v2, off
    """
    counts = count_amdgcn(text)
    assert counts.async_copies == 5
    assert counts.loads == {128: 3, 32: 1}
    assert counts.stores == {64: 1}


def test_amd_matrix_barriers_and_lds() -> None:
    text = """
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
	v_wmma_f32_16x16x16_f16 v[0:7], v[0:3], v[4:7], v[0:7]
	s_barrier
	s_barrier_signal -1
	s_barrier_wait -1
	ds_read2st64_b64 v[0:3], v4
	ds_write_b64 v0, v[1:2]
	ds_load_tr16_b128 v[0:3], v4
	ds_bpermute_b32 v0, v1, v2
    """
    counts = count_amdgcn(text)
    assert counts.mma == {"v_mfma_f32_32x32x8_f16": 1, "v_wmma_f32_16x16x16_f16": 1}
    assert counts.barriers == 2
    assert counts.shared_accesses == 3


def test_amd_resources_come_from_the_metadata() -> None:
    text = "amdhsa.kernels:\n  - .agpr_count: 0\n    .vgpr_count:     208\n    .vgpr_spill_count: 3\n"
    assert amd_resources(text) == (208, 3)


def test_amd_products_and_copies_in_a_step() -> None:
    text = """
	global_load_lds_dwordx4 v[0:1], off
.LBB0_5:                                ; =>This Inner Loop Header: Depth=1
	.loc	1 12 5                  ; _a_kernel.py:12:5
	global_load_lds_dwordx4 v[0:1], off
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
; %bb.6:                                ; %Flow
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
    """
    counts = count_amdgcn(text, {"_a_kernel": "k.py"})
    assert counts.step_mma == {"v_mfma_f32_32x32x8_f16": 1}
    assert (counts.copies, counts.step_copies) == ({"lds.16": 2}, {"lds.16": 1})
    assert list(counts.places["v_mfma_f32_32x32x8_f16"]) == [Place("k.py", 12)]


LOOP_AND_DRAIN = """
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
	buffer_load_dwordx4 v[4:7], v0, s[8:11], 0 offen
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
	s_waitcnt vmcnt(0)
	s_cbranch_scc1 .LBB0_1
.LBB0_2:                                ; =>This Inner Loop Header: Depth=1
	s_waitcnt lgkmcnt(0)
	v_mfma_f32_32x32x8_f16 a[0:15], v[0:1], v[2:3], a[0:15]
	s_cbranch_scc1 .LBB0_2
"""


def test_a_loop_that_only_ends_another_is_no_step() -> None:
    counts = count_amdgcn(LOOP_AND_DRAIN)
    assert counts.mma == {"v_mfma_f32_32x32x8_f16": 2}
    assert counts.step_mma == {"v_mfma_f32_32x32x8_f16": 1}
    assert counts.step_waits == 2


def test_loops_that_load_nothing_are_steps_where_none_does() -> None:
    counts = count_amdgcn(LOOP_AND_DRAIN.replace("buffer_load_dwordx4", "v_foo"))
    assert counts.step_mma == {"v_mfma_f32_32x32x8_f16": 2}


def test_a_loop_after_another_that_loads_is_a_step() -> None:
    drain = LOOP_AND_DRAIN.rindex("\ts_waitcnt")
    load = "\tglobal_load_dword v0, v[2:3], off\n"
    text = LOOP_AND_DRAIN[:drain] + load + LOOP_AND_DRAIN[drain:]
    assert count_amdgcn(text).step_mma == {"v_mfma_f32_32x32x8_f16": 2}
    # One with fewer loads that multiplies as the first does is its end; one that multiplies otherwise is not.
    before = text.index("\ts_waitcnt")
    fewer = text[:before] + load + text[before:]
    assert count_amdgcn(fewer).step_mma == {"v_mfma_f32_32x32x8_f16": 1}
    assert count_amdgcn(fewer.replace("32x32x8", "16x16x16", 1)).step_mma.total() == 2


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("buffer_load_dwordx4 v[4:7], v0, s[8:11], 0 offen", (1, 0)),
        ("buffer_atomic_add_f32 v0, v1, s[0:3], 0 offen", (1, 0)),
        ("global_store_dword v0, v1, s[2:3]", (0, 1)),
        ("flat_load_dword v0, v[2:3]", (0, 1)),
        ("buffer_inv sc1", (0, 0)),
        ("s_load_dwordx4 s[0:3], s[4:5], 0x0", (0, 0)),
    ],
)
def test_buffer_operations_and_other_accesses(text: str, counted: tuple[int, int]) -> None:
    counts = count_amdgcn(f"\t{text}\n")
    assert (counts.buffered, counts.unbuffered) == counted


@pytest.mark.parametrize(
    ("wait", "times"),
    [
        ("s_waitcnt vmcnt(0)", 1),
        ("s_wait_loadcnt_dscnt 0x0", 1),
        ("s_waitcnt_vscnt null, 0x0", 1),
        ("s_waitcnt_depctr 0xfff", 0),
        ("s_wait_alu 0xfffe", 0),
    ],
)
def test_waits_for_memory(wait: str, times: int) -> None:
    assert count_amdgcn(LOOP_AND_DRAIN.replace("s_waitcnt vmcnt(0)", wait)).step_waits == 1 + times
