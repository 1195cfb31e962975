"""Scalars that a loop loads, where Triton copies them ahead as it does the loop's tiles: a scale of each block, say.

Some say where loads through rings read, as the pages of a table do, and are copied an iteration before those. A scalar
has no layout, so the value graph knows nothing of it: these are found by their places, beside the tiles of their loops.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tt2gl.analysis.decisions import Decisions, RingWant, Spot
from tt2gl.analysis.facts import CallChain, RingFact
from tt2gl.analysis.graph import Definition, FunctionKey, Node, Site
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.statics import position_of
from tt2gl.analysis.terms import IN_RING, Root, Stored
from tt2gl.analysis.uses import LOOKED_UP_SHARED
from tt2gl.names import unused
from tt2gl.pipelining.flow import inside, writes
from tt2gl.pipelining.loads import other_of
from tt2gl.trees import blocks, nodes_in


@dataclass(frozen=True)
class ScalarLoad:
    """A load of one element that runs ahead of its loop; `dtype` as source, `looked_up`: loads of tiles need it."""

    chain: CallChain
    site: Site
    loop: ast.For
    name: str
    dtype: str
    looked_up: bool


def beside_scalars(scenes: Sequence[Scene], tiled: Collection[ast.For | None]) -> list[Node]:
    """A value of each loop in which Triton copies scalars ahead, and no tiles: of those that are not `tiled`."""
    found: dict[tuple[int, CallChain], Node] = {}
    for scene in scenes:
        rings = scene.facts.lowered.rings
        scalars = {at for at, ring in rings.items() if ring.shape == (1,) and ring.in_a_row and not ring.looked_up}
        for node in scene.graph.nodes if scalars else ():
            if node.loop is not None and node.loop not in tiled and any(_is_in(at, node) for at in scalars):
                found.setdefault((id(node.loop), node.chain[1:]), node)
    return [*found.values()]


def _is_in(scalar: CallChain, node: Node) -> bool:
    """Whether the load of a scalar stands in the loop of a value, and in no loop within that."""
    (path, line, _), *calls = scalar
    loop = node.loop
    assert loop is not None
    if (path, calls) != (node.site.function[0], [*node.chain[1:]]):
        return False
    around = [each for each in nodes_in(loop) if isinstance(each, ast.For | ast.While) and _has(each, line)]
    return around == [loop]


def _has(loop: ast.stmt, line: int) -> bool:
    return loop.lineno <= line <= (loop.end_lineno or line)


def scalar_loads(
    scenes: Sequence[Scene],
    functions: Mapping[FunctionKey, ast.FunctionDef],
    tiles: Sequence[Node],
    pointers: Mapping[FunctionKey, Set[str]],
) -> list[ScalarLoad]:
    """Those of the loops of `tiles`, where all launches have them alike; `pointers`: names that hold such."""
    rings = _alike(scenes)
    tensors = {(d.site.function, d.site.statement) for s in scenes for d in s.graph.steps if isinstance(d, Definition)}
    bound = {loop: names for scene in scenes for loop, names in scene.graph.bound.items()}
    made: list[ScalarLoad] = []
    for tile in {(id(each.loop), each.chain[1:]): each for each in tiles}.values():
        key, loop = tile.site.function, tile.loop
        assert loop is not None
        for statement, call in _calls(loop):
            chain = ((key[0], call.lineno, call.col_offset), *tile.chain[1:])
            site = replace(tile.site, position=position_of(call), statement=position_of(statement))
            ring = rings.get(chain)
            if key not in functions or ring is None or (key, site.statement) in tensors:
                continue
            dtype = _dtype(call, loop, pointers[key], bound.get(loop, frozenset()))
            if dtype and (ring.looked_up or other_of(call) is None):
                made.append(ScalarLoad(chain, site, loop, _name(statement), dtype, ring.looked_up))
    return made


def decide(loads: Sequence[ScalarLoad], classes: Classes, decisions: Sequence[Decisions]) -> None:
    """Have them go through slots of one element, under every launch."""
    taken = {want.name for made in decisions for _, want in made.staged.values()}
    wants: dict[tuple[FunctionKey, object], RingWant] = {}
    for load in loads:
        place = load.site.function, load.site.position
        if place not in wants:
            name = unused(load.name, taken)
            taken.add(name)
            slot = Stored(Root(classes.named(("1",), {}, LOOKED_UP_SHARED, True, f"{name}_shared")), ("1",))
            wants[place] = RingWant(name, slot, load.dtype, in_memory=False, looked_up=load.looked_up, scalar=True)
        for made in decisions:
            made.staged[Spot(load.site, None)] = IN_RING, wants[place]


def _alike(scenes: Sequence[Scene]) -> dict[CallChain, RingFact]:
    """The rings of one element in a row that all launches have that reach their loads, of the same kind."""
    tensors = {node.chain for scene in scenes for node in scene.graph.nodes}
    known: dict[CallChain, list[RingFact]] = {}
    for scene in scenes:
        for at, ring in scene.facts.lowered.rings.items():
            if ring.in_a_row and ring.shape == (1,) and at not in tensors:
                known.setdefault(at, []).append(ring)
    reached = [
        {(each.path, *position[:2]) for each in scene.facts.functions.values() for position in each.expressions}
        for scene in scenes
    ]
    return {
        at: rings[0]
        for at, rings in known.items()
        if len(rings) == sum(at[0] in each for each in reached) and len({each.looked_up for each in rings}) == 1
    }


def _calls(loop: ast.For) -> Iterator[tuple[ast.stmt, ast.Call]]:
    """The calls in simple statements of a loop's body, with those."""
    for statement in inside(loop.body):
        if not list(blocks(statement)):
            yield from ((statement, node) for node in nodes_in(statement) if isinstance(node, ast.Call))


def _dtype(call: ast.Call, loop: ast.For, pointers: Set[str], bound: Set[str]) -> str:
    """The type of what a load reads, by a pointer in its address that is there before the loop; empty without one."""
    made = {name for each in loop.body for name in writes(each)} - bound
    names = [node.id for given in call.args[:1] for node in nodes_in(given) if isinstance(node, ast.Name)]
    found = [name for name in names if name in pointers and name not in made]
    return f"{found[0]}.dtype.element_ty" if len(found) == 1 else ""


def _name(statement: ast.stmt) -> str:
    """What a scalar is called: as the variable it becomes."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return "index"
