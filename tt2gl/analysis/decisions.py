"""What propagation decides for one launch, by place in the source."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace

from tt2gl.analysis.facts import CallChain, Instruction, Position
from tt2gl.analysis.graph import Definition, DotSite, FunctionKey, Site, counts_from_zero
from tt2gl.analysis.terms import Stored, Term
from tt2gl.plan import ENTRY

Clone = Term | None
"""Which copy of a statement an expression is in: by the layout of the name it defines; None outside definitions."""


@dataclass(frozen=True)
class Spot:
    """An expression in one copy of its statement."""

    site: Site
    clone: Clone


@dataclass(frozen=True)
class NamedWeb:
    """One variable's linked definitions, the calls that led to them, and the layouts they are wanted in.

    `terms`: layouts that the statements compute it in; `converted`: those it is converted to after them; `cheap`:
    whether the statements may stand several times.
    """

    function: FunctionKey
    context: CallChain
    name: str
    statements: tuple[Position, ...]
    terms: tuple[Term, ...]
    converted: tuple[Term, ...]
    cheap: bool


@dataclass(frozen=True)
class RingWant:
    """The ring of a load: its name, the shared layout of a slot, and its dtype as source.

    `in_memory`: a dot takes the slots in place. `tile`: the load goes through a descriptor, which says all of a slot;
    without a name it goes through a tile of its own. `registers` and those that follow it: as of `plan.Ring`.
    """

    name: str
    slot: Stored
    dtype: str
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
class Passed:
    """How memory lies that some launches have a product's operand pass through: its order, and the banks of LDS that it
    is swizzled by; 0 where it is not.
    """

    order: tuple[int, ...]
    banks: int = 0


@dataclass(frozen=True)
class DotWant:
    """How a dot is written; `dims` and `dtype` are of the zeros that it starts from.

    `memory`: where its accumulator lies in tensor memory, `lhs`: where its first operand does.
    """

    site: DotSite
    instruction: Instruction
    dims: tuple[str, ...]
    name: str
    memory: Stored | None = None
    lhs: Stored | None = None


def said_by_itself(dims: Collection[str]) -> bool:
    """Whether extents are said by the parameters that have them: right at every call of a helper."""
    return any(".shape[" in dim for dim in dims)


def both_ways(before: DotWant, dot: DotWant) -> DotWant:
    """A product that the text says once, as one launch wants it, where others want it `before`."""
    # Another kernel's words may be wrong for one that gives its calls several extents.
    dims = before.dims if said_by_itself(before.dims) else dot.dims
    # Precisions that differ are one to the target, where instructions do not: neither has to hold.
    asked = dot.site.asked if dot.site.asked == before.site.asked else None
    return replace(dot, dims=dims, site=replace(dot.site, asked=asked))


@dataclass
class Decisions:
    """What propagation decided for one launch, by place in the source.

    `unconverted`: the layouts of values that are as they are wanted, for a text that another launch has converted.
    `expansions`: how many dimensions an operand gains, none among them, and how many it has.
    `given`: the parameters of helpers that come in shared memory; `ranges`: those that count from zero. `mentions`:
    variables of which only what is known without their layout is asked, each with one of its statements. `recast`:
    names that are cast from what their statement casts, in another layout. `cheap`: helpers that convert a parameter of
    which a caller could make another, in a loop around the call; `again`: where such are read of other calls.
    `sources`: one of the statements that a variable is read after, by where.
    """

    creations: dict[Spot, Term] = field(default_factory=dict)
    converts: dict[Spot, Term] = field(default_factory=dict)
    unconverted: dict[Spot, Term] = field(default_factory=dict)
    expansions: dict[Spot, tuple[int, int]] = field(default_factory=dict)
    fills: dict[tuple[Spot, Position], tuple[tuple[str, ...], Term]] = field(default_factory=dict)
    reads: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    targets: dict[Spot, tuple[str, Term]] = field(default_factory=dict)
    indexed: dict[Spot, str] = field(default_factory=dict)
    shortened: dict[Spot, str] = field(default_factory=dict)
    passed: dict[Spot, Passed] = field(default_factory=dict)
    staged: dict[Spot, tuple[Term, RingWant]] = field(default_factory=dict)
    tiles: dict[Spot, str] = field(default_factory=dict)
    views: dict[Spot, tuple[int, ...]] = field(default_factory=dict)
    loads: dict[Spot, Term] = field(default_factory=dict)
    stores: dict[Spot, Term] = field(default_factory=dict)
    dots: dict[Spot, tuple[Term, DotWant]] = field(default_factory=dict)
    webs: list[NamedWeb] = field(default_factory=list)
    after: dict[tuple[FunctionKey, Position, CallChain], list[tuple[str, Term, Term]]] = field(default_factory=dict)
    given: dict[tuple[FunctionKey, CallChain, str], Stored] = field(default_factory=dict)
    ranges: set[tuple[FunctionKey, CallChain, str]] = field(default_factory=set)
    mentions: dict[Site, tuple[str, Position]] = field(default_factory=dict)
    recast: set[tuple[FunctionKey, Position, CallChain, str, Term]] = field(default_factory=set)
    cheap: set[FunctionKey] = field(default_factory=set)
    again: dict[Spot, Term] = field(default_factory=dict)
    sources: dict[Spot, Position] = field(default_factory=dict)

    def convert_after(self, made: Definition, name: str, source: Term, target: Term) -> None:
        """Have a name in another layout too, right after its definition."""
        steps = self.after.setdefault(place_of(made), [])
        if (name, source, target) not in steps:
            steps.append((name, source, target))
        if made.entry is not None and made.web is not None and counts_from_zero(made.node):
            self.ranges.add((made.web.function, made.entry, name))

    def recast_after(self, made: Definition, name: str, source: Term, target: Term) -> None:
        """Have a name in another layout too, cast from what its statement casts it from."""
        self.convert_after(made, name, source, target)
        self.recast.add((*place_of(made), name, target))


def place_of(made: Definition) -> tuple[FunctionKey, Position, CallChain]:
    """Where a definition stands: its function, its statement there, and the calls that led there."""
    if made.entry is not None and made.web is not None:
        return made.web.function, ENTRY, made.entry
    return made.site.function, made.site.statement, made.site.context
