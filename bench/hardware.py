"""Compares the simulator with the GPU of this machine: every kernel run by both on the same inputs, bit for bit.

    python bench/hardware.py --out DIR [--only NAME]... [--launches L.json --root DIR] [--commit C]

Each original (Triton's) kernel runs in four ways: on random inputs and on coarse ones (-2 to 2, whose sums are
exact in any order), as compiled by default and without fused multiply-adds, which a compiler may form and the IR
does not say. Where a result differs from the simulator's, the table says by how many units in the last place (many,
where the terms of a sum cancel), and which operations of the kernel the hardware computes otherwise than IEEE 754
says, or in another order: what the simulator cannot follow. A kernel that differs by more than ports may, or has no
such operation, is a fault of the one or the other. A launch in which the simulator finds a fault is not run.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.machine import gpu_present  # noqa: E402
from bench.run import Case, cases_of_file  # noqa: E402
from bench.selection import all_launches, selected, selecting_parser, size  # noqa: E402
from tt2gl.children import Outcome  # noqa: E402
from tt2gl.cores import available_cores  # noqa: E402
from tt2gl.files import write_text  # noqa: E402
from tt2gl.ir.types import element_type  # noqa: E402
from tt2gl.isolate import map_isolated, preload, private_triton  # noqa: E402
from tt2gl.launches import Launch  # noqa: E402
from tt2gl.simulate.api import Simulation, TensorOutput  # noqa: E402
from tt2gl.spawned import run_spawned  # noqa: E402
from tt2gl.targets import default_target  # noqa: E402
from tt2gl.verify.device import Participant, run_each  # noqa: E402
from tt2gl.verify.inputs import Inputs, coarse, make_inputs  # noqa: E402
from tt2gl.verify.outputs import Agreement, combine, compare  # noqa: E402
from tt2gl.verify.simulated_kernel import SimulatedKernel  # noqa: E402

Array = NDArray[Any]

WAYS = tuple((content, fused) for content in ("random", "coarse") for fused in (True, False))

# What the hardware does otherwise than the IR says, by operation. Sums of integers, and maxima, are not among them.
APPROXIMATE = {
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.log": "log",
    "math.log2": "log2",
    "math.sin": "sin",
    "math.cos": "cos",
    "math.erf": "erf",
    "math.sqrt": "sqrt",
    "math.rsqrt": "rsqrt",
    "arith.divf": "division",
    "tt.extern_elementwise": "libdevice",
    "tt.elementwise_inline_asm": "inline asm",
    "tt.dot": "order of the sums of a product",
}
REDUCED = {"tt.reduce": "order of a sum", "tt.scan": "order of a prefix sum"}
_FLOAT_ADD = 5  # of `atomic_rmw_op`

# What makes a small difference a large one.
ROUNDED_SUM = "a sum rounded to 16 bits at every step"
DECISION = "a decision on such a value"
_DECISIONS = ("arith.cmpf", "arith.fptosi", "arith.fptoui", "math.floor", "math.ceil")

# A chain of approximate functions may be further off than two orders of one sum.
_APPROXIMATION_FACTOR = 4


@dataclass(frozen=True)
class Row:
    """One kernel: how GPU and simulator agree, by way, and what explains the difference."""

    case: Case
    agreements: Mapping[str, Agreement]
    explained_by: tuple[str, ...] = ()
    fault: str = ""
    error: str = ""

    @property
    def ulps(self) -> dict[str, float]:
        """Units in the last place, by way."""
        return {name: found.max_ulps for name, found in self.agreements.items()}

    @property
    def bitwise(self) -> int:
        """In how many ways both give the same bits."""
        return sum(found.bitwise for found in self.agreements.values())

    @property
    def verdict(self) -> str:
        """What explains the difference, or that nothing does."""
        if self.error:
            return "FAILED"
        outside = next((found.reason for found in self.agreements.values() if not found.equal), "")
        if outside and not {ROUNDED_SUM, DECISION} & {*self.explained_by}:
            return f"OUT OF BOUNDS: {outside}"
        return ", ".join(self.explained_by) if self.fault or self.bitwise or self.explained_by else "UNEXPLAINED"

    @property
    def fine(self) -> bool:
        """Whether both agree as far as they can."""
        return self.verdict.partition(":")[0] not in ("FAILED", "OUT OF BOUNDS", "UNEXPLAINED")


def main() -> int:
    """Run all; 0 if every kernel ran and every difference has its reason."""
    arguments = parse_arguments()
    start = time.perf_counter()
    arguments.out.mkdir(parents=True, exist_ok=True)
    where = gpu_present(arguments.commit)
    if where is None:
        return 2
    preload()
    target = default_target().name
    cases = prepare(arguments, target)
    simulated = map_isolated(simulate_case, [(case, target) for case in cases], timeout=arguments.timeout)
    print(f"{len(cases)} kernels simulated in {time.perf_counter() - start:.0f} s", flush=True)
    # Nothing is timed, so kernels may share the GPU.
    with ThreadPoolExecutor(max_workers=available_cores()) as pool:
        rows = list(pool.map(compared, cases, simulated, repeat(arguments.timeout)))
    write(arguments.out / f"{target}-simulation.json", rows, where)
    print_table(rows)
    return 0 if all(row.fine for row in rows) else 1


def parse_arguments() -> argparse.Namespace:
    """The command line."""
    parser = selecting_parser(__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="folder for the document")
    parser.add_argument("--commit", help="what to call this version (default: asked of git)")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds a kernel may take")
    return parser.parse_args()


def prepare(arguments: argparse.Namespace, target: str) -> list[Case]:
    """The smallest launch of each kernel that can be run."""
    launches, root = all_launches(arguments)
    files = sorted({launch.file for launch in launches})
    jobs = [(file, target, tuple(launch for launch in launches if launch.file == file), root) for file in files]
    smallest: dict[tuple[str, str], Case] = {}
    for outcome in map_isolated(cases_of_file, jobs, timeout=600.0):
        for case in outcome.value or []:
            key = (case.report.file, case.report.kernel)
            if (
                selected(case.report.kernel, case.report.file, arguments.only)
                and case.launch.args is not None
                and case.launch.grid is not None
            ):
                before = smallest.get(key)
                smallest[key] = case if before is None or size(case.launch) < size(before.launch) else before
    return list(smallest.values())


def inputs_of(launch: Launch, content: str) -> Inputs:
    """Random inputs, or those rounded to few integers."""
    inputs = make_inputs(launch, 0)
    return coarse(inputs) if content == "coarse" else inputs


@dataclass(frozen=True)
class Simulated:
    """What the simulator makes of each content, what in the kernel hardware computes otherwise, and the first fault."""

    results: Mapping[str, Simulation]
    explained_by: tuple[str, ...]
    fault: str


def simulate_case(case: Case, target: str) -> Simulated:
    """Simulate one kernel, in a child."""
    private_triton()
    assert case.original is not None
    participant = Participant(case.original, case.launch)
    kernel = SimulatedKernel("triton", participant, target)
    grid = case.launch.grid or (1,)
    results = {content: kernel(inputs_of(case.launch, content), grid) for content in ("random", "coarse")}
    faults = [finding.message for done in results.values() for finding in done.findings]
    return Simulated(results, tuple(dict.fromkeys(reasons(kernel))), faults[0] if faults else "")


def reasons(kernel: SimulatedKernel) -> Iterator[str]:
    """What in a kernel's IR hardware computes otherwise, and what makes much of it."""
    operations = list(kernel.module.operation.walk())
    sums = [element_type(each.results[0].type) for each in operations if each.name == "arith.addf"]
    inexact = False
    for operation in operations:
        if operation.name in APPROXIMATE:
            yield APPROXIMATE[operation.name]
        elif operation.name in REDUCED and sums:
            yield REDUCED[operation.name]
        elif operation.name == "tt.atomic_rmw" and operation.attributes["atomic_rmw_op"] == _FLOAT_ADD:
            yield "order of atomics"
            sums.append(element_type(operation.results[0].type))
        else:
            continue
        inexact = True
    if any(str(kind) in ("f16", "bf16") for kind in sums):
        yield ROUNDED_SUM
    if inexact and any(operation.name in _DECISIONS for operation in operations):
        yield DECISION


def compared(case: Case, simulated: Outcome[Simulated], timeout: float) -> Row:
    """Run a case in all ways on the GPU, and compare with what was simulated."""
    if simulated.value is None or case.original is None:
        return Row(case, {}, error=f"not simulated: {simulated.error}")
    explained_by = simulated.value.explained_by
    if simulated.value.fault:
        return Row(case, {}, explained_by, fault=simulated.value.fault)
    calls = []
    for content, fused in WAYS:
        options = replace(case.launch.options, extra={**case.launch.options.extra, "enable_fp_fusion": fused})
        participant = Participant(case.original, replace(case.launch, options=options))
        calls.append((participant, inputs_of(case.launch, content)))
    outcome = run_spawned(run_each, calls, timeout=timeout)
    if outcome.value is None:
        return Row(case, {}, explained_by, error=f"did not run: {outcome.error}")
    agreements = {}
    for (content, fused), (_, inputs), found in zip(WAYS, calls, outcome.value, strict=True):
        tensors = simulated.value.results[content].tensors
        factor = _APPROXIMATION_FACTOR if {*APPROXIMATE.values()} & {*explained_by} else 1
        parts = [compare(inputs.tensors[each.name].arg, each, left(each, found[each.name]), factor) for each in tensors]
        agreements[name_of(content, fused)] = combine(parts)
    return Row(case, agreements, explained_by)


def left(simulated: TensorOutput, found: Array) -> TensorOutput:
    """What the GPU left in a tensor; which elements it wrote nobody knows, so those that the simulator says."""
    return replace(simulated, elements=found.view(simulated.elements.dtype))


def name_of(content: str, fused: bool) -> str:
    """A way of running, in words."""
    return content if fused else f"{content}, not fused"


def write(path: Path, rows: list[Row], where: Mapping[str, str]) -> None:
    """The document so far."""
    kernels = [
        {
            "file": row.case.report.file.replace(f"{ROOT}/", ""),
            "kernel": row.case.report.kernel,
            "bitwise": bool(row.agreements) and row.bitwise == len(WAYS),
            "ulps": {name: value if np.isfinite(value) else "inf" for name, value in row.ulps.items()},
            "explained_by": list(row.explained_by),
            "fault": row.fault or None,
            "error": row.error or None,
        }
        for row in rows
    ]
    write_text(path, json.dumps({"environment": dict(where), "kernels": kernels}, indent=1) + "\n")


def print_table(rows: list[Row]) -> None:
    """All kernels, then the totals."""
    names = [name_of(*way) for way in WAYS]
    print("units in the last place between GPU and simulator")
    print(f"{'kernel':42} {' '.join(name.rjust(18) for name in names)}  what hardware computes otherwise")
    for row in rows:
        values = row.error or row.fault or " ".join(f"{row.ulps[name]:18g}" for name in names)
        print(f"{row.case.report.kernel[:42]:42} {values}  {row.verdict}")
    ran = [row for row in rows if row.agreements]
    print(f"{len(ran)} of {len(rows)} ran, {sum(bool(row.fault) for row in rows)} are faulty launches;")
    always, once = (sum(row.bitwise >= least for row in ran) for least in (len(WAYS), 1))
    print(f"{always} bitwise in all ways, {once} in at least one;")
    print(f"{sum(not row.fine for row in rows)} without a reason")


if __name__ == "__main__":
    sys.exit(main())
