"""Rule `hoist`: what a range is widened to for an offset of 64 bits is made once, before the loop.

    for start in range(first, last, BLOCK):                            # before: of 64 bits
        offs = start + cols

    cols_64 = cols.to(gl.int64)                                        # after
    for start in range(first, last, BLOCK):
        offs = start + cols_64

Triton's LICM pass moves the cast out of the loop, and LLVM then adds constants to one offset. With the cast inside it
holds each of a thread's offsets: 72 registers for 40 in a row's log-sum-exp of 2048 (sm120).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tt2gl.analysis.facts import FunctionFacts, TensorFact
from tt2gl.analysis.hoisting import Loop, is_loop, stored
from tt2gl.analysis.statics import position_of
from tt2gl.names import unused
from tt2gl.plan import Edits, FunctionPlan, Hoist, Position
from tt2gl.trees import nodes_in


def widened_before(plan: FunctionPlan, function: ast.FunctionDef, facts: Sequence[FunctionFacts]) -> FunctionPlan:
    """The plan with ranges that sums in its loops widen to 64 bits widened before those.

    `facts`: what the launches say of the function.
    """
    always = {name for statement in function.body if isinstance(statement, ast.Assign) for name in stored(statement)}
    widened = {position_of(name): (loop, name.id) for loop, name in _widened(function, facts) if name.id in always}
    if not widened:
        return plan
    taken = {node.id for node in nodes_in(function) if isinstance(node, ast.Name)}
    work = _Work(widened, {*taken, *(step.name for steps in plan.hoists.values() for step in steps)})
    edits = work.apply(plan.edits)
    copies = {statement: tuple(work.apply(copy) for copy in each) for statement, each in plan.copies.items()}
    made = {at: (*plan.hoists.get(at, ()), *work.made.get(at, ())) for at in {**plan.hoists, **work.made}}
    return replace(plan, edits=edits, copies=copies, hoists=made)


def _widened(function: ast.FunctionDef, facts: Sequence[FunctionFacts]) -> Iterator[tuple[Loop, ast.Name]]:
    """Names of 32 bits that a sum of 64 reads in a loop which leaves them as they are, with the outermost such."""
    for loop in _outermost(function.body):
        changed = stored(loop)
        for node in nodes_in(loop):
            if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Add) or not _are(node, facts, "int64"):
                continue
            for side in (node.left, node.right):
                name = side.value if isinstance(side, ast.Subscript) else side
                if isinstance(name, ast.Name) and name.id not in changed and _are(name, facts, "int32"):
                    yield loop, name


def _outermost(block: Sequence[ast.stmt]) -> Iterator[Loop]:
    for statement in block:
        if is_loop(statement):
            yield statement
        else:
            for inner in ("body", "orelse"):
                yield from _outermost(getattr(statement, inner, ()))


def _are(node: ast.expr, facts: Sequence[FunctionFacts], dtype: str) -> bool:
    """Whether an expression is a tile of a type under every launch that reaches it."""
    known = [each.expressions[at] for each in facts if (at := position_of(node)) in each.expressions]
    return bool(known) and all(isinstance(one, TensorFact) and one.shape and one.dtype == dtype for one in known)


@dataclass
class _Work:
    widened: Mapping[Position, tuple[Loop, str]]
    taken: set[str]
    made: dict[tuple[int, int], list[Hoist]] = field(default_factory=dict)

    def apply(self, edits: Edits) -> Edits:
        """Have the sums read what is widened before their loop, each under the name that it reads."""
        other = edits.converts.keys() | edits.narrowed.keys() | edits.stretched.keys() | edits.replaced.keys()
        replaced = dict(edits.replaced)
        for position, (loop, name) in self.widened.items():
            if position not in other:
                replaced[position] = self._name((loop.lineno, loop.col_offset), edits.reads.get(position, name))
        return replace(edits, replaced=replaced)

    def _name(self, loop: tuple[int, int], read: str) -> str:
        steps = self.made.setdefault(loop, [])
        source = f"{read}.to(gl.int64)"
        known = next((step.name for step in steps if step.source == source), None)
        if known is not None:
            return known
        name = unused(f"{read}_64", self.taken)
        self.taken.add(name)
        steps.append(Hoist(name, source))
        return name
