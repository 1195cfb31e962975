"""Loads ahead for which Triton loads in the same iteration what says where they read: AMD has no stage for that.

row = gl.load(rows_ptr + ahead)             # with two stages; with more, an iteration before
x_next = gl.load(x_ptr + row * stride)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.analysis.late_loads import LOADS
from tt2gl.ir.operations import Operation


def located_loads(kernel: Operation, made: Mapping[int, Operation]) -> frozenset[int]:
    """The loads of loops, by identity, that read where a load of the same iteration says.

    `made`: the operation that makes each value, by identity.
    """
    return frozenset(each for loop in kernel.walk() if loop.name == "scf.for" for each in _located_in(loop, made))


def _located_in(loop: Operation, made: Mapping[int, Operation]) -> Iterator[int]:
    body = loop.regions[0].entry.operations
    own = {id(each) for each in body}
    for load in filter(_is_load, body):
        seen = {id(load)}
        waiting = [load]
        while waiting:
            before = [made[id(value)] for value in waiting.pop().operands if id(value) in made]
            waiting += [each for each in before if id(each) in own - seen]
            seen |= {id(each) for each in before}
        if any(id(each) in seen and each is not load for each in body if _is_load(each)):
            yield id(load)


def _is_load(operation: Operation) -> bool:
    return operation.name.rpartition(".")[2] in LOADS
