"""A lowering held against the one in the lock: what got worse, and what got better."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.check.lowering import Access, Lowering, Measured, Spot, Spots
from tt2gl.diagnostics import shown


@dataclass(frozen=True)
class Tolerances:
    """Shares by which registers and shared memory may grow: 0.1 is ten in a hundred."""

    registers: float = 0.1
    shared: float = 0.0


@dataclass(frozen=True)
class Finding:
    """One thing that got worse: what, what to do about it, and the line that is to blame where one is known."""

    code: str
    message: str
    hint: str
    spot: Spot | None = None


def regressions(before: Lowering, now: Measured, tolerances: Tolerances, *, same_work: bool) -> Iterator[Finding]:
    """What of `now` is worse than `before`.

    Without `same_work` the launch has other blocks, so that more registers and more shared memory may be meant.
    """
    after, spots = now.lowering, now.spots or Spots()
    if not before.compiles:
        return
    if not after.compiles:
        reason = (now.error or "no reason given").rstrip(".")
        yield Finding(
            "TTG602",
            f"It compiled before and does not now: {reason}.",
            "Mend what the compiler names.",
            next(iter(spots.faults), None),
        )
        return
    for kind, old, new, places in (
        ("load", before.loads, after.loads, spots.loads),
        ("store", before.stores, after.stores, spots.stores),
    ):
        yield from _narrower(kind, old, new, places)
    yield from _pipeline(before.loads, after.loads, spots.loads)
    yield from _rings(before, after, spots.loads)
    yield from _products(before, after, spots.products)
    if after.conversions > before.conversions:
        lines = ", ".join(dict.fromkeys(f"{shown(file)}:{line}" for file, line in spots.conversions))
        message = f"{after.conversions} layout conversions, {before.conversions} before"
        message += f" (now at {lines})." if lines else "."
        hint = "Let values that meet have one layout, or one order of dimensions."
        yield Finding("TTG604", message, hint, next(iter(spots.conversions), None))
    if after.spills > before.spills:
        message = f"{after.spills} registers a thread spill to memory, {before.spills} before."
        yield Finding("TTG605", message, "Use more warps, smaller blocks, or keep fewer values alive.")
    if same_work:
        yield from _grown(before, after, tolerances)


def _grown(before: Lowering, after: Lowering, tolerances: Tolerances) -> Iterator[Finding]:
    if after.shared > before.shared * (1 + tolerances.shared):
        message = f"{after.shared} bytes of shared memory a block where there were {before.shared}."
        yield Finding(
            "TTG608", message, "Look at what was added to shared memory, or allow more in [tool.tt2gl.check]."
        )
    if before.registers and after.registers > before.registers * (1 + tolerances.registers):
        message = f"{after.registers} registers a thread where there were {before.registers}."
        yield Finding("TTG609", message, "Keep fewer values alive, or allow more in [tool.tt2gl.check].")


def _narrower(kind: str, before: Sequence[Access], after: Sequence[Access], spots: Sequence[Spot]) -> Iterator[Finding]:
    """Accesses pair in order where there are as many as before; else the narrowest pair, which blames as few."""
    hint = "Look for a hint that is gone (tl.multiple_of, tl.max_contiguous), or another order of dimensions."
    places: Sequence[Spot | None] = spots if len(spots) == len(after) else [None] * len(after)
    pairs = list(zip(after, places, strict=True))
    old = list(before)
    if len(old) != len(pairs):
        pairs.sort(key=lambda pair: pair[0].bits)
        old.sort(key=lambda access: access.bits)
        # Those that are new may be of any width: the widest of them all stand for those that were there.
        pairs = pairs[max(len(pairs) - len(old), 0) :]
    for was, (access, spot) in zip(old, pairs, strict=False):
        if access.bits < was.bits:
            yield Finding("TTG603", f"A global {kind} of {was.bits} bits is {access.bits} bits wide now.", hint, spot)
        elif (run := _run(access, was)) < min(_SECTOR, _run(was, was)):
            message = f"A warp's global {kind} has {run} bytes side by side now, where it had {_run(was, was)}."
            yield Finding("TTG603", message, "Look at the order of the layout, and at how it spreads lanes.", spot)


_SECTOR = 32
"""Bytes that global memory moves at once: of a shorter run the rest is wasted."""


def _run(access: Access, was: Access) -> int:
    """The bytes that a warp accesses along the dimension that was the fastest; a sector where that is not known."""
    return access.warp[was.fastest] if len(access.warp) == len(was.warp) > 0 else _SECTOR


def _pipeline(before: Sequence[Access], after: Sequence[Access], spots: Sequence[Spot]) -> Iterator[Finding]:
    hint = "Look at num_stages, and at what else the load's loop does now."
    places: Sequence[Spot | None] = spots if len(spots) == len(after) else [None] * len(after)
    if len(before) == len(after):
        for was, access, spot in zip(before, after, places, strict=True):
            if was.copies and not access.copies:
                message = "A load that ran ahead as an asynchronous copy is an ordinary load now."
                yield Finding("TTG606", message, hint, spot)
        return
    old, new = (sum(access.copies for access in accesses) for accesses in (before, after))
    if new < old and (not new or len(after) >= len(before)):
        plain = (spot for access, spot in zip(after, places, strict=True) if not access.copies)
        message = f"{new} loads run ahead as asynchronous copies, {old} before."
        yield Finding("TTG606", message, hint, next(plain, None))


def _rings(before: Lowering, after: Lowering, spots: Sequence[Spot]) -> Iterator[Finding]:
    spot = next((spot for spot, access in zip(spots, after.loads, strict=False) if access.copies), None)
    for tile, slots in before.rings.items():
        if after.rings.get(tile, slots) < slots:
            message = f"The ring of {tile} has {after.rings[tile]} slots where it had {slots}."
            yield Finding("TTG606", message, "Look at num_stages: fewer loads are under way at a time.", spot)


# Matrix instructions by how much one does: families of later GPUs above those of earlier ones.
_RANKS = (("tcgen05", 3), ("wgmma", 2), ("", 1))
_OPERAND = re.compile(r"(?:bf|xf|tf|fp|f|s|u|i|b|iu)(\d+)|e\d+m\d+")


def _products(before: Lowering, after: Lowering, spots: Sequence[Spot]) -> Iterator[Finding]:
    spot = next(iter(spots), None)
    hint = "Look at the product's types, precision and block, and at the number of warps."
    if after.scalar_products > before.scalar_products:
        count, were = after.scalar_products, before.scalar_products
        message = f"{count} products without matrix instructions, {were} before."
        yield Finding("TTG607", message, hint, spot)
    elif before.mma and _rank(after.mma) < _rank(before.mma):
        message = f"Products take {_names(after.mma)} where they took {_names(before.mma)}."
        yield Finding("TTG607", message, hint, spot)
    elif before.mma and after.mma and _operand_bits(after.mma) > _operand_bits(before.mma):
        message = f"Products take wider operands: {_names(after.mma)} where it was {_names(before.mma)}."
        yield Finding("TTG607", message, hint, spot)
    elif after.products and after.step_products * before.products >= 1.5 * before.step_products * after.products > 0:
        message = f"{after.step_products} matrix instructions a step where there were {before.step_products}."
        yield Finding("TTG607", message, hint, spot)


def _rank(mma: Mapping[str, int]) -> int:
    return max((next(rank for family, rank in _RANKS if name.startswith(family)) for name in mma), default=0)


def _operand_bits(mma: Mapping[str, int]) -> int:
    """The bits of the narrowest operands: `wgmma.m64n128k16.f32.f16.f16` multiplies 16."""
    return min((_bits(name) for name in mma), default=0)


def _bits(name: str) -> int:
    found = list(_OPERAND.finditer(name))
    return int(found[-1][1] or 8) if found else 0


def _names(mma: Mapping[str, int]) -> str:
    return " and ".join(sorted(mma)) or "no matrix instruction"


# ------------------------------------------------------------------------------------------------- improvements


def improvements(before: Lowering, after: Lowering) -> Iterator[str]:
    """What got better, a phrase each."""
    if after.compiles and not before.compiles:
        yield "it compiles"
    if not (after.compiles and before.compiles):
        return
    for name, old, new in (
        ("layout conversions", before.conversions, after.conversions),
        ("spilled registers", before.spills, after.spills),
        ("registers", before.registers, after.registers),
        ("bytes of shared memory", before.shared, after.shared),
    ):
        if new < old:
            yield f"{old} to {new} {name}"
    if len(before.loads) == len(after.loads) and len(before.stores) == len(after.stores):
        accesses = zip((*before.loads, *before.stores), (*after.loads, *after.stores), strict=True)
        wider = [f"{was.bits} to {access.bits}" for was, access in accesses if access.bits > was.bits]
        yield from (f"{bits} bits a global access" for bits in dict.fromkeys(wider))
    if sum(access.copies for access in after.loads) > sum(access.copies for access in before.loads):
        yield "more loads run ahead"
    if _rank(after.mma) > _rank(before.mma):
        yield f"products take {_names(after.mma)}"
