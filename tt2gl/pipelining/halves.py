"""An iteration of two products in a row, parted: what its second product needs, and all that may come before it.

    k = k_buf.index(0).load(k_layout)
    qk = mfma(q, k, zeros)                              # first
    m_new = gl.maximum(m_i, gl.max(qk, axis=1))         # between
    p = gl.exp2(qk - m_new[:, None])                    # between
    l_i = l_i + gl.sum(p, axis=1)                       # second: as that is not needed for what both halves read
    v = v_buf.index(0).load(v_layout)
    acc = mfma(p.to(v.dtype), v, acc)                   # second

A turn of the loop may then do the second half of an iteration beside the first product of the next one. Triton parts
them at what the first product makes and more than one statement reads, and so are they here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

import libcst as cst

from tt2gl.pipelining.flow import Names, inside, reads, writes
from tt2gl.pipelining.last import products_in
from tt2gl.pipelining.registers import TilesRead
from tt2gl.pipelining.trees import code, edited, mentions
from tt2gl.pipelining.walking import Lines
from tt2gl.visitors import Editor


@dataclass(frozen=True, eq=False)
class Line:
    """A line of an iteration, with what Python has of it."""

    line: cst.BaseStatement
    tree: ast.Module = field(repr=False)

    @classmethod
    def of(cls, line: cst.BaseStatement) -> Line:
        """A line as it stands."""
        return cls(line, ast.parse(code(line)))

    @property
    def reads(self) -> Names:
        """The names that it reads."""
        return reads(self.tree)

    @property
    def writes(self) -> Names:
        """The names that it binds."""
        return writes(self.tree)

    @property
    def in_any_case(self) -> bool:
        """Whether it binds its names in any case."""
        return not isinstance(self.tree.body[0], ast.If)


@dataclass(frozen=True)
class Tile:
    """What an iteration reads of a ring: under a name, and the source of it."""

    ring: str
    name: str
    source: str


@dataclass(frozen=True)
class Halves:
    """An iteration's lines but those that only read tiles: `first`, `between` and `second`, the latter in two parts.

    The first ends with the first product. The tile of the second product is wanted after `second`, and before `last`.
    `tiles`: that of the first product, and that of the second.
    """

    first: Lines
    between: Lines
    second: Lines
    last: Lines
    tiles: tuple[Tile, Tile]


def halves(
    lines: Lines, tiles: Mapping[str, str], buffers: Mapping[str, str], names: Mapping[str, str]
) -> Halves | None:
    """An iteration parted; None where it cannot be.

    `tiles`: the source of the tile of each ring, `buffers`: the memory of each, and `names`: what its tile may be
    called, by the names of rings.
    """
    reader = _Reads({tiles[ring]: name for ring, name in names.items()})
    every = [Line.of(edited(line, reader)) for line in lines]
    if len(tiles) != 2 or reader.found.keys() != set(names.values()):
        return None
    if any(mentions(each.line, *buffers.values()) for each in every) or any(map(_is_in_the_way, every)):
        return None
    every, found = _read_under_names(every, {name: ring for ring, name in names.items()}, reader.found, buffers)
    products = [each for each in every if products_in(each.tree)]
    if len(products) != 2 or any(products_in(each.tree) != 1 for each in products):
        return None
    parted = _Parted(every, *products)
    first, front = parted.needed([products[0]]), parted.front()
    if front is None or products[1] in front:
        return None
    back = [each for each in every if each not in front]
    between = [each for each in front if each not in first]
    own = [{ring for ring, tile in found.items() if _reads_any(part, tile.name)} for part in (first, between, back)]
    if own[1] or len(own[0]) != 1 or len(own[2]) != 1 or own[0] == own[2]:
        return None
    (before,), (after,) = own[0], own[2]
    if not (_may_swap(back, front, every) and _may_swap(between, first, every)):
        return None
    # The first product of the iteration after is done before the second half of this one.
    if not all(_are_apart(one, other) for one in first for other in back):
        return None
    cut = next(place for place, each in enumerate(back) if found[after].name in each.reads)
    ours, theirs, second, last = ([each.line for each in part] for part in (first, between, back[:cut], back[cut:]))
    return Halves(ours, theirs, second, last, (found[before], found[after]))


def _is_in_the_way(line: Line) -> bool:
    """Whether a line is a loop, a branch with a product, or one that stores what others may load."""
    statement = line.tree.body[0]
    if isinstance(statement, ast.If):
        return bool(products_in(statement)) or any(isinstance(each, ast.Expr) for each in inside([statement]))
    return not isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign)


def _reads_any(lines: Sequence[Line], name: str) -> bool:
    return any(name in each.reads for each in lines)


class _Reads(TilesRead):
    """What is read of rings under names, also of tiles that are turned in memory."""

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """Name what is read of a ring."""
        match original_node.func:
            case cst.Attribute(view, cst.Name("load")):
                source = code(original_node)
                for tile, name in self.names.items():
                    known = code(view) == tile or code(view).startswith(f"{tile}.")
                    if known and self.found.setdefault(name, source) == source:
                        return cst.Name(name)
        return updated_node


class _TypesOf(Editor):
    """The types of tiles that have not been read, by their memory."""

    def __init__(self, buffers: Mapping[str, str]) -> None:
        super().__init__()
        self.buffers = buffers

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.BaseExpression:
        """Ask the memory."""
        match updated_node:
            case cst.Attribute(value=cst.Name(name), attr=cst.Name("dtype")) if name in self.buffers:
                return updated_node.with_changes(value=cst.Name(self.buffers[name]))
        return updated_node


def _read_under_names(
    every: Sequence[Line], rings: Mapping[str, str], found: Mapping[str, str], buffers: Mapping[str, str]
) -> tuple[list[Line], dict[str, Tile]]:
    """The lines without those that only give a tile its name, and the tiles under names."""
    named: dict[str, str] = {}
    for each in every:
        match each.tree.body:
            case [ast.Assign(targets=[ast.Name(own)], value=ast.Name(tile))] if tile in found:
                if sum(own in other.writes for other in every) == 1:
                    named[tile] = own
    left = [each for each in every if not (each.reads & named.keys() and each.writes & set(named.values()))]
    types = _TypesOf({name: buffers[rings[tile]] for tile, name in named.items()})
    made = [Line.of(edited(each.line, types)) for each in left]
    return made, {rings[tile]: Tile(rings[tile], named.get(tile, tile), source) for tile, source in found.items()}


@dataclass(frozen=True)
class _Parted:
    """An iteration's lines and its products."""

    every: Sequence[Line]
    one: Line
    other: Line

    def makers(self, line: Line, name: str) -> Iterator[Line]:
        """The lines of the iteration that may have bound a name as a line reads it."""
        for each in reversed(self.every[: self.every.index(line)]):
            if name in each.writes:
                yield each
                if each.in_any_case:
                    return

    def needed(self, lines: Sequence[Line]) -> list[Line]:
        """Lines with all those of the iteration that they need, in its order."""
        wanted, left = set(lines), list(lines)
        while left:
            line = left.pop()
            makers = {each for name in line.reads for each in self.makers(line, name)} - wanted
            wanted |= makers
            left += makers
        return [each for each in self.every if each in wanted]

    def front(self) -> list[Line] | None:
        """What comes before the second half: the first product, and what both halves read of what it makes."""
        made_of_it = self._made_of(self.one)
        if self.other not in made_of_it:
            return None
        shared: set[Line] = {self.one}
        chain, left = {self.other}, [self.other]
        while left:
            line = left.pop()
            for name in line.reads:
                for maker in self.makers(line, name):
                    if maker not in made_of_it or maker in chain:
                        continue
                    if maker is self.one or self._readers(maker) > 1:
                        shared.add(maker)
                    else:
                        chain.add(maker)
                        left.append(maker)
        # The first product of the next iteration comes before what is left of this one: what it needs is done by then.
        first = self.needed([self.one])
        before = {name for each in first for name in each.reads if not any(self.makers(each, name))}
        shared |= {each for each in self.every if each.writes & before}
        return self.needed([each for each in self.every if each in shared])

    def _made_of(self, line: Line) -> Set[Line]:
        """The lines that read what a line makes, or what those make."""
        found = {line}
        for each in self.every[self.every.index(line) + 1 :]:
            if any(maker in found for name in each.reads for maker in self.makers(each, name)):
                found.add(each)
        return found

    def _readers(self, line: Line) -> int:
        """How many lines of the iteration read what a line makes."""
        return sum(any(line in self.makers(each, name) for name in each.reads & line.writes) for each in self.every)


def _may_swap(back: Sequence[Line], front: Sequence[Line], every: Sequence[Line]) -> bool:
    """Whether the lines of the front that stand below some of the back may be done before those."""
    places = {each: place for place, each in enumerate(every)}
    return all(_are_apart(one, other) for one in back for other in front if places[one] < places[other])


def _are_apart(one: Line, other: Line) -> bool:
    return not (one.writes & (other.reads | other.writes) or other.writes & one.reads)
