"""Operations, blocks and regions: a module as Triton prints it, linked up (operands are the values themselves)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tt2gl.ir.attributes import Attribute
from tt2gl.ir.types import Type


class Location(NamedTuple):
    """A place in a source file; `line` 0 is unknown. `name` is the variable assigned there; columns as printed.

    `caller` is where the function that holds the place was called from, where Triton inlined it.
    """

    file: str = ""
    line: int = 0
    column: int = 0
    name: str = ""
    caller: Location | None = None


UNKNOWN = Location()


@dataclass(eq=False, slots=True)
class Value:
    """An SSA value: the result of an operation or the argument of a block. Compares by identity.

    `name` is as printed, without `%` and quotes; one of several results of an operation is "x#1".
    """

    name: str
    type: Type
    location: Location = UNKNOWN


@dataclass(eq=False, slots=True)
class Operation:
    """One operation; `attributes` holds its properties (`<{...}>`) and its discardable attributes together."""

    name: str
    operands: tuple[Value, ...] = ()
    results: tuple[Value, ...] = ()
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    regions: tuple[Region, ...] = ()
    successors: tuple[Block, ...] = ()
    location: Location = UNKNOWN

    def segments(self) -> tuple[tuple[Value, ...], ...]:
        """The operands by group, for operations with optional or variadic operands (`operandSegmentSizes`)."""
        sizes = self.attributes.get("operandSegmentSizes")
        if sizes is None:
            return tuple((operand,) for operand in self.operands)
        groups, start = [], 0
        for size in sizes:
            groups.append(self.operands[start : start + size])
            start += size
        return tuple(groups)

    def walk(self) -> Iterator[Operation]:
        """This operation and all within it, outer ones first."""
        yield self
        for region in self.regions:
            for block in region.blocks:
                for operation in block.operations:
                    yield from operation.walk()


@dataclass(eq=False, slots=True)
class Block:
    """A list of operations, the last of which ends it; `arguments` are its parameters."""

    arguments: tuple[Value, ...] = ()
    operations: list[Operation] = field(default_factory=list)
    label: str = ""


@dataclass(eq=False, slots=True)
class Region:
    """What an operation holds: blocks, the first of which is entered."""

    blocks: list[Block] = field(default_factory=list)

    @property
    def entry(self) -> Block:
        """The block that is entered first."""
        return self.blocks[0]


@dataclass(eq=False, slots=True)
class Module:
    """A whole module: its functions by name (the one that is `public` is the kernel) and its attributes."""

    operation: Operation
    functions: Mapping[str, Operation]

    @property
    def attributes(self) -> Mapping[str, Attribute]:
        """The module's own, such as `ttg.num-warps`."""
        return self.operation.attributes

    @property
    def kernel(self) -> Operation:
        """The kernel: the only function that is not private. Raises StopIteration where there is none."""
        return next(f for f in self.functions.values() if f.attributes.get("sym_visibility") != "private")
