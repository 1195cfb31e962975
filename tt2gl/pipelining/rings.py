"""What the pipeliner is told: the rings of a function's loops, and how deep they are."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from tt2gl.plan import Ring


class NotPipelinedError(ValueError):
    """A loop with markers cannot be pipelined; says why. `function`: the file and line of the function it is in."""

    def __init__(self, reason: str, function: tuple[str, int] | None = None) -> None:
        super().__init__(reason)
        self.function = function


@dataclass(frozen=True)
class LoopRings:
    """The rings of one function, by its name and the line of its `def`, for all its loops.

    `buffers` is the source of a count: of Triton's `num_stages` where some ring has a tile more than loads run ahead,
    else of one less.
    It must be 2 or more in the former case and 1 or more in the latter. `synchronous`: sums that a wgmma may not be
    left running on, as they are not of fp32. `wide`: variables of loops that count in 64 bits. `outside`: rings may be
    made before a loop around theirs. `released`: products that read tiles where they lie are waited for at once.
    `flattened`: variables of loops that are one with those inside, so that loads run on from turn to turn.
    `looks_ahead`: what says where loads read is loaded an iteration earlier, where it can be. `slots_apart`: loops that
    multiply in registers count the slots that they read and those that they fill apart, also beside loads of their own.
    `fenced`: the source has the fences between threads' asynchronous copies and products that read what they copied.
    """

    function: str
    line: int
    rings: tuple[Ring, ...]
    buffers: str
    synchronous: frozenset[str] = field(default=frozenset())
    wide: frozenset[str] = field(default=frozenset())
    outside: bool = True
    released: bool = False
    flattened: frozenset[str] = field(default=frozenset())
    looks_ahead: bool = True
    slots_apart: bool = False
    fenced: bool = True

    def ring(self, name: str) -> Ring:
        """The ring of that name. Raises NotPipelinedError where there is none."""
        for ring in self.rings:
            if ring.name == name:
                return ring
        raise NotPipelinedError(f"there is no ring {name} in {self.function}")

    @property
    def has_spare(self) -> bool:
        """Whether some ring has a tile more than loads run ahead."""
        return any(map(self._has_spare, self.rings))

    @property
    def ahead(self) -> Amount:
        """How many iterations loads run ahead."""
        return Amount.of(self.buffers).plus(-1 if self.has_spare else 0)

    def depth(self, ring: Ring) -> Amount:
        """How many tiles a ring holds: one more than loads run ahead where something may still read the oldest.

        A wgmma may, as it runs on; and a wave that is late, where the next tile is copied before all waves meet again.
        """
        return self.ahead.plus(1 if self._has_spare(ring) else 0)

    def _has_spare(self, ring: Ring) -> bool:
        return bool(ring.direct) or (ring.in_memory and not ring.ends_at_once and not self.released)


@dataclass(frozen=True)
class Amount:
    """A count that the compiler knows, `base` (source, or nothing) and a number added to it."""

    base: str
    offset: int

    @classmethod
    def of(cls, source: str) -> Amount:
        """The count that some source says."""
        node = ast.parse(source.strip(), mode="eval").body
        match node:
            case ast.Constant(value=int(value)):
                return cls("", value)
            case ast.BinOp(op=ast.Add(), left=left, right=ast.Constant(value=int(value))):
                return cls.of(ast.unparse(left)).plus(value)
            case ast.BinOp(op=ast.Sub(), left=left, right=ast.Constant(value=int(value))):
                return cls.of(ast.unparse(left)).plus(-value)
            case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
                return cls(source.strip(), 0)
        return cls(f"({source.strip()})", 0)

    def plus(self, number: int) -> Amount:
        """The count with a number added."""
        return Amount(self.base, self.offset + number)

    @property
    def known(self) -> int | None:
        """The number, where it is one."""
        return None if self.base else self.offset

    @property
    def source(self) -> str:
        """The count as an expression."""
        if not self.base:
            return str(self.offset)
        if not self.offset:
            return self.base
        return f"{self.base} {'+' if self.offset > 0 else '-'} {abs(self.offset)}"

    @property
    def factor(self) -> str:
        """The count as an operand of `*` or `%`."""
        return f"({self.source})" if self.base and self.offset else self.source


def by_threads(rings: Sequence[Ring]) -> bool:
    """Whether threads copy all tiles of rings to their slots."""
    return not any(ring.tile or ring.registers or ring.direct for ring in rings)


def rings_note(depths: Sequence[Amount], ahead: Amount) -> str:
    """What a comment says of rings of these depths."""
    run = "one iteration" if ahead.known == 1 else f"{ahead.source} iterations"
    sizes = list(dict.fromkeys("one tile" if depth.known == 1 else f"{depth.source} tiles" for depth in depths))
    kind = "a ring" if len(depths) == 1 else "rings"
    return f"{kind} of {' and '.join(sizes)}; loads run {run} ahead"
