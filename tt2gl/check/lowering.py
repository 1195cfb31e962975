"""What a kernel compiles to, as far as `check` holds it: plain values, written to the lock and to the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Access:
    """The global loads, or stores, that one place of the source became: instructions, and the bits of the widest.

    `copies`: they are asynchronous copies between global and shared memory, as a pipeline makes of loads. `warp`: the
    bytes of a warp's elements along each dimension of the tile, and `fastest` the dimension along which its layout puts
    threads first; empty where its layout is not a blocked one.
    """

    count: int
    bits: int
    copies: bool = False
    warp: tuple[int, ...] = ()
    fastest: int = 0

    def __str__(self) -> str:
        tile = (f"[{size}]" if place == self.fastest else str(size) for place, size in enumerate(self.warp))
        over = f" over {'x'.join(tile)}" if self.warp else ""
        return f"{self.count}x{self.bits}{over}{' async' if self.copies else ''}"


@dataclass(frozen=True)
class Lowering:
    """One kernel compiled for one target under one launch; sizes in bytes.

    `loads` and `stores` are by place, in the order of the source. `mma` counts matrix instructions by name, and
    `step_products` those of one step of the innermost loops; `products` are the dots of the source, and
    `scalar_products` those that no matrix instruction does. `rings` has the slots of rings of shared memory, by tile.
    Where a kernel does not compile, only that is known.
    """

    compiles: bool
    loads: tuple[Access, ...] = ()
    stores: tuple[Access, ...] = ()
    mma: Mapping[str, int] = field(default_factory=dict)
    rings: Mapping[str, int] = field(default_factory=dict)
    products: int = 0
    step_products: int = 0
    scalar_products: int = 0
    conversions: int = 0
    shared: int = 0
    registers: int = 0
    spills: int = 0


NUMBERS = ("products", "step_products", "scalar_products", "conversions", "shared", "registers", "spills")
"""The fields of a lowering that are one number."""


Spot = tuple[str, int]
"""A file of the project, and a line of it."""


@dataclass(frozen=True)
class Spots:
    """Where in the source a lowering comes from: of `loads` and `stores` each, of conversions and products all.

    `faults` is where a kernel does not compile.
    """

    loads: tuple[Spot, ...] = ()
    stores: tuple[Spot, ...] = ()
    conversions: tuple[Spot, ...] = ()
    products: tuple[Spot, ...] = ()
    faults: tuple[Spot, ...] = ()


@dataclass(frozen=True)
class Measured:
    """One kernel of a file as it is now. `launch` says what it is called with, and `index` that it is the n-th so.

    `error` is why it does not compile. `spots` is None where the lowering is that of an equal kernel, compiled before.
    """

    file: str
    kernel: str
    line: int
    target: str
    index: int
    launch: str
    lowering: Lowering
    spots: Spots | None = None
    error: str = ""


# --------------------------------------------------------------------------------------------------- as JSON


def lowering_to_json(lowering: Lowering) -> dict[str, Any]:
    """A lowering as the cache and the JSON document have it; `lowering_from_json` reads it."""
    if not lowering.compiles:
        return {"compiles": False}
    return {
        "compiles": True,
        "loads": [_access_to_json(access) for access in lowering.loads],
        "stores": [_access_to_json(access) for access in lowering.stores],
        "mma": dict(lowering.mma),
        "rings": dict(lowering.rings),
        **{name: getattr(lowering, name) for name in NUMBERS},
    }


def lowering_from_json(value: Mapping[str, Any]) -> Lowering:
    """The inverse of `lowering_to_json`. Raises KeyError, TypeError or ValueError where it is of another shape."""
    if not value["compiles"]:
        return Lowering(False)
    rest = {name: int(value[name]) for name in NUMBERS}
    accesses = (_accesses_from_json(value[name]) for name in ("loads", "stores"))
    loads, stores = accesses
    return Lowering(True, loads, stores, dict(value["mma"]), dict(value["rings"]), **rest)


def _access_to_json(access: Access) -> list[Any]:
    return [access.count, access.bits, access.copies, list(access.warp), access.fastest]


def _accesses_from_json(values: Sequence[Sequence[Any]]) -> tuple[Access, ...]:
    return tuple(
        Access(int(count), int(bits), bool(copies), tuple(warp), int(fastest))
        for count, bits, copies, warp, fastest in values
    )


def measured_to_json(measured: Measured) -> dict[str, Any]:
    """A kernel as the cache has it, without its file and target, by which the cache finds it."""
    spots = measured.spots
    return {
        "kernel": measured.kernel,
        "line": measured.line,
        "index": measured.index,
        "launch": measured.launch,
        "lowering": lowering_to_json(measured.lowering),
        "spots": None if spots is None else {name: list(getattr(spots, name)) for name in _SPOTS},
        "error": measured.error,
    }


def measured_from_json(value: Mapping[str, Any], file: str, target: str) -> Measured:
    """The inverse of `measured_to_json`. Raises KeyError, TypeError or ValueError where it is of another shape."""
    spots = value["spots"]
    places = (
        None
        if spots is None
        else Spots(**{name: tuple((str(path), int(line)) for path, line in spots[name]) for name in _SPOTS})
    )
    return Measured(
        file,
        value["kernel"],
        value["line"],
        target,
        value["index"],
        value["launch"],
        lowering_from_json(value["lowering"]),
        places,
        value["error"],
    )


_SPOTS = ("loads", "stores", "conversions", "products", "faults")
