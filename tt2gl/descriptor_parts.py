"""How the parts of a tensor descriptor from the host are called, where a kernel takes those in its place."""

from __future__ import annotations

from collections.abc import Collection, Iterator


def base(name: str) -> str:
    """The pointer that a descriptor starts from."""
    return f"{name}_base"


def sizes(name: str, rank: int) -> list[str]:
    """How far it reaches along each dimension."""
    return [f"{name}_size_{dim}" for dim in range(rank)]


def strides(name: str, rank: int) -> list[str]:
    """Its strides, of which the last is always one and no part."""
    return [f"{name}_stride_{dim}" for dim in range(rank - 1)]


def blocks(name: str, rank: int) -> list[str]:
    """The extents of its tiles, which are constants of the compilation."""
    return [f"{name}_block_{dim}" for dim in range(rank)]


def parts(name: str, rank: int) -> Iterator[str]:
    """All of them, in the order of a kernel's parameters."""
    yield base(name)
    yield from (*sizes(name, rank), *strides(name, rank), *blocks(name, rank))


def owner(part: str, descriptors: Collection[str]) -> str:
    """The descriptor whose base is called that; empty where none is."""
    return next((name for name in descriptors if base(name) == part), "")
