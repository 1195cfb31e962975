"""Functions that Triton leaves as calls, where what they do is to be read at each call.

Triton's inliner leaves a function that returns early where it is called in a loop: a loop's body is one block.
"""

from __future__ import annotations

from collections.abc import Iterable

from tt2gl.ir.operations import Block, Location, Module, Operation, Region, Value


def with_called(module: Module) -> Module:
    """The module with a copy of what a call calls as the call's own region, its places as if it were inlined."""
    while calls := [each for each in module.kernel.walk() if each.name == "tt.call" and not each.regions]:
        for call in calls:
            call.regions = _Copier(call.location).regions(module.functions[call.attributes["callee"].name].regions)
    return module


class _Copier:
    """Copies what a call at a place calls. Types and attributes never change, and both have the same."""

    def __init__(self, place: Location) -> None:
        self._place = place
        self._places: dict[Location, Location] = {}
        self._values: dict[int, Value] = {}
        self._blocks: dict[int, Block] = {}

    def regions(self, regions: Iterable[Region]) -> tuple[Region, ...]:
        """Regions with all that they hold."""
        return tuple(Region([self._filled(block) for block in region.blocks]) for region in regions)

    def _filled(self, block: Block) -> Block:
        made = self._block(block)
        made.arguments = self._all(block.arguments)
        made.operations = [self._operation(each) for each in block.operations]
        return made

    def _operation(self, operation: Operation) -> Operation:
        return Operation(
            operation.name,
            self._all(operation.operands),
            self._all(operation.results),
            dict(operation.attributes),
            self.regions(operation.regions),
            tuple(map(self._block, operation.successors)),
            self._called(operation.location),
        )

    def _block(self, block: Block) -> Block:
        """The copy of a block, which may be jumped to before it is filled."""
        return self._blocks.setdefault(id(block), Block(label=block.label))

    def _all(self, values: Iterable[Value]) -> tuple[Value, ...]:
        return tuple(map(self._value, values))

    def _value(self, value: Value) -> Value:
        """The copy of a value, which may be used in the text before it is made."""
        made = self._values.get(id(value))
        if made is None:
            made = self._values[id(value)] = Value(value.name, value.type, value.location)
        return made

    def _called(self, place: Location) -> Location:
        made = self._places.get(place)
        if made is None:
            made = self._places[place] = _called_from(place, self._place)
        return made


def _called_from(place: Location, call: Location) -> Location:
    """A place in a function that is called at another."""
    return place._replace(caller=call if place.caller is None else _called_from(place.caller, call))
