"""What each block pointer variable becomes: which dimensions it holds itself, and what is kept beside it.

A variable becomes a tensor of pointers with every dimension in it that is settled where the pointer is made. A
dimension is added at each use instead where `tl.advance` moves it, or where a loop lies between: a tensor of pointers
would take registers all through that loop, and scalars make it again as well. With `at_use` all dimensions are added
there, but of a variable that may point to blocks of other shapes. What a use needs besides (strides, bounds, indices)
is written there as the author wrote it, unless something assigned in between may have changed it: then its value is
kept in a variable beside the pointer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tt2gl.lowering.expressions import Expression
from tt2gl.lowering.flow import Reaching
from tt2gl.lowering.outline import Define, Event, Move, Node, Nothing, Pass, steps
from tt2gl.lowering.pointer_calls import UNKNOWN_CHECK, Access, Dimension, Make, Refused

Role = Literal["offset", "stride", "bound", "index"]


@dataclass(frozen=True)
class Shape:
    """How the variables of one group are lowered.

    `moved`: dimensions that are advanced. `late`: those added at each use. `beside`: what is kept in variables.
    """

    moved: frozenset[int]
    late: frozenset[int]
    beside: frozenset[tuple[Role, int]]

    def has(self, role: Role, dimension: int) -> bool:
        """Whether that is kept in a variable beside the pointer."""
        return (role, dimension) in self.beside


def shapes(
    nodes: Sequence[Node], reaching: Reaching, given: Iterable[str], *, at_use: bool = False
) -> dict[str, Shape]:
    """The shape of every block pointer variable; those that `tl.advance` links share one. Raises Refused.

    `given`: the parameters that are block pointers.
    """
    groups = _Groups()
    for name in given:
        groups.find(name)
    events = [event for step in steps(nodes) for event in step.events]
    for event in events:
        if isinstance(event, Define):
            groups.find(event.name)
        elif isinstance(event, Move):
            groups.join(event.name, event.advance.pointer.value)
    return {name: _shape(groups.of(events, name), reaching, at_use) for name in groups.parents}


def _shape(events: Sequence[Event], reaching: Reaching, at_use: bool) -> Shape:
    moves = [event for event in events if isinstance(event, Move) and event in reaching]
    accesses = [event for event in events if isinstance(event, (Access, Pass)) and event in reaching]
    uses: list[Move | Access | Pass] = [*moves, *accesses]
    for event in uses:
        ranks = {len(make.dimensions) for make in reaching[event].origins}
        node = event.advance.node if isinstance(event, Move) else event.node
        if len(ranks) > 1:
            raise Refused(node, "its definitions differ in rank")
        if isinstance(event, Move) and ranks != {len(event.advance.offsets)}:
            raise Refused(node, "it is advanced by as many offsets as it has not dimensions")
        if isinstance(event, Access) and event.every and ranks != {len(event.checked)}:
            raise Refused(node, UNKNOWN_CHECK)
    moved = frozenset(
        dimension for move in moves for dimension, offset in enumerate(move.advance.offsets) if offset.literal != 0
    )
    highest = max((len(make.dimensions) for event in reaching.values() for make in event.origins), default=0)
    # What is given to a function is given in parts, as scalars.
    # What may be None is looked at where it is used, as that is under a flag.
    parted = any(
        isinstance(access, Pass) or any(make.optional for make in reaching[access].origins) for access in accesses
    )
    crossed = at_use or any(reaching[access].crossed for access in accesses)
    # Of pointers to blocks of other shapes, each is made where its shape is known.
    late = parted or crossed and all(_one_block(reaching[access].origins) for access in accesses)
    added = frozenset(range(highest)) if late else moved
    beside: set[tuple[Role, int]] = {("offset", dimension) for dimension in moved}
    for access in accesses:
        reach = reaching[access]
        rank = len(next(iter(reach.origins)).dimensions)
        for dimension in range(rank):
            parts = [make.dimensions[dimension] for make in reach.origins]
            checked = isinstance(access, Pass) or dimension in access.checked
            checked = checked and not all(always_inside(part) for part in parts)
            beside |= {
                (role, dimension) for role in _unsettled(access, parts, reach.stale, dimension in added, checked)
            }
    return Shape(moved, added, frozenset(beside))


def _one_block(origins: Iterable[Make]) -> bool:
    """Whether pointers are all to blocks of one shape."""
    return len({tuple(dimension.block.text for dimension in make.dimensions) for make in origins}) <= 1


def always_inside(dimension: Dimension) -> bool:
    """Whether a block is its dimension: from 0, and as long as the bound."""
    return dimension.offset.literal == 0 and dimension.bound.text == dimension.block.text


def _unsettled(
    access: Access | Pass, parts: Sequence[Dimension], stale: frozenset[str], late: bool, checked: bool
) -> Iterable[Role]:
    """What a use of a dimension cannot write as the author wrote it in the pointer's definition."""

    def settled(of: Callable[[Dimension], Expression]) -> bool:
        expressions = [of(part) for part in parts]
        same = len({each.text for each in expressions}) == 1
        return same and all(each.pure and not each.names & stale for each in expressions)

    if checked and not settled(lambda part: part.bound):
        yield "bound"
    if not late:
        if checked and not (settled(lambda part: part.offset) and settled(lambda part: part.block)):
            yield "index"
        return
    if not settled(lambda part: part.block):
        raise Refused(access.node, "its definitions differ in block shape")
    if not settled(lambda part: part.offset):
        yield "offset"
    if not settled(lambda part: part.stride):
        yield "stride"


class _Groups:
    """Variables that `tl.advance` links."""

    def __init__(self) -> None:
        self.parents: dict[str, str] = {}

    def find(self, name: str) -> str:
        parent = self.parents.setdefault(name, name)
        return name if parent == name else self.find(parent)

    def join(self, one: str, other: str) -> None:
        self.parents[self.find(one)] = self.find(other)

    def of(self, events: Sequence[Event], name: str) -> list[Event]:
        """The events of a name's group."""
        root = self.find(name)
        return [event for event in events if (own := _variable(event)) is not None and self.find(own) == root]


def _variable(event: Event) -> str | None:
    if isinstance(event, Access):
        return None if isinstance(event.pointer, Make) else event.pointer.value
    return event.name or None if isinstance(event, (Define, Nothing, Move, Pass)) else None
