"""Which function runs which operation.

A handler takes the run, the operation and the operands' values, and returns the value of the one result, a tuple of
values where there are several, or None where there is none. Values are as `values` says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tt2gl.simulate.interpreter import Run

Handler = Callable[..., Any]

HANDLERS: dict[str, Handler] = {}

# Operations that end a block: their operands are what the block hands on.
TERMINATORS: set[str] = set()


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler for operations by name."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"two handlers for {name}")
            HANDLERS[name] = handler
        return handler

    return register


def ends_block(*names: str) -> None:
    """Declare operations that end a block."""
    TERMINATORS.update(names)


__all__ = ["HANDLERS", "TERMINATORS", "Handler", "Run", "ends_block", "handles"]
