"""What Triton's frontend said of a kernel under one launch: plain values that cross a process border."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

from tt2gl.ir.attributes import Attribute, DialectAttr
from tt2gl.targets import Mover

Position = tuple[int, int, int, int]
"""An expression's line (from 1) and column (from 0, in UTF-8 bytes as `ast` counts), first and last, in the
author's file."""

CallChain = tuple[tuple[str, int, int], ...]
"""File, line and column of an operation's expression, then of each call that led to it, innermost first."""


@dataclass(frozen=True)
class TensorFact:
    """A runtime value: `shape` is empty for a scalar; `dtype` as Triton prints it.

    That is `fp16`, `pointer<fp16>`, or `const_pointer<fp16>`.
    """

    shape: tuple[int, ...]
    dtype: str

    @property
    def is_pointer(self) -> bool:
        """Whether the elements are addresses."""
        return self.pointee != self.dtype

    @property
    def pointee(self) -> str:
        """The dtype of what an address is of; of what is none, its own."""
        return self.dtype.removeprefix("const_").removeprefix("pointer<").split(",")[0].rstrip(">")

    @property
    def bits(self) -> int:
        """Bits of an element; of what it points to, for a pointer."""
        name = self.pointee
        digits = "".join(c for c in name.replace("fp8", "").replace("bf", "") if c.isdigit())
        return 8 if name.startswith("fp8") else int(digits or 64)


@dataclass(frozen=True)
class ConstFact:
    """A compile-time value; `value` is a plain Python value, or the text of one that is not."""

    value: Any


@dataclass(frozen=True)
class FunctionFact:
    """Something callable: `triton.language.core.load`, or a jit function (`path` set) of the user's."""

    name: str
    path: str | None = None


@dataclass(frozen=True)
class TupleFact:
    """A tuple of values; `fields`: their names in a `NamedTuple`, else none."""

    items: tuple[Fact, ...]
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class OtherFact:
    """Anything else (descriptors, modules): the name of its type."""

    kind: str


Fact = TensorFact | ConstFact | FunctionFact | TupleFact | OtherFact


def is_block(fact: Fact | None) -> bool:
    """Whether an expression is a tensor of one dimension and up."""
    return isinstance(fact, TensorFact) and bool(fact.shape)


def are_unlike_blocks(one: Fact | None, other: Fact | None) -> bool:
    """Whether an expression is a tensor both times, of one dimension and up, but of other shapes."""
    if not isinstance(one, TensorFact) or not isinstance(other, TensorFact):
        return False
    return bool(one.shape) and bool(other.shape) and one.shape != other.shape


@dataclass
class FunctionFacts:
    """One jit function under one set of argument types: every expression that the compiler reached.

    `turned`: tests to which the copies of an unrolled loop answer differently, with what the first says; `reshaped`:
    tensors that have another shape in another copy. `called`: all that the copies of a call call.
    """

    path: str
    name: str
    line: int
    expressions: dict[Position, Fact] = field(default_factory=dict)
    callees: dict[Position, str] = field(default_factory=dict)
    turned: dict[Position, bool] = field(default_factory=dict)
    reshaped: set[Position] = field(default_factory=set)
    called: dict[Position, set[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Access:
    """A global load, store or atomic as Triton's Coalesce pass would lay it out."""

    operation: str
    shape: tuple[int, ...]
    size_per_thread: tuple[int, ...]
    threads_per_warp: tuple[int, ...]
    warps_per_cta: tuple[int, ...]
    order: tuple[int, ...]


Instruction = Literal[
    "fma",
    "mma_v2",
    "mma_v2_scaled",
    "wgmma",
    "tcgen05",
    "tcgen05_scaled",
    "mfma",
    "mfma_tf32",
    "mfma_f8f6f4",
    "wmma",
    "mfma_scaled",
    "wmma_scaled",
]
"""How a dot is carried out: by `fma`s, `mma.sync`, Hopper's `wgmma` or Blackwell's `tcgen05.mma`."""


@dataclass(frozen=True)
class DotOperandFact:
    """Operand of a dot as its instruction takes it: a view of shared memory, or a tensor in registers.

    `registers`: an operand in tensor memory, of `layout` there, is stored from registers of this one. `reloaded`: one
    in registers that is read anew for each product, from shared memory in this layout, where it was put once; `turned`:
    there by threads that turn what they have first (AMD). `kept`: the same layout of one that is read before the loop
    (AMD).
    `widened`: the same layout of memory, of a loaded tile with fewer bits that is read from there and cast.
    `transposed`: that of the tile that it is the transposition of, which is read turned from there. `recast`: that of
    a transposition that is put there once, read from there and cast.
    """

    in_memory: bool
    shape: tuple[int, ...]
    element: str
    layout: DialectAttr
    registers: DialectAttr | None = None
    reloaded: DialectAttr | None = None
    turned: bool = False
    kept: DialectAttr | None = None
    widened: DialectAttr | None = None
    transposed: DialectAttr | None = None
    recast: DialectAttr | None = None


@dataclass(frozen=True)
class DotFact:
    """A dot as Triton's compiler carries it out. `from_zero`: nothing is accumulated into it.

    `memory`: how an accumulator lies in tensor memory; `accumulator` is what it is loaded into. `scales`: those of its
    operands, where they are in tensor memory. `element`: the type that it adds up in. `in_parts`: it is not loaded from
    tensor memory as a whole, but columns at a time, as the author takes it apart. `at_hand`: an operand comes from
    before the loop that it is in.
    """

    instruction: Instruction
    accumulator: DialectAttr
    a: DotOperandFact
    b: DotOperandFact
    from_zero: bool
    memory: DialectAttr | None = None
    scales: tuple[DotOperandFact, ...] = ()
    element: str = ""
    in_parts: bool = False
    at_hand: bool = False


@dataclass(frozen=True)
class RingFact:
    """The shared buffers that Triton's pipeliner copies a load's tiles to. `in_place`: products may read them there.

    `copied`: the layout of the addresses that they are copied from. `registers`: they come to registers, in that
    layout, and are stored from there; `stored`: in this one, where they get another before. `direct`: AMD's chip whose
    waves copy them without registers. `looked_up`: they say where other loads read. `held`: they stay in registers, in
    that layout, and there are no such buffers. `late`: they are loaded below the read of the iteration's own.
    `located`: what says where they are is loaded in the same iteration as they, not before. `split`: they are of a loop
    whose turns do the latter of two products, and the former of the next iteration. `again`: what stays in registers is
    loaded where it is read in other layouts than that, an operand's.
    """

    buffers: int
    shape: tuple[int, ...]
    layout: DialectAttr
    in_place: bool = True
    copied: Attribute = None
    registers: bool = False
    stored: Attribute = None
    direct: str = ""
    looked_up: bool = False
    held: bool = False
    late: bool = False
    located: bool = False
    split: bool = False
    again: bool = False

    @property
    def is_operand(self) -> bool:
        """Whether the layout is that of a product's operand, or cut from one."""
        layout: Attribute = self.layout
        while isinstance(layout, DialectAttr) and layout.name == "ttg.slice":
            layout = layout.get("parent")
        return isinstance(layout, DialectAttr) and bool(layout.name == "ttg.dot_op")

    @property
    def in_a_row(self) -> bool:
        """Whether threads copy the tiles, 4 bytes or more each, and they lie one element after the other."""
        plain = (self.layout.get("vec"), self.layout.get("maxPhase"), self.layout.get("order")) == (1, 1, (0,))
        by_threads = not self.registers and not self.direct
        return by_threads and plain and bool(self.layout.name == "ttg.swizzled_shared")

    @property
    def is_lookup(self) -> bool:
        """Whether threads copy what says where loads read, in a row."""
        return self.looked_up and self.in_a_row


@dataclass(frozen=True)
class DescriptorFact:
    """A tensor descriptor made in a kernel: its block, and how that lies in shared memory."""

    shape: tuple[int, ...]
    layout: DialectAttr


@dataclass(frozen=True)
class Lowered:
    """What is decided late: instructions of dots, rings of loads, tiles of descriptors.

    `prefetched`: the loads that Triton does iterations early, and keeps in registers; `held`: those of AMD among them
    that a loop does once an iteration, with how many iterations early. `specialised`: the loops, by
    file, line and column, of which Triton gives each part (copies, products, the rest) to warps of its own.
    `inferred`: whether a reshape, transposition or split has the layout that follows from that of its operand, a
    product, or leads to one's operand. `stores`: the layout of a stored value that has a product's, or one that is made
    of it. `turned`: that of a tile loaded to be turned within threads, on its way to shared memory (AMD). `operands`:
    the loads that are in the layout of a product's operand as they come (AMD). `copied`: the loads through descriptors,
    outside of loops that run ahead, whose tiles products do not take where they lie. `spread`: the stores in
    a layout for memory. `places`: the order of what loops load by themselves and read from tensor memory. `uneven`: the
    loads that are copied ahead in the first of so many loops alone, or in all others.
    """

    dots: dict[CallChain, DotFact] = field(default_factory=dict)
    rings: dict[CallChain, RingFact] = field(default_factory=dict)
    descriptors: dict[CallChain, DescriptorFact] = field(default_factory=dict)
    specialised: tuple[tuple[str, int, int], ...] = ()
    inferred: dict[CallChain, bool] = field(default_factory=dict)
    prefetched: frozenset[CallChain] = frozenset()
    held: dict[CallChain, RingFact] = field(default_factory=dict)
    stores: dict[CallChain, DialectAttr] = field(default_factory=dict)
    turned: dict[CallChain, DialectAttr] = field(default_factory=dict)
    operands: frozenset[CallChain] = frozenset()
    copied: frozenset[CallChain] = frozenset()
    spread: frozenset[CallChain] = frozenset()
    places: dict[CallChain, int] = field(default_factory=dict)
    uneven: dict[CallChain, int] = field(default_factory=dict)

    @property
    def may_be_parted(self) -> bool:
        """Whether a port can have warps of their own for copies, products and the rest, if its loops are such."""
        dots = [*self.dots.values()]
        in_memory = all(dot.instruction == "tcgen05" and dot.a.in_memory and dot.b.in_memory for dot in dots)
        # Of two, the second takes what is made of the first from tensor memory.
        of_weights = [dot for dot in dots if dot.a.registers is not None]
        return in_memory and (len(dots), len(of_weights)) in ((1, 0), (2, 1))


@dataclass(frozen=True)
class LaunchFacts:
    """All facts of one launch. `entry` names the kernel's own entry in `functions`.

    `mover`: what copies tiles through tensor descriptors on the target; empty where nothing does. `aligning`: the
    arguments without whose alignment an access is narrower, where launches of the kernel differ in that; of several
    sets of them, one is enough.
    """

    entry: str
    functions: dict[str, FunctionFacts]
    accesses: dict[CallChain, Access]
    lowered: Lowered = field(default_factory=Lowered)
    mover: Mover = ""
    aligning: dict[CallChain, tuple[tuple[str, ...], ...]] = field(default_factory=dict)


def without_parts(facts: LaunchFacts) -> LaunchFacts:
    """The facts of a launch of which no loop's parts have warps of their own."""
    return replace(facts, lowered=replace(facts.lowered, specialised=()))


def without_lookups(facts: LaunchFacts) -> LaunchFacts:
    """The facts of a launch in which what says where other loads read comes to registers, and before those."""
    known = facts.lowered.rings.items()
    rings = {at: replace(ring, registers=ring.registers or ring.looked_up, located=False) for at, ring in known}
    return replace(facts, lowered=replace(facts.lowered, rings=rings))


def without_halves(facts: LaunchFacts) -> LaunchFacts:
    """The facts of a launch no turn of whose loops does halves of two iterations."""
    rings = {at: replace(ring, split=False) for at, ring in facts.lowered.rings.items()}
    return replace(facts, lowered=replace(facts.lowered, rings=rings))


def without_rings(facts: LaunchFacts) -> LaunchFacts:
    """The facts of a launch whose loads are left where they are."""
    return replace(facts, lowered=replace(facts.lowered, rings={}, prefetched=frozenset(), held={}))
