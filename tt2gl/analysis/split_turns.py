"""Loops whose turns Triton splits: each does the latter of two products in a row, and the former of the turn after it.

So it is on AMD with four stages. The tile of the first product is then read from LDS a turn before it is multiplied:

    k = k_buf.index(0).load(k_layout)       # at the end of a turn, for the next
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tt2gl.analysis.late_loads import LOADS
from tt2gl.ir.operations import Operation

_PRODUCTS = 2


def split_loads(kernel: Operation, made: Mapping[int, Operation]) -> Iterator[Operation]:
    """The loads whose tiles wait in registers for a turn of a loop that is split so.

    `made`: the operation that makes each value, by identity.
    """
    for loop in kernel.walk():
        if loop.name == "scf.for":
            operations = loop.regions[0].entry.operations
            own = {id(each) for each in operations}
            carried = [made.get(id(value)) for value in operations[-1].operands]
            found = [each for each in carried if each is not None and id(each) in own]
            read_ahead = any(each.name == "ttg.local_load" for each in found)
            if read_ahead and sum(each.name == "tt.dot" for each in operations) == _PRODUCTS:
                yield from (each for each in found if each.name.rpartition(".")[2] in LOADS)
