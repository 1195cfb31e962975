"""Rings of tiles that TMA copies: loads through tensor descriptors, and the mbarriers that say when tiles are there.

for k in range(0, steps):                                                          # before
    a = _tt2gl_ring_a(a_desc, [offs_m, k * BLOCK_K])

bars = gl.allocate_shared_memory(gl.int64, [3, 1], mbarrier.MBarrierLayout())      # after
for slot in gl.static_range(3):
    mbarrier.init(bars.index(slot), count=1)
...
for k in range(0, steps):
    more = k < steps - 2
    mbarrier.wait(bars.index(slot), phase)
    a = a_buf.index(slot)
    ...
    ahead = k + 2
    mbarrier.expect(bars.index(free_slot), a_desc.block_type.nbytes, pred=more)
    tma_load(a_desc, [offs_m, ahead * BLOCK_K], bars.index(free_slot), a_buf.index(free_slot), pred=more)
    slot = gl.where(slot + 1 >= 3, 0, slot + 1)
    free_slot = gl.where(free_slot + 1 >= 3, 0, free_slot + 1)
    phase = phase ^ (slot == 0)

Tiles that stand side by side in the body share a ring of mbarriers, as Triton has it for those that one product reads.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.branches import joined
from tt2gl.pipelining.conditions import guarded
from tt2gl.pipelining.rings import Amount, LoopRings, NotPipelinedError
from tt2gl.pipelining.slots import Slots
from tt2gl.pipelining.texts import call
from tt2gl.pipelining.trees import parsed, statement
from tt2gl.pipelining.walking import Lines
from tt2gl.plan import Ring
from tt2gl.trees import nodes_in
from tt2gl.words import RING_MARK, TMA_LOAD


@dataclass(frozen=True)
class Barriers:
    """A ring of mbarriers: its name, how many they are, and its rings of tiles, each with its descriptor.

    `tests`: the flags that all of the tiles are loaded under; without them nothing would end a wait.
    """

    name: str
    depth: Amount
    descriptors: Mapping[str, str]
    tests: tuple[str, ...] = ()

    def at(self, slot: str) -> str:
        """The mbarrier of a slot."""
        return f"{self.name}.index({slot})"

    def made(self, variable: str) -> Lines:
        """The statements that make the ring; `variable` is free."""
        shape = f"[{self.depth.source}, 1]"
        return self._under_flags(
            [
                statement(f"{self.name} = gl.allocate_shared_memory(gl.int64, {shape}, mbarrier.MBarrierLayout())"),
                *self._each(variable, "mbarrier.init({}, count=1)"),
            ]
        )

    def gone(self, variable: str) -> Lines:
        """The statements that end it."""
        return self._under_flags(self._each(variable, "mbarrier.invalidate({})"))

    def _under_flags(self, lines: Lines) -> Lines:
        return joined([guarded(line, self.tests) for line in lines])

    def _each(self, variable: str, source: str) -> Lines:
        if self.depth.known == 1:
            return [statement(source.format(self.at("0")))]
        inner = cst.IndentedBlock([statement(source.format(self.at(variable)))])
        return [cst.For(cst.Name(variable), cst.parse_expression(f"gl.static_range({self.depth.source})"), inner)]

    def wait(self, slots: Slots) -> Lines:
        """Wait for the tiles of an iteration."""
        return self._under_flags([statement(f"mbarrier.wait({self.at(slots.here)}, {slots.phase})")])

    def expect(self, slot: str, exists: str, indent: int) -> cst.BaseStatement:
        """Say how much is to come into a slot, where the iteration `exists`."""
        size = " + ".join(f"{descriptor}.block_type.nbytes" for descriptor in self.descriptors.values())
        return parsed(call("mbarrier.expect", [self.at(slot), size, f"pred={exists}"], indent))

    def copy(self, ring: str, offsets: str, slot: str, buffer: str, exists: str, indent: int) -> cst.BaseStatement:
        """Copy one tile into a slot."""
        given = [self.descriptors[ring], offsets, self.at(slot), f"{buffer}.index({slot})", f"pred={exists}"]
        return parsed(call(TMA_LOAD, given, indent))


def allocation(descriptor: str, depth: Amount) -> str:
    """The memory of a ring of a descriptor's tiles."""
    shape = f"[{depth.source}] + {descriptor}.block_shape"
    return f"gl.allocate_shared_memory({descriptor}.dtype, {shape}, {descriptor}.layout)"


def barriers(
    spec: LoopRings,
    body: Sequence[ast.stmt],
    kept: frozenset[ast.stmt],
    tests: Mapping[str, tuple[str, ...]],
    fresh: Callable[[str], str],
) -> tuple[Barriers, ...]:
    """The mbarriers of a loop's tiles, in the order in which the `kept` statements of its body read them.

    `tests`: the flags that tiles are loaded under, by ring.
    """
    groups: list[dict[str, str]] = []
    known: set[str] = set()
    apart = True
    for each in body:
        found = {name: said for name, said in descriptors(spec, [each]).items() if not spec.ring(name).direct}
        new = {name: said for name, said in found.items() if name not in known}
        known |= found.keys()
        for name, said in new.items():
            other = next(iter(groups[-1])) if groups else name
            alike = _depth(spec, name) == _depth(spec, other) and tests.get(name, ()) == tests.get(other, ())
            if apart or not alike:
                groups.append({})
                apart = False
            groups[-1][name] = said
        if not found and each in kept:
            apart = True
    return tuple(
        Barriers(
            fresh("bars" if len(groups) == 1 else f"{next(iter(group))}_bars"),
            _depth(spec, next(iter(group))),
            group,
            tests.get(next(iter(group)), ()),
        )
        for group in groups
    )


def _depth(spec: LoopRings, name: str) -> Amount:
    return spec.depth(spec.ring(name))


def descriptors(spec: LoopRings, body: Sequence[ast.stmt]) -> dict[str, str]:
    """The rings of tiles that statements read, and the descriptor of each. Raises NotPipelinedError."""
    found: dict[str, str] = {}
    for node in (node for each in body for node in nodes_in(each)):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.startswith(RING_MARK)):
            continue
        name = node.func.id.removeprefix(RING_MARK)
        if not spec.ring(name).tile:
            continue
        said = ast.unparse(node.args[0])
        if found.setdefault(name, said) != said:
            raise NotPipelinedError("a ring of tiles is loaded through two descriptors")
    return found


def offsets_of(marker: cst.Call) -> str:
    """Where a marker's tile starts, as source."""
    named = {each.keyword.value: each.value for each in marker.args if each.keyword is not None}
    offsets = named["offsets"] if "offsets" in named else marker.args[1].value
    return cst.Module([]).code_for_node(offsets)


def moved(descriptor: str, offsets: str, target: str, exists: str) -> list[str]:
    """The arguments of a copy by AMD's data mover; without `exists` there surely is such an iteration."""
    return [descriptor, offsets, target, *([f"pred={exists}"] if exists else [])]


def of_ring(found: Sequence[Barriers], ring: Ring) -> Barriers | None:
    """The mbarriers of a ring of tiles; None for one of ordinary copies."""
    return next((each for each in found if ring.name in each.descriptors), None)
