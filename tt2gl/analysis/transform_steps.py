"""Values that steps of a transform rearrange, each for the next one to split: their layouts need no names in between.

    x = tl.permute(tl.join(a + b, a - b), (0, 1, 3, 2))
    x = tl.permute(tl.reshape(tl.reshape(x, (ROWS, D)), (ROWS, D // 8, 2, 4)), (0, 1, 3, 2))
    a, b = tl.split(x)                                  # converted here, once, for each thread to hold its pairs

So Triton has it. Not where something else reads them: that is done in a layout which has a name.
"""

from __future__ import annotations

from tt2gl.analysis.graph import Node
from tt2gl.analysis.readers import Readers
from tt2gl.analysis.reshapes import RESHAPES
from tt2gl.analysis.terms import Inferred, Pair


def passed_on(node: Node, readers: Readers) -> Inferred | None:
    """The layout that the compiler infers for a value that is rearranged and then read as one more time; else None."""
    natural = node.operands[0].natural if node.operands else None
    begins = isinstance(natural, Pair) and bool(node.order)
    if not rearranges(node) or not (begins or isinstance(natural, Inferred)) or natural is None:
        return None
    if not readers.lead_to(node, lambda _, reader: reader.kind == "split" or rearranges(reader)):
        return None
    done = f"{node.function} {node.order or node.shape}"
    return (
        Inferred(natural.parent, f"{natural.how}, {done}") if isinstance(natural, Inferred) else Inferred(natural, done)
    )


def rearranges(node: Node) -> bool:
    """Whether a value is permuted or reshaped."""
    return node.kind == "opaque" and (node.function in RESHAPES or bool(node.order))
