"""Loads ahead that Triton does below the reads of an iteration's own tiles: on gfx942, where rings have several slots.

a = a_buf.index(slot).load(a_layout)        # the tile of this iteration
a_next = gl.load(a_ptrs)                    # and below it, not above, that of one ahead
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.ir.operations import Operation, Value

LOADS = ("load", "buffer_load")
# What a tile goes through between its load and its store.
ON_THE_WAY = ("in_thread_transpose", "convert_layout")


def late_loads(kernel: Operation, made: Mapping[int, Operation]) -> frozenset[int]:
    """The loads, by identity, that stand below the first read of the ring to which their loop stores what they load.

    `made`: the operation that makes each value, by identity.
    """
    return frozenset(each for loop in kernel.walk() if loop.name == "scf.for" for each in _late_in(loop, made))


def _late_in(loop: Operation, made: Mapping[int, Operation]) -> Iterator[int]:
    body = loop.regions[0].entry
    # A loop has its bounds and its step before what its variables start from.
    carried = {id(variable): start for variable, start in zip(body.arguments[1:], loop.operands[3:], strict=True)}
    places = {id(each): place for place, each in enumerate(body.operations)}
    read: dict[int, int] = {}
    for each in body.operations:
        if each.name == "ttg.local_load":
            read.setdefault(id(_memory(each.operands[0], made, carried)), places[id(each)])
        elif each.name == "ttg.local_store" and (load := loaded(each.operands[0], made)) is not None:
            first = read.get(id(_memory(each.operands[1], made, carried)))
            if first is not None and first < places.get(id(load), -1):
                yield id(load)


def _memory(slot: Value, made: Mapping[int, Operation], carried: Mapping[int, Value]) -> Value:
    """The shared memory that a slot is part of, which a loop may carry."""
    while True:
        view = made.get(id(slot))
        if view is not None and view.name.startswith("ttg.memdesc_"):
            slot = view.operands[0]
        elif id(slot) in carried:
            slot = carried[id(slot)]
        else:
            return slot


def loaded(tile: Value, made: Mapping[int, Operation]) -> Operation | None:
    """The load that a stored tile comes from; None for other tiles."""
    load = made.get(id(tile))
    while load is not None and load.name.rpartition(".")[2] in ON_THE_WAY:
        load = made.get(id(load.operands[0]))
    return load if load is not None and load.name.rpartition(".")[2] in LOADS else None
