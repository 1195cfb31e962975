"""Truth values that Triton copies ahead of their use: as the bytes that they lie in, of which it makes truth values.

keep = tl.load(mask_ptr + offsets)
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from pathlib import Path

from tt2gl.analysis.facts import FunctionFact, LaunchFacts, TensorFact
from tt2gl.analysis.statics import position_of
from tt2gl.trees import nodes_in

_LOAD = "triton.language.core.load"


def copied_truths(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[tuple[int, int]]:
    """Where in a file such loads start, by line and column: all that they load under any launch are truth values."""
    own = str(path.absolute())
    copied = {
        chain[0][1:]
        for seen in facts
        for chain, ring in seen.lowered.rings.items()
        if not ring.registers and not ring.direct and chain[0][0] == own
    }
    reached = [each for seen in facts for each in seen.functions.values() if each.path == own]
    found: set[tuple[int, int]] = set()
    for node in nodes_in(trees[own]) if copied and own in trees else ():
        if isinstance(node, ast.Call) and (node.lineno, node.col_offset) in copied:
            called = [each.expressions.get(position_of(node.func)) for each in reached]
            loaded = [fact for each in reached if (fact := each.expressions.get(position_of(node))) is not None]
            truths = all(isinstance(fact, TensorFact) and fact.dtype == "int1" for fact in loaded)
            if loaded and truths and any(isinstance(each, FunctionFact) and each.name == _LOAD for each in called):
                found.add((node.lineno, node.col_offset))
    return found
