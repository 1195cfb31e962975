"""What analysis hands to rewriting: every edit of a file, by place, with nothing left to decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tt2gl.stages import Declaration, Stages
from tt2gl.words import AS_OPERAND, FITS_BUFFERS, HELPED, HOST_PARTS, HOST_TILES

Position = tuple[int, int, int, int]
"""An expression or statement: first line (from 1) and column (from 0, UTF-8 bytes), last line and column."""


ENTRY = (0, 0, 0, 0)
"""Where a function is entered: the place of what is done with its arguments before its first statement."""


@dataclass(frozen=True)
class Store:
    """A value that is put into shared memory: the layout there, the extents, and a function it goes `through` first.

    `narrow`: its type there, as source, where that has fewer bits. `in_place`: a dot reads it there.
    """

    layout: str
    dims: tuple[str, ...]
    through: str = ""
    narrow: str = ""
    in_place: bool = False


@dataclass(frozen=True)
class TurnsApart:
    """A loop that the compiler writes out, by line and column, whose turns are to be written apart: what it counts.

    `values`: under the launches with the most turns; `fewest`: how many of them it counts under each.
    """

    place: tuple[int, int]
    values: tuple[int, ...]
    fewest: int


@dataclass(frozen=True)
class EqualValue:
    """An assignment, by line and column, of what `name` stands for there where a `test` holds, or always if empty."""

    place: tuple[int, int]
    name: str
    test: str


@dataclass(frozen=True)
class Upcast:
    """An operand of a scaled product that becomes one of 16 bits: its elements times their scales.

    `at`: the place of the operand's format in the call, which stands for the result. `axis`: the dimension that is
    summed over. `fast_math`: the author's, as source; with it a scale that is not a number is as any other.
    """

    at: Position
    axis: int
    fast_math: str


@dataclass(frozen=True)
class Scaled:
    """A product of operands with shared scales (`tl.dot_scaled`).

    `upcasts`: what becomes of each operand; None where it stays as it is. `turned`: it is added to a transposition, so
    that its sum goes through registers every time.
    """

    upcasts: tuple[Upcast | None, Upcast | None]
    turned: bool = False


Start = Literal["cast", "broadcast", "fill"]
"""What becomes of what is added to a product, before that starts from it: a number fills a tile."""


@dataclass(frozen=True)
class Dot:
    """A matrix product: its call, its operands and its accumulator by position; its name where it is split off.

    `instruction`: `fma`, `mma_v2`, `wgmma`, `tcgen05`, or of `chip` `mfma` (as it is, `mfma_tf32`, `mfma_f8f6f4`) or
    `wmma`; one that takes scales ends in `_scaled`. `layout`, `dims`, `dtype`: of its result. Without an accumulator it
    starts from zeros; with `is_sum` it takes the other side of the sum it stands in.
    `memory`: the layout of its accumulator in tensor memory, `lhs`: its first operand there, if not in shared memory.
    `scaled`: its operands have scales. `promoted`: the dtype that its operands get before, as source; `summed`: the one
    that it adds up in, where that is not `dtype`. `asked`: what holds of the names that give its precision, by which
    its instruction was chosen. `start`: how what the sum adds to it becomes its accumulator.
    """

    call: Position
    a: Position
    b: Position
    accumulator: Position | None
    instruction: str
    layout: str
    dims: tuple[str, ...]
    dtype: str
    precision: str | None
    imprecise: str | None
    is_sum: bool
    name: str
    memory: str | None = None
    lhs: Store | None = None
    scaled: Scaled | None = None
    promoted: str | None = None
    summed: str | None = None
    chip: str = ""
    asked: str | None = None
    start: tuple[Start, ...] = ()

    @property
    def ends_at_once(self) -> bool:
        """Whether nothing of it is under way when the next loads are issued, wherever its loop is."""
        native = self.instruction == "tcgen05_scaled"
        return native or self.instruction == "tcgen05" and self.scaled is not None and self.scaled.turned

    @property
    def upcasts(self) -> tuple[Upcast, ...]:
        """The operands that become ones of 16 bits."""
        return tuple(each for each in self.scaled.upcasts if each is not None) if self.scaled is not None else ()


@dataclass(frozen=True)
class BufferAccess:
    """A global access by a buffer operation, whose address has become an offset.

    `function`: what is called. `base`: the scalar pointer, by where it stands or by name. `keeps_other`: what stands
    for masked elements is not zero. `element`: the dtype that a stored value becomes first, as source; empty if it has
    that; `constant`: it may be one of the compilation. `masked`: there is a mask.
    """

    function: str
    base: Position | str
    keeps_other: bool = True
    element: str = ""
    constant: bool = False
    masked: bool = True


@dataclass(frozen=True)
class Ring:
    """A ring of shared buffers in a function: `dtype`, `dims` and `layout` of a slot as source.

    `in_memory`: a dot takes its slots in place. `tile`: it is of tiles that a descriptor says all of (its marker does).
    `registers`: tiles come to registers, and are stored to their slots from there; `stored` is the function that they
    are put through on the way, if any. `direct`: what copies them to their slots, where waves of AMD write those.
    `ends_at_once`: dots are done with a tile in the iteration that reads it, so that its slot is free at the end of it.
    `held`: its tiles stay in registers until they are read, and there is no memory. `looked_up`: what is in its one
    slot says where other loads read. `scalar`: its tiles are one element each, read as a scalar. `late`: tiles that
    come to registers are loaded below the read of the iteration's own; `located`: when what says where they are is.
    `split`: they are of a loop each turn of which does halves of two iterations.
    """

    name: str
    dtype: str
    dims: tuple[str, ...]
    layout: str
    in_memory: bool
    tile: bool = False
    registers: bool = False
    stored: str = ""
    direct: str = ""
    ends_at_once: bool = False
    held: bool = False
    looked_up: bool = False
    scalar: bool = False
    late: bool = False
    located: bool = False
    split: bool = False


@dataclass(frozen=True)
class Edits:
    """Edits of expressions, by position. Layouts are Gluon source.

    `creations`: the layout that a creating call takes. `converts`: the layout that a value is converted to.
    `replaced`: a name that stands for what was made before. `indexed`: a reduction that also gives indices, or
    gives only those (`max index`), or one of `HELPED`. `expansions`: how many dimensions a value gains on the left, and
    its rank before.
    `fills`: a scalar that becomes a full tile (extents then dtype, and layout). `reads`, `targets`: the name that a
    variable is read or defined under. `arguments`: layouts passed to a helper. `staged`: the ring that a load's tiles
    go through (without a name: one of its own), and the layout it is read from there in (empty: taken in place).
    `zeroed`: those of which there are zeros where masks leave elements out, and not what the loads say.
    `tiles`: a `load`, `store`, `gather`, `scatter` or atomic through a tensor descriptor, by Gluon's module `mover`.
    `passed`: a conversion to a product's operand that goes through LDS in one piece where other warps have the
    elements, by the order of the tile there and the banks that it is swizzled by (0: it is not).
    `views`: a transposition of shared memory, by its order, or a reshape (an empty one). `loads`: the layout that it is
    read in. `widened`: those of which memory has fewer bits than the variable. `shortened`: a store of values with more
    bits than their places in memory, by the dtype of these; an operand that is converted in the one it was loaded in.
    `stores`: a value that a dot takes from shared memory.
    `dots`: a product, by the expression that it stands for (a call, or a sum).
    `buffers`: accesses by buffer operations. `rebased`: where pointers are made of offsets again, and of which scalar
    pointer. `sides`: the side of a sum that stays where the other is a scalar pointer.
    `narrowed`: the dtype of terms of offsets that have more bits; `stretched`: of those that have fewer, and stay so
    until they are converted. `begun`: what a sum to a scalar pointer in place begins, of which the other side is all of
    the offset, by the name that this gets.
    """

    creations: Mapping[Position, str] = field(default_factory=dict)
    converts: Mapping[Position, str] = field(default_factory=dict)
    expansions: Mapping[Position, tuple[int, int]] = field(default_factory=dict)
    replaced: Mapping[Position, str] = field(default_factory=dict)
    indexed: Mapping[Position, str] = field(default_factory=dict)
    fills: Mapping[Position, tuple[tuple[str, ...], str]] = field(default_factory=dict)
    staged: Mapping[Position, tuple[str, str]] = field(default_factory=dict)
    zeroed: frozenset[Position] = frozenset()
    tiles: Mapping[Position, str] = field(default_factory=dict)
    passed: Mapping[Position, tuple[tuple[int, ...], int]] = field(default_factory=dict)
    views: Mapping[Position, tuple[int, ...]] = field(default_factory=dict)
    shortened: Mapping[Position, str] = field(default_factory=dict)
    loads: Mapping[Position, str] = field(default_factory=dict)
    widened: frozenset[Position] = frozenset()
    stores: Mapping[Position, Store] = field(default_factory=dict)
    dots: Mapping[Position, Dot] = field(default_factory=dict)
    reads: Mapping[Position, str] = field(default_factory=dict)
    targets: Mapping[Position, str] = field(default_factory=dict)
    arguments: Mapping[Position, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    buffers: Mapping[Position, BufferAccess] = field(default_factory=dict)
    rebased: Mapping[Position, str] = field(default_factory=dict)
    sides: Mapping[Position, str] = field(default_factory=dict)
    narrowed: Mapping[Position, str] = field(default_factory=dict)
    stretched: Mapping[Position, str] = field(default_factory=dict)
    begun: Mapping[Position, str] = field(default_factory=dict)
    mover: str = "tma"

    def is_block(self, at: Position) -> bool:
        """Whether a load through a descriptor is of a block, and not of rows that are gathered."""
        return self.tiles.get(at, "load") == "load"


@dataclass(frozen=True)
class Conversion:
    """`target = convert_layout(source, layout)`, right after a statement; with `dims`, into shared memory.

    `in_place`: a dot reads it there. `counts`: it is a range from zero, which is made anew. `narrow`: as of `Store`.
    `loads`: it is read from shared memory. `recast`: it is cast there, as in the statement, from what that casts.
    """

    target: str
    source: str
    layout: str
    dims: tuple[str, ...] | None = None
    in_place: bool = True
    counts: bool = False
    narrow: str = ""
    loads: bool = False
    recast: bool = False


@dataclass(frozen=True)
class Hoist:
    """`name = source`, right before a loop, or before a statement."""

    name: str
    source: str


@dataclass(frozen=True)
class Guard:
    """What is checked where a kernel is launched: tensors that must end below 2 GiB, and what must not be negative."""

    tensors: tuple[str, ...]
    counts: tuple[str, ...] = ()


@dataclass(frozen=True)
class FunctionPlan:
    """All edits of one jit function. `line` is that of its `def` in the author's file.

    `name`: what it is called, where it is one of several made of the author's; `calls`: the names of such functions
    that it calls, by the line of the author's. `copies`: statements that stand several times, each time with other
    edits. `hoists`: by where the loop starts. `early`: what is made before a statement, by its place. `zeros`: offsets
    that are none up to a loop or a branch, by where it starts.
    `wide`: variables of its loops that count in 64 bits; `flattened`: those of loops that the author makes one with the
    loops inside. `rings`: what its loads go through, `stages`: how far they run
    ahead of their use; `rings_outside`: they may be made before a loop around the one that uses them. `host_tiles`: a
    kernel that the host gives tensor descriptors, whose tiles need a layout; `host_parts`: those that it takes the
    parts of, with their ranks. `notes`: what the function assumes of its arguments, told on its top; `guard`: what of
    it a launch is checked for. `pairs`: parameters that have become two, by the names of both: offsets and, at the
    end, their scalar pointer, or a scalar pointer and, at the end, by how much it was moved.
    `partitioned`: where the loops start whose copies, products and rest have warps of their own. `flags`: constexpr
    parameters that its layouts ask, which hold where all of some arguments, by name, are multiples of 16.
    `operands_at_once`: its products' operands leave shared memory as soon as they are there.
    """

    path: str
    line: int
    is_kernel: bool
    name: str = ""
    calls: Mapping[int, str] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()
    declarations: tuple[Declaration, ...] = ()
    edits: Edits = field(default_factory=Edits)
    copies: Mapping[Position, tuple[Edits, ...]] = field(default_factory=dict)
    conversions: Mapping[Position, tuple[Conversion, ...]] = field(default_factory=dict)
    hoists: Mapping[tuple[int, int], tuple[Hoist, ...]] = field(default_factory=dict)
    early: Mapping[Position, tuple[Hoist, ...]] = field(default_factory=dict)
    zeros: Mapping[tuple[int, int], tuple[Hoist, ...]] = field(default_factory=dict)
    rings: tuple[Ring, ...] = ()
    stages: Stages | None = None
    rings_outside: bool = True
    wide: frozenset[str] = frozenset()
    flattened: frozenset[str] = frozenset()
    host_tiles: bool = False
    host_parts: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    guard: Guard | None = None
    pairs: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    partitioned: frozenset[tuple[int, int]] = frozenset()
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    operands_at_once: bool = False

    def layouts(self) -> Iterator[str]:
        """Every layout that the function's text spells, and every helper that it calls."""
        yield from (declaration.source for declaration in self.declarations)
        if self.host_tiles:
            yield f"{HOST_TILES}("
        if self.host_parts:
            yield f"{HOST_PARTS}("
        if self.guard is not None:
            yield f"{FITS_BUFFERS}("
        for edits in (self.edits, *(copy for copies in self.copies.values() for copy in copies)):
            yield from (*edits.creations.values(), *edits.converts.values())
            yield from (layout for _, layout in edits.fills.values())
            yield from (layout for _, layout in edits.staged.values())
            yield from (f"{AS_OPERAND}(" for _ in edits.passed)
            yield from (f"{store.through}(" for store in edits.stores.values() if store.through)
            yield from ("load_tile(" for at, (ring, _) in edits.staged.items() if not ring and edits.is_block(at))
            yield from (f"{kind}_tile(" for kind in edits.tiles.values() if kind != "load")
            yield from (*edits.loads.values(), *(store.layout for store in edits.stores.values()))
            yield from (dot.layout for dot in edits.dots.values())
            yield from (f"{access.function}(" for access in edits.buffers.values())
            yield from ("upcast(" for dot in edits.dots.values() if dot.upcasts)
            yield from (f"{dot.instruction}(" for dot in edits.dots.values())
            yield from (layout for pairs in edits.arguments.values() for _, layout in pairs)
        yield from (f"{ring.stored}(" for ring in self.rings if ring.stored)
        for what in self.edits.indexed.values():
            yield f"{HELPED.get(what) or what.split()[0] + '_with_index'}("
        yield from (step.layout for steps in self.conversions.values() for step in steps)


@dataclass(frozen=True)
class KeptFunction:
    """A kernel that stays Triton: the comment that says why is put above it. `line` is that of its `def`."""

    line: int
    comment: str


@dataclass(frozen=True)
class Choice:
    """`if condition`: the function called `then`, else that called `otherwise`, or another choice."""

    condition: str
    then: str | Choice
    otherwise: str | Choice
    comment: str = ""


@dataclass(frozen=True)
class Dispatch:
    """A kernel that only calls, by what is known when it is compiled, one of the functions made of its body.

    `line` is that of its `def`. `flags`: constexpr parameters that hold where all of some arguments, by name, are
    multiples of 16. `passed`: what a function, by its name, takes beyond the kernel's parameters. `stages`: the
    kernel's own.
    """

    line: int
    choice: Choice
    passed: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stages: Stages | None = None


@dataclass(frozen=True)
class FilePlan:
    """All edits of one file.

    `helpers`: source of the functions that the file is to carry. `originals`: lines of the `def`s of jit helpers that
    kept kernels need as they were: they stand beside the converted ones, which have other names. `dispatches`: the
    kernels with several bodies. `slots_apart`: loops that multiply in registers count apart the slots that they
    read and those that they fill, also beside loads of their own. `fenced`: the source has the fences between threads'
    asynchronous copies and products that read where they copied to.
    """

    functions: tuple[FunctionPlan, ...]
    kept: tuple[KeptFunction, ...]
    helpers: tuple[str, ...] = ()
    originals: frozenset[int] = frozenset()
    dispatches: tuple[Dispatch, ...] = ()
    slots_apart: bool = False
    fenced: bool = True
