"""Generic text with all attributes, and without the one that makes Triton print it so; values of launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl import compiler, isolate
from tt2gl.ir.parser import parse_module
from tt2gl.launches import DtypeValue, Launch, Options
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import read_source
from tt2gl.targets import get_target

KERNEL = """
import triton
import triton.language as tl


@triton.jit
def fill(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, BLOCK), 1.0)
"""


def printed(kernel: Slice, target: str, optimised: bool, folder: Path) -> tuple[str, str]:
    """Generic text, twice of the same module; for a child process."""
    launch = Launch("fill.py", "fill", {"x_ptr": "*fp32"}, {"BLOCK": 256}, (), Options(num_warps=2))
    backend, gpu = compiler.backend_for(get_target(target))
    source = compiler.source_for(load_slice(kernel, folder), launch)
    make = compiler.build_ttgir if optimised else compiler.build_ir
    module = make(source, backend, gpu, compiler.options_for(backend, launch))
    return compiler.generic_text(module), compiler.generic_text(module)


@pytest.mark.parametrize(("target", "optimised"), [("sm90", False), ("sm90", True), ("gfx942", True)])
def test_generic_text(target: str, optimised: bool, tmp_path: Path) -> None:
    path = tmp_path / "fill.py"
    path.write_text(KERNEL)
    isolate.preload()
    kernel = slice_kernel(read_source(path), "fill", target=target)
    outcome = isolate.run_isolated(printed, kernel, target, optimised, tmp_path)
    assert outcome.value is not None, outcome.detail
    first, second = outcome.value
    assert first == second
    assert "tt2gl_generic" not in first
    module = parse_module(first)
    assert module.kernel.attributes["sym_name"] == "fill"
    assert all(name.startswith(("ttg.", "ttng.")) for name in module.attributes)
    assert module.attributes.get("ttg.num-warps") == (2 if optimised else None)
    store = next(operation for operation in module.operation.walk() if operation.name.endswith("store"))
    assert store.location.line == 8


PAIR = """
import triton
import triton.language as tl


@triton.jit
def pair(values, BLOCK: tl.constexpr):
    out, (one, count), nothing = values
    if nothing is None:
        tl.store(out + tl.arange(0, BLOCK), one + count)
"""


def pair_text(kernel: Slice, folder: Path) -> str:
    """The generic text of `pair` given a tuple with constants in it; for a child process."""
    signature = {"values": "(*i32, (constexpr, i32), constexpr)", "BLOCK": "constexpr"}
    arguments = {"values": (None, (1, 7), None)}
    launch = Launch("pair.py", "pair", signature, {"BLOCK": 64}, args=arguments)
    backend, gpu = compiler.backend_for(get_target("sm90"))
    source = compiler.source_for(load_slice(kernel, folder), launch)
    return compiler.generic_text(compiler.build_ir(source, backend, gpu, compiler.options_for(backend, launch)))


def test_a_tuple_and_the_constants_in_it(tmp_path: Path) -> None:
    path = tmp_path / "pair.py"
    path.write_text(PAIR)
    isolate.preload()
    kernel = slice_kernel(read_source(path), "pair", target="sm90")
    outcome = isolate.run_isolated(pair_text, kernel, tmp_path)
    assert outcome.value is not None, outcome.detail
    module = parse_module(outcome.value)
    assert len(module.kernel.regions[0].entry.arguments) == 2
    assert any(operation.name == "tt.store" for operation in module.operation.walk())


@pytest.mark.parametrize(
    ("kind", "types"),
    [
        ("i32", "i32"),
        ("tensordesc<fp16[32, 64]>", "tensordesc<fp16[32, 64]>"),
        ("(*fp16, i32)", ("*fp16", "i32")),
        ("(i32, (constexpr, *kfp32), u1)", ("i32", ("constexpr", "*kfp32"), "u1")),
        ("(tensordesc<fp16[1, 64]>, i64)", ("tensordesc<fp16[1, 64]>", "i64")),
        ("()", ()),
    ],
)
def test_types_of_tuples(kind: str, types: object) -> None:
    assert compiler.with_tuples(kind) == types


def test_types_of_descriptors_say_their_layout_in_gluon() -> None:
    made = compiler.with_tile_layout("tensordesc<fp16[128, 64]>")
    assert made.startswith("tensordesc<fp16[128, 64],NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16")
    assert compiler.with_tile_layout(made) == made
    assert compiler.with_tile_layout("*fp16") == "*fp16"


def test_a_dtype_by_the_name_that_signatures_give_it() -> None:
    names = ["i32", "u8", "i1", "fp16", "fp8e4nv", "int64"]
    dtypes = [str(compiler.constexpr_value(DtypeValue(name), None)) for name in names]
    assert dtypes == ["int32", "uint8", "int1", "fp16", "fp8e4nv", "int64"]
