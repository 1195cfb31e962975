"""Lowered kernels compute what their originals do: every fixture simulated, and compiled where Triton has both."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from triton.language.semantic import TritonSemantic

from tt2gl.launches import Launch, TensorArg
from tt2gl.lowering.block_pointers import lowered
from tt2gl.results import Metrics
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import read_source
from tt2gl.targets import get_target
from tt2gl.verify.compile import CompileJob, compile_many
from tt2gl.verify.device import Participant
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.simulate import SimulationJob, simulate_many

FIXTURE = Path(__file__).parent.parent / "fixtures" / "lowering" / "block_pointers.py"

TYPES = {"fp16": "float16", "fp32": "float32", "i32": "int32", "i8": "int8"}


@dataclass(frozen=True)
class Case:
    """A launch in few words. `tensors`: type and shape, all contiguous."""

    kernel: str
    grid: tuple[int, ...]
    tensors: Mapping[str, tuple[str, tuple[int, ...]]]
    numbers: Mapping[str, int] = field(default_factory=dict)
    constexprs: Mapping[str, Any] = field(default_factory=dict)
    floats: Mapping[str, float] = field(default_factory=dict)
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def launch(self) -> Launch:
        """The launch."""
        return Launch(
            file=FIXTURE.name,
            kernel=self.kernel,
            signature={name: f"*{kind}" for name, (kind, _) in self.tensors.items()}
            | dict.fromkeys(self.numbers, "i32")
            | dict.fromkeys(self.floats, "fp32")
            | dict.fromkeys(self.constexprs, "constexpr"),
            constexprs=dict(self.constexprs),
            divisible_by_16=(*self.tensors, *(name for name, value in self.numbers.items() if value % 16 == 0)),
            grid=self.grid,
            args={
                name: TensorArg(TYPES[kind], shape, strides(shape), self.ranges.get(name))
                for name, (kind, shape) in self.tensors.items()
            }
            | dict(self.numbers)
            | dict(self.floats),
        )


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def _row(kind: str, *sizes: int) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (kind, (size,)) for name, size in zip("xy", sizes, strict=True)}


def _tiles(kind: str, *shapes: tuple[int, ...]) -> dict[str, tuple[str, tuple[int, ...]]]:
    return {name: (kind, shape) for name, shape in zip("xy", shapes, strict=True)}


HEADS = {"H": 2, "K": 64, "V": 32, "BT": 32, "BK": 32, "BV": 32}

CASES = [
    Case("copy_row", (3,), _row("fp16", 500, 500), {"N": 500}, {"B": 256}),
    Case("copy_tile", (2, 2), _tiles("fp16", (40, 96), (40, 96)), {"M": 40, "N": 96}, {"B": 32, "C": 64}),
    Case("copy_cube", (2, 2), _tiles("fp32", (2, 20, 48), (2, 20, 48)), {"L": 2, "M": 20, "N": 48}, {"B": 16, "C": 64}),
    Case("transposed", (2,), _tiles("fp16", (40, 48), (48, 40)), {"M": 40, "N": 48}, {"B": 32, "C": 64}),
    Case(
        "matmul",
        (2, 2),
        {"a": ("fp16", (48, 80)), "b": ("fp16", (80, 96)), "c": ("fp16", (48, 96))},
        {"M": 48, "N": 96, "K": 80},
        {"BM": 32, "BN": 64, "BK": 32},
    ),
    *(
        Case(
            kernel,
            (2,),
            dict.fromkeys(("Q", "K", "V", "Out"), ("fp16", (80, 64))),
            {"N_CTX": 80, "stride": 64},
            {"D": 64, "BLOCK_M": 64, "BLOCK_N": 32},
            {"scale": 0.18},
        )
        for kernel in ("attention", "attention_in_two")
    ),
    Case("row_sums", (3,), _tiles("fp32", (3, 200), (3,)), {"M": 200, "N": 200}, {"B": 64}),
    *(
        Case("layouts_of_heads", (2, 2), _tiles("fp16", shape, (2, 40, 32)), {"T": 40}, constexprs)
        for shape, constexprs in (
            ((2, 40, 32), {"H": 2, "D": 32, "B": 32, "HEAD_FIRST": True}),
            ((40, 2, 32), {"H": 2, "D": 32, "B": 32, "HEAD_FIRST": False}),
        )
    ),
    Case(
        "one_of_two",
        (4,),
        {"x": ("fp32", (200,)), "z": ("fp32", (150,)), "y": ("fp32", (200,))},
        {"M": 200, "N": 150},
        {"B": 64},
    ),
    Case("nested", (3,), _row("fp32", 300, 300), {"N": 300}, {"B": 128}),
    Case("shifted", (2,), _tiles("fp16", (48, 32), (48, 32)), {"T": 48}, {"D": 32, "B": 32, "W": 3}),
    Case("nan_padding", (2,), _row("fp16", 200, 256), {"N": 200}, {"B": 128}),
    *(
        Case("named_padding", (2,), _row("fp16", 200, 256), {"N": 200}, {"B": 128, "PAD": padding})
        for padding in ("nan", "zero", None)
    ),
    Case("integers", (2,), _row("i32", 200, 256), {"N": 200}, {"B": 128}),
    Case("integers", (2,), _row("i8", 200, 256), {"N": 200}, {"B": 128}),
    Case(
        "chunk_cumsum",
        (2, 2),
        {"s": ("fp32", (50, 2)), "o": ("fp32", (50, 2))},
        {"T": 50},
        {"H": 2, "BT": 32, "REVERSE": True},
    ),
    Case(
        "chunk_o",
        (1, 2, 2),
        dict.fromkeys("qk", ("fp16", (48, 2, 64))) | dict.fromkeys("vo", ("fp16", (48, 2, 32))),
        {"T": 48},
        HEADS,
        {"scale": 0.1},
    ),
    Case(
        "states",
        (2, 1),
        {"k": ("fp16", (80, 64)), "v": ("fp16", (80, 32)), "h": ("fp32", (3, 64, 32))},
        {"T": 80},
        {name: HEADS[name] for name in ("K", "V", "BT", "BK", "BV")},
    ),
    Case("look_ahead", (1,), _row("fp32", 300, 300), {"N": 300}, {"B": 128}),
    Case("whole_tiles", (1,), _tiles("fp32", (32, 32), (32, 32)), {"S": 32}, {"B": 32}),
    Case(
        "ragged",
        (2,),
        {"x": ("fp16", (64, 32)), "offsets": ("i32", (3,)), "y": ("fp16", (64, 32))},
        {},
        {"D": 32, "B": 32},
        ranges={"offsets": (7, 7)},
    ),
    Case(
        "used_again",
        (2,),
        dict.fromkeys("xyz", ("fp32", (200,))),
        {"N": 200},
        {"B": 128},
    ),
    Case("in_steps", (2,), _tiles("fp16", (40, 96), (96, 40)), {"M": 40, "N": 96}, {"B": 32, "C": 32}),
    *(
        Case("optional", (2,), dict.fromkeys(("x", "bias", "y"), ("fp32", (200,))), {"N": 200}, constexprs)
        for constexprs in ({"B": 128, "HAS_BIAS": True}, {"B": 128, "HAS_BIAS": False})
    ),
    Case("late_store", (2,), _tiles("fp32", (40, 80), (40, 32)), {"M": 40, "N": 80}, {"B": 32, "C": 32}),
]


def pairs(target: str) -> list[tuple[Slice, Slice]]:
    """Every case's kernel and its lowered form, as it is for a target."""
    source = read_source(FIXTURE)
    done = lowered(source, at_use=get_target(target).backend == "cuda")
    assert not done.kept
    assert set(done.functions) == {case.kernel for case in CASES} | {"inner", "load_tile"}
    port = read_source(FIXTURE, done.text)
    return [
        (slice_kernel(source, case.kernel, target=target), slice_kernel(port, case.kernel, target=target))
        for case in CASES
    ]


HAVE_BLOCK_POINTERS = hasattr(TritonSemantic, "make_block_ptr")


@pytest.mark.slow
@pytest.mark.subset
@pytest.mark.skipif(not HAVE_BLOCK_POINTERS, reason="this Triton has no block pointers")
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_lowered_kernels_compute_the_same_bits(target: str) -> None:
    jobs = [
        SimulationJob(Participant(original, case.launch()), Participant(port, case.launch()), target)
        for case, (original, port) in zip(CASES, pairs(target), strict=True)
    ]
    for case, run in zip(CASES, simulate_many(jobs, SimulationOptions(seeds=1)), strict=True):
        assert run.trouble is None, (case.kernel, run.trouble)
        assert run.result is not None
        assert (run.result.bitwise, run.result.findings) == (True, ()), (case.kernel, run.reason, run.result.findings)


# Triton's own pass for block pointers does not know `while`.
NOT_COMPILED = "row_sums"


def accesses(metrics: Metrics) -> tuple[dict[str, int], dict[str, int], int]:
    return metrics.global_loads, metrics.global_stores, metrics.async_copies


@pytest.mark.slow
@pytest.mark.parametrize("target", ["sm90", "gfx942"])
def test_lowered_kernels_compile_as_well(target: str) -> None:
    """The same widths of accesses, and registers within a tenth (or the eight that a compiler counts in)."""
    both = pairs(target)
    jobs = [CompileJob(port, case.launch(), target) for case, (_, port) in zip(CASES, both, strict=True)]
    if HAVE_BLOCK_POINTERS:
        jobs += [CompileJob(original, case.launch(), target) for case, (original, _) in zip(CASES, both, strict=True)]
    results = compile_many(jobs, timeout=300.0)
    for result, job in zip(results, jobs, strict=True):
        assert result.ok or job.launch.kernel == NOT_COMPILED and result not in results[: len(CASES)], job.launch.kernel
    for case, port, original in zip(CASES, results, results[len(CASES) :], strict=False):
        assert port.metrics is not None
        if original.metrics is None:
            continue
        assert accesses(port.metrics) == accesses(original.metrics), case.kernel
        registers = port.metrics.registers or 0, original.metrics.registers or 0
        assert registers[0] <= max(1.1 * registers[1], registers[1] + 8), (case.kernel, registers)
        assert port.metrics.spills == original.metrics.spills == 0, case.kernel
