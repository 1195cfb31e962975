"""Runs a Triton kernel and its port in the simulator: the same inputs, all memory written compared, every fault told.

Every job has a child process and a time limit. There both kernels are compiled to the IR before any pass, which is the
same on every machine, and run in numpy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tt2gl.children import Outcome
from tt2gl.cores import available_cores
from tt2gl.isolate import map_isolated, preload, private_triton
from tt2gl.launches import Launch, TensorArg
from tt2gl.results import SimulateFinding, SimulateResult
from tt2gl.simulate.api import Simulation, TensorOutput
from tt2gl.simulate.engine import Schedule
from tt2gl.simulate.memory import Filling
from tt2gl.verify.compile import tensor_bytes
from tt2gl.verify.device import Participant
from tt2gl.verify.inputs import Array, Inputs, UnknownInputsError, make_inputs, poisoned, unknown_inputs
from tt2gl.verify.made_up import is_shown, made_up, told
from tt2gl.verify.options import SimulationOptions
from tt2gl.verify.outputs import AGREED, Agreement, combine, compare, compare_exactly, holds_nan, where_defined
from tt2gl.verify.simulated_kernel import Arithmetic, SimulatedKernel, Stopped, Trouble

# Of all tensors, at most: inputs, their copy in the simulator, the first kernel's results, and a byte an element.
_COPIES = 4
# Programs that are run one by one where results differ.
_MOST_IN_TURN = 256
# Bytes of tensors, with those copies, that leave a child as it was.
_SMALL = 64 << 20


@dataclass(frozen=True)
class SimulationJob:
    """An original and its port for one target. Inputs and grid are the original's.

    `made_up`: they may be made up for a launch that the file alone shows.
    """

    original: Participant
    port: Participant
    target: str
    made_up: bool = False

    @property
    def needs_arguments(self) -> bool:
        """Whether arguments are to be made up, as the launch is one that the file shows."""
        return self.made_up and is_shown(self.original.launch)


@dataclass(frozen=True)
class SimulationRun:
    """What a job found: `reason` says what differs; `field_trouble` why field arithmetic could not be asked.

    `made_up`: what the kernels were called with, in words, where nobody gave it.
    """

    result: SimulateResult | None = None
    reason: str = ""
    trouble: Trouble | None = None
    field_trouble: Trouble | None = None
    made_up: str = ""


def simulate_many(
    jobs: Sequence[SimulationJob],
    options: SimulationOptions,
    *,
    workers: int | None = None,
    on_done: Callable[[int], None] | None = None,
) -> list[SimulationRun]:
    """Simulate many kernels, `workers` at a time, which share the memory; results in the order of the jobs."""
    preload()
    reasons = {i: unknown_inputs(job.original.launch) for i, job in enumerate(jobs) if not job.needs_arguments}
    runs = {index: SimulationRun(trouble=Trouble("unknown", reason)) for index, reason in reasons.items() if reason}
    for index in runs:
        _note([index], on_done, 0, None)
    able = [index for index in range(len(jobs)) if index not in runs]
    together = max(1, min(workers or available_cores(), len(able)))
    for count, places in _shifts([jobs[index] for index in able], options.memory_limit, together):
        indices = [able[place] for place in places]
        share = replace(options, memory_limit=options.memory_limit // count)
        note = functools.partial(_note, indices, on_done)
        arguments = [(jobs[index], share) for index in indices]
        outcomes = map_isolated(
            run_job, arguments, workers=count, timeout=options.timeout, on_done=note, family=_family
        )
        runs |= dict(zip(indices, map(_run_of, outcomes), strict=True))
    return [runs[index] for index in range(len(jobs))]


def _shifts(jobs: Sequence[SimulationJob], limit: int, together: int) -> Iterator[tuple[int, list[int]]]:
    """How many jobs run together, and which: all that may do with a share of the memory, then the others one by one."""
    large = [_bytes_needed(job.original.launch) > limit // together for job in jobs]
    yield together, [index for index, alone in enumerate(large) if not alone]
    yield 1, [index for index, alone in enumerate(large) if alone]


def _family(job: SimulationJob, _: SimulationOptions) -> Hashable:
    """Small jobs for one target may follow each other in a child; a large one has all of a child's memory."""
    return job.target if _bytes_needed(job.original.launch) <= _SMALL else id(job)


def _bytes_needed(launch: Launch) -> int:
    """By the tensors: as given, in the simulator, and as the first kernel left them, which of each were written."""
    return _COPIES * sum(map(tensor_bytes, _tensors((launch.args or {}).values())))


def _tensors(values: Iterable[Any]) -> Iterator[TensorArg]:
    """The tensors among arguments, those in tuples too."""
    for value in values:
        if isinstance(value, TensorArg):
            yield value
        elif isinstance(value, tuple):
            yield from _tensors(value)


def _note(indices: Sequence[int], on_done: Callable[[int], None] | None, number: int, _outcome: object) -> None:
    if on_done is not None:
        on_done(indices[number])


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
    try:
        original = SimulatedKernel("triton", job.original, job.target)
        port = SimulatedKernel("gluon", job.port, job.target)
        if job.needs_arguments:
            return _on_made_up(original, port, options)
        return _Comparison(original, port, original.launch, options).run()
    except Stopped as stopped:
        return SimulationRun(trouble=stopped.trouble)
    except UnknownInputsError as error:
        return SimulationRun(trouble=Trouble("unknown", str(error)))


def _on_made_up(original: SimulatedKernel, port: SimulatedKernel, options: SimulationOptions) -> SimulationRun:
    """Run both on made-up arguments: as two programs along each axis, or as one alone where that says nothing.

    Arguments say nothing with which the original itself fails or is at fault; nor do several programs alone with which
    both differ, which may all write one place. Raises Stopped where a kernel cannot be simulated whatever it is given.
    """
    why, differing = "", 0
    for programs in (2, 1):
        launch = made_up(original.launch, original.axes, programs)
        try:
            run = _Comparison(original, port, launch, options).run()
        except Stopped as stopped:
            if stopped.trouble.kind != "failed" or stopped.trouble.dialect == "gluon":
                raise
            why = stopped.trouble.message
            continue
        assert run.result is not None
        fault = next((each for each in run.result.findings if each.kernel == "triton"), None)
        differing += fault is None and not run.result.equal
        if fault is not None:
            why = f"the Triton kernel: {fault.message} (line {fault.line})"
        elif run.result.equal or differing == 2:
            return replace(run, made_up=told(launch))
        else:
            why = run.reason
    message = f"the launch was guessed from the source, and arguments made up for it do not suit it: {why}"
    return SimulationRun(trouble=Trouble("unknown", message))


@dataclass(frozen=True)
class _Runs:
    """The inputs of both kernels, the port's with poison in what the original never reads; what each made of them."""

    inputs: Inputs
    start: Inputs
    expected: Simulation
    found: Simulation


@dataclass
class _Comparison:
    """Both kernels, run on the inputs of every seed and under every schedule."""

    original: SimulatedKernel
    port: SimulatedKernel
    launch: Launch
    options: SimulationOptions
    findings: dict[SimulateFinding, None] = field(default_factory=dict)

    def run(self) -> SimulationRun:
        """The whole job. Raises Stopped and UnknownInputsError."""
        if self.options.arithmetic == "field":
            found = combine(self._trials("field", self.options.seeds))
            return self._told(found, found.equal)
        found = combine(self._trials("ieee", self.options.seeds))
        # Where not even a last place differs there is no rounding: of NaN, field arithmetic knows nothing.
        if found.bitwise or found.equal and not found.max_ulps or self.options.arithmetic == "ieee":
            return self._told(found, None)
        try:
            exact = combine(self._trials("field", seeds=1))
        except Stopped as stopped:
            return replace(self._told(found, None), field_trouble=stopped.trouble)
        if found.equal and not exact.equal:
            reason = f"{exact.reason} in field arithmetic, so it is more than rounding"
            found = replace(found, equal=False, reason=reason)
        return self._told(found, exact.equal)

    def _told(self, found: Agreement, exact: bool | None) -> SimulationRun:
        findings = tuple(self.findings)
        told = (findings, exact, found.undefined, found.ordered)
        result = SimulateResult(found.equal, found.bitwise, found.max_ulps, *told)
        return SimulationRun(result, found.reason)

    def _trials(self, arithmetic: Arithmetic, seeds: int) -> Iterator[Agreement]:
        schedules: tuple[Schedule, ...] = ("late", "early")
        for seed in range(seeds):
            inputs = make_inputs(self.launch, seed)
            expected: Simulation | None = None
            unread: tuple[str, ...] = ()
            for schedule in schedules if self.port.asynchronous or self.original.asynchronous else schedules[:1]:
                if expected is None or self.original.asynchronous:
                    expected = _without_unwritten(self._simulated(self.original, inputs, arithmetic, schedule))
                    unread = tuple(each.name for each in expected.tensors if not each.loaded)
                # What the original never reads it cannot depend on: a port that does spreads the poison.
                start = poisoned(inputs, unread)
                found = self._simulated(self.port, start, arithmetic, schedule, held=_bytes_held(expected))
                agreed = _agreement(inputs, expected, found, arithmetic)
                runs = _Runs(inputs, start, expected, found)
                # What a mask leaves open may be NaN in both, and hide what either makes of it.
                if not agreed.equal or holds_nan(expected.tensors):
                    agreed = self._agreement_where_defined(runs, arithmetic, schedule) or agreed
                if not agreed.equal:
                    agreed = self._agreement_in_turn(runs, arithmetic, schedule) or agreed
                yield agreed

    def _agreement_where_defined(self, runs: _Runs, arithmetic: Arithmetic, schedule: Schedule) -> Agreement | None:
        """How both agree on what the author's masks define, and on all once what they leave open is zero.

        None where nothing that the original wrote hangs on that: it shows by the original's results with zeros.
        """
        held = _bytes_held(runs.expected) + _bytes_held(runs.found)
        filled = _without_unwritten(self._simulated(self.original, runs.inputs, arithmetic, schedule, "zero", held))
        defined = where_defined(runs.expected.tensors, filled.tensors, runs.found.tensors)
        if defined is None:
            return None
        held += _bytes_held(filled)
        zeros = self._simulated(self.port, runs.start, arithmetic, schedule, "zero", held)
        parts = (
            _agreement(runs.inputs, replace(runs.expected, tensors=defined), runs.found, arithmetic),
            _agreement(runs.inputs, filled, zeros, arithmetic),
        )
        return replace(combine(parts), undefined=True)

    def _agreement_in_turn(self, runs: _Runs, arithmetic: Arithmetic, schedule: Schedule) -> Agreement | None:
        """How both agree when each program ends before the next begins.

        None where nothing that the original wrote hangs on which comes first: the first to the last and back make the
        same of it. A few programs alone are asked, as they run one by one.
        """
        order = range(prod(self.launch.grid or (1,)))
        if not 1 < len(order) <= _MOST_IN_TURN:
            return None
        held = _bytes_held(runs.expected) + _bytes_held(runs.found)
        first = self._simulated(self.original, runs.inputs, arithmetic, schedule, held=held, in_turn=order)
        held += _bytes_held(first)
        last = self._simulated(self.original, runs.inputs, arithmetic, schedule, held=held, in_turn=order[::-1])
        if _agreement(runs.inputs, first, last, arithmetic).equal:
            return None
        found = self._simulated(self.port, runs.start, arithmetic, schedule, held=held, in_turn=order)
        return replace(_agreement(runs.inputs, first, found, arithmetic), ordered=True)

    def _simulated(
        self,
        kernel: SimulatedKernel,
        inputs: Inputs,
        arithmetic: Arithmetic,
        schedule: Schedule,
        masked_off: Filling = "poison",
        held: int = 0,
        in_turn: Sequence[int] | None = None,
    ) -> Simulation:
        """One run; `held` bytes of the memory are taken."""
        grid, limit = self.launch.grid or (1,), self.options.memory_limit - held
        simulation = kernel(inputs, grid, arithmetic, schedule, masked_off, limit, in_turn)
        self.findings.update(dict.fromkeys(map(kernel.finding, simulation.findings)))
        return simulation


def _without_unwritten(simulation: Simulation) -> Simulation:
    """The same without the content of tensors that were not written, which often are the larger ones."""
    tensors = (
        tensor
        if tensor.written.any()
        else replace(tensor, elements=_zeros(tensor), written=np.broadcast_to(False, len(tensor.written)))
        for tensor in simulation.tensors
    )
    return replace(simulation, tensors=tuple(tensors))


def _zeros(tensor: TensorOutput) -> Array:
    """As many elements, and no memory."""
    return np.broadcast_to(np.zeros((), tensor.elements.dtype), tensor.elements.shape)


def _bytes_held(simulation: Simulation) -> int:
    return sum(tensor.elements.nbytes + tensor.written.nbytes for tensor in simulation.tensors if tensor.written.any())


def _agreement(inputs: Inputs, expected: Simulation, found: Simulation, arithmetic: Arithmetic) -> Agreement:
    compared = compare if arithmetic == "ieee" else compare_exactly
    others = {tensor.name: tensor for tensor in found.tensors}
    parts = [
        compared(inputs.tensors[tensor.name].arg, tensor, others[tensor.name])
        for tensor in expected.tensors
        if tensor.name in others
    ]
    return combine(parts) if parts else AGREED
