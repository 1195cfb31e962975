"""Which loads go through rings: those that Triton's pipeliner copies ahead, where running ahead changes nothing.

Triton's answer comes from what it compiled; that its own text may be taken apart so is asked of the author's source,
and a load that may not run ahead (it reads what the loop writes, or is masked with a value) stays where it is.
"""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tt2gl.analysis.copied_rows import COPY_BITS, copied_row, is_narrow, tile_around
from tt2gl.analysis.facts import (
    CallChain,
    ConstFact,
    Fact,
    FunctionFact,
    FunctionFacts,
    LaunchFacts,
    OtherFact,
    Position,
    RingFact,
    TensorFact,
    TupleFact,
)
from tt2gl.analysis.graph import FunctionKey, Graph, Node, sources
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.operations import short_name
from tt2gl.analysis.scalar_rings import ScalarLoad, scalar_loads
from tt2gl.analysis.statics import position_of
from tt2gl.analysis.uses import is_in_place, stages_of
from tt2gl.pipelining.ahead import can_run_ahead, rereads
from tt2gl.pipelining.flow import targets
from tt2gl.pipelining.loads import other_of
from tt2gl.trees import nodes_in


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
    rings = [(scene, chain, ring) for scene in scenes for chain, ring in scene.facts.lowered.rings.items()]
    chains = {chain for _, chain, _ in rings} if any(_is_ahead(scene, ring) for scene, _, ring in rings) else set()
    held = _held(scenes) - chains
    chains |= held
    lookups = _lookups(scenes, chains)
    chains -= {chain for scene in scenes for chain in _addressing(scene.graph, chains)} - lookups
    functions = {
        (path, node.lineno): node
        for path, tree in trees.items()
        for node in nodes_in(tree)
        if isinstance(node, ast.FunctionDef)
    }
    nodes = [node for scene in scenes for node in scene.graph.nodes if node.kind == "load" and node.chain in chains]
    tiles = [node for node in nodes if node.tile and node.loop is not None]
    nodes = [node for node in nodes if not node.tile]
    registers = {chain for scene in scenes for chain, ring in scene.facts.lowered.rings.items() if ring.registers}
    registers |= held
    narrow = {node.chain for scene in scenes for node in scene.graph.nodes if is_narrow(scene, node)} - registers
    narrow -= {chain for chain in narrow & chains if _are_rows(scenes, chain)}
    refused: list[Refusal] = []
    for node in nodes:
        if node.loop is None:
            refused.append(_refusal(node, "it is not in the loop itself, but in a function that the loop calls"))
        elif node.chain in narrow:
            refused.append(_refusal(node, f"a thread loads less than the {COPY_BITS // 8} bytes that it can copy"))
    nodes = [node for node in nodes if node.loop is not None and node.chain not in narrow]
    asked: dict[tuple[FunctionKey, int], list[Node]] = {}
    for node in nodes:
        asked.setdefault((node.site.function, id(node.loop)), []).append(node)
    helpers = {function.name: function for function in functions.values()}
    facts = [scene.facts for scene in scenes]
    aliases = {name: own for name, own in _aliases(functions, facts) if name not in helpers}
    named = {key: _pointers(key, functions[key], facts) for key in {n.site.function for n in (*nodes, *tiles)}}
    in_order = {node.chain for node in tiles if _is_behind(node, functions, named, helpers, aliases)}
    refused += [_refusal(node, _BEHIND) for node in tiles if node.chain in in_order]
    scalars = scalar_loads(scenes, functions, nodes, named) if nodes else []
    for (key, _), members in asked.items():
        loop = members[0].loop
        assert loop is not None
        pointers = named[key]
        first = {node.site.position for node in members if node.chain in lookups}
        own = [scalar for scalar in scalars if scalar.loop is loop]
        looked_up = {scalar.site.position for scalar in own if scalar.looked_up}
        first |= looked_up
        later = {scalar.site.position for scalar in own} - first
        positions = sorted({node.site.position for node in members} | first | later)
        while positions:
            answer = can_run_ahead(
                functions[key],
                loop,
                positions,
                helpers=helpers,
                pointers=pointers,
                lookups=frozenset(first),
                scalars=frozenset(looked_up),
                others=aliases,
            )
            if answer.reason is None:
                break
            gone = [answer.culprit] if answer.culprit in positions else list(positions)
            refused += [Refusal(key, position, answer.reason) for position in gone if position is not None]
            positions = [position for position in positions if position not in gone]
            if (first | later).issuperset(positions):
                refused += [Refusal(key, position, _FOR_NONE) for position in positions]
                break
    out = {(refusal.function, refusal.position) for refusal in refused}
    kept = frozenset(node.chain for node in nodes if (node.site.function, node.site.position) not in out)
    others = {
        (key, position_of(call))
        for key, function in functions.items()
        for call in nodes_in(function)
        if isinstance(call, ast.Call) and other_of(call) is not None
    }
    for node in nodes:
        replaced = (node.site.function, node.site.position) in others and node.chain not in registers
        node.replaced = node.chain in kept and replaced
    loops = [(key, members[0].loop) for (key, _), members in asked.items()]
    wide = {key: frozenset(n for k, loop in loops if k == key for n in _wide(key, loop, facts)) for key, _ in loops}
    # What says where tiles are comes as early as those do, or earlier.
    early = kept.union(*(_addressing(scene.graph, kept) for scene in scenes))
    waiting = [n for scene in scenes for n in scene.graph.nodes if n.chain not in early and _waits(scene, n)]
    refused += [_refusal(node, _GATHERED if node.tile else _IN_REGISTERS) for node in waiting]
    seen = {(known.path, known.line) for each in facts for known in each.functions.values()}
    staged = [node for node in (*nodes, *tiles) if node.chain in kept or node.tile]
    rereading = {
        key: [
            around
            for around, places in _around(functions[key], [node for node in staged if node.site.function == key])
            if rereads(functions[key], around, places, helpers, pointers, aliases)
        ]
        for key, pointers in named.items()
    }
    flattened = {
        key: frozenset(_flattened(key, functions[key], facts)).difference(
            *(targets(loop.target) for loop in rereading.get(key, ()))
        )
        for key in functions.keys() & seen
    }
    starts = {key: frozenset((loop.lineno, loop.col_offset) for loop in loops) for key, loops in rereading.items()}
    left = tuple(scalar for scalar in scalars if (scalar.site.function, scalar.site.position) not in out)
    return Staging(
        kept - held, wide, flattened, starts, tuple(dict.fromkeys(refused)), kept & held, left, frozenset(in_order)
    )


def _is_behind(
    node: Node,
    functions: Mapping[FunctionKey, ast.FunctionDef],
    pointers: Mapping[FunctionKey, frozenset[str]],
    helpers: Mapping[str, ast.FunctionDef],
    aliases: Mapping[str, str],
) -> bool:
    """Whether a load through a descriptor reads what its loop writes."""
    key = node.site.function
    assert node.loop is not None
    return rereads(functions[key], node.loop, [node.site.position], helpers, pointers[key], aliases)


def _around(function: ast.FunctionDef, nodes: Sequence[Node]) -> Iterator[tuple[ast.For, list[Position]]]:
    """The loops that loads are in, and those around them, each with its loads."""
    for loop in nodes_in(function):
        if isinstance(loop, ast.For):
            inside = {*nodes_in(loop)}
            places = [node.site.position for node in nodes if node.loop in inside]
            if places:
                yield loop, places


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


def _wide(key: FunctionKey, loop: ast.For | None, facts: Sequence[LaunchFacts]) -> Iterator[str]:
    """A loop's variable where it has 64 bits, also under the name it gets where its body assigns to it."""
    if loop is None or not isinstance(loop.target, ast.Name):
        return
    own = [known for seen in facts for known in seen.functions.values() if (known.path, known.line) == key]
    for node in nodes_in(loop):
        if isinstance(node, ast.Name) and node.id == loop.target.id and isinstance(node.ctx, ast.Load):
            said = (known.expressions.get(position_of(node)) for known in own)
            if any(isinstance(fact, TensorFact) and fact.dtype == "int64" for fact in said):
                yield from (node.id, f"{node.id}_turn")
                return


def _flattened(key: FunctionKey, function: ast.FunctionDef, facts: Sequence[LaunchFacts]) -> Iterator[str]:
    """The variables of loops that the author flattens."""
    own = [known for seen in facts for known in seen.functions.values() if (known.path, known.line) == key]
    for loop in nodes_in(function):
        if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call):
            for said in (each.value for each in loop.iter.keywords if each.arg == "flatten"):
                if all(_is_true(said, known) for known in own):
                    yield loop.target.id


def _is_true(said: ast.expr, known: FunctionFacts) -> bool:
    fact = known.expressions.get(position_of(said))
    return bool(said.value if isinstance(said, ast.Constant) else isinstance(fact, ConstFact) and fact.value)


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


def _aliases(
    functions: Mapping[FunctionKey, ast.FunctionDef], facts: Sequence[LaunchFacts]
) -> Iterator[tuple[str, str]]:
    """The names by which functions call Triton's own, as `exp2` of `exp2 = tl.exp2`, each with theirs."""
    for known in (known for seen in facts for known in seen.functions.values()):
        function = functions.get((known.path, known.line))
        for call in nodes_in(function) if function is not None else ():
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                said = known.expressions.get(position_of(call.func))
                if isinstance(said, FunctionFact) and said.path is None:
                    yield call.func.id, short_name(said.name)


def _pointers(key: FunctionKey, function: ast.FunctionDef, facts: Sequence[LaunchFacts]) -> frozenset[str]:
    """The names of a function that hold pointers under some launch, descriptors and tuples of them too."""
    own = [known for seen in facts for known in seen.functions.values() if (known.path, known.line) == key]
    found: set[str] = set()
    for node in nodes_in(function):
        if isinstance(node, ast.Name):
            said = (known.expressions.get(position_of(node)) for known in own)
            if any(map(_points, said)):
                found.add(node.id)
    return frozenset(found)


def _points(fact: Fact | None) -> bool:
    match fact:
        case TensorFact():
            return fact.is_pointer
        case TupleFact(items=items):
            return any(map(_points, items))
        case OtherFact(kind=kind):
            return "descriptor" in kind
    return False
