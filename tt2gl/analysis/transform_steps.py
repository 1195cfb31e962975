"""Values that steps of a transform rearrange, each for the next one to split: their layouts need no names in between.

    x = tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2))
    x = tl.permute(tl.reshape(tl.reshape(x, (ROWS, D)), (ROWS, D // 8, 2, 4)), (0, 1, 3, 2))
    a, b = tl.split(x)                                  # converted here, once, for each thread to hold its pairs

So Triton has it. Not where something else reads them: that is done in a layout which has a name. What is rearranged at
last and then added up, or meets others that were rearranged so, stays as it is:

    acc = tl.reshape(a, (ROWS, D // 8)) + tl.reshape(b, (ROWS, D // 8))
    acc = tl.sum(tl.reshape(acc, (ROWS, 2, D // 16)), 1)

What is converted for such a step lies for the steps after it, too: in threads as far apart as it can, where Triton has
neighbours of the last dimension in neighbouring threads. A transform of 4096 by 128 threads is so converted for every
fifth of its steps, three times in all, where Triton does it six times. Of a transform of one pair a thread that would
serve no step but its own, and the pairs lie as Triton has them.
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node, made_once
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import RESHAPES
from tt2gl.analysis.terms import Inferred, Pair, Reshaped, Root, Term


def passed_on(node: Node, readers: Readers) -> Inferred | None:
    """The layout that the compiler infers for a value that is rearranged and then read as one more time; else None.

    What the last call of a helper returns has it as well, where those before it return what is rearranged next.
    """
    natural = node.operands[0].natural if node.operands else None
    if natural is None or not rearranges(node) or not (isinstance(natural, Inferred) or _begins(node, readers)):
        return None
    alike = readers.alike(node)
    # What will have the extents again that it was reshaped from is in a layout with a name then.
    passes = isinstance(natural, Inferred) and not natural.of_shape
    on = any(readers.lead_to(each, _rearranged_next) for each in alike)
    if not on and not (passes and any(readers.lead_to(each, _met_alike) for each in alike)):
        return None
    return rearranged_on(node, natural)


def rearranged_on(node: Node, natural: Term) -> Inferred:
    """The layout without a name of a value that is rearranged, and has `natural` before."""
    done = f"{node.function} {node.order or node.shape}"
    if isinstance(natural, Inferred):
        return Inferred(natural.parent, f"{natural.how}, {done}")
    return Inferred(natural, done)


def _begins(node: Node, readers: Readers) -> bool:
    """Whether pairs are permuted, at the end of a step, or what is reshaped is to be permuted and split."""
    natural = node.operands[0].natural
    if node.order:
        return isinstance(natural, Pair)
    return isinstance(natural, Root | Reshaped) and readers.lead_to(
        node, lambda _, reader: _is_permuted_to_split(reader, readers)
    )


def _is_permuted_to_split(node: Node, readers: Readers) -> bool:
    return bool(node.order) and readers.lead_to(node, lambda _, reader: reader.kind == "split")


def _rearranged_next(_: Node, reader: Node) -> bool:
    return reader.kind == "split" or rearranges(reader)


def _met_alike(value: Node, reader: Node) -> bool:
    """Whether a value is reduced, or computed with alone, or with others whose layouts have no names either."""
    if reader.kind == "reduce":
        return len(reader.operands) == 1
    others = [each for each in reader.operands if each is not value and each.shape]
    return reader.kind == "elementwise" and all(
        isinstance(each.natural, Inferred) or each.natural is None and not each.cheap for each in others
    )


def rearranges(node: Node) -> bool:
    """Whether a value is permuted or reshaped."""
    return node.kind == "opaque" and (node.function in RESHAPES or bool(node.order))


def is_step(split: Node, readers: Readers) -> bool:
    """Whether what is permuted is split, and what is made of its halves joined for the next step to split."""
    return bool(_named(split.operands[0]).order) and _leads_on(split, readers)


def is_of_step(join: Node, readers: Readers) -> bool:
    """Whether what is joined is made of what such a step splits, and has no layout yet."""
    seen, todo = set[int](), [each for each in join.operands if each.natural is None]
    while todo:
        node = _named(todo.pop())
        if node.kind == "split" and is_step(node, readers):
            return True
        if node.kind == "elementwise" and id(node) not in seen:
            seen.add(id(node))
            todo += node.operands
    return False


def _named(value: Node) -> Node:
    """What a name stands for that is given once; any other value itself."""
    while (made := made_once(value)) is not None:
        value = made.node
    return value


def _leads_on(value: Node, readers: Readers) -> bool:
    """Whether a value is computed with, joined, rearranged and split at last."""
    seen, todo = set[int](), readers.of(value)[:]
    while todo:
        node = todo.pop()
        if node.kind == "split":
            return True
        if id(node) not in seen and (node.kind in ("read", "elementwise", "join") or rearranges(node)):
            seen.add(id(node))
            todo += readers.of(node)
    return False
