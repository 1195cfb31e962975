"""PTX is counted as it is spelled."""

from __future__ import annotations

import pytest

from tt2gl.results import Place
from tt2gl.verify.ptx import count_ptx, parse_resource_usage

pytestmark = pytest.mark.once

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


def body(header: str, *lines: str) -> str:
    """A block of assembly with its label's comment, and instructions."""
    return "\n".join([header, *(f"\t{line}" for line in lines), ""])


COPY = "cp.async.cg.shared.global [ %r15 + 0 ], [ %rd22 + 0 ], 0x10, %r16;"
PRODUCT = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%r1}, %rd1, %rd2, p, 1, 1;"


def test_a_step_is_what_the_innermost_loops_with_products_have() -> None:
    text = "".join([
        body("$L__BB0_1:  // =>This Loop Header: Depth=1\n   //     Child Loop BB0_2 Depth 2", COPY, PRODUCT),
        body("$L__BB0_2:  //   Parent Loop BB0_1 Depth=1\n   // =>  This Inner Loop Header: Depth=2", COPY),
        body("// %bb.3:   //   in Loop: Header=BB0_2 Depth=2", "waitLoop:", "bra waitLoop;", PRODUCT, PRODUCT),
        body("$L__BB0_4:  //   in Loop: Header=BB0_1 Depth=1", PRODUCT),
        body("$L__BB0_5:", PRODUCT, COPY),
        body("$L__BB0_6:  // =>This Inner Loop Header: Depth=1", "bar.sync 0;"),
    ])  # fmt: skip
    counts = count_ptx(text)
    assert counts.mma == {"wgmma.m64n128k16.f32.f16.f16": 5}
    assert counts.step_mma == {"wgmma.m64n128k16.f32.f16.f16": 2}
    assert counts.step_loops == [2]
    assert (counts.copies, counts.step_copies) == ({"cp.async.16": 3}, {"cp.async.16": 1})


def test_what_is_copied_twice_in_a_step_brings_as_much_as_once() -> None:
    elsewhere, other = COPY.replace("%r15", "%r17"), COPY.replace("%rd22", "%rd23")
    header = "$L__BB0_1:  // =>This Inner Loop Header: Depth=1"
    once, twice = count_ptx(body(header, COPY, other)), count_ptx(body(header, COPY, "$L__tmp2:", elsewhere, other))
    assert once.step_copies == twice.step_copies == {"cp.async.16": 2}
    assert (once.async_copies, twice.async_copies) == (2, 3)
    # Behind a label the register may have got another value.
    assert count_ptx(body(header, COPY, "$L__BB0_2:", COPY)).copies == {"cp.async.16": 2}


def test_a_place_is_the_innermost_that_is_the_authors() -> None:
    text = "\n".join([
        "\t.loc\t2 43 17    // standard.py:43:17 @[ _a_kernel.py:90:23 @[ _a_kernel.py:242:97 ] ]",
        "\tst.global.b32 [ %rd1 + 0 ], { %r1 };",
        "\t.loc\t1 0 0     // _a_kernel.py:0 @[ :0:0 ]",
        "\tst.global.b16 [ %rd1 + 0 ], %rs1;",
        "\t.loc\t1 7 1     // _a_kernel.py:7:1",
        "\tst.global.b32 [ %rd1 + 0 ], { %r1 };",
    ])  # fmt: skip
    places = count_ptx(text, {"_a_kernel": "k.py"}).places
    assert list(places["store.32"]) == [Place("k.py", 90), Place("k.py", 7)]
    assert list(places["store.16"]) == [Place("k.py", 90)]
    assert not count_ptx(text).places
