"""The dots and rings of a kernel, each under every launch that reaches it, and what is asked of them one by one."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.amd_shared_layouts import TURNED_TILE, is_turned
from tt2gl.analysis.facts import CallChain, DotFact, Instruction, RingFact
from tt2gl.analysis.graph import Definition, Graph, Node
from tt2gl.analysis.memory import Scene
from tt2gl.analysis.statics import position_of
from tt2gl.analysis.terms import Term, is_of_operand
from tt2gl.pipelining.direct import DIRECT_COPIES
from tt2gl.trees import nodes_in

LOOKED_UP_SHARED = "gl.SwizzledSharedLayout(1, 1, 1, [0])"
"""How Triton lays out the slots of what says where loads read, one element after the other."""


class Mixed(Exception):
    """Launches carry one dot out by different instructions; `node` is the dot."""

    def __init__(self, node: Node, instructions: set[Instruction]) -> None:
        super().__init__(", ".join(sorted(instructions)))
        self.node = node


@dataclass
class DotUse:
    """One dot of the source in one calling context, under every launch that reaches it."""

    node: Node
    name: str
    facts: dict[int, DotFact] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def instruction(self) -> Instruction:
        """How it is carried out. Raises `Mixed`."""
        found = {fact.instruction for fact in self.facts.values()}
        if len(found) != 1:
            raise Mixed(self.node, found)
        return next(iter(found))


@dataclass
class RingUse:
    """One load whose tiles go through shared memory, under every launch that reaches it."""

    node: Node
    name: str
    facts: dict[int, RingFact] = field(default_factory=dict)
    shapes: dict[int, tuple[int, ...]] = field(default_factory=dict)

    @property
    def in_memory(self) -> bool:
        """Whether a dot takes the tiles in place."""
        return any(is_in_place(fact) for fact in self.facts.values())

    @property
    def kinds(self) -> set[str]:
        """Of what kind its layouts are: what reads it in a loop that some launches reach may not where others' does."""
        return {str(fact.layout.name) for fact in self.facts.values()}

    @property
    def registers(self) -> bool:
        """Whether the tiles come to registers, and are stored from there."""
        return all(fact.registers for fact in self.facts.values())

    @property
    def looked_up(self) -> bool:
        """Whether they say where other loads read."""
        return all(fact.is_lookup for fact in self.facts.values())

    @property
    def held(self) -> bool:
        """Whether the tiles stay in registers."""
        return all(fact.held for fact in self.facts.values())

    def holds(self, term: Term) -> bool:
        """Whether the tiles stay in registers in this layout: where they are loaded again in others, an operand's."""
        return not self.again or is_of_operand(term)

    @property
    def again(self) -> bool:
        """Whether the tiles are loaded again in other layouts than that in which they stay in registers."""
        return any(fact.again for fact in self.facts.values())

    @property
    def late(self) -> bool:
        """Whether the tiles of an iteration ahead are loaded below the read of its own, under every launch."""
        return all(fact.late for fact in self.facts.values())

    @property
    def located(self) -> bool:
        """Whether what says where the tiles are is loaded in the same iteration as they, under every launch."""
        return all(fact.located for fact in self.facts.values())

    @property
    def split(self) -> bool:
        """Whether a turn does the latter of two products, and the former of the next, under every launch."""
        return all(fact.split for fact in self.facts.values())

    @property
    def direct(self) -> str:
        """What copies the tiles to LDS without registers; empty where nothing does."""
        return DIRECT_COPIES.get(next(iter(self.facts.values())).direct, "")

    @property
    def stored(self) -> str:
        """The function that tiles are put through before they are stored; empty where there is none."""
        turned = all(is_turned(fact.copied, fact.stored, fact.shape) for fact in self.facts.values())
        return TURNED_TILE if turned else ""


def either(first: Node, second: Node) -> bool:
    """Whether a condition of their loop takes either one value or the other."""
    assert first.loop is not None

    def within(body: Sequence[ast.stmt], node: Node) -> bool:
        places = (position_of(each) for part in body for each in nodes_in(part) if isinstance(each, ast.expr))
        return node.site.position in places

    branches = [each for each in nodes_in(first.loop) if isinstance(each, ast.If)]
    pairs = ((first, second), (second, first))
    return any(within(each.body, one) and within(each.orelse, other) for each in branches for one, other in pairs)


def fact_of(node: Node, scene: Scene) -> DotFact | None:
    """What Triton makes of a dot: of one that it computes only once, what it makes of the dot that it is equal to."""
    known: Mapping[CallChain, DotFact] = scene.facts.lowered.dots
    if node.chain in known:
        return known[node.chain]
    shapes = [operand.shape for operand in node.operands[:2]]
    alike = (
        other
        for other in scene.graph.nodes
        if other.kind == "dot" and other.chain in known and [operand.shape for operand in other.operands[:2]] == shapes
    )
    return next((known[other.chain] for other in alike), None)


def ring_of(node: Node, scene: Scene, held: Collection[CallChain]) -> RingFact | None:
    """Where the tiles of a loop's load wait until they are read; None for other values."""
    if node.kind != "load" or node.loop is None:
        return None
    lowered = scene.facts.lowered
    return (
        lowered.rings.get(node.chain) if node.staged else lowered.held.get(node.chain) if node.chain in held else None
    )


def stages_of(ring: RingFact, released: bool = False) -> int:
    """How many stages a ring is for: one that is read into registers has a buffer less, but where waves copy."""
    return ring.buffers + (not ring.direct and (released or not is_in_place(ring)))


def is_in_place(ring: RingFact) -> bool:
    """Whether a ring is laid out for an instruction that reads shared memory."""
    return ring.in_place and not ring.registers and bool(ring.layout.name == "ttg.nvmma_shared")


def names_in(graph: Graph) -> dict[int, str]:
    """The variable that an expression's value becomes, or becomes part of, by the expression."""
    names: dict[int, str] = {}

    def give(node: Node, name: str) -> None:
        names.setdefault(id(node), name)
        if node.kind == "elementwise":
            for operand in node.operands:
                give(operand, name)

    for step in graph.steps:
        if isinstance(step, Definition):
            give(step.node, step.name)
    return names


def are_alike(use: RingUse, node: Node, index: int) -> bool:
    """Whether a ring's tiles are of as many elements as another under a launch: in words, where that has no such."""
    if index in use.shapes:
        return use.shapes[index] == node.shape
    return use.node.dims_known == node.dims_known


def loaded_from(value: Node) -> str | None:
    """The pointer that a value is loaded from as it is; None for one that is computed."""
    seen: set[int] = set()
    while value.kind == "read" and value.web is not None and id(value) not in seen:
        seen.add(id(value))
        value = value.web.find().definitions[0].node
    return value.pointer


def lies_as_taken(use: DotUse, operand: int, ring: RingUse, turned: bool) -> bool:
    """Whether the rows of a ring's tiles are those that a product takes: it takes 32-bit elements in one way."""
    for index, fact in ring.facts.items():
        taken = use.facts.get(index)
        layout = fact.layout if taken is None else (taken.b if operand else taken.a).layout
        ways = [bool(each.get("transposed")) for each in (fact.layout, layout)]
        if layout.get("elementBitWidth") == 32 and ways[0] != ways[1] ^ turned:
            return False
    return True
