"""The programs that run together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tt2gl.simulate.values import Array, Rows


@dataclass(frozen=True, eq=False)
class Programs:
    """Programs of a grid that run in step: `ids` number them, x fastest."""

    ids: Rows
    grid: tuple[int, int, int]

    @property
    def count(self) -> int:
        """How many."""
        return len(self.ids)

    def axis(self, axis: int) -> Array:
        """Each program's position on an axis of the grid, i32."""
        x, y, _ = self.grid
        position = (self.ids % x, self.ids // x % y, self.ids // (x * y))[axis]
        return position.astype(np.int32)

    def take(self, rows: Rows) -> Programs:
        """Some of them."""
        return Programs(self.ids[rows], self.grid)


class Divergence(Exception):
    """Programs that hold shared memory went different ways; `keys` says which go together.

    Only the whole state of a program can be taken apart, so the run starts again, once for each group.
    """

    def __init__(self, keys: Array) -> None:
        super().__init__("programs diverge")
        self.keys = keys
