"""Instructions are counted as assemblers spell them, and a port is worse only by the rules."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tt2gl.isolate import preload, private_triton, run_isolated
from tt2gl.results import Metrics
from tt2gl.targets import TARGETS, get_target
from tt2gl.verify.metrics import amd_resources, compare, count_amdgcn, count_ptx, parse_resource_usage, read_metrics

PTX_LOADS = [
    ("ld.global.b32 %r1, [%rd1];", 32),
    ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", 128),
    ("{ @!%p1 ld.global.L1::evict_last.L2::cache_hint.v2.b32 { %r1, %r2 }, [ %rd1 + 0 ], %rd9; }", 64),
    ("ld.global.ca.v4.b64 { %rd1, %rd2, %rd3, %rd4 }, [%rd5];", 256),
    ("ld.global.nc.b8 %rs1, [%rd1];", 8),
    ("ld.volatile.global.b16 %rs1, [%rd1];", 16),
    ("ld.acquire.gpu.global.b64 %rd1, [%rd1];", 64),
    ("mov.u32 %r1, 0x0; @%p1 ld.global.v8.b32 { %r1 }, [ %rd1 + 0 ];", 256),
    ("$L_7: ld.global.f64 %fd1, [%rd1];", 64),
]


@pytest.mark.parametrize(
    "text",
    [
        "ld.param.b64 %rd1, [kernel_param_0];",
        "ld.shared.v4.b32 {%r1}, [%r2];",
        "ld.local.b32 %r1, [%rd1];",
        "// ld.global.b32 %r1, [%rd1];",
        "red.global.add.f32 [%rd1], %f1;",
        "atom.global.gpu.acq_rel.cas.b32 %r1, [%rd1], %r2, %r3;",
        "prefetch.global.L2 [%rd1];",
        "cvta.to.global.u64 %rd1, %rd2;",
        "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r1, %r2}];",
        "cp.async.commit_group;",
    ],
)
def test_ptx_without_a_global_access(text: str) -> None:
    counts = count_ptx(f"\t{text}\n")
    assert not counts.loads
    assert not counts.stores
    assert counts.async_copies == 0


@pytest.mark.parametrize(("text", "bits"), PTX_LOADS, ids=[text for text, _ in PTX_LOADS])
def test_ptx_loads_by_width(text: str, bits: int) -> None:
    counts = count_ptx(f"\t{text}\n")
    assert counts.loads == {bits: 1}
    assert not counts.stores


def test_ptx_stores_by_width() -> None:
    text = "\t@%p1 st.global.v4.b32 [ %rd1 + 0 ], { %r1, %r2, %r3, %r4 };\n\tst.release.gpu.global.b16 [%rd1], %rs1;\n"
    assert count_ptx(text).stores == {128: 1, 16: 1}


def test_ptx_asynchronous_copies_are_loads_of_what_they_copy() -> None:
    text = """
    cp.async.cg.shared.global [ %r15 + 0 ], [ %rd22 + 0 ], 0x10, %r16;
    @%p2 cp.async.ca.shared.global [ %r15 + 0 ], [ %rd22 + 0 ], 0x4;
    @%p3 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r1, %r2}], [%r3];
    cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r1, %r2}], [%r3];
    cp.async.bulk.commit_group;
    """
    counts = count_ptx(text)
    assert counts.async_copies == 4
    assert counts.loads == {128: 2, 32: 1}
    assert counts.stores == {128: 1}


def test_ptx_matrix_instructions_by_short_name() -> None:
    text = """
    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 { %r1 }, { %r2 }, { %r3 }, { %r4 };
    mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 { %r1 }, { %r2 }, { %r3 }, { %r4 };
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 {%r1}, %rd1, %rd2, p, 1, 1;
    wgmma.commit_group.sync.aligned;
    @%p1 tcgen05.mma.cta_group::1.kind::f16 [ %r1 + 0 ], %rd1, %rd2, %r2, %p2;
    tcgen05.wait::ld.sync.aligned;
    """
    assert count_ptx(text).mma == {
        "mma.m16n8k16.f32.f16.f16.f32": 1,
        "mma.m16n8k32.f32.e4m3.e5m2.f32": 1,
        "wgmma.m64n128k8.f32.tf32.tf32": 1,
        "tcgen05.mma.f16": 1,
    }


def test_ptx_barriers_and_shared_accesses() -> None:
    text = """
    bar.sync 0;
    barrier.sync.aligned 1, 128;
    bar.warp.sync 0xffffffff;
    st.shared.v4.b32 [ %r1 + 0 ], { %r1 };
    @%p1 ld.shared.b16 %rs1, [ %r1 + 0 ];
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1}, [%r2];
    """
    counts = count_ptx(text)
    assert counts.barriers == 2
    assert counts.shared_accesses == 3


def test_resource_usage_of_a_spilling_cubin() -> None:
    text = "Resource usage:\n Common:\n  GLOBAL:0\n Function mm:\n  REG:255 STACK:4072 SHARED:0 LOCAL:0 \n"
    assert parse_resource_usage(text) == (255, 1018)


def test_no_resource_usage_is_unknown() -> None:
    assert parse_resource_usage("cuobjdump fatal: unknown format") == (None, None)


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


BASE = Metrics(
    shared_bytes=0,
    registers=100,
    spills=0,
    code_bytes=1000,
    convert_layouts=1,
    global_loads={"128": 2, "16": 1},
    global_stores={"128": 1},
)


@pytest.mark.parametrize(
    "gluon",
    [
        BASE,
        replace(BASE, registers=110),
        replace(BASE, registers=None, spills=None),
        replace(BASE, global_loads={"128": 1, "16": 9}, convert_layouts=0),
        replace(BASE, global_loads={}),
        replace(BASE, shared_bytes=10_000, code_bytes=9_000, barriers=9),
    ],
    ids=["equal", "a tenth more registers", "unknown", "other counts", "no loads at all", "what no rule names"],
)
def test_no_worse(gluon: Metrics) -> None:
    assert compare(BASE, gluon) == ()


@pytest.mark.parametrize(
    ("gluon", "code"),
    [
        (replace(BASE, global_loads={"64": 9}), "TTG501"),
        (replace(BASE, global_stores={"32": 1}), "TTG501"),
        (replace(BASE, spills=1), "TTG502"),
        (replace(BASE, convert_layouts=2), "TTG503"),
        (replace(BASE, registers=111), "TTG504"),
    ],
)
def test_worse(gluon: Metrics, code: str) -> None:
    (diagnostic,) = compare(BASE, gluon, file="k.py", line=7)
    assert diagnostic.code == code
    assert (diagnostic.file, diagnostic.line) == ("k.py", 7)
    assert diagnostic.hint


COPY = """
module {
  tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %a = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %p = tt.addptr %a, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %v = tt.load %p : tensor<512x!tt.ptr<f32>>
    %b = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %q = tt.addptr %b, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %q, %v : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
"""


def _compile_copy(name: str) -> Metrics:
    import tempfile
    from pathlib import Path

    import triton
    from triton.backends.compiler import GPUTarget

    private_triton()
    target = get_target(name)
    path = Path(tempfile.mkdtemp(), "copy.ttir")
    path.write_text(COPY)
    gpu: Any = GPUTarget(target.backend, target.arch, target.warp_size)
    kernel = triton.compile(str(path), target=gpu, options={"num_warps": 4})
    return read_metrics(kernel.asm, kernel.metadata.shared)


@pytest.mark.parametrize("name", TARGETS)
def test_metrics_of_a_copy(name: str) -> None:
    preload()
    outcome = run_isolated(_compile_copy, name)
    metrics = outcome.value
    assert metrics is not None, outcome
    width = "64" if get_target(name).warp_size == 64 else "128"
    assert (metrics.global_loads, metrics.global_stores) == ({width: 1}, {width: 1})
    assert metrics.registers is not None
    assert 2 < metrics.registers < 40
    assert (metrics.spills, metrics.shared_bytes, metrics.convert_layouts, metrics.mma) == (0, 0, 0, {})
    assert 32 < metrics.code_bytes < 2048
