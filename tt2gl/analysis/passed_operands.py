"""Operands that pass LDS on AMD under some launches or calls: how they lie there, said in one way for all of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from tt2gl.amd_shared_layouts import BANKS, banked
from tt2gl.analysis.decisions import Passed
from tt2gl.analysis.facts import DotOperandFact
from tt2gl.shared_layouts import Swizzled, read_swizzled

_DIGITS = re.compile(r"\d+")


def laid_out_as(through: Sequence[DotOperandFact]) -> Passed | None:
    """What gives the layouts of all these operands, as Triton has them in LDS; None where nothing gives all."""
    layouts = [read_swizzled(fact.reloaded) for fact in through]
    if None in layouts or any(fact.turned for fact in through):
        return None
    orders = {layout.order for layout in layouts if layout is not None}
    for order in orders:
        if all(layout == Swizzled(1, 1, 1, order) for layout in layouts):
            return Passed(order)
    for order, banks in product(orders, BANKS):
        made = [
            banked(fact.shape, order, int(_DIGITS.findall(fact.element)[0]), fact.layout.get("kWidth", 0), banks)
            for fact in through
        ]
        if made == layouts:
            return Passed(order, banks)
    return None
