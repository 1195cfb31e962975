"""Simulates the kernels of `kernels/`, and texts with a fault in them, in children, under both schedules."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.simulate.kernels import suite
from tests.simulate.kernels.references import REFERENCES, tolerance
from tt2gl import compiler
from tt2gl.children import Outcome
from tt2gl.ir.parser import parse_module
from tt2gl.isolate import map_isolated, preload, private_triton
from tt2gl.simulate.api import Simulation, simulate
from tt2gl.simulate.engine import Schedule
from tt2gl.simulate.findings import Finding
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.source import read_source
from tt2gl.targets import get_target
from tt2gl.verify.bind import bind
from tt2gl.verify.inputs import Inputs, coarse, make_inputs

Array = NDArray[Any]
SCHEDULES: tuple[Schedule, ...] = ("late", "early")


@dataclass(frozen=True)
class Job:
    """One case, the text of its file if it is not the file's own, and its inputs: random or `coarse`."""

    case: suite.Case
    text: str | None = None
    seed: int = 0
    coarse: bool = False
    schedules: tuple[Schedule, ...] = SCHEDULES

    @property
    def inputs(self) -> Inputs:
        """The arguments of the launch."""
        inputs = make_inputs(self.case.launch, self.seed)
        return coarse(inputs) if self.coarse else inputs


@dataclass(frozen=True)
class Ran:
    """What came of a job: findings as (kind, line, message), results by schedule, and where those are wrong.

    A simulation that ends with an error has its message in `error`, and the findings made until then.
    """

    findings: tuple[tuple[str, int, str], ...] = ()
    outputs: Mapping[Schedule, Mapping[str, Array]] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of findings, and "result" where a result is wrong."""
        return frozenset(kind for kind, _, _ in self.findings) | ({"result"} if self.wrong else frozenset())


def run(jobs: Sequence[Job], timeout: float = 120.0) -> list[Outcome[Ran]]:
    """Run jobs, each in a child process."""
    preload()
    return map_isolated(run_job, [(job,) for job in jobs], timeout=timeout)


def sliced(job: Job) -> Slice:
    """The kernel of a job, on its own."""
    source = read_source(job.case.path, job.text)
    return slice_kernel(source, job.case.kernel, target=job.case.target)


def run_job(job: Job) -> Ran:
    """Simulate one job in this process, which must be a child."""
    private_triton()
    launch = job.case.launch
    function = load_slice(sliced(job), Path(tempfile.mkdtemp(prefix="kernel-")))
    backend, gpu = compiler.backend_for(get_target(job.case.target))
    options = compiler.options_for(backend, launch)
    module = parse_module(
        compiler.generic_text(compiler.build_ir(compiler.source_for(function, launch), backend, gpu, options))
    )
    inputs = job.inputs
    findings: dict[tuple[str, int, str], None] = {}
    outputs, wrong = {}, []
    for schedule in job.schedules:
        arguments = bind(list(function.arg_names), launch, inputs, module)
        x, y, z = (*(launch.grid or ()), 1, 1, 1)[:3]
        simulation = simulate(module, arguments, (x, y, z), schedule=schedule)
        findings.update(dict.fromkeys(map(_told, simulation.findings)))
        outputs[schedule] = _results(simulation, inputs)
        wrong += [f"{schedule}: {what}" for what in compare(job.case, inputs, outputs[schedule])]
    return Ran(tuple(findings), outputs, tuple(wrong))


def _told(finding: Finding) -> tuple[str, int, str]:
    return finding.kind, finding.location.line, finding.message


def _results(simulation: Simulation, inputs: Inputs) -> dict[str, Array]:
    """What the tensors hold after the run, in their shapes."""
    found = {}
    for tensor in simulation.tensors:
        arg = inputs.tensors[tensor.name].arg
        elements = np.asarray(tensor.elements)
        strides = [stride * elements.itemsize for stride in arg.stride]
        found[tensor.name] = np.array(np.lib.stride_tricks.as_strided(elements, arg.shape, strides))
    return found


def expected(case: suite.Case, inputs: Inputs) -> dict[str, Array]:
    """What the case's reference says of these inputs."""
    tensors = {name: np.array(data.view()) for name, data in inputs.tensors.items()}
    return REFERENCES[f"{case.file}.{case.kernel}"]({**tensors, **inputs.scalars, **case.launch.constexprs})


def compare(case: suite.Case, inputs: Inputs, found: Mapping[str, Array]) -> list[str]:
    """Where results are not the reference's, within the tolerance; empty where all are."""
    told = []
    for name, wanted in expected(case, inputs).items():
        allowed = tolerance(case.name, str(inputs.tensors[name].arg.dtype))
        exact = np.asarray(wanted, np.float64)
        error = np.abs(np.asarray(found[name], np.float64) - exact)
        over = ~(error <= allowed.absolute + allowed.relative * np.abs(exact))
        if over.any():
            told.append(f"{name} at {np.argwhere(over)[0].tolist()} and {int(over.sum()) - 1} more places")
    return told
