"""What is known of a parameter from how it is used."""

from __future__ import annotations

from dataclasses import dataclass, field

SOME_DTYPE = "?"
"""The dtype of something else, which a value was cast to."""


@dataclass
class Facts:
    """The evidence for one parameter."""

    address: bool = False
    offset: bool = False
    size: bool = False
    stride: bool = False
    unit: bool = False
    """The stride of a tensor's last dimension, 1 where that lies as usual; of a descriptor's, always."""
    multiplied: bool = False
    number: bool = False
    float: bool = False
    truth: bool = False
    ordered: bool = False
    """Something that is not written out as a number is compared with it, as less or more."""
    tile: bool = False
    unrolled: bool = False
    """It bounds a loop that the compiler writes out."""
    turns: bool = False
    """It is how often a loop turns that is none of those."""
    dtype: bool = False
    none: bool = False
    called: bool = False
    whole: bool = False
    """It, or what is loaded through it, is divided with a remainder, shifted, or taken as bits."""
    packed: bool = False
    """Loaded values are shifted, or bits of them taken: integers, though products may be made of the parts."""
    wide: bool = False
    """Whole, and of 64 bits."""
    unsigned: bool = False
    """Computed with, uncast, beside a number that no signed integer holds."""
    index: bool = False
    """Loaded values are indices or labels."""
    mask: bool = False
    """Loaded values are conditions."""
    dot: bool = False
    """Loaded values are operands of a matrix product."""
    narrow: bool = False
    """Of one of integers."""
    element: str = ""
    """The dtype that a scaled product, or being reinterpreted as floats, asks of loaded values."""
    stored: str = ""
    """The dtype that what is stored was cast to."""
    copies: list[str] = field(default_factory=list)
    """Parameters whose elements are stored as they were loaded, or whose dtype what is stored was cast to."""
    bits: int = 0
    """Bits of a loaded value that is reinterpreted as an integer, 0 where none is."""
    asked: int = 0
    """Bits of it that conditions are, each by itself: `if STAGE & 1`."""
    items: int = 0
    """How many elements are taken of it, at least, where it is a tuple; 0 where none is."""
    rank: int = 0
    """Indices of a descriptor's `load`, 0 where it is no descriptor."""
    asserted: int | str | None = None
    """What the compiler is told that it is."""
    strings: list[str] = field(default_factory=list)
    integers: list[int] = field(default_factory=list)

    @property
    def integer(self) -> bool:
        """Whether it is surely an integer."""
        return self.offset or self.size or self.stride or self.tile or self.whole

    def merge(self, other: Facts) -> None:
        """Add another function's evidence for the same value."""
        for name, value in vars(other).items():
            mine = getattr(self, name)
            if isinstance(mine, list):
                mine.extend(item for item in value if item not in mine)
            elif name == "asserted":
                self.asserted = value if mine is None else mine
            elif name == "asked":
                self.asked |= value
            else:
                setattr(self, name, max(mine, value))


def be_alike(*chosen: Facts) -> None:
    """Have pointers that one is chosen of be of the elements that are asked of one of them."""
    asked = {facts.element for facts in chosen if facts.element}
    if len(asked) == 1 and all(facts.address for facts in chosen):
        for facts in chosen:
            facts.element = next(iter(asked))


@dataclass(frozen=True)
class Value:
    """What an expression is made of. `bases`: parameters added up, so that one may be an address.

    `raw`: of what is loaded, that which nothing was done to but to cast it to integers and to take bits. `made`: the
    dtype that it was cast to; of a dtype, its own name. `like`: the parameters whose elements have that dtype.
    `ranged`: it has an index range that nothing multiplies; `scales`: the parameters that multiply others.
    """

    bases: tuple[str, ...] = ()
    origins: frozenset[str] = frozenset()
    loaded: frozenset[str] = frozenset()
    kind: str = ""
    raw: frozenset[str] = frozenset()
    made: str = ""
    like: frozenset[str] = frozenset()
    ranged: bool = False
    scales: frozenset[str] = frozenset()

    def __or__(self, other: Value) -> Value:
        kinds = {self.kind, other.kind}
        kind = "float" if "float" in kinds else self.kind if len(kinds) == 1 else ""
        return Value(
            (*self.bases, *(base for base in other.bases if base not in self.bases)),
            self.origins | other.origins,
            self.loaded | other.loaded,
            kind,
            self.raw | other.raw,
            self.made if self.made == other.made else "",
            self.like | other.like,
            self.ranged or other.ranged,
            self.scales | other.scales,
        )
