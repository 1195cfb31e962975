"""Simulate one launch of one kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from threadpoolctl import ThreadpoolController

import tt2gl.simulate.ops  # noqa: F401 (registers the operations)
from tt2gl.ir.operations import Module
from tt2gl.ir.types import MemDescType, Type
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.budget import programs_at_once
from tt2gl.simulate.engine import Engine, Schedule, Stopped
from tt2gl.simulate.field import Field
from tt2gl.simulate.findings import Finding
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.memory import Allocation, Filling, Memory
from tt2gl.simulate.ops.control import EndlessLoop
from tt2gl.simulate.ops.functions import call
from tt2gl.simulate.programs import Divergence, Programs
from tt2gl.simulate.sparse import Sheet, SparseMemory, Touched
from tt2gl.simulate.values import Array, Rows, dtype_of

DEFAULT_LIMIT = 4 << 30

# A loop of programs in step that takes longer may be one that waits for another program: they then run one by one.
_ITERATIONS_TOGETHER = 100_000
_ITERATIONS_ALONE = 1_000_000
# What may raise EndlessLoop.
_WAITING = frozenset({"scf.while", "tt.atomic_poll"})


@dataclass(frozen=True, eq=False)
class TensorInput:
    """A tensor argument: `elements` from its first to its last in memory, in numpy's format of `kind`.

    `misalignment` is the first element's distance in bytes from a multiple of 256. With `length`, the tensor has that
    many, which repeat those given, and only what is touched is held.
    """

    name: str
    kind: Type
    elements: Array
    misalignment: int = 0
    length: int = 0


@dataclass(frozen=True, eq=False)
class DescriptorInput:
    """A tensor descriptor made on the host: a tensor, its shape and strides in elements, outermost first.

    `block` is the shape of the tiles; `padding` what lies outside the tensor, "zero" or "nan".
    """

    tensor: TensorInput
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block: tuple[int, ...]
    padding: Literal["zero", "nan"] = "zero"


Argument = TensorInput | DescriptorInput | int | float | bool


@dataclass(frozen=True, eq=False)
class TensorOutput:
    """A tensor after the run: its elements, which of them were written, and whether any was read.

    In field arithmetic the elements are residues. Of one of which only what is touched is held, `elements` are those
    that were written, at `places`, and `touched` says what else was.
    """

    name: str
    kind: Type
    elements: Array
    written: Array
    loaded: bool
    places: Array | None = None
    touched: Touched | None = None


@dataclass(frozen=True, eq=False)
class Simulation:
    """What a simulation found: all tensors, in the order of the arguments, and the faults, each once."""

    tensors: tuple[TensorOutput, ...]
    findings: tuple[Finding, ...]


def simulate(
    module: Module,
    arguments: Sequence[Argument],
    grid: tuple[int, int, int],
    *,
    arithmetic: Literal["ieee", "field"] = "ieee",
    schedule: Schedule = "late",
    masked_off: Filling = "poison",
    limit: int = DEFAULT_LIMIT,
    programs: Rows | None = None,
    in_turn: bool = False,
) -> Simulation:
    """Run the kernel of a module on a grid, or those of its `programs` that are asked for by number, x fastest.

    `arguments` are those of the IR's function, in its order. `schedule` says when asynchronous work lands: as late or
    as early as it may. `masked_off`: what masked loads without `other` give, which Triton leaves undefined. `limit`
    bounds the memory used, in bytes: a large grid is run in parts. `in_turn`: each program ends before the next begins.
    Raises TooLarge where one program is too much, Unsupported for an operation that is unknown, SimulationError where
    the run cannot go on.
    """
    # Tiles are too small to share among threads, and simulations already run side by side.
    with np.errstate(all="ignore"), ThreadpoolController().limit(limits=1, user_api="blas"):
        run = _Simulator(module, arguments, grid, arithmetic, schedule, masked_off, limit)
        return run.run(programs, 1 if in_turn else run.at_once)


class _Simulator:
    def __init__(
        self,
        module: Module,
        arguments: Sequence[Argument],
        grid: tuple[int, int, int],
        arithmetic: Literal["ieee", "field"],
        schedule: Schedule,
        masked_off: Filling,
        limit: int,
    ) -> None:
        self._module = module
        self._grid = grid
        self._schedule = schedule
        self._arithmetic: Arithmetic = Field() if arithmetic == "field" else Ieee()
        self._findings: list[Finding] = []
        sparse = any(isinstance(each, TensorInput) and each.length for each in arguments)
        self._memory = (SparseMemory if sparse else Memory)(self._arithmetic, self._report, masked_off)
        # Shared memory cannot be taken apart half way.
        self._in_step = any(_holds_shared(module))
        self._may_restart = self._in_step or any(each.name in _WAITING for each in module.operation.walk())
        tensors = sum(self._bytes_held(argument) for argument in arguments)
        self.at_once = programs_at_once(module, self._arithmetic, tensors, limit)
        parameters = module.kernel.regions[0].entry.arguments
        self._arguments: list[Any] = []
        for value, argument in zip(parameters, arguments, strict=True):
            self._arguments.append(self._bound(argument, value.type))

    def run(self, programs: Rows | None, at_once: int) -> Simulation:
        """All programs, or some, in groups of so many: `self.at_once` fit."""
        x, y, z = self._grid
        count = x * y * z if programs is None else len(programs)
        for first in range(0, count, at_once):
            group = slice(first, min(first + at_once, count))
            self._group(
                np.arange(group.start, group.stop) if programs is None else programs[group], _ITERATIONS_TOGETHER
            )
        outputs = tuple(_output(allocation) for allocation in self._memory.allocations)
        return Simulation(outputs, _each_once(self._findings))

    def _group(self, ids: Rows, most_iterations: int) -> None:
        """Run programs in step; start again, group by group, where they cannot stay so."""
        if self._may_restart:
            self._memory.checkpoint()
        findings = len(self._findings)
        try:
            self._attempt(ids, most_iterations)
            return
        except Divergence as divergence:
            groups = [ids[divergence.keys == key] for key in np.unique(divergence.keys)]
        except EndlessLoop:
            if len(ids) == 1 and most_iterations == _ITERATIONS_ALONE:
                raise
            groups, most_iterations = [ids[row : row + 1] for row in range(len(ids))], _ITERATIONS_ALONE
        self._memory.rollback()
        del self._findings[findings:]
        for group in groups:
            self._group(group, most_iterations)

    def _attempt(self, ids: Rows, most_iterations: int) -> None:
        programs = Programs(ids, self._grid)
        engine = Engine(self._schedule, self._report, programs)
        run = Run(
            self._module,
            programs,
            self._arithmetic,
            self._memory,
            engine,
            in_step=self._in_step and len(ids) > 1,
            most_iterations=most_iterations,
        )
        with contextlib.suppress(Stopped):
            call(run, self._module.kernel, self._arguments)
            engine.finish(run)

    def _report(self, finding: Finding) -> None:
        self._findings.append(finding)

    def _bound(self, argument: Argument, kind: Type) -> Any:
        """An argument as its parameter's value."""
        if isinstance(argument, TensorInput):
            return np.array([self._allocate(argument).address], np.int64)
        if isinstance(argument, DescriptorInput):
            from tt2gl.simulate.descriptors import host_descriptor

            return host_descriptor(argument, self._allocate(argument.tensor))
        values = np.array([argument]).astype(dtype_of(kind))
        return self._arithmetic.from_bits(values, kind)

    def _bytes_held(self, argument: Argument) -> int:
        """What an argument takes: a tensor as given, as the arithmetic holds it, and what of it was written."""
        tensor = argument.tensor if isinstance(argument, DescriptorInput) else argument
        if not isinstance(tensor, TensorInput):
            return 0
        return tensor.elements.nbytes + len(tensor.elements) * (self._arithmetic.dtype(tensor.kind).itemsize + 1)

    def _allocate(self, tensor: TensorInput) -> Allocation:
        if isinstance(self._memory, SparseMemory):
            return self._memory.add(tensor.name, tensor.kind, tensor.elements, tensor.misalignment, tensor.length)
        return self._memory.add(tensor.name, tensor.kind, tensor.elements, tensor.misalignment)


def _each_once(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The first finding of each kind at each place: later iterations and other programs only say other numbers."""
    first: dict[object, Finding] = {}
    for found in findings:
        first.setdefault((found.kind, found.location, found.other, found.buffer), found)
    return tuple(first.values())


def _holds_shared(module: Module) -> Any:
    for operation in module.operation.walk():
        for result in operation.results:
            yield isinstance(result.type, MemDescType)


def _output(allocation: Allocation) -> TensorOutput:
    if isinstance(allocation, Sheet):
        places, elements = allocation.stored()
        written = np.ones(len(places), bool)
        told = places, allocation.touched
        return TensorOutput(allocation.name, allocation.kind, elements, written, allocation.loaded, *told)
    return TensorOutput(allocation.name, allocation.kind, allocation.elements, allocation.written, allocation.loaded)
