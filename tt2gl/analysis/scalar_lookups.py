"""Scalars that say where loads through rings read, as the pages of a table do, where Triton copies them ahead, too.

A scalar has no layout, so the value graph knows nothing of it: these are found by their places, in the kernel itself.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from tt2gl.analysis.decisions import Decisions, RingWant, Spot
from tt2gl.analysis.facts import CallChain
from tt2gl.analysis.graph import FunctionKey, Node, Site
from tt2gl.analysis.memory import Classes, Scene
from tt2gl.analysis.naming import unused
from tt2gl.analysis.statics import position_of
from tt2gl.analysis.terms import IN_RING, Root, Stored
from tt2gl.analysis.uses import LOOKED_UP_SHARED
from tt2gl.pipelining.flow import writes


@dataclass(frozen=True)
class ScalarLookup:
    """A load of one element that loads of its loop need, done an iteration before them: `dtype` as source."""

    chain: CallChain
    site: Site
    loop: ast.For
    name: str
    dtype: str


def scalar_lookups(
    scenes: Sequence[Scene],
    functions: Mapping[FunctionKey, ast.FunctionDef],
    tiles: Sequence[Node],
    pointers: Mapping[FunctionKey, Set[str]],
) -> list[ScalarLookup]:
    """Those of loops that load `tiles`, where all launches have them alike; `pointers`: names that hold such."""
    known = [
        {at for at, ring in s.facts.lowered.rings.items() if ring.is_lookup and ring.shape == (1,)} for s in scenes
    ]
    chains = set.intersection(*known) if known else set()
    chains -= {node.chain for scene in scenes for node in scene.graph.nodes}
    made: list[ScalarLookup] = []
    for key in functions:
        for tile in {
            id(each.loop): each for each in tiles if each.site.function == key and len(each.chain) == 1
        }.values():
            assert tile.loop is not None
            for statement in tile.loop.body:
                for call in (each for each in ast.walk(statement) if isinstance(each, ast.Call)):
                    chain = ((key[0], call.lineno, call.col_offset),)
                    dtype = _dtype(call, tile.loop, pointers[key]) if chain in chains else ""
                    if dtype:
                        site = replace(tile.site, position=position_of(call), statement=position_of(statement))
                        made.append(ScalarLookup(chain, site, tile.loop, _name(statement), dtype))
    return made


def decide(lookups: Sequence[ScalarLookup], classes: Classes, decisions: Sequence[Decisions]) -> None:
    """Have them go through slots of one element, under every launch."""
    taken = {want.name for made in decisions for _, want in made.staged.values()}
    for lookup in lookups:
        name = unused(lookup.name, taken)
        taken.add(name)
        slot = Stored(Root(classes.named(("1",), {}, LOOKED_UP_SHARED, True, f"{name}_shared")), ("1",))
        want = RingWant(name, slot, lookup.dtype, in_memory=False, looked_up=True, scalar=True)
        for made in decisions:
            made.staged[Spot(lookup.site, None)] = IN_RING, want


def _dtype(call: ast.Call, loop: ast.For, pointers: Set[str]) -> str:
    """The type of what a load reads, by a pointer in its address that the loop does not make; empty without one."""
    made = {name for each in loop.body for name in writes(each)}
    names = [node.id for given in call.args[:1] for node in ast.walk(given) if isinstance(node, ast.Name)]
    found = [name for name in names if name in pointers and name not in made]
    return f"{found[0]}.dtype.element_ty" if len(found) == 1 else ""


def _name(statement: ast.stmt) -> str:
    """What a scalar is called: as the variable it becomes."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name
    return "index"
