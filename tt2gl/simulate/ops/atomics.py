"""Atomic operations on global memory.

Within an operation, accesses to one place follow one another in row-major order, and programs in the grid's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tt2gl.ir.operations import Location, Operation
from tt2gl.ir.types import Type, element_type
from tt2gl.simulate.findings import Unsupported
from tt2gl.simulate.interpreter import Run
from tt2gl.simulate.ops.control import EndlessLoop
from tt2gl.simulate.ops.global_memory import together
from tt2gl.simulate.registry import handles
from tt2gl.simulate.values import Array, is_float

# By the number of `atomic_rmw_op`, for integers; the unsigned ones see their operands so.
_INTEGER: dict[int, np.ufunc] = {
    1: np.bitwise_and,
    2: np.bitwise_or,
    3: np.bitwise_xor,
    4: np.add,
    6: np.maximum,
    7: np.minimum,
    8: np.maximum,
    9: np.minimum,
}
_UNSIGNED = (8, 9)
_ADD = 4
# By number too, as `Arithmetic.binary` calls them; a number beats NaN.
_FLOAT = {4: "add", 5: "add", 6: "maxnum", 7: "minnum"}
_EXCHANGE = 10

# Of many accesses to one place, as to a lock, few find what they want: so many are looked for before all take turns.
_SWAPS_SOUGHT = 4

# What a place becomes, of what it held and an operand.
Step = Callable[[Array, Array], Array]


@handles("tt.atomic_rmw")
def _atomic_rmw(run: Run, operation: Operation, address: Array, value: Array, *mask: Array) -> Array:
    number = int(operation.attributes["atomic_rmw_op"])
    if number != _EXCHANGE and number not in (_FLOAT if is_float(operation.results[0].type) else _INTEGER):
        raise Unsupported(operation, f"it has no kind {number}")
    kept = operation.results[0] in run.used
    change = Change(element_type(operation.operands[1].type), number, operation.location)
    return modify(run, change, for_each_program(run, address), value, mask[0] if mask else None, kept=kept)


def for_each_program(run: Run, address: Array) -> Array:
    """Addresses with a row for every program: those that have the same still come one after another."""
    return np.broadcast_to(address, (run.count, *address.shape[1:]))


@dataclass(frozen=True)
class Change:
    """What an atomic operation does to elements of type `kind`: `number` as `atomic_rmw_op` has it."""

    kind: Type
    number: int
    where: Location


def modify(run: Run, how: Change, address: Array, value: Array, mask: Array | None, *, kept: bool) -> Array:
    """Read, change and write memory: what was there, or anything if it is not `kept`."""
    kind, number = how.kind, how.number
    address = together(address, value, mask)
    operands = np.broadcast_to(value, address.shape).reshape(-1)
    before = np.broadcast_to(np.asarray(run.arithmetic.poison(kind), run.arithmetic.dtype(kind)), address.shape)
    before = before.copy() if kept else before

    def change(elements: Array, index: Array, positions: Array) -> None:
        given = operands[positions]
        if kept:
            before.reshape(-1)[positions] = fetch(run, number, kind, elements, index, given)
        else:
            _accumulate(run, number, kind, elements, index, given)

    run.memory.update(address, mask, kind, how.where, change)
    return before


def _step(run: Run, number: int, kind: Type) -> Step:
    if number == _EXCHANGE:
        return lambda _old, new: new
    if is_float(kind):
        return lambda old, new: run.arithmetic.binary(_FLOAT[number], old, new, kind)
    ufunc = _INTEGER[number]
    if number in _UNSIGNED:
        return lambda old, new: ufunc(_unsigned(old), _unsigned(new)).view(old.dtype)
    return ufunc


def _unsigned(values: Array) -> Array:
    return values.view(f"u{values.dtype.itemsize}")


def _accumulate(run: Run, number: int, kind: Type, elements: Array, index: Array, given: Array) -> None:
    """Change memory where nobody asks what was there."""
    if number == _EXCHANGE:
        elements[index] = given
    elif not is_float(kind):
        there = _unsigned(elements) if number in _UNSIGNED else elements
        _INTEGER[number].at(there, index, _unsigned(given) if number in _UNSIGNED else given)
    elif _FLOAT[number] == "add" and not _distinct(index):
        run.arithmetic.accumulate(elements, index, given)
    else:
        _in_turns(elements, index, given, _step(run, number, kind))


def fetch(run: Run, number: int, kind: Type, elements: Array, index: Array, given: Array) -> Array:
    """Change memory: what each access found."""
    if number == _ADD and not is_float(kind) and not _distinct(index):
        return _running_sums(elements, index, given)
    return _in_turns(elements, index, given, _step(run, number, kind))


def _running_sums(elements: Array, index: Array, given: Array) -> Array:
    order = np.argsort(index, kind="stable")
    places, addends = index[order], given[order]
    sums = np.cumsum(addends, dtype=addends.dtype) - addends
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    lengths = np.diff(np.r_[starts, len(places)])
    found = np.empty_like(given)
    found[order] = elements[places] + sums - np.repeat(sums[starts], lengths)
    np.add.at(elements, index, given)
    return found


def _in_turns(elements: Array, index: Array, given: Array, step: Step) -> Array:
    """Every place once, then those that come again, and so on: what each access found."""
    found = np.empty(given.shape, elements.dtype)
    for turn in _turns(index):
        places = index[turn]
        found[turn] = old = elements[places]
        elements[places] = step(old, given[turn])
    return found


def _turns(index: Array) -> list[Any]:
    """Positions in `index`, parted so that none has a place twice and the order for each place is kept."""
    if _distinct(index):
        return [slice(None)]
    order = np.argsort(index, kind="stable")
    places = index[order]
    starts = np.flatnonzero(np.r_[True, places[1:] != places[:-1]])
    ranks = np.arange(len(places)) - np.repeat(starts, np.diff(np.r_[starts, len(places)]))
    by_rank = np.argsort(ranks, kind="stable")
    return np.split(order[by_rank], np.cumsum(np.bincount(ranks))[:-1])


def _distinct(index: Array) -> bool:
    """Whether no place occurs twice."""
    if len(index) < 2 or bool((index[1:] > index[:-1]).all()):
        return True
    low = int(index.min())
    if int(index.max()) - low < 8 * len(index):
        return bool(np.bincount(index - low).max() == 1)
    places = np.sort(index)
    return bool((places[1:] != places[:-1]).all())


@handles("tt.atomic_cas")
def _atomic_cas(run: Run, operation: Operation, address: Array, expected: Array, value: Array) -> Array:
    kind = element_type(operation.results[0].type)
    address = for_each_program(run, address)
    wanted, given = (np.broadcast_to(part, address.shape).reshape(-1) for part in (expected, value))
    before = np.full(address.shape, run.arithmetic.poison(kind), run.arithmetic.dtype(kind))

    def change(elements: Array, index: Array, positions: Array) -> None:
        before.reshape(-1)[positions] = _compare_and_swap(elements, index, wanted[positions], given[positions])

    run.memory.update(address, None, kind, operation.location, change)
    return before


def _compare_and_swap(elements: Array, index: Array, wanted: Array, given: Array) -> Array:
    """Change memory where it holds what is wanted, one access after another: what each found."""
    found = np.empty_like(given)
    rest = np.arange(len(index))
    for _ in range(0 if _distinct(index) else _SWAPS_SOUGHT):
        places = index[rest]
        found[rest] = old = elements[places]
        meets = np.flatnonzero(_bits(old) == _bits(wanted[rest]))
        if not meets.size:
            return found
        changed, first = np.unique(places[meets], return_index=True)
        swaps = meets[first]
        elements[changed] = given[rest[swaps]]
        # What comes before a place's first swap has found what was there; what comes after looks again.
        slot = np.minimum(np.searchsorted(changed, places), len(changed) - 1)
        rest = rest[(changed[slot] == places) & (np.arange(len(rest)) > swaps[slot])]
    for turn in _turns(index[rest]):
        who = rest[turn]
        found[who] = old = elements[index[who]]
        elements[index[who]] = np.where(_bits(old) == _bits(wanted[who]), given[who], old)
    return found


def _bits(values: Array) -> Array:
    """The processor compares bits, so that a NaN equals itself and zeros have signs."""
    return values.view(f"i{values.dtype.itemsize}")


@handles("tt.atomic_load")
def _atomic_load(run: Run, operation: Operation, address: Array, *mask: Array) -> Array:
    only = mask[0] if mask else None
    return run.memory.load(together(address, only), only, operation.results[0].type, operation.location)


@handles("tt.atomic_store")
def _atomic_store(run: Run, operation: Operation, address: Array, value: Array, *mask: Array) -> None:
    only = mask[0] if mask else None
    kind = operation.operands[1].type
    run.memory.store(together(address, value, only), value, only, kind, operation.location)


@handles("tt.atomic_poll")
def _atomic_poll(run: Run, operation: Operation, address: Array, expected: Array, *timeout: Array) -> Array:
    kind = operation.operands[1].type
    met: Array = run.memory.load(together(address, expected), None, kind, operation.location) == expected
    if not timeout and not met.all():
        # What it waits for another program may write, once programs run one by one.
        raise EndlessLoop("a poll waits for a value that nobody writes", operation.location)
    return met
