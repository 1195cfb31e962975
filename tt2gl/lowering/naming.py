"""Names of what lowering makes: offsets along a dimension after its bound, what belongs to one pointer after that."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tt2gl.lowering.expressions import Expression
from tt2gl.lowering.shapes import Role

_WORD = re.compile(r"[A-Za-z_]\w*")
_AXES = {2: ("row", "col")}


@dataclass
class Names:
    """Names that are free in a function. `taken`: all words of its file."""

    taken: set[str]
    _given: dict[tuple[str, ...], str] = field(default_factory=dict)

    @staticmethod
    def of(text: str) -> Names:
        """Names that a text does not use."""
        return Names(set(_WORD.findall(text)))

    def shared(self, offset: Expression | None, bound: Expression, key: tuple[str, str], else_: str) -> str:
        """The name of an index by its key (offset and block, as source)."""
        wanted = []
        if offset is not None and _WORD.fullmatch(bound.text) and bound.text not in self._given.values():
            wanted.append(f"offs_{bound.text.lower()}")
            if _WORD.fullmatch(offset.text):
                wanted.append(f"offs_{offset.text.removeprefix('i_').lower()}")
        return self._name(key, [*wanted, else_])

    def beside(self, pointer: str, role: Role, dimension: int, rank: int) -> str:
        """The name of what is kept beside a pointer."""
        return self._name((pointer, role, str(dimension), str(rank)), [beside(pointer, role, dimension, rank)])

    def fresh(self, wanted: str) -> str:
        """A free name like the one wanted."""
        return self._free([wanted])

    def _name(self, key: tuple[str, ...], wanted: Sequence[str]) -> str:
        if key not in self._given:
            self._given[key] = self._free(wanted)
        return self._given[key]

    def _free(self, wanted: Sequence[str]) -> str:
        numbered = (f"{wanted[0]}_{number}" for number in range(1, len(self.taken) + 2))
        name = next(name for name in (*wanted, *numbered) if name not in self.taken)
        self.taken.add(name)
        return name


def stem(pointer: str) -> str:
    """What a pointer points to: `k` of `p_k`, `K` of `K_block_ptr`."""
    short = re.sub(r"^(p|ptr)_|(_(tile|block|blk))?_(block_?)?(ptrs?|pointers?)$", "", pointer)
    return short if _WORD.fullmatch(short) else pointer


def beside(pointer: str, role: Role, dimension: int, rank: int) -> str:
    """The name wanted for what is kept beside a pointer."""
    of = _axis(pointer, dimension, rank)
    return {"offset": f"{of}_start" if rank == 1 else of, "index": f"{of}_offs" if rank != 2 else f"{of}s"}.get(
        role, f"{of}_{role}"
    )


def block_size(pointer: str, dimension: int, rank: int) -> str:
    """The name wanted for how long a pointer's block is along a dimension."""
    return f"{_axis(pointer, dimension, rank)}_size"


def _axis(pointer: str, dimension: int, rank: int) -> str:
    axis = _AXES[rank][dimension] if rank in _AXES else "" if rank == 1 else f"dim{dimension}"
    return "_".join(part for part in (stem(pointer), axis) if part)
