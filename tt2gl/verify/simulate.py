"""Runs a Triton kernel and its port in the simulator: the same inputs, all memory written compared, every fault told.

Every job has a child process and a time limit. There both kernels are compiled to the IR before any pass, which is the
same on every machine, and run in numpy.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tt2gl import compiler
from tt2gl.failures import explain
from tt2gl.ir.lexer import ParseError
from tt2gl.ir.operations import Location, Module
from tt2gl.ir.parser import parse_module
from tt2gl.isolate import Outcome, available_cores, map_isolated, preload, printed_so_far, private_triton
from tt2gl.results import SimulateFinding, SimulateResult
from tt2gl.simulate.api import Simulation, simulate
from tt2gl.simulate.engine import Schedule
from tt2gl.simulate.findings import Finding, SimulationError, TooLarge, Unsupported
from tt2gl.slicing import Slice, names_of
from tt2gl.targets import get_target
from tt2gl.verify.bind import bind
from tt2gl.verify.device import Participant, load_kernel
from tt2gl.verify.inputs import Inputs, UnknownInputsError, make_inputs, poisoned, unknown_inputs
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.outputs import AGREED, Agreement, combine, compare, compare_exactly

Arithmetic = Literal["ieee", "field"]
TroubleKind = Literal["unknown", "unsupported", "too large", "too long", "failed"]

# Operations whose effect may land later than they stand: a kernel without any runs the same under every schedule.
_ASYNCHRONOUS = re.compile(r"ttng\.|\w+\.(async|warp_specialize|buffer_load_to_local|(arrive|wait)_barrier)")


@dataclass(frozen=True)
class SimulationJob:
    """An original and its port for one target. Inputs and grid are the original's."""

    original: Participant
    port: Participant
    target: str


@dataclass(frozen=True)
class Trouble:
    """Why a simulation, or a part of it, has no result: the message, and where in the author's files."""

    kind: TroubleKind
    message: str
    file: str = ""
    line: int = 0


@dataclass(frozen=True)
class SimulationRun:
    """What a job found: `reason` says what differs; `field_trouble` why field arithmetic could not be asked."""

    result: SimulateResult | None = None
    reason: str = ""
    trouble: Trouble | None = None
    field_trouble: Trouble | None = None


def simulate_many(
    jobs: Sequence[SimulationJob],
    options: SimulationOptions,
    *,
    workers: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[SimulationRun]:
    """Simulate many kernels, `workers` at a time, which share the memory; results in the order of the jobs."""
    preload()
    together = max(1, min(workers or available_cores(), len(jobs)))
    share = replace(options, memory_limit=options.memory_limit // together)

    def note(index: int, _outcome: Outcome[SimulationRun]) -> None:
        if on_done is not None:
            on_done(index)

    arguments = [(job, share) for job in jobs]
    outcomes = map_isolated(run_job, arguments, workers=together, timeout=options.timeout, on_done=note)
    return [_run_of(outcome) for outcome in outcomes]


def _run_of(outcome: Outcome[SimulationRun]) -> SimulationRun:
    if outcome.value is not None:
        return outcome.value
    if outcome.kind == "timeout":
        return SimulationRun(trouble=Trouble("too long", outcome.error))
    if outcome.error.startswith("MemoryError"):
        return SimulationRun(trouble=Trouble("too large", "there is no memory left"))
    return SimulationRun(trouble=Trouble("failed", outcome.error))


# ------------------------------------------------------------------------------------------------- in the process


def run_job(job: SimulationJob, options: SimulationOptions) -> SimulationRun:
    """Run a job in this process, which must be a child: it edits the environment, and compiles."""
    private_triton()
    unknown = unknown_inputs(job.original.launch)
    if unknown:
        return SimulationRun(trouble=Trouble("unknown", unknown))
    try:
        original = _Kernel("triton", job.original, job, options.memory_limit)
        port = _Kernel("gluon", job.port, job, options.memory_limit)
        return _Comparison(original, port, options).run()
    except _Stopped as stopped:
        return SimulationRun(trouble=stopped.trouble)
    except UnknownInputsError as error:
        return SimulationRun(trouble=Trouble("unknown", str(error)))


class _Stopped(Exception):
    """A kernel's simulation cannot go on."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


class _Kernel:
    """A participant as IR, to be simulated on any inputs of the job's launch."""

    def __init__(
        self, dialect: Literal["triton", "gluon"], participant: Participant, job: SimulationJob, limit: int
    ) -> None:
        self.dialect = dialect
        self.what = f"the {dialect.capitalize()} kernel"
        self.launch = participant.launch
        self._kernel = participant.kernel
        self._grid = job.original.launch.grid or (1,)
        self._limit = limit
        function = load_kernel(participant.kernel, Path(tempfile.mkdtemp(prefix=f"{dialect}-")) / "kernel")
        self._names = list(function.arg_names)
        self.module = self._parsed(function, job.target)
        self.asynchronous = any(_ASYNCHRONOUS.match(each.name) for each in self.module.operation.walk())

    def _parsed(self, function: object, target: str) -> Module:
        try:
            backend, gpu = compiler.backend_for(get_target(target))
            source = compiler.source_for(function, self.launch)
            module = compiler.build_ir(source, backend, gpu, compiler.options_for(backend, self.launch))
            return parse_module(compiler.generic_text(module))
        except ParseError as error:
            raise _Stopped(Trouble("unsupported", f"{self.what}: {error}")) from error
        except Exception as error:
            sliced = self._kernel if isinstance(self._kernel, Slice) else Slice("", (), ())
            raise _Stopped(Trouble("failed", f"{self.what}: {explain(error, sliced, printed_so_far())}")) from error

    def __call__(self, inputs: Inputs, arithmetic: Arithmetic, schedule: Schedule) -> Simulation:
        """Simulate once. Raises _Stopped where that cannot be done."""
        x, y, z = (*self._grid, 1, 1)[:3]
        arguments = bind(self._names, self.launch, inputs, self.module)
        try:
            return simulate(
                self.module, arguments, (x, y, z), arithmetic=arithmetic, schedule=schedule, limit=self._limit
            )
        except TooLarge as error:
            raise _Stopped(Trouble("too large", f"{self.what}: {error}")) from error
        except SimulationError as error:
            kind: TroubleKind = "unsupported" if isinstance(error, Unsupported) else "failed"
            file, line = self.place(error.location)
            raise _Stopped(Trouble(kind, f"{self.what}: {error}", file, line)) from error

    def finding(self, found: Finding) -> SimulateFinding:
        """A fault at the author's places."""
        file, line = self.place(found.location)
        other_file, other_line = self.place(found.other) if found.other is not None else ("", 0)
        return SimulateFinding(
            self.dialect, found.kind, found.message, file, line, found.buffer, other_file, other_line
        )

    def place(self, location: Location) -> tuple[str, int]:
        """The author's file and line of a location; within Triton's own library, of the first call that leads there."""
        modules = names_of(self._kernel) if isinstance(self._kernel, Slice) else {}
        seen: set[str] = set()
        each: Location | None = location
        while each is not None:
            if Path(each.file).stem in modules:
                return str(modules[Path(each.file).stem]), each.line
            each = each.caller or self._call_to(each, seen)
        _, inside, path = location.file.rpartition("/triton/")
        return f"triton/{path}" if inside else location.file, location.line

    def _call_to(self, location: Location, seen: set[str]) -> Location | None:
        """Where the function that holds a location is called; None once all such functions were `seen`."""
        for name, function in self.module.functions.items():
            if name not in seen and any(each.location == location for each in function.walk()):
                seen.add(name)
                calls = (each for each in self.module.operation.walk() if each.name == "tt.call")
                return next((each.location for each in calls if each.attributes["callee"].name == name), None)
        return None


@dataclass
class _Comparison:
    """Both kernels, run on the inputs of every seed and under every schedule."""

    original: _Kernel
    port: _Kernel
    options: SimulationOptions
    findings: dict[SimulateFinding, None] = field(default_factory=dict)

    def run(self) -> SimulationRun:
        """The whole job. Raises _Stopped and UnknownInputsError."""
        if self.options.arithmetic == "field":
            found = combine(self._trials("field", self.options.seeds))
            return self._told(found, found.equal)
        found = combine(self._trials("ieee", self.options.seeds))
        if found.bitwise or self.options.arithmetic == "ieee":
            return self._told(found, None)
        try:
            exact = combine(self._trials("field", seeds=1))
        except _Stopped as stopped:
            return replace(self._told(found, None), field_trouble=stopped.trouble)
        if found.equal and not exact.equal:
            reason = f"{exact.reason} in field arithmetic, so it is more than rounding"
            found = replace(found, equal=False, reason=reason)
        return self._told(found, exact.equal)

    def _told(self, found: Agreement, exact: bool | None) -> SimulationRun:
        findings = tuple(self.findings)
        return SimulationRun(SimulateResult(found.equal, found.bitwise, found.max_ulps, findings, exact), found.reason)

    def _trials(self, arithmetic: Arithmetic, seeds: int) -> Iterator[Agreement]:
        schedules: tuple[Schedule, ...] = ("late", "early")
        for seed in range(seeds):
            inputs = make_inputs(self.original.launch, seed)
            expected: Simulation | None = None
            for schedule in schedules if self.port.asynchronous or self.original.asynchronous else schedules[:1]:
                if expected is None or self.original.asynchronous:
                    expected = self._simulated(self.original, inputs, arithmetic, schedule)
                    unread = tuple(each.name for each in expected.tensors if not each.loaded)
                # What the original never reads it cannot depend on: a port that does spreads the poison.
                found = self._simulated(self.port, poisoned(inputs, unread), arithmetic, schedule)
                yield _agreement(inputs, expected, found, arithmetic)

    def _simulated(self, kernel: _Kernel, inputs: Inputs, arithmetic: Arithmetic, schedule: Schedule) -> Simulation:
        simulation = kernel(inputs, arithmetic, schedule)
        self.findings.update(dict.fromkeys(map(kernel.finding, simulation.findings)))
        return simulation


def _agreement(inputs: Inputs, expected: Simulation, found: Simulation, arithmetic: Arithmetic) -> Agreement:
    compared = compare if arithmetic == "ieee" else compare_exactly
    others = {tensor.name: tensor for tensor in found.tensors}
    parts = [
        compared(inputs.tensors[tensor.name].arg, tensor, others[tensor.name])
        for tensor in expected.tensors
        if tensor.name in others
    ]
    return combine(parts) if parts else AGREED
