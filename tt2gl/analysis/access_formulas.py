"""The layouts of an access under all launches, written as one formula of the kernel's constexprs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from tt2gl.analysis.alternatives import Way, alternative
from tt2gl.analysis.conditions import Case
from tt2gl.analysis.extents import is_truth, pointee_bits
from tt2gl.analysis.facts import Access, CallChain
from tt2gl.launches import Launch
from tt2gl.layouts import Blocked, are_alike, coalesced, coalesced_blocks

if TYPE_CHECKING:
    from tt2gl.analysis.memory import Scene


@dataclass
class Candidate:
    """An access, and what launches say of it, by index."""

    chain: CallChain
    dims: tuple[str, ...]
    pointer: str | None
    accesses: dict[int, Access]
    shapes: dict[int, tuple[int, ...]]
    anchored: dict[int, bool]
    products: set[int]
    inlined: bool
    loaded: bool = False
    exchanged: set[int] = field(default_factory=set)


class AccessFormulas:
    """Finds formulas for the accesses of a kernel.

    `flags`: what they ask of a launch, each with the arguments that are multiples of 16 where it holds.
    """

    def __init__(self, scenes: Sequence[Scene]) -> None:
        self.scenes = scenes
        self.launches = [scene.launch for scene in scenes]
        self.flags: dict[str, tuple[str, ...]] = {}

    def formula(self, candidate: Candidate, layouts: dict[int, Blocked]) -> tuple[str, bool]:
        """Source that gives `layouts`, and whether it does under every launch; a single element lies alike in all.

        Where none does, launches with the most aligned arguments count first: under the others the wider layout is
        still right, and their accesses are narrow either way.
        """
        layouts = {index: layout for index, layout in layouts.items() if prod(candidate.shapes[index]) > 1} or layouts
        aligned = {index: len(self.scenes[index].launch.divisible_by_16) for index in layouts}
        first = [index for index in layouts if aligned[index] == max(aligned.values())]
        order = layouts[first[0]].order if first else tuple(reversed(range(len(candidate.dims))))
        ways = {order: list(self._ways(candidate, layouts, order))}
        for other in (layout.order for layout in layouts.values()):
            ways.setdefault(other, list(self._ways(candidate, layouts, other)))
        tried = [way for found in ways.values() for way in found]
        if made := next((way for way in tried if len(way.exact) == len(layouts)), None):
            return made.source, True
        literal = set(layouts.values())
        if len(literal) == 1 and all(dim.isdigit() for dim in candidate.dims):
            return next(iter(literal)).source(), True
        best = max(ways[order], key=lambda way: (len(way.exact & set(first)), len(way.exact)))
        cases = {index: Case(self.scenes[index].launch, self.scenes[index].facts, "") for index in layouts}
        aligning = next((seen.facts.aligning for seen in self.scenes if seen.facts.aligning), {})
        two = alternative([way for way in tried if way.exact], cases, aligning.get(candidate.chain, ()))
        if two is None:
            return best.source, False
        self.flags |= two.flags
        return two.source, True

    def _ways(self, candidate: Candidate, layouts: Mapping[int, Blocked], order: tuple[int, ...]) -> Iterator[Way]:
        """Formulas of an access with its dimensions in an order, each with the launches that it gives `layouts`."""
        for name, build, width, said in self._builders(candidate):
            exact: set[int] = set()
            for index, layout in layouts.items():
                scene = self.scenes[index]
                shape, warps = candidate.shapes[index], scene.launch.options.num_warps
                made = build(scene.launch, shape, order, warps, scene.lanes)
                exact |= {index} if made == layout or 1 in shape and are_alike(made, layout, shape) else set()
            yield Way(f"{name}([{', '.join(candidate.dims)}], {list(order)}, ", width, said, frozenset(exact))

    def _builders(self, candidate: Candidate) -> Iterator[tuple[str, Callable[..., Blocked], str, str]]:
        """Ways to make a blocked layout: a helper, what it gives, and its last arguments as source, the width apart."""
        widths = self.widths(candidate)
        for text, bits in widths:
            yield "coalesced", _built(coalesced, bits), text, ", gl.num_warps())"
        if len(candidate.dims) != 2:
            return
        for text, bits in widths:
            yield "coalesced_blocks", _built(coalesced_blocks, bits), text, ", gl.num_warps())"
        if any(candidate.chain in scene.facts.lowered.turned for scene in self.scenes):
            for (text, bits), (column_text, column) in product(widths, widths):
                said = f", gl.num_warps(), column_bits={column_text})"
                yield "coalesced_blocks", _built(coalesced_blocks, bits, column), text, said

    def widths(self, candidate: Candidate) -> list[tuple[str, Any]]:
        """Ways to say how wide an element is: by the access's own pointer, another's, or as a number."""
        names = [candidate.pointer] if candidate.pointer else []
        signature = self.scenes[0].launch.signature
        names += [name for name, kind in signature.items() if kind.startswith("*") and name not in names]
        bytewise = any(is_truth(launch, candidate.pointer) for launch in self.launches)
        ways: list[tuple[str, Any]] = [("8", lambda _: 8)] if bytewise else []
        ways += [
            (f"{name}.dtype.element_ty.primitive_bitwidth", lambda launch, name=name: pointee_bits(launch, name))
            for name in names
            if all(pointee_bits(launch, name) for launch in self.launches)
        ]
        return ways + [(str(bits), lambda _, bits=bits: bits) for bits in (32, 16, 64, 8, 128)]


def _built(make: Callable[..., Blocked], *widths: Callable[[Launch], int]) -> Callable[..., Blocked]:
    """A formula of blocked layouts, of a launch, a shape, an order, warps and lanes; `widths` say bits of elements."""

    def built(launch: Launch, shape: Sequence[int], order: Sequence[int], warps: int, lanes: int) -> Blocked:
        bits, *columns = (width(launch) for width in widths)
        return make(shape, order, bits, warps, lanes, *columns)

    return built
