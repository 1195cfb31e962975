"""The layouts that dots and rings ask for, under names: accumulators, operands in shared memory, rings of buffers.

What each launch's layouts are, Triton's own compiler says (`analysis.lowered`); they are written as formulas of the
kernel's constexprs where one gives exactly those.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tt2gl.analysis.facts import CallChain, DotFact, DotOperandFact, Instruction, RingFact
from tt2gl.analysis.graph import Definition, Graph, Node
from tt2gl.analysis.memory import Classes, named_dims
from tt2gl.ir.attributes import DialectAttr
from tt2gl.analysis.terms import Root, Stored, Term, root_of


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
    depths: dict[int, int] = field(default_factory=dict)

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


class TensorCores:
    """Dots and rings of a kernel, found once for all its launches."""

    def __init__(self, classes: Classes) -> None:
        self.classes, self.scenes = classes, classes.scenes
        self.dots: dict[CallChain, DotUse] = {}
        self.rings: dict[CallChain, RingUse] = {}
        self._accumulators: set[str] = set()
        staged = {chain for scene in self.scenes for chain in scene.facts.lowered.rings}
        for index, scene in enumerate(self.scenes):
            names = _names(scene.graph)
            for node in scene.graph.nodes:
                node.staged = node.kind == "load" and node.chain in staged
                if node.kind == "dot" and (fact := scene.facts.lowered.dots.get(node.chain)) is not None:
                    dot = self.dots.setdefault(node.chain, DotUse(node, names.get(id(node), "dot")))
                    dot.facts[index], dot.shapes[index] = fact, node.shape
                    dot.depths[index] = node.operands[0].shape[-1]
                elif node.staged and (ring := scene.facts.lowered.rings.get(node.chain)) is not None:
                    use = self.rings.setdefault(node.chain, RingUse(node, names.get(id(node), "tile")))
                    use.facts[index], use.shapes[index] = ring, node.shape

    def is_accumulator(self, term: Term) -> bool:
        """Whether a layout is a dot's."""
        return root_of(term).name in self._accumulators

    def accumulator(self, node: Node) -> Root:
        """The layout of a dot's result."""
        use = self.dots[node.chain]
        layouts = {index: fact.accumulator for index, fact in use.facts.items()}
        dims = named_dims(node, self.scenes, use.shapes)
        label = "mma_layout" if len(self.dots) == 1 else f"{use.name}_layout"
        name = self._register(dims, layouts, label, "")
        self._accumulators.add(name)
        return Root(name)

    def k_width(self, node: Node, operand: int) -> str:
        """How many elements along K a thread has side by side, as source."""
        widths = {self._operand(fact, operand).layout.get("kWidth", 0) for fact in self.dots[node.chain].facts.values()}
        return str(max(widths))

    def in_memory(self, node: Node, operand: int) -> bool:
        """Whether a dot takes an operand from shared memory."""
        return all(self._operand(fact, operand).in_memory for fact in self.dots[node.chain].facts.values())

    def stored(self, node: Node, operand: int, value: Node, graph: Graph, turned: bool) -> Stored:
        """The shared layout of an operand that is put into memory for a dot; `turned`: before it is transposed."""
        use = self.dots[node.chain]
        taken = {index: self._operand(fact, operand) for index, fact in use.facts.items()}
        layouts = {index: _turned(fact.layout) if turned else fact.layout for index, fact in taken.items()}
        shapes = {index: fact.shape[::-1] if turned else fact.shape for index, fact in taken.items()}
        name = value.web.find().name if value.web is not None else f"{use.name}_{('lhs', 'rhs')[operand]}"
        dims = named_dims(value, self.scenes, shapes)
        root = self._register(dims, layouts, f"{name}_shared", "")
        return Stored(Root(root), graph.spelled(value))

    def ring(self, node: Node, graph: Graph) -> Stored:
        """The shared layout of a ring's slots."""
        use = self.rings[node.chain]
        layouts = {index: fact.layout for index, fact in use.facts.items()}
        dims = named_dims(node, self.scenes, use.shapes)
        return Stored(Root(self._register(dims, layouts, f"{use.name}_shared", "")), graph.spelled(node))

    @staticmethod
    def _operand(fact: DotFact, operand: int) -> DotOperandFact:
        return fact.b if operand else fact.a

    def _register(self, dims: tuple[str, ...], layouts: Mapping[int, object], label: str, comment: str) -> str:
        """The class of these layouts; named where it is new."""
        source, exact = _literal(layouts)
        return self.classes.named(dims, layouts, source, exact, label, comment)


def _turned(layout: DialectAttr) -> DialectAttr:
    """A shared layout as it is before a transposition of the memory in it."""
    flipped = {"transposed": lambda value: not value, "order": lambda value: tuple(reversed(value))}
    return replace(
        layout, parameters=tuple((key, flipped[key](v) if key in flipped else v) for key, v in layout.parameters)
    )


def _literal(layouts: Mapping[int, Any]) -> tuple[str, bool]:
    """One launch's layout as Gluon source, and whether it is every launch's."""
    attribute = next(iter(layouts.values()))
    of = dict(attribute.parameters)
    if attribute.name == "ttg.nvidia_mma":
        version = [of["versionMajor"], of["versionMinor"]]
        warps, shape = list(of["warpsPerCTA"]), list(of["instrShape"])
        text = f"gl.NVMMADistributedLayout({version}, {warps}, {shape})"
    elif attribute.name == "ttg.nvmma_shared":
        width, bits = of["swizzlingByteWidth"], of["elementBitWidth"]
        text = f"gl.NVMMASharedLayout({width}, {bits}, 2, transposed={of['transposed']})"
    else:
        numbers = (of["vec"], of["perPhase"], of["maxPhase"], list(of["order"]))
        text = f"gl.SwizzledSharedLayout({', '.join(map(str, numbers))})"
    return text, len(set(layouts.values())) == 1


def _names(graph: Graph) -> dict[int, str]:
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
