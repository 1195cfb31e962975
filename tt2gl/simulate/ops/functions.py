"""Functions and the branches between their blocks (`tt.call`, `cf`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tt2gl.ir.operations import Block, Operation, Region
from tt2gl.ir.types import shape_of
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Frame, Run
from tt2gl.simulate.ops.control import Joined, packed
from tt2gl.simulate.registry import ends_block, handles
from tt2gl.simulate.values import Rows, take_rows, uniform

ends_block("tt.return", "cf.br", "cf.cond_br")


@handles("tt.call")
def _call(run: Run, operation: Operation, *arguments: Any) -> Any:
    function = run.module.functions.get(operation.attributes["callee"].name)
    if function is None or not function.regions or not function.regions[0].blocks:
        raise Unsupported(operation, f"there is no function {operation.attributes['callee'].name}")
    results = call(run, function, arguments)
    return packed(operation, results) if operation.results else None


def call(run: Run, function: Operation, arguments: Sequence[Any]) -> Sequence[Any]:
    """Run a function for all programs: what it returns."""
    with run.activation():
        return _body(run, function.regions[0], arguments)


def _body(run: Run, region: Region, arguments: Sequence[Any]) -> Sequence[Any]:
    """Run the blocks of a function from its entry until every program has returned.

    Groups of programs wait at blocks; the earliest block in the text runs next, so that groups meet where paths do.
    """
    order = {block: position for position, block in enumerate(region.blocks)}
    end, operands = run.block(region.entry, arguments)
    # As long as all programs go the same way, no group is made.
    while True:
        if end.name == "tt.return":
            return operands
        way = _way(end, operands)
        if way is None:
            break
        end, operands = run.block(*way)
    return _groups(run, order, end, operands)


def _way(end: Operation, operands: list[Any]) -> tuple[Block, list[Any]] | None:
    """Where all programs go from here, with what arguments; None where they part."""
    if end.name == "cf.br":
        return end.successors[0], operands
    taken = uniform(operands[0])
    return None if taken is None else _successor(end, operands, bool(taken))


def _successor(end: Operation, operands: list[Any], taken: bool) -> tuple[Block, list[Any]]:
    _, true_arguments, _ = end.segments()
    split = 1 + len(true_arguments)
    return (end.successors[0], operands[1:split]) if taken else (end.successors[1], operands[split:])


def _groups(run: Run, order: dict[Block, int], end: Operation, operands: list[Any]) -> Sequence[Any]:
    everyone = np.arange(run.count)
    waiting: list[tuple[Block, Rows, list[Any]]] = []
    joined: Joined | None = None

    def leave(end: Operation, rows: Rows, operands: list[Any]) -> None:
        nonlocal joined
        if end.name == "tt.return":
            if joined is None:
                joined = Joined([operand.type for operand in end.operands], run.count)
            joined.put(rows, operands)
        elif end.name == "cf.br":
            waiting.append((end.successors[0], rows, operands))
        else:
            condition = np.broadcast_to(operands[0], (len(rows),))
            for taken in (True, False):
                chosen = np.flatnonzero(condition == taken)
                if len(chosen):
                    block, arguments = _successor(end, operands, taken)
                    waiting.append((block, rows[chosen], [take_rows(value, chosen) for value in arguments]))

    run.diverge(operands[0])
    leave(end, everyone, operands)
    while waiting:
        block = min((entry[0] for entry in waiting), key=order.__getitem__)
        here = [entry for entry in waiting if entry[0] is block]
        waiting = [entry for entry in waiting if entry[0] is not block]
        rows, arguments = _met(here)
        outer = run.frame
        with run.subset(rows):
            end, operands = run.block(block, arguments)
            _keep(run, outer, block, rows, len(everyone))
        leave(end, rows, operands)
    return joined.values if joined is not None else ()


def _met(here: Sequence[tuple[Block, Rows, list[Any]]]) -> tuple[Rows, list[Any]]:
    """Groups that wait at one block, as one group: its rows, and the block's arguments for them."""
    if len(here) == 1:
        return here[0][1], here[0][2]
    rows = np.concatenate([entry[1] for entry in here])
    order = np.argsort(rows, kind="stable")
    arguments: list[Any] = []
    for parts in zip(*(entry[2] for entry in here), strict=True):
        if isinstance(parts[0], np.ndarray):
            full = [
                np.broadcast_to(part, (len(entry[1]), *part.shape[1:])) for part, entry in zip(parts, here, strict=True)
            ]
            arguments.append(np.concatenate(full)[order])
        else:
            arguments.append(parts[0])
    return rows[order], arguments


def _keep(run: Run, frame: Frame, block: Block, rows: Rows, count: int) -> None:
    """Put what other blocks need of this one into `frame`, which outlives the group that ran it."""
    own = [*block.arguments, *(result for operation in block.operations for result in operation.results)]
    for value in own:
        if value not in run.escaping:
            continue
        held = run.frame.values[value]
        if not isinstance(held, np.ndarray):
            frame.values[value] = held
            continue
        full = frame.values.get(value)
        # An array of one row is what all programs had when they still went together.
        kept = np.zeros((count, *shape_of(value.type)), held.dtype)
        if full is not None:
            kept[:] = full
        kept[rows] = held
        frame.values[value] = kept
