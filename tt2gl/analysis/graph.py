"""The value graph of one kernel under one launch: tensors, the expressions that make them, the names that hold them.

Helpers are inlined, static branches decided, and every definition of a name that a loop or a branch joins with
others belongs to one `Web` (Briggs' term): the values that must share a layout because one name carries them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tt2gl.analysis.facts import CallChain, Position
from tt2gl.analysis.terms import Term
from tt2gl.plan import Scaled, Start
from tt2gl.trees import nodes_in

FunctionKey = tuple[str, int]
"""A jit function: the author's file and the line of its `def`."""

Kind = Literal[
    "create",  # arange, full, zeros: takes the layout it is told
    "read",  # a name
    "elementwise",  # operands and result share a layout; operands of lower rank are expanded on the left
    "expand",  # expand_dims(axis)
    "load",
    "store",
    "atomic",
    "reduce",  # over axis; None: all of them
    "scan",  # result has the operand's layout
    "join",  # two values, side by side in a last dimension of two
    "split",  # the reverse
    "dot",  # a matrix product, with what is added to it as third operand
    "upcast",  # a scaled product's operand, and its scales if it has any, as one of 16 bits
    "descriptor",  # a tensor descriptor: no tensor, but its tiles have a layout in shared memory
    "opaque",  # result's layout is the compiler's to infer: reshape, permute, gather
    "call",  # the value that an inlined helper returned
    "argument",  # a value passed to a helper
]

_ADDRESS = 64
"""The bits of an address."""


@dataclass(frozen=True)
class Site:
    """Where an expression stands: its function, its position there, its statement, and the calls that led there."""

    function: FunctionKey
    position: Position
    statement: Position
    context: CallChain = ()


@dataclass(frozen=True)
class DotSite:
    """Where a dot's call and its operands stand; `dtype` is the accumulator's, as source.

    `precision`: the author's choice for 32-bit floats, as source. `imprecise`: how many 8-bit products are added in
    less than 32 bits, as source. `is_sum`: the call is one side of a sum, whose other side it takes as its accumulator.
    `scaled`: its operands have scales. `promoted`: what Triton makes of operands of 8-bit floats first, as source.
    `summed`: what it adds up in, where its result is made that afterwards. `chip`: AMD's that has its instruction.
    `asked`: what holds of the names that give its precision, as source. `start`: how what a sum adds to it becomes its
    accumulator.
    """

    call: Position
    a: Position
    b: Position
    accumulator: Position | None
    dtype: str
    precision: str | None
    imprecise: str | None
    is_sum: bool
    scaled: Scaled | None = None
    promoted: str | None = None
    summed: str | None = None
    chip: str = ""
    asked: str | None = None
    start: tuple[Start, ...] = ()


@dataclass(eq=False)
class Node:
    """One tensor-valued expression in one calling context. `dims` are its extents as source text, None if unknown.

    `loop`: the innermost loop of its function, where every turn of it computes the value. `staged`: a load whose tiles
    go through shared memory; `replaced`: with another value than zero where they are masked out. `order`: of
    dimensions, which a transposition changes and a cast to the type that its operand has does not; `squeezed`: a
    reshape that leaves out leading dimensions of one element. `tile`: the descriptor that a load or store goes through.
    `weighed`: elements and layouts of the operands that its own layout was chosen among.
    `address`: it points to memory, and its `bits` are of what is there. `dtype`: a load's, as source. `scales`: those
    that a product takes from tensor memory. `counts`: a range from zero.
    """

    kind: Kind
    site: Site
    shape: tuple[int, ...]
    dims: tuple[str | None, ...]
    bits: int
    operands: tuple[Node, ...] = ()
    axis: int | None = None
    keep_dims: bool = False
    counts: bool = False
    depth: int = 0
    chain: CallChain = ()
    pointer: str | None = None
    address: bool = False
    web: Web | None = None
    value: Node | None = None
    scalars: tuple[tuple[Position, str], ...] = ()
    function: str = ""
    several: bool = False
    cheap: bool = True
    anchored: bool = False
    natural: Term | None = None
    operand_term: Term | None = None
    dot: DotSite | None = None
    loop: ast.For | None = None
    staged: bool = False
    replaced: bool = False
    order: tuple[int, ...] = ()
    squeezed: bool = False
    tile: str = ""
    dtype: str = ""
    weighed: tuple[tuple[int, Term], ...] = ()
    scales: tuple[Node, ...] = ()

    @property
    def dims_known(self) -> tuple[str, ...]:
        """Extents as source, by number where they have no name."""
        return tuple(name or str(extent) for name, extent in zip(self.dims, self.shape, strict=False))

    @property
    def width(self) -> int:
        """How many bits each of its elements takes in registers."""
        return _ADDRESS if self.address else self.bits

    @property
    def elements(self) -> int:
        """How many elements the tensor has."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count


def sources(node: Node) -> Iterator[Node]:
    """Everything that a value is made of, itself first, also through names and helpers."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        yield current
        stack.extend((*current.operands, *current.scales))
        if current.value is not None:
            stack.append(current.value)
        if current.web is not None:
            stack.extend(definition.node for definition in current.web.find().definitions)


def uncast(node: Node) -> tuple[Node, list[Node]]:
    """What is cast to the type that it has, and those casts."""
    casts: list[Node] = []
    while node.kind == "elementwise" and node.order:
        casts.append(node)
        node = node.operands[0]
    return node, casts


def operands_rank(node: Node) -> int:
    """How many dimensions the operand with the most of them has: others get theirs on the left."""
    return max((len(operand.shape) for operand in node.operands), default=len(node.shape))


@dataclass(eq=False)
class Definition:
    """One statement giving a name a value (`node`), or a parameter taking an argument in the calls `entry`."""

    name: str
    site: Site
    node: Node
    depth: int
    clonable: bool
    web: Web | None = None
    entry: CallChain | None = None

    def own_web(self) -> Web:
        """The web that it is of, once it has a name."""
        assert self.web is not None
        return self.web.find()


def counts_from_zero(node: Node) -> bool:
    """Whether a value is sure to be a range from zero, also where it is what a helper is given."""
    if node.kind == "argument" and node.value is not None:
        return counts_from_zero(node.value)
    made = made_once(node)
    return counts_from_zero(made.node) if made is not None else node.counts


def made_once(node: Node) -> Definition | None:
    """Where the name that is read here gets its value, in one place only; None for what is no such name."""
    return node.web.find().made_once() if node.kind == "read" and node.web is not None else None


@dataclass(eq=False)
class Web:
    """Definitions that share a name and a layout, and the layouts they are wanted in."""

    name: str
    function: FunctionKey
    definitions: list[Definition] = field(default_factory=list)
    natural: Term | None = None
    cheap: bool = True
    versions: list[Term] = field(default_factory=list)
    merged: Web | None = None

    def find(self) -> Web:
        """The web that this one has become part of."""
        web = self
        while web.merged is not None:
            web = web.merged
        return web

    def join(self, other: Web) -> Web:
        """Both webs as one."""
        first, second = self.find(), other.find()
        if first is not second:
            first.definitions.extend(second.definitions)
            second.merged = first
        return first

    def made_once(self) -> Definition | None:
        """The one definition, where there is only one."""
        return self.definitions[0] if len(self.definitions) == 1 else None

    def made_outside(self, reading: Node) -> Definition | None:
        """The one definition, where it stands outside the loop that reads it."""
        made = self.made_once()
        return made if made is not None and made.depth < reading.depth else None


Mark = tuple[int, int, int, int]
"""A point in a graph's making: how many nodes, steps, webs and mentions it has by then."""


@dataclass
class Graph:
    """A kernel's nodes in program order, its definitions and the roots that must be computed whatever reads them.

    `words`: for each call of a helper, what its parameters are called there by their source in the kernel; `namesakes`:
    all of those that have one source.
    `parameters`: the kernel's own; `borrowed`: those that a helper needs and is not given. `bound`: the names that are
    bound before a loop. `mentions`: names that are read for what is known of them alone, such as `x` of `x.dtype`.
    `constants`: variables that are given a constant, or a parameter, and where.
    """

    nodes: list[Node] = field(default_factory=list)
    steps: list[Definition | Node] = field(default_factory=list)
    webs: list[Web] = field(default_factory=list)
    calls: list[CallSite] = field(default_factory=list)
    touched: set[FunctionKey] = field(default_factory=set)
    words: dict[tuple[FunctionKey, CallChain], dict[str, str]] = field(default_factory=dict)
    namesakes: dict[tuple[FunctionKey, CallChain], dict[str, list[str]]] = field(default_factory=dict)
    parameters: frozenset[str] = frozenset()
    borrowed: dict[FunctionKey, set[str]] = field(default_factory=dict)
    bound: dict[ast.stmt, frozenset[str]] = field(default_factory=dict)
    mentions: list[tuple[Site, Web]] = field(default_factory=list)
    constants: set[tuple[str, Site]] = field(default_factory=set)

    def distinct_webs(self) -> Iterator[Web]:
        """Every web that has not become part of another."""
        return (web for web in self.webs if web.merged is None)

    def mark(self) -> Mark:
        """How much of it there is."""
        return len(self.nodes), len(self.steps), len(self.webs), len(self.mentions)

    def since(self, mark: Mark) -> list[Node]:
        """The nodes that came after a mark."""
        return self.nodes[mark[0] :]

    def forget(self, mark: Mark) -> None:
        """Drop what came after a mark, of which nothing that stays is made."""
        for parts, length in zip((self.nodes, self.steps, self.webs, self.mentions), mark, strict=True):
            del parts[length:]  # type: ignore[attr-defined]

    def spelled(self, node: Node) -> tuple[str, ...]:
        """A node's extents in the words of the function it stands in: a parameter that has one, else as known."""
        local = self.words.get((node.site.function, node.site.context))
        if local is None:
            return node.dims_known
        if own := self.by_parameters(node):
            return own
        return tuple(
            self._in_all_calls(node, place) or local.get(dim) or self._borrow(dim, extent, node.site.function, local)
            for place, (dim, extent) in enumerate(zip(node.dims_known, node.shape, strict=True))
        )

    def word(self, node: Node, name: str) -> str:
        """What the function that a node stands in calls a parameter of the kernel; empty where it is given none."""
        local = self.words.get((node.site.function, node.site.context))
        return name if local is None else local.get(name, "")

    def by_parameters(self, node: Node) -> tuple[str, ...]:
        """The extents of a value whose helper's calls give it different ones, where its parameters say them."""
        return _by_parameters(node) if any(other.shape != node.shape for other in self._of_all_calls(node)) else ()

    def _of_all_calls(self, node: Node) -> Iterator[Node]:
        """What the calls of a node's helper have at its place."""
        place = node.kind, node.site.function, node.site.position
        return (other for other in self.nodes if (other.kind, other.site.function, other.site.position) == place)

    def _in_all_calls(self, node: Node, place: int) -> str | None:
        """The parameter that has a node's extent in each call of its helper, where several have it in this one."""

        def named(value: Node) -> list[str]:
            known = self.namesakes.get((value.site.function, value.site.context), {})
            return known.get(value.dims_known[place], []) if place < len(value.shape) else []

        names = named(node)
        others = [set(named(other)) for other in self._of_all_calls(node)] if len(names) > 1 else []
        return next((name for name in names if others and all(name in each for each in others)), None)

    def element_type(self, load: Node) -> str:
        """The dtype of a load's tiles as source that is right before its loop: a pointer's, where one is known there.

        A parameter, or a name in the address that the loop does not make.
        """
        local = self.words.get((load.site.function, load.site.context))
        known = load.pointer if local is None or load.pointer is None else local.get(load.pointer)
        if known is None and (load.loop is None or load.function in self.bound.get(load.loop, ())):
            known = load.function
        return f"{known}.dtype.element_ty" if known else load.dtype

    def _borrow(self, dim: str, extent: int, helper: FunctionKey, local: dict[str, str]) -> str:
        """An extent that a helper knows by none of its parameters: by the kernel's, which it is to be given too."""
        names = {node.id for node in nodes_in(ast.parse(dim)) if isinstance(node, ast.Name)} & self.parameters
        if names & set(local.values()):
            return str(extent)
        self.borrowed.setdefault(helper, set()).update(names)
        return dim


def _by_parameters(node: Node) -> tuple[str, ...]:
    """The extents of a helper's parameter, or of a product of two, as source; empty for other values."""
    if node.kind == "dot":
        sides = [_by_parameters(operand) for operand in node.operands[:2]]
        return (*sides[0][:-1], sides[1][-1]) if all(sides) else ()
    made = node.web.find().definitions if node.kind == "read" and node.web is not None else []
    if len(made) != 1 or made[0].entry is None:
        return ()
    return tuple(f"{made[0].name}.shape[{place}]" for place in range(len(node.shape)))


@dataclass(frozen=True)
class CallSite:
    """A helper called by a jit function; the callee's nodes have the call's position before `context`."""

    caller: FunctionKey
    callee: FunctionKey
    position: Position
    context: CallChain
