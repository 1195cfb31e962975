"""Names that nobody has yet, and several of them in words."""

from __future__ import annotations

from collections.abc import Container, Sequence


def unused(name: str, taken: Container[str]) -> str:
    """The name, numbered where it is taken."""
    number, chosen = 2, name
    while chosen in taken:
        chosen, number = f"{name}_{number}", number + 1
    return chosen


def claimed(name: str, taken: set[str]) -> str:
    """The name, numbered where it is taken; it is, from now on."""
    chosen = unused(name, taken)
    taken.add(chosen)
    return chosen


def listed(names: Sequence[str]) -> str:
    """`x, w and y`."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
