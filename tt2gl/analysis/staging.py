"""Which loads go through rings: those that Triton's pipeliner copies ahead, where running ahead changes nothing.

Triton's answer comes from what it compiled; that its own text may be taken apart so is asked of the author's source,
and a load that may not run ahead (it reads what the loop writes, or is masked with a value) stays where it is.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.analysis.author_text import AuthorText
from tt2gl.analysis.copied_rows import COPY_BITS, copied_row, is_narrow, tile_around
from tt2gl.analysis.facts import (
    CallChain,
    Position,
    RingFact,
)
from tt2gl.analysis.graph import FunctionKey, Graph, Node, sources
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.scalar_rings import ScalarLoad, beside_scalars, scalar_loads
from tt2gl.analysis.uses import is_in_place, stages_of
from tt2gl.pipelining.ahead import can_run_ahead


@dataclass(frozen=True)
class Refusal:
    """A load that Triton copies ahead and the conversion does not, and why."""

    function: FunctionKey
    position: Position
    reason: str


@dataclass(frozen=True)
class Staging:
    """The loads that go through rings, and those that were refused; `held`: those that wait in registers.
    `scalars`: those of one element, which go through rings of their own. `in_order`: the loads through descriptors that
    do not run ahead.

    By function: `wide`, its loops' variables of 64 bits, and `flattened`, those of loops that are one with the loops
    inside under every launch, so that Triton's loads run on from turn to turn; not those of `rereading`: where loops
    start that write what such loads, or loads through descriptors, read inside them.
    """

    loads: frozenset[CallChain]
    wide: Mapping[FunctionKey, frozenset[str]]
    flattened: Mapping[FunctionKey, frozenset[str]]
    rereading: Mapping[FunctionKey, frozenset[tuple[int, int]]]
    refused: tuple[Refusal, ...] = ()
    held: frozenset[CallChain] = frozenset()
    scalars: tuple[ScalarLoad, ...] = ()
    in_order: frozenset[CallChain] = frozenset()


def staged_loads(scenes: Sequence[Scene], trees: Mapping[str, ast.Module]) -> Staging:
    """The loads of a kernel that go through rings under any launch; notes those that are not of zeros outside."""
    text = AuthorText(trees, [scene.facts for scene in scenes])
    compiled = _compiled(scenes)
    nodes, tiles, held = compiled.nodes, compiled.tiles, compiled.held
    alone = beside_scalars(scenes, [node.loop for node in (*nodes, *tiles)])
    asking = dict.fromkeys(node.site.function for node in (*nodes, *tiles, *alone))
    pointers = {key: text.pointers(key) for key in asking}
    in_order = {node.chain for node in tiles if text.rereads(node.site.function, node.loop, [node], pointers)}
    refused = [*compiled.refused, *(_refusal(node, _BEHIND) for node in tiles if node.chain in in_order)]
    scalars = scalar_loads(scenes, text.functions, [*nodes, *alone], pointers)
    asked: dict[tuple[FunctionKey, int], list[Node]] = {}
    for node in (*nodes, *(each for each in alone if any(scalar.loop is each.loop for scalar in scalars))):
        asked.setdefault((node.site.function, id(node.loop)), []).append(node)
    for (key, _), members in asked.items():
        copied = [node for node in members if node in nodes]
        refused += _refused_by_text(text, members[0], copied, compiled.lookups, scalars, pointers[key])
    out = {(refusal.function, refusal.position) for refusal in refused}
    kept = frozenset(node.chain for node in nodes if (node.site.function, node.site.position) not in out)
    others = text.loads_of_others()
    for node in nodes:
        replaced = (node.site.function, node.site.position) in others and node.chain not in compiled.registers
        node.replaced = node.chain in kept and replaced
    # What says where tiles are comes as early as those do, or earlier.
    early = kept.union(*(_addressing(scene.graph, kept) for scene in scenes))
    waiting = [n for scene in scenes for n in scene.graph.nodes if n.chain not in early and _waits(scene, n)]
    refused += [_refusal(node, _GATHERED if node.tile else _IN_REGISTERS) for node in waiting]
    staged = [node for node in (*nodes, *tiles) if node.chain in kept or node.tile]
    rereading = {key: text.rereading(key, staged, pointers) for key in pointers}
    loops = [(key, members[0].loop) for (key, _), members in asked.items()]
    return Staging(
        kept - held,
        {key: frozenset(n for k, loop in loops if k == key for n in text.wide(key, loop)) for key, _ in loops},
        {key: text.flattened(key, rereading.get(key, ())) for key in sorted(text.seen)},
        {key: frozenset((loop.lineno, loop.col_offset) for loop in around) for key, around in rereading.items()},
        tuple(dict.fromkeys(refused)),
        kept & held,
        tuple(scalar for scalar in scalars if (scalar.site.function, scalar.site.position) not in out),
        frozenset(in_order),
    )


@dataclass(frozen=True)
class _Compiled:
    """What Triton copies ahead, or keeps in registers (`held`), and threads could copy: `nodes`, and `tiles` that
    descriptors bring.

    `lookups`: the loads that say where others are, with a stage of their own; `registers`: those whose tiles come to
    registers. `refused`: what threads cannot copy.
    """

    nodes: list[Node]
    tiles: list[Node]
    held: set[CallChain]
    lookups: set[CallChain]
    registers: set[CallChain]
    refused: list[Refusal]


def _compiled(scenes: Sequence[Scene]) -> _Compiled:
    rings = [(scene, chain, ring) for scene in scenes for chain, ring in scene.facts.lowered.rings.items()]
    chains = {chain for _, chain, _ in rings} if any(_is_ahead(scene, ring) for scene, _, ring in rings) else set()
    held = _held(scenes) - chains
    chains |= held
    lookups = _lookups(scenes, chains)
    chains -= {chain for scene in scenes for chain in _addressing(scene.graph, chains)} - lookups
    loads = [node for scene in scenes for node in scene.graph.nodes if node.kind == "load" and node.chain in chains]
    registers = held | {chain for _, chain, ring in rings if ring.registers}
    narrow = {node.chain for scene in scenes for node in scene.graph.nodes if is_narrow(scene, node)} - registers
    narrow -= {chain for chain in narrow & chains if _are_rows(scenes, chain)}
    nodes: list[Node] = []
    refused: list[Refusal] = []
    for node in (node for node in loads if not node.tile):
        if node.loop is None:
            refused.append(_refusal(node, "it is not in the loop itself, but in a function that the loop calls"))
        elif node.chain in narrow:
            refused.append(_refusal(node, f"a thread loads less than the {COPY_BITS // 8} bytes that it can copy"))
        else:
            nodes.append(node)
    tiles = [node for node in loads if node.tile and node.loop is not None]
    return _Compiled(nodes, tiles, held, lookups, registers, refused)


def _refused_by_text(
    text: AuthorText,
    inside: Node,
    loads: Sequence[Node],
    lookups: Container[CallChain],
    scalars: Sequence[ScalarLoad],
    pointers: frozenset[str],
) -> Iterator[Refusal]:
    """Those of one loop's loads, and of its scalars, that the loop as written keeps where they are.

    `inside`: any value of the loop's.
    """
    key, loop = inside.site.function, inside.loop
    assert loop is not None
    own = [scalar for scalar in scalars if scalar.loop is loop]
    looked_up = {scalar.site.position for scalar in own if scalar.looked_up}
    first = {node.site.position for node in loads if node.chain in lookups} | looked_up
    beside = {scalar.site.position for scalar in own} | first
    positions = sorted({node.site.position for node in loads} | beside)
    while positions:
        answer = can_run_ahead(
            text.functions[key],
            loop,
            positions,
            helpers=text.helpers,
            pointers=pointers,
            lookups=frozenset(first),
            scalars=frozenset(looked_up),
            others=text.aliases,
        )
        if answer.reason is None:
            return
        gone = [answer.culprit] if answer.culprit in positions else list(positions)
        yield from (Refusal(key, position, answer.reason) for position in gone if position is not None)
        positions = [position for position in positions if position not in gone]
        if loads and beside.issuperset(positions):
            yield from (Refusal(key, position, _FOR_NONE) for position in positions)
            return


def _is_ahead(scene: Scene, ring: RingFact) -> bool:
    """Whether tiles are copied before the iteration that takes them: not to a slot that products read to its end."""
    products = [node.dot for node in scene.graph.nodes if node.kind == "dot" and node.dot is not None]
    late = {fact.instruction for fact in scene.facts.lowered.dots.values()} == {"tcgen05"}
    return ring.buffers > 1 or not (is_in_place(ring) and late and all(dot.scaled is None for dot in products))


_IN_REGISTERS = "its tiles wait in registers, and in the port's loop they are loaded when they are needed"
_FOR_NONE = "no tile of its loop is copied ahead"
_BEHIND = "the loop writes to the memory that the load reads, or orders accesses to it"
_GATHERED = "its rows are gathered when they are needed"


def _held(scenes: Sequence[Scene]) -> set[CallChain]:
    """The loads whose tiles wait in registers under all launches, as far ahead as the rings of their loops run."""
    found = {chain for scene in scenes for chain in scene.facts.lowered.held}
    for scene in scenes:
        lowered = scene.facts.lowered
        depths: dict[int, set[int]] = {}
        loads = [node for node in scene.graph.nodes if node.kind == "load" and node.loop is not None]
        # Those that say where others read come as these do, and may come earlier still.
        looked_up = {*_addressing(scene.graph, {*lowered.rings, *lowered.held})} - lowered.rings.keys()
        found -= looked_up
        for node in (node for node in loads if node.chain not in looked_up):
            fact = lowered.rings.get(node.chain) or lowered.held.get(node.chain)
            depths.setdefault(id(node.loop), set()).update([] if fact is None else [stages_of(fact)])
        for node in (node for node in loads if node.chain in found):
            alike = len(depths[id(node.loop)]) == 1 and node.chain in lowered.held
            if not alike or not node.shape:
                found.discard(node.chain)
    return found


def _waits(scene: Scene, node: Node) -> bool:
    """Whether Triton keeps what a loop loads in registers for a later iteration, or gathers it for one."""
    return node.kind == "load" and node.loop is not None and node.chain in scene.facts.lowered.prefetched


def _refusal(node: Node, reason: str) -> Refusal:
    return Refusal(node.site.function, node.site.position, reason)


def _are_rows(scenes: Sequence[Scene], chain: CallChain) -> bool:
    """Whether a load is of a row that is copied in wide pieces under every launch, as one of many or of a tile's."""
    nodes = [(scene, node) for scene in scenes for node in scene.graph.nodes if node.chain == chain]
    return all(
        copied_row(scene, chain, node.shape, node.bits) or tile_around(scene, node)
        for scene, node in nodes
        if node.kind == "load"
    )


def _addressing(graph: Graph, staged: Container[CallChain]) -> Iterator[CallChain]:
    """The loads that say where loads through rings read: those must be done when the copies start."""
    for node in graph.nodes:
        if node.kind == "load" and node.chain in staged:
            for operand in node.operands:
                yield from (source.chain for source in sources(operand) if source.kind == "load")


def _lookups(scenes: Sequence[Scene], staged: set[CallChain]) -> set[CallChain]:
    """The loads that say where loads through rings read, and that Triton copies an iteration before those.

    Under all launches, by `cp.async` to a slot of their own, in a row. Where one needs another, none.
    """
    found: set[CallChain] = set()
    others: set[CallChain] = set()
    for scene in scenes:
        addressing = {*_addressing(scene.graph, staged)}
        for node in scene.graph.nodes:
            if node.kind == "load" and node.chain in addressing:
                ring = scene.facts.lowered.rings.get(node.chain)
                plain = ring is not None and ring.is_lookup and node.loop is not None and not node.tile
                (found if plain and len(node.shape) == 1 else others).add(node.chain)
    found -= others
    within = {chain for scene in scenes for chain in _addressing(scene.graph, found)}
    return set() if within & found else found
