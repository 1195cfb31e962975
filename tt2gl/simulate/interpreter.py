"""Runs blocks of operations for a set of programs at once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tt2gl.ir.operations import Block, Module, Operation, Region, Value
from tt2gl.simulate.arithmetic import Arithmetic
from tt2gl.simulate.engine import Engine
from tt2gl.simulate.findings import SimulationError, Unsupported
from tt2gl.simulate.memory import Memory
from tt2gl.simulate.programs import Divergence, Programs
from tt2gl.simulate.registry import HANDLERS, TERMINATORS, Handler
from tt2gl.simulate.values import Array, Rows, UnknownType, take_rows

# An operation, what runs it (None: it ends the block), and the values that nobody needs after it.
_Step = tuple[Operation, Handler | None, tuple[Value, ...]]


class Frame:
    """The values of one function activation; a frame for some of its programs looks the others' up in its parent."""

    __slots__ = ("parent", "rows", "values")

    def __init__(self, parent: Frame | None = None, rows: Rows | None = None) -> None:
        self.values: dict[Value, Any] = {}
        self.parent = parent
        self.rows = rows

    def get(self, value: Value) -> Any:
        """What a value holds, for the programs of this frame. Raises KeyError where it was never computed."""
        found = self.values.get(value, self)
        if found is not self:
            return found
        if self.parent is None or self.rows is None:
            raise KeyError(value.name)
        taken = take_rows(self.parent.get(value), self.rows)
        self.values[value] = taken
        return taken


class Run:
    """A set of programs on its way through a module: what handlers get.

    `in_step` forbids taking programs apart: a branch on which they differ raises Divergence.
    """

    def __init__(
        self,
        module: Module,
        programs: Programs,
        arithmetic: Arithmetic,
        memory: Memory,
        engine: Engine,
        *,
        in_step: bool,
        most_iterations: int,
    ) -> None:
        self.module = module
        self.programs = programs
        self.arithmetic = arithmetic
        self.memory = memory
        self.engine = engine
        self.in_step = in_step
        self.most_iterations = most_iterations
        self.frame = Frame()
        self.escaping = _escaping(module)
        self._plans: dict[Block, list[_Step]] = {}

    @property
    def count(self) -> int:
        """How many programs run."""
        return self.programs.count

    @functools.cached_property
    def used(self) -> set[Value]:
        """The values that some operation takes."""
        return {operand for operation in self.module.operation.walk() for operand in operation.operands}

    # ---------------------------------------------------------------------------------------------- blocks

    def block(self, block: Block, arguments: Sequence[Any]) -> tuple[Operation, list[Any]]:
        """Run a block in the current frame: the operation that ended it, and that one's operands."""
        values = self.frame.values
        values.update(zip(block.arguments, arguments, strict=True))
        get, engine = self.frame.get, self.engine
        for operation, handler, dead in self._plan(block):
            operands = [get(operand) for operand in operation.operands]
            if handler is None:
                for value in dead:
                    values.pop(value, None)
                return operation, operands
            if engine.unsettled:
                operands = engine.settled(operation, operands)
            try:
                outcome = handler(self, operation, *operands)
            except UnknownType as error:
                raise Unsupported(operation, str(error)) from error
            results = operation.results
            if len(results) == 1:
                values[results[0]] = outcome
            elif results:
                values.update(zip(results, outcome, strict=True))
            for value in dead:
                values.pop(value, None)
        raise SimulationError(f"block {block.label} does not end")

    def region(self, region: Region, arguments: Sequence[Any]) -> list[Any]:
        """Run a region of one block in the current frame: the operands of the operation that ends it."""
        if len(region.blocks) != 1:
            raise SimulationError("a region of several blocks where one was expected")
        return self.block(region.entry, arguments)[1]

    def _plan(self, block: Block) -> list[_Step]:
        plan = self._plans.get(block)
        if plan is None:
            plan = self._plans[block] = list(_steps(block, self.escaping))
        return plan

    # ----------------------------------------------------------------------------------------- who runs where

    @contextlib.contextmanager
    def subset(self, rows: Rows) -> Iterator[None]:
        """Within: only the programs at positions `rows` run, in a frame of their own on top of the current one."""
        frame, programs = self.frame, self.programs
        self.frame, self.programs = Frame(frame, rows), programs.take(rows)
        try:
            yield
        finally:
            self.frame, self.programs = frame, programs

    @contextlib.contextmanager
    def activation(self, programs: Programs | None = None) -> Iterator[None]:
        """Within: an empty frame, as a function call needs; of other programs where given."""
        frame, before, in_step = self.frame, self.programs, self.in_step
        self.frame = Frame()
        if programs is not None:
            self.programs, self.in_step = programs, False
        try:
            yield
        finally:
            self.frame, self.programs, self.in_step = frame, before, in_step

    def combine(self, region: Region, arguments: Sequence[Array]) -> list[Array]:
        """Run a region of scalars once for every element of flat arrays, all of one length: arrays of that length.

        Every element counts as a program of its own, so the region may branch on it.
        """
        count = len(arguments[0])
        with self.activation(Programs(np.zeros(count, np.int64), self.programs.grid)):
            return [np.broadcast_to(value, (count,)) for value in self.region(region, arguments)]

    def diverge(self, keys: Array) -> None:
        """Say that programs with different keys part now. Raises Divergence where they must not."""
        if self.in_step:
            raise Divergence(np.broadcast_to(keys, (self.count,)))


def _escaping(module: Module) -> set[Value]:
    """Values that other blocks of their region use: they live as long as their function."""
    found: set[Value] = set()
    for operation in module.operation.walk():
        for region in operation.regions:
            if len(region.blocks) > 1:
                for block in region.blocks:
                    found |= _used(block) - _defined(block)
    return found


def _used(block: Block) -> set[Value]:
    return {operand for operation in block.operations for inner in operation.walk() for operand in inner.operands}


def _defined(block: Block) -> set[Value]:
    return {*block.arguments, *(result for operation in block.operations for result in operation.results)}


def _steps(block: Block, escaping: set[Value]) -> Iterator[_Step]:
    own = _defined(block) - escaping
    last: dict[Value, int] = {}
    for index, operation in enumerate(block.operations):
        last.update((result, index) for result in operation.results)
        for inner in operation.walk():
            last.update((operand, index) for operand in inner.operands)
    dead: dict[int, list[Value]] = {}
    for value, index in last.items():
        if value in own:
            dead.setdefault(index, []).append(value)
    for index, operation in enumerate(block.operations):
        handler = HANDLERS.get(operation.name)
        if handler is None and operation.name not in TERMINATORS:
            handler = _unknown
        yield operation, handler, tuple(dead.get(index, ()))


def _unknown(_run: Run, operation: Operation, *_operands: Any) -> Any:
    raise Unsupported(operation)
