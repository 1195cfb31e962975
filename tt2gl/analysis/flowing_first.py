"""Which of the layouts that meet Triton lets flow on first: that of the last of what they come from.

    qk = tl.dot(q, k)
    mask = tl.load(mask_ptrs)
    qk = qk * scale + mask              # in the layout that the mask is loaded in, and the sums are converted
    p = tl.dot(tl.exp(qk), v)           # but the pipeliner lets q @ k run a turn ahead, and reads it behind the load:
                                        # in the sums', and the mask is converted

The last pass of Triton's RemoveLayoutConversions, behind its pipeliner, decides; so its order is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tt2gl.analysis.facts import CallChain
from tt2gl.analysis.graph import Node, sources
from tt2gl.analysis.terms import Cut, Term, root_of


def flowing_first(
    meeting: Sequence[tuple[Term, Node]], nodes: Sequence[Node], places: Mapping[CallChain, int] | None = None
) -> Term:
    """The layout of those that values have which meet, of the last access, dot or gather.

    `places`: where Triton has those of loops in the end; without one of each, it is asked for in the source.
    """
    anchors = [_last_anchor(nodes, layout, value) for layout, value in meeting]
    late = [places.get(nodes[place].chain, -1) if places and place >= 0 else -1 for place in anchors]
    known = anchors if -1 in late else late
    return meeting[known.index(max(known))][0]


def of_tiles(meeting: Sequence[tuple[Term, Node]], node: Node, nodes: Sequence[Node]) -> Term:
    """The layout of those that tiles have which meet in `node`, none a dot's; of rows the one that flows on first.

    In a loop, of what each turn makes: what was made before it is converted once. That flows on first in Triton too.
    """
    if len(node.shape) == 1 and any(isinstance(layout, Cut) for layout, _ in meeting):
        return flowing_first(meeting, nodes)
    return next((layout for layout, value in meeting if not _made_before(value)), meeting[0][0])


def _made_before(value: Node) -> bool:
    """Whether a loop reads a name that was made before it."""
    made = value.web.find().made_outside(value) if value.kind == "read" and value.web is not None else None
    return made is not None and made.node.loop is not value.loop


def _last_anchor(nodes: Sequence[Node], layout: Term, value: Node) -> int:
    anchors = (each for each in sources(value) if each.kind in ("load", "atomic", "dot") or each.function == "gather")
    made = {id(each) for each in anchors if each.natural == root_of(layout)}
    return max((place for place, each in enumerate(nodes) if id(each) in made), default=-1)
