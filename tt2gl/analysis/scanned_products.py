"""Scans of products that rows of products meet: they are brought to the product's layout, which has both next.

    delta = rows[:, None] + tl.cumsum(products, 1)          # a scan is of blocked layouts alone
    ds = products - p * delta

Triton prefers a product's layout for what is computed where one flows to it, a row's repeated, too. The scan's is then
converted once, and the row not at all.

    decay = tl.exp(tl.cumsum(tl.where(rows[:, None] > cols[None, :], a[:, None], 0.0), 0))
    s = decay * products

What is scanned of values that nothing else lays out, and meets a product then, is in the layout that Triton had of that
product before it had an instruction: down its columns a thread has several rows. (Decays of chunks take 101 registers
so, for 137.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tt2gl.analysis.graph import Node, made_once
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.terms import Term


def of_rows(operands: Sequence[Node], largest: Sequence[Node], is_of_product: Callable[[Term], bool]) -> Term | None:
    """The product's layout that a row among some operands is repeated in, if the `largest` are scans of products."""
    rows = (each.natural for each in operands if each.kind == "expand")
    row = next((each for each in rows if each is not None and is_of_product(each)), None)
    return row if row is not None and all(_scans(each, is_of_product) for each in largest) else None


def is_awaited_row(node: Node, is_of_product: Callable[[Term], bool]) -> bool:
    """Whether the layout of a row is still to be known that meets a scan of a product."""
    waits = any(each.kind == "expand" and each.natural is None and not each.cheap for each in node.operands)
    return waits and any(_scans(each, is_of_product) for each in node.operands)


def meets_product(value: Node, readers: Readers, is_of_product: Callable[[Term], bool]) -> bool:
    """Whether what is made of a value meets a product, element by element."""
    found = [each for each in readers.of(value) if each.kind in ("read", "call", "argument", "elementwise")]
    met = [other.natural for each in found if each.kind == "elementwise" for other in each.operands]
    flows = any(each is not None and is_of_product(each) for each in met)
    return flows or any(meets_product(each, readers, is_of_product) for each in found)


def _scans(value: Node, is_of_product: Callable[[Term], bool]) -> bool:
    """Whether a value is what is scanned of a product, by its only name or what a helper returns."""
    if value.kind == "call" and value.value is not None:
        return _scans(value.value, is_of_product)
    if (made := made_once(value)) is not None:
        return _scans(made.node, is_of_product)
    scanned = [each.natural for each in value.operands] if value.kind == "scan" else []
    return any(each is not None and is_of_product(each) for each in scanned)
