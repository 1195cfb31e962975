"""What a simulation can say besides its results: faults of the kernel, and why it could not go on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tt2gl.ir.operations import UNKNOWN, Location, Operation

Kind = Literal[
    "out-of-bounds",  # an access outside the allocation that its pointer came from
    "misaligned",  # an address that is no multiple of the element's size
    "race",  # two accesses to one place, one of them a write, that nothing orders
    "uninitialised",  # shared or tensor memory read before anything was written there
    "missing-wait",  # a result of asynchronous work used before it was waited for
    "missing-fence",  # written through one proxy, read through the other, no fence between
    "deadlock",  # a wait that nothing can end
    "barrier",  # a barrier used against its rules: not initialised, too many arrivals, bytes that do not add up
    "lifetime",  # memory used after it was given back
    "leak",  # asynchronous work, or writes, that the kernel's end leaves unfinished
    "assert",  # an assertion of the kernel's own
]


@dataclass(frozen=True)
class Finding:
    """A fault: `location` is the access that shows it, `other` the one it conflicts with, `buffer` what both touch."""

    kind: Kind
    message: str
    location: Location = UNKNOWN
    other: Location | None = None
    buffer: str = ""


class SimulationError(Exception):
    """The simulation cannot go on; the message says why, `location` where."""

    def __init__(self, message: str, location: Location = UNKNOWN) -> None:
        super().__init__(message)
        self.location = location


class Unsupported(SimulationError):
    """An operation, or a use of one, that the simulator does not know."""

    def __init__(self, operation: Operation, why: str = "the simulator does not know it") -> None:
        super().__init__(f"{operation.name}: {why}", operation.location)


class TooLarge(SimulationError):
    """The launch needs more memory than the limit."""
