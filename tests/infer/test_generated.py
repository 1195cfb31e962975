"""Launches of kernels that TorchInductor generated: what it writes beside them is known, and is not guessed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.infer.launches import Inferred, infer_launches
from tt2gl.source import read_source

HEADER = """import triton
import triton.language as tl
from torch._inductor.runtime import triton_heuristics
from torch._inductor.runtime.hints import AttrsDescriptor, DeviceProperties, ReductionHint

"""
BODY = """
@triton.jit
def kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    tl.store(out_ptr0 + xindex, tl.load(in_ptr0 + xindex, xindex < xnumel), xindex < xnumel)
"""
REDUCTION = """
@triton.jit
def kernel(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK: tl.constexpr, R0_BLOCK: tl.constexpr):
    x0 = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    total = tl.zeros([XBLOCK, R0_BLOCK], tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_1 = r0_offset + tl.arange(0, R0_BLOCK)[None, :]
        total += tl.load(in_ptr0 + r0_1 + x0 * r0_numel, (r0_1 < r0_numel) & (x0 < xnumel), other=0.0)
    tl.store(out_ptr0 + x0, tl.sum(total, 1)[:, None], x0 < xnumel)
"""
TYPES = (
    '"device": DeviceProperties(type="cuda", cc=90), "signature": {"in_ptr0": "*bf16", "out_ptr0": "*i64", "xnumel": '
)


def inferred(decorator: str, body: str = BODY) -> Inferred:
    source = read_source(Path("kernel.py"), f"{HEADER}@triton_heuristics.{decorator}{body}")
    return infer_launches(source, source.kernel("kernel"))


def test_without_a_signature_all_is_guessed() -> None:
    (launch,) = inferred("pointwise(size_hints={'x': 512}, triton_meta={'constants': {}})").launches
    assert launch.signature["in_ptr0"] == "*fp32"
    assert launch.constexprs == {"XBLOCK": 1024}


@pytest.mark.parametrize(
    "configs",
    [
        '[{(0,): [["tt.divisibility", 16]], (2,): [["tt.divisibility", 16]]}]',
        '[AttrsDescriptor.from_dict({"arg_properties": {"tt.divisibility": (0, 2), "tt.equal_to": ()}, "cls": "A"})]',
        "[AttrsDescriptor(divisible_by_16=(0, 2), equal_to_1=())]",
    ],
)
def test_types_and_alignment_are_those_that_are_written(configs: str) -> None:
    meta = f'{{{TYPES}"i32", "XBLOCK": "constexpr"}}, "constants": {{}}, "configs": {configs}}}'
    (launch,), (note,), _ = inferred(f"pointwise(size_hints={{'x': 512}}, triton_meta={meta})")
    assert launch.signature == {"in_ptr0": "*bf16", "out_ptr0": "*i64", "xnumel": "i32", "XBLOCK": "constexpr"}
    assert launch.divisible_by_16 == ("in_ptr0", "xnumel")
    assert launch.constexprs == {"XBLOCK": 512}
    assert "guessed: XBLOCK=512;" in note.message


def test_parameters_by_their_places() -> None:
    meta = '{"signature": {0: "*fp16", 1: "*fp32", 2: "i64"}, "constants": {}}'
    (launch,) = inferred(f"pointwise(size_hints=[512], triton_meta={meta})").launches
    assert launch.signature == {"in_ptr0": "*fp16", "out_ptr0": "*fp32", "xnumel": "i64", "XBLOCK": "constexpr"}
    assert launch.constexprs == {"XBLOCK": 1024}


def test_constants_and_options() -> None:
    meta = f'{{{TYPES}"constexpr", "XBLOCK": "constexpr"}}, "constants": {{"xnumel": 1, "XBLOCK": 64}}}}'
    (launch,), notes, _ = inferred(f"template(num_warps=8, num_stages=2, triton_meta={meta})")
    assert launch.constexprs == {"xnumel": 1, "XBLOCK": 64}
    assert (launch.options.num_warps, launch.options.num_stages) == (8, 2)
    assert not notes


@pytest.mark.parametrize(
    ("hint", "blocks"),
    [("INNER", {"XBLOCK": 1, "R0_BLOCK": 2048}), ("OUTER", {"XBLOCK": 64, "R0_BLOCK": 32})],
)
def test_blocks_go_with_what_is_reduced(hint: str, blocks: dict[str, int]) -> None:
    meta = f'{{{TYPES}"i32", "r0_numel": "i32"}}}}'
    hints = f"size_hints={{'x': 512, 'r0_': 8192}}, reduction_hint=ReductionHint.{hint}"
    (launch,) = inferred(f"reduction({hints}, triton_meta={meta})", REDUCTION).launches
    assert launch.constexprs == blocks
