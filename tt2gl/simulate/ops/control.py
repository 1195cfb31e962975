"""Structured control flow (`scf`): branches and loops, for programs that may go different ways.

While all agree, a branch costs nothing. Where they part, each group runs alone and the results are put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tt2gl.ir.operations import Operation, Region
from tt2gl.ir.types import Type, shape_of
from tt2gl.simulate.findings import SimulationError, Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Array, Rows, put_rows, take_rows, uniform

ends_block("scf.yield", "scf.condition")

# As often as a loop that only waits for another program is worth going round.
_SPINS = 1000


class EndlessLoop(SimulationError):
    """A loop did not end in the iterations allowed: programs may be waiting for one another."""


def packed(operation: Operation, results: Sequence[Any]) -> Any:
    """Results as a handler returns them."""
    return results[0] if len(operation.results) == 1 else tuple(results)


class Joined:
    """Results of groups of programs, put together: one entry a result."""

    def __init__(self, types: Sequence[Type], count: int) -> None:
        self._types = types
        self._count = count
        self.values: list[Any] = [None] * len(types)

    def put(self, rows: Rows, results: Sequence[Any]) -> None:
        """Add the results of the programs at `rows`."""
        for index, (kind, result) in enumerate(zip(self._types, results, strict=True)):
            if isinstance(result, np.ndarray) and self.values[index] is None:
                self.values[index] = np.zeros((self._count, *shape_of(kind)), result.dtype)
            self.values[index] = put_rows(self.values[index], rows, result, self._count)


def _apart(run: Run, keys: Array, types: Sequence[Type], body: Callable[[Rows, Any], Sequence[Any]]) -> list[Any]:
    """Run `body(rows, key)` for the programs of each key, within their subset, and join the results."""
    run.diverge(keys)
    joined = Joined(types, run.count)
    for key in np.unique(keys):
        rows = np.flatnonzero(keys == key)
        with run.subset(rows):
            joined.put(rows, body(rows, key))
    return joined.values


# ----------------------------------------------------------------------------------------------------- branches


@handles("scf.if")
def _if(run: Run, operation: Operation, condition: Array) -> Any:
    def branch(_rows: Rows | None, taken: bool) -> Sequence[Any]:
        region = operation.regions[0 if taken else 1]
        return run.region(region, ()) if region.blocks else ()

    taken = uniform(condition)
    if taken is not None:
        return packed(operation, branch(None, bool(taken)))
    return packed(operation, _apart(run, condition, [result.type for result in operation.results], branch))


@handles("scf.execute_region")
def _execute_region(run: Run, operation: Operation) -> Any:
    return packed(operation, run.region(operation.regions[0], ()))


@handles("scf.index_switch")
def _index_switch(run: Run, operation: Operation, argument: Array) -> Any:
    cases = {
        int(case): region for case, region in zip(operation.attributes["cases"], operation.regions[1:], strict=True)
    }

    def branch(_rows: Rows | None, key: Any) -> Sequence[Any]:
        return run.region(cases.get(int(key), operation.regions[0]), ())

    key = uniform(argument)
    if key is not None:
        return packed(operation, branch(None, key))
    return packed(operation, _apart(run, argument, [result.type for result in operation.results], branch))


# -------------------------------------------------------------------------------------------------------- loops


@handles("scf.for")
def _for(run: Run, operation: Operation, lower: Array, upper: Array, step: Array, *carried: Any) -> Any:
    first, last, stride = (bound.astype(np.int64) for bound in (lower, upper, step))
    if operation.attributes.get("unsignedCmp"):
        mask = np.int64((1 << (8 * lower.dtype.itemsize)) - 1) if lower.dtype.itemsize < 8 else np.int64(-1)
        first, last = first & mask, last & mask
    if (stride <= 0).any():
        raise Unsupported(operation, "its step is not positive")
    trips = np.maximum(0, -((first - last) // stride))
    types = [result.type for result in operation.results]

    def loop(rows: Rows | None, count: Any) -> Sequence[Any]:
        values = list(carried) if rows is None else [take_rows(value, rows) for value in carried]
        start = lower if rows is None else take_rows(lower, rows)
        by = step if rows is None else take_rows(step, rows)
        body = operation.regions[0]
        for iteration in range(int(count)):
            values = run.region(body, (start + by * start.dtype.type(iteration), *values))
        return values

    count = uniform(trips)
    if count is not None:
        return packed(operation, loop(None, count))
    run.diverge(trips)
    return packed(operation, _shrinking(run, operation, lower, step, trips, carried, types))


def _shrinking(
    run: Run, operation: Operation, lower: Array, step: Array, trips: Array, carried: Sequence[Any], types: list[Type]
) -> list[Any]:
    """A loop that some programs leave before others: each stretch runs those that are still in it."""
    joined = Joined(types, run.count)
    trips = np.broadcast_to(trips, (run.count,))
    rows = np.arange(run.count)
    values, done = list(carried), 0
    for ends in np.unique(trips):
        with run.subset(rows):
            start, by = take_rows(lower, rows), take_rows(step, rows)
            for iteration in range(done, int(ends)):
                values = run.region(operation.regions[0], (start + by * start.dtype.type(iteration), *values))
        done = int(ends)
        leave = trips[rows] == ends
        joined.put(rows[leave], [take_rows(value, np.flatnonzero(leave)) for value in values])
        values = [take_rows(value, np.flatnonzero(~leave)) for value in values]
        rows = rows[~leave]
    return joined.values


@handles("scf.while")
def _while(run: Run, operation: Operation, *carried: Any) -> Any:
    before, after = operation.regions
    types = [result.type for result in operation.results]
    joined = Joined(types, run.count)
    rows = np.arange(run.count)
    values: Sequence[Any] = carried
    most = min(run.most_iterations, _SPINS) if _spins(operation) else run.most_iterations
    for _ in range(most):
        parted = len(rows) < run.count
        stay, handed = _condition(run, before, rows, values, parted)
        if not stay.any():
            if not parted:
                return packed(operation, handed)
            joined.put(rows, handed)
            return packed(operation, joined.values)
        if not stay.all():
            run.diverge(stay)
            joined.put(rows[~stay], [take_rows(value, np.flatnonzero(~stay)) for value in handed])
            handed = [take_rows(value, np.flatnonzero(stay)) for value in handed]
            rows = rows[stay]
            parted = True
        values = _in_rows(run, rows, parted, after, handed)
    raise EndlessLoop(f"a loop did not end within {most} iterations", operation.location)


def _spins(operation: Operation) -> bool:
    """Whether a while loop does nothing but look at memory until that says something else."""
    before, after = operation.regions
    looks = any(each.name.startswith(("tt.atomic_", "tt.load")) for each in before.entry.operations)
    return looks and len(after.entry.operations) == 1


def _in_rows(run: Run, rows: Rows, parted: bool, region: Region, arguments: Sequence[Any]) -> list[Any]:
    if not parted:
        return run.region(region, arguments)
    with run.subset(rows):
        return run.region(region, arguments)


def _condition(
    run: Run, before: Region, rows: Rows, values: Sequence[Any], parted: bool
) -> tuple[Array, Sequence[Any]]:
    """Which programs stay in a while loop, and what its first region hands on."""
    condition, *handed = _in_rows(run, rows, parted, before, values)
    return np.broadcast_to(condition, (len(rows),)), handed
