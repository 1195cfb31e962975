"""The layouts of an access under all launches, written as one formula of the kernel's constexprs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from tt2gl.analysis.alternatives import Alternative, Way, alternative
from tt2gl.analysis.conditions import Case
from tt2gl.analysis.extents import is_truth, pointee_bits
from tt2gl.analysis.facts import Access, CallChain
from tt2gl.launches import Launch
from tt2gl.layouts import Blocked, are_alike, coalesced, coalesced_blocks

if TYPE_CHECKING:
    from tt2gl.analysis.memory import Scene

# How a layout is made of a shape, an order, bits of elements, warps, lanes and further bits; how a launch says bits.
_Make = Callable[..., Blocked]
_Width = Callable[[Launch], int]


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
        ways: dict[tuple[int, ...], list[Way]] = {}
        for other in dict.fromkeys([order, *(layout.order for layout in layouts.values())]):
            ways[other] = []
            for way in self._ways(candidate, layouts, other):
                if len(way.exact) == len(layouts):
                    return way.source, True
                ways[other].append(way)
        tried = [way for found in ways.values() for way in found]
        literal = set(layouts.values())
        if len(literal) == 1 and all(dim.isdigit() for dim in candidate.dims):
            return next(iter(literal)).source(), True
        best = max(ways[order], key=lambda way: (len(way.exact & set(first)), len(way.exact)))
        wide = [index for index, layout in layouts.items() if max(layout.size_per_thread) > 1]
        for some in (list(layouts), *([] if best.exact.issuperset(wide) else [wide])):
            if (two := self._two(candidate, some, tried)) is not None:
                self.flags |= two.flags
                return two.source, len(some) == len(layouts)
        return best.source, False

    def _two(self, candidate: Candidate, launches: Sequence[int], ways: Sequence[Way]) -> Alternative | None:
        """Two formulas in one that are right for these launches."""
        cases = {index: Case(self.scenes[index].launch, self.scenes[index].facts, "") for index in launches}
        aligning = next((seen.facts.aligning for seen in self.scenes if seen.facts.aligning), {})
        some = [replace(way, exact=way.exact.intersection(launches)) for way in ways]
        return alternative([way for way in some if way.exact], cases, aligning.get(candidate.chain, ()))

    def _ways(self, candidate: Candidate, layouts: Mapping[int, Blocked], order: tuple[int, ...]) -> Iterator[Way]:
        """Formulas of an access with its dimensions in an order, each with the launches that it gives `layouts`."""
        # Most pointers are as wide as others, and say what those have said.
        known: dict[Hashable, frozenset[int]] = {}
        for make, widths, width, said in self._builders(candidate):
            bits = tuple(tuple(each(self.scenes[index].launch) for each in widths) for index in layouts)
            exact = known.get((make, bits))
            if exact is None:
                given = ((i, self._made(candidate, i, order, make, own)) for i, own in zip(layouts, bits, strict=True))
                exact = frozenset(i for i, made in given if _are_one(made, layouts[i], candidate.shapes[i]))
                known[make, bits] = exact
            yield Way(f"{make.__name__}([{', '.join(candidate.dims)}], {list(order)}, ", width, said, exact)

    def _made(
        self, candidate: Candidate, index: int, order: tuple[int, ...], make: _Make, bits: Sequence[int]
    ) -> Blocked:
        """What a formula with elements of so many bits gives an access under a launch."""
        scene = self.scenes[index]
        warps = scene.launch.options.num_warps
        return make(candidate.shapes[index], order, bits[0], warps, scene.lanes, *bits[1:])

    def _builders(self, candidate: Candidate) -> Iterator[tuple[_Make, tuple[_Width, ...], str, str]]:
        """Ways to make a blocked layout: a helper, the widths that it takes, and these as source, the first apart."""
        widths = self.widths(candidate)
        for text, bits in widths:
            yield coalesced, (bits,), text, ", gl.num_warps())"
        if len(candidate.dims) != 2:
            return
        for text, bits in widths:
            yield coalesced_blocks, (bits,), text, ", gl.num_warps())"
        if any(candidate.chain in scene.facts.lowered.turned for scene in self.scenes):
            for (text, bits), (column_text, column) in product(widths, widths):
                said = f", gl.num_warps(), column_bits={column_text})"
                yield coalesced_blocks, (bits, column), text, said

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


def _are_one(made: Blocked, layout: Blocked, shape: Sequence[int]) -> bool:
    """Whether a formula gives a tile its layout, or one that puts all elements where that does."""
    return made == layout or 1 in shape and are_alike(made, layout, shape)
