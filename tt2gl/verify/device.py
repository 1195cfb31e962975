"""Runs a Triton kernel and its port on the GPU: the same inputs, all of memory compared, interleaved timing.

Every job has a process of its own and a time limit, so that a hang or an illegal access ends one job.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tt2gl import compiler
from tt2gl.children import Outcome, one_line
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.launches import Launch, passed_to
from tt2gl.results import DeviceResult
from tt2gl.slicing.slices import Slice, load_slice
from tt2gl.spawned import run_spawned
from tt2gl.stages import STAGES
from tt2gl.verify.equality import check_equality, written
from tt2gl.verify.inputs import Inputs, UnknownInputsError, make_inputs, unknown_inputs
from tt2gl.verify.tensors import DeviceInputs, to_device
from tt2gl.verify.timing import milliseconds

DEFAULT_SEEDS = (0, 1, 2)

# torch's name of the GPU, for AMD's too.
_DEVICE = "cuda"


@dataclass(frozen=True)
class FileKernel:
    """A kernel in a file that is safe to import: `name` in the module at `path`."""

    path: str
    name: str


@dataclass(frozen=True)
class Participant:
    """One of the kernels of a job, and the launch it runs under."""

    kernel: Slice | FileKernel
    launch: Launch


# Other ways to do the work of a launch on its inputs, by name: calls to be timed beside the kernels.
Rivals = Callable[[Launch, DeviceInputs], Mapping[str, Callable[[], object]]]


@dataclass(frozen=True)
class DeviceJob:
    """An original and its port. Inputs and grid are the original's; `rivals` is a module's function.

    Jobs with the same file `turns` may run at once: they start, compile and compare beside each other, and whoever
    times has the GPU alone.
    """

    original: Participant
    port: Participant
    seeds: tuple[int, ...] = DEFAULT_SEEDS
    rivals: Rivals | None = None
    turns: Path | None = None


@dataclass(frozen=True)
class DeviceRun:
    """What a job found: `reason` says what differs; `noise` is how far two timings of the original lie apart.

    `noise` is relative: 0.01 means that a ratio within 1% of 1 says nothing. `bytes` is the size of all tensors,
    each counted once. `rivals`: milliseconds by name; `rival_errors`: what was said by those that do not run.
    """

    result: DeviceResult
    reason: str
    noise: float
    repeats: int
    bytes: int
    rivals: Mapping[str, float] = field(default_factory=dict)
    rival_errors: Mapping[str, str] = field(default_factory=dict)


class RunError(Exception):
    """A kernel could not be run; the message says which, and why."""


def run_on_device(job: DeviceJob, *, timeout: float = 300.0) -> Outcome[DeviceRun]:
    """Run one job on the GPU in a process of its own, for at most `timeout` seconds."""
    unknown = unknown_inputs(job.original.launch)
    if unknown:
        return Outcome("error", error=f"UnknownInputsError: {unknown}")
    return run_spawned(run_job, job, timeout=timeout)


def device_diagnostics(outcome: Outcome[DeviceRun], file: str, line: int = 0) -> tuple[Diagnostic, ...]:
    """What to tell of a run: TTG410 could not run, TTG411 not enough known, TTG412 different results."""
    if outcome.value is None:
        kind, _, said = outcome.error.partition(": ")
        if kind == UnknownInputsError.__name__:
            message = f"The kernel was not run on the GPU: {said}."
            hint = "Give the launch with its grid and arguments in a launches file (see docs/launches.md)."
            return (Diagnostic("TTG411", Severity.WARNING, file, line, 0, message, hint),)
        cause = said if kind == RunError.__name__ else outcome.error
        hint = "Run it under compute-sanitizer, or see `tt2gl doctor` for what is missing."
        return (Diagnostic("TTG410", Severity.ERROR, file, line, 0, f"The GPU run failed: {cause}.", hint),)
    if not outcome.value.result.equal:
        message = f"The Gluon kernel computes something else on the GPU: {outcome.value.reason}."
        hint = "Turn optimising rules off one by one (`--no RULE`) to find the one at fault, and report it."
        return (Diagnostic("TTG412", Severity.ERROR, file, line, 0, message, hint),)
    return ()


# ------------------------------------------------------------------------------------------------ in the process


def run_job(job: DeviceJob) -> DeviceRun:
    """Run a job in this process, which must be expendable. Raises RunError and UnknownInputsError."""
    import torch

    if not torch.cuda.is_available():
        raise RunError("torch finds no GPU")
    _provide_scratch_memory()
    folder = Path(tempfile.mkdtemp(prefix="kernels-"))
    launch = job.original.launch
    original = Kernel("the Triton kernel", job.original, launch, folder / "original")
    port = Kernel("the Gluon kernel", job.port, launch, folder / "port")

    def make(seed: int) -> DeviceInputs:
        return to_device(make_inputs(launch, seed), _DEVICE)

    with _turn(job.turns, fcntl.LOCK_SH):
        equality = check_equality(original, port, make, job.seeds)
        torch.cuda.empty_cache()
    with _turn(job.turns, fcntl.LOCK_EX):
        inputs = make(0)
        work = inputs.clone()
        rivals, rival_errors = that_run(job.rivals, launch, work) if job.rivals else ({}, {})
        triton_ms, again_ms, gluon_ms, *others = _time(original, port, inputs, work, [*rivals.values()])
    triton, gluon = statistics.median(triton_ms), statistics.median(gluon_ms)
    return DeviceRun(
        DeviceResult(torch.cuda.get_device_name(), equality.equal, equality.bitwise, equality.max_error, triton, gluon),
        reason=equality.reason,
        noise=abs(statistics.median(again_ms) / triton - 1),
        repeats=len(triton_ms),
        bytes=sum(min(buffer.last - buffer.first, buffer.view.nbytes) for buffer in inputs.buffers.values()),
        rivals={name: statistics.median(times) for name, times in zip(rivals, others, strict=True)},
        rival_errors=rival_errors,
    )


@contextlib.contextmanager
def _turn(turns: Path | None, kind: int) -> Iterator[None]:
    """Hold the file's lock, `kind` with others or alone; freed with the process, however that ends."""
    if turns is None:
        yield
        return
    with turns.open("a") as file:
        fcntl.flock(file, kind)
        yield


def that_run(
    make: Rivals, launch: Launch, inputs: DeviceInputs
) -> tuple[dict[str, Callable[[], object]], dict[str, str]]:
    """The rivals that run on these inputs, and why the others do not: no rival's fault is the kernels'."""
    import torch

    run: dict[str, Callable[[], object]] = {}
    errors: dict[str, str] = {}
    try:
        made = make(launch, inputs)
    except Exception as error:  # noqa: BLE001 (a library may raise anything)
        return run, {"all": one_line(error)}
    for name, call in made.items():
        try:
            call()
            torch.cuda.synchronize()
            run[name] = call
        except Exception as error:  # noqa: BLE001
            errors[name] = one_line(error)
    return run, errors


def run_each(calls: Sequence[tuple[Participant, Inputs]]) -> list[dict[str, NDArray[Any]]]:
    """Run kernels once each, in this process, which must be expendable: the bytes of their tensors, first to last.

    Raises RunError.
    """
    _provide_scratch_memory()
    found = []
    for number, (participant, inputs) in enumerate(calls):
        on_device = to_device(inputs, _DEVICE)
        folder = Path(tempfile.mkdtemp(prefix="kernel-")) / str(number)
        Kernel("the kernel", participant, participant.launch, folder)(on_device)
        buffers = on_device.buffers
        found.append({name: each.storage[each.first : each.last].cpu().numpy() for name, each in buffers.items()})
    return found


def _provide_scratch_memory() -> None:
    """Kernels that make tensor descriptors on the device ask the host for memory."""
    import torch
    import triton

    def allocate(size: int, _alignment: int, _stream: int | None) -> Any:
        return torch.empty(size, device=_DEVICE, dtype=torch.int8)

    triton.set_allocator(allocate)


class Kernel:
    """A participant loaded, to be launched on any inputs of the job's launch."""

    def __init__(self, what: str, participant: Participant, launch: Launch, folder: Path) -> None:
        self.what = what
        self.launch = participant.launch
        self.grid = launch.grid or (1, 1, 1)
        try:
            self.function = load_kernel(participant.kernel, folder)
        except Exception as error:
            raise RunError(f"{what} could not be loaded: {one_line(error)}") from error

    def __call__(self, inputs: DeviceInputs) -> None:
        """Launch once and wait. Raises RunError where Triton or the GPU does not."""
        import torch

        try:
            self.bind(inputs)()
            torch.cuda.synchronize()
        except Exception as error:
            raise RunError(f"{self.what} failed: {one_line(error)}") from error

    def bind(self, inputs: DeviceInputs) -> Callable[[], object]:
        """The launch on these inputs, ready to be repeated."""
        arguments = call_arguments(self.function, self.launch, inputs, known_options())
        launcher = self.function[self.grid]
        return lambda: launcher(**arguments)


def load_kernel(kernel: Slice | FileKernel, folder: Path) -> Any:
    """The JITFunction of a participant; a slice is written below `folder`."""
    if isinstance(kernel, Slice):
        folder.mkdir(parents=True)
        return load_slice(kernel, folder)
    spec = importlib.util.spec_from_file_location(Path(kernel.path).stem, kernel.path)
    if spec is None or spec.loader is None:
        raise RunError(f"{kernel.path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel.name)


def known_options() -> frozenset[str]:
    """The launch options that Triton's backend of this GPU knows; it refuses any other."""
    from triton.compiler.compiler import make_backend
    from triton.runtime.driver import driver

    backend = make_backend(driver.active.get_current_target())
    return frozenset(vars(backend.parse_options({})))


def call_arguments(function: Any, launch: Launch, inputs: DeviceInputs, options: frozenset[str]) -> dict[str, Any]:
    """All keyword arguments of a launch: options, tensors, scalars and constexprs, by the function's own parameters.

    A parameter that neither the launch nor the inputs know keeps its default.
    """
    chosen, launch = launch.options.to_dict(), passed_to(launch, function.arg_names)
    arguments = {name: value for name, value in chosen.items() if name in options and name not in function.arg_names}
    flags = compiler.alignment_flags(function, launch)
    for name in function.arg_names:
        if inputs.has(name):
            arguments[name] = inputs.argument(name, function)
        elif name in flags:
            arguments[name] = flags[name]
        elif name in launch.constexprs:
            arguments[name] = compiler.constexpr_value(launch.constexprs[name], function)
        elif name == STAGES and function.is_gluon():
            # A constexpr of this name that the author has is not the launch's option.
            arguments[name] = launch.options.num_stages
    return arguments


# ------------------------------------------------------------------------------------------------------- timing


def _time(
    original: Kernel, port: Kernel, before: DeviceInputs, work: DeviceInputs, rivals: Sequence[Callable[[], object]]
) -> list[list[float]]:
    """Milliseconds of the original, of the original again, of the port and of rivals, on the same tensors.

    All run on `work`, which holds the tensors `before`, or did until a rival was tried.
    """
    for name, buffer in work.buffers.items():
        buffer.restore(before.buffers[name])
    original(work)
    changed = written(before, work)

    def restore() -> None:
        # A kernel that updates in place would else work on ever larger numbers.
        for name in changed:
            work.buffers[name].restore(before.buffers[name])

    return milliseconds([original.bind(work), original.bind(work), port.bind(work), *rivals], restore, _DEVICE)
