"""A port is worse by the rules, and only by them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tt2gl.results import Metrics, Place
from tt2gl.verify.comparison import compare

BASE = Metrics(
    shared_bytes=8192,
    registers=100,
    spills=0,
    code_bytes=1000,
    convert_layouts=1,
    global_loads={"128": 2, "16": 1},
    global_stores={"128": 1},
    mma={"wgmma.m64n128k16.f32.f16.f16": 12},
    step_mma={"wgmma.m64n128k16.f32.f16.f16": 8},
    copies={"cp.async.16": 12, "tma.8192": 3, "tma_store.8192": 1},
    step_copies={"cp.async.16": 4, "tma.8192": 1},
    rings={"64x64xf16": [3, 3]},
)


@pytest.mark.parametrize(
    "gluon",
    [
        BASE,
        replace(BASE, registers=110),
        replace(BASE, registers=None, spills=None),
        replace(BASE, global_loads={"128": 1, "16": 9}, convert_layouts=0),
        replace(BASE, global_loads={}),
        replace(BASE, code_bytes=9_000, barriers=9),
        replace(BASE, shared_bytes=8320),
        replace(BASE, mma={"wgmma.m64n128k16.f32.f16.f16": 24}, copies={**BASE.copies, "cp.async.16": 4}),
        replace(BASE, rings={"64x64xf16": [4, 3], "64x32xf16": [2]}),
    ],
    ids=[
        "equal",
        "a tenth more registers",
        "unknown",
        "other counts",
        "no loads at all",
        "what no rule names",
        "a piece of memory more",
        "loops unrolled elsewhere",
        "deeper and other rings",
    ],
)
def test_no_worse(gluon: Metrics) -> None:
    assert compare(BASE, gluon) == ()


def test_registers_of_a_kernel_that_the_assembler_gave_up_on_are_no_measure() -> None:
    given_up = replace(BASE, registers=32, spills=1000)
    assert compare(given_up, replace(BASE, registers=255, spills=10)) == ()
    assert [each.code for each in compare(given_up, replace(BASE, registers=40, spills=1001))] == ["TTG502", "TTG504"]
    assert [each.code for each in compare(replace(given_up, spills=32), BASE)] == ["TTG504"]


@pytest.mark.parametrize(
    ("gluon", "code"),
    [
        (replace(BASE, global_loads={"64": 9}), "TTG501"),
        (replace(BASE, global_stores={"32": 1}), "TTG501"),
        (replace(BASE, spills=1), "TTG502"),
        (replace(BASE, convert_layouts=2), "TTG503"),
        (replace(BASE, registers=111), "TTG504"),
        (replace(BASE, mma={"mma.m16n8k16.f32.f16.f16.f32": 64}), "TTG505"),
        (replace(BASE, mma={}, step_mma={}), "TTG505"),
        (replace(BASE, step_mma={"wgmma.m64n128k16.f32.f16.f16": 9}), "TTG505"),
        (replace(BASE, step_copies={"cp.async.16": 3, "tma.8192": 1}), "TTG506"),
        (replace(BASE, step_copies={"cp.async.4": 16, "tma.8192": 1}), "TTG506"),
        (replace(BASE, step_copies={"cp.async.16": 12}), "TTG506"),
        (replace(BASE, rings={"64x64xf16": [3, 2]}), "TTG507"),
        (replace(BASE, copies={"cp.async.16": 12, "tma.8192": 3, "tma_store.4096": 2}), "TTG506"),
        (replace(BASE, shared_bytes=8704), "TTG508"),
    ],
)
def test_worse(gluon: Metrics, code: str) -> None:
    (diagnostic,) = compare(BASE, gluon, file="k.py", line=7)
    assert diagnostic.code == code
    assert (diagnostic.file, diagnostic.line) == ("k.py", 7)
    assert diagnostic.hint


def test_outside_of_loops_all_products_and_copies_count() -> None:
    none: dict[str, int] = {}
    flat = replace(BASE, step_mma=none, step_copies=none)
    assert compare(flat, flat) == ()
    assert [each.code for each in compare(flat, replace(flat, mma={"wgmma.m64n128k16.f32.f16.f16": 13}))] == ["TTG505"]
    fewer = replace(flat, copies={"cp.async.16": 12, "tma_store.8192": 1})
    assert [each.code for each in compare(flat, fewer)] == ["TTG506"]


def test_steps_of_other_numbers_of_loops_are_not_compared() -> None:
    product = "wgmma.m64n128k16.f32.f16.f16"
    one = replace(BASE, mma={product: 32}, step_mma={product: 8}, step_loops=[1])
    two = replace(BASE, mma={product: 16}, step_mma={product: 16}, step_loops=[1, 1])
    assert compare(one, two) == ()
    assert [each.code for each in compare(replace(one, step_loops=[1, 1]), two)] == ["TTG505"]
    inner = replace(two, step_loops=[2], step_copies={"cp.async.16": 1, "tma.8192": 1})
    assert compare(one, inner) == ()
    assert [each.code for each in compare(replace(one, step_loops=[2]), inner)] == ["TTG505", "TTG506"]
    assert [each.code for each in compare(one, replace(inner, step_copies={"cp.async.8": 1, "tma.8192": 1}))] == [
        "TTG506"
    ]
    outside = replace(inner, step_copies={"tma.8192": 1})
    assert compare(one, outside) == ()
    (fewer,) = compare(one, replace(outside, copies={"tma.8192": 1, "tma_store.8192": 1}))
    assert "cp.async copies at most 0 bytes at once" in fewer.message
    (more,) = compare(one, replace(two, mma={product: 33}))
    assert (more.code, "33 instructions" in more.message) == ("TTG505", True)


def test_little_shared_memory_is_free() -> None:
    little = replace(BASE, shared_bytes=512)
    assert compare(little, replace(little, shared_bytes=4096)) == ()


def test_the_place_is_the_authors_and_the_ports_lines_are_told() -> None:
    places = {"ring.64x64xf16": [Place("helpers.py", 12)], "convert_layout": [Place("k.py", 3)]}
    worse = replace(BASE, rings={"64x64xf16": [2, 2]}, convert_layouts=3, places={
        "convert_layout": [Place("k_gluon.py", line) for line in (9, 7, 9, 12, 30, 31)]
    })  # fmt: skip
    conversions, ring = compare(replace(BASE, places=places), worse, file="k.py", line=1)
    assert (ring.file, ring.line) == ("helpers.py", 12)
    assert (conversions.file, conversions.line) == ("k.py", 1)
    assert conversions.message.endswith("Triton's kernel has 1; the port's: lines 7, 9, 12, 30, ....")
