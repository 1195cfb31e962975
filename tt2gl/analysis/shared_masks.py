"""Rule `hoist` on NVIDIA: a mask that an earlier statement has in another layout is made before that statement.

    q = gl.load(q_ptrs, mask=mask_h[:, None] & mask_d[None, :])                 # before
    for start in range(lo, hi, BLOCK):
        ...
    gl.store(o_ptrs, acc, mask=mask_h_o[:, None] & mask_d_o[None, :])

    o_mask = mask_h_o[:, None] & mask_d_o[None, :]                              # after
    q = gl.load(q_ptrs, mask=mask_h[:, None] & mask_d[None, :])
    for start in range(lo, hi, BLOCK):
        ...
    gl.store(o_ptrs, acc, mask=o_mask)

Triton's CSE pass makes one of both, where the first is, and what needs it in another layout gets it there; ptxas then
holds a predicate, and not what is compared. Paged decoding of tiles of 16x128 on sm90 takes 103 registers so for 123
(Triton's kernel 96), products of 32x32x16 in batches 40 for 48 (40). A statement that is a mask and no more goes there
itself. Masks that are equal in the port, too, stay where they are: the compiler makes one of them by itself. So do
those of copies that run ahead, and what stands under a branch that the first does not stand under.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from tt2gl.analysis.hoisting import stored
from tt2gl.analysis.statics import position_of
from tt2gl.names import claimed
from tt2gl.plan import Edits, FunctionPlan, Hoist, Position
from tt2gl.trees import nodes_in

_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr)
# What a mask is made of where all that edits change in it are names.
_VALUES = (ast.Name, ast.Constant, ast.Subscript, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Slice, ast.Tuple)
_INNER = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)


@dataclass(frozen=True)
class _First:
    """A mask where it stands first: its statement, and what the port has there."""

    statement: ast.stmt
    made: frozenset[str]
    names: frozenset[str]


_Known = Mapping[str, _First]


def masks_made_once(plan: FunctionPlan, function: ast.FunctionDef) -> FunctionPlan:
    """The plan with masks that come again in other layouts made where they come first."""
    search = _Search(plan, {node.id for node in nodes_in(function) if isinstance(node, ast.Name)})
    search.visit(function.body, {})
    if not search.early:
        return plan
    edits = replace(plan.edits, replaced={**plan.edits.replaced, **search.replaced})
    return replace(plan, edits=edits, early={at: tuple(steps) for at, steps in search.early.items()})


class _Search:
    """Finds masks that are made again, and names them."""

    def __init__(self, plan: FunctionPlan, taken: set[str]) -> None:
        self.edits, self.copies = plan.edits, plan.copies
        every = [plan.edits, *(each for copies in plan.copies.values() for each in copies)]
        self.taken = taken | planned_names(plan)
        self.changed = sorted({at for each in every for at in changed_places(each)})
        self.early: dict[Position, list[Hoist]] = {}
        self.replaced: dict[Position, str] = {}

    def visit(self, block: Sequence[ast.stmt], known: _Known) -> None:
        """Go through a block, with what is known before it."""
        for place, statement in enumerate(block):
            if isinstance(statement, _SIMPLE):
                self._again(statement, known, block[:place])
                known = {**self._firsts(statement), **known}
            else:
                # What a loop changes is changed before its first statement, in its second turn.
                inside = _left(known, statement) if isinstance(statement, ast.For | ast.While) else {}
                for inner in ("body", "orelse"):
                    self.visit(getattr(statement, inner, ()), inside)
            known = _left(known, statement)

    def _firsts(self, statement: ast.stmt) -> dict[str, _First]:
        every = [self.edits, *self.copies.get(position_of(statement), ())]
        return {
            ast.unparse(mask): _First(statement, frozenset(spelled(mask, each) for each in every), names_of(mask))
            for mask in nodes_in(statement)
            if isinstance(mask, ast.expr) and is_mask(mask)
        }

    def _again(self, statement: ast.stmt, known: _Known, above: Sequence[ast.stmt]) -> None:
        """Name the masks of a statement that come again, `above` it in its block or around that."""
        if position_of(statement) in self.copies:
            return
        for mask in _largest(statement, known):
            first, source = known[ast.unparse(mask)], spelled(mask, self.edits)
            if source in first.made or self._ischanged_places(mask) or self._is_staged(mask):
                continue
            steps = self.early.get(position_of(first.statement), [])
            name = next((step.name for step in steps if step.source == source), None)
            if name is None:
                at = above.index(first.statement) if first.statement in above else len(above)
                name = self._name(statement, mask, above[at:])
                if not name:
                    continue
                self.early.setdefault(position_of(first.statement), []).append(Hoist(name, source))
            self.replaced[position_of(mask)] = name

    def _name(self, statement: ast.stmt, mask: ast.expr, between: Sequence[ast.stmt]) -> str:
        """What a mask is called that is made before these statements; nothing where its own name is in the way."""
        match statement:
            case ast.Assign(targets=[ast.Name(id=name) as target], value=value) if value is mask:
                # The whole statement is made there.
                mentioned = {name for each in between for name in names_of(each)}
                return "" if not between or name in mentioned else self.edits.targets.get(position_of(target), name)
        label = _label(statement)
        return claimed(f"{label}_part" if "mask" in label else f"{label}_mask", self.taken)

    def _ischanged_places(self, mask: ast.expr) -> bool:
        """Whether edits of a mask are more than other names."""
        return any(within(at, position_of(mask)) for at in self.changed)

    def _is_staged(self, mask: ast.expr) -> bool:
        """Whether a mask is that of a copy to a ring, which is made anew wherever the copy is issued."""
        return any(within(position_of(mask), at) for at in self.edits.staged)


def planned_names(plan: FunctionPlan) -> set[str]:
    """The variables that a plan adds to a function."""
    every = [plan.edits, *(each for copies in plan.copies.values() for each in copies)]
    names = {name for each in every for name in (*each.reads.values(), *each.targets.values())}
    made = {step.target for steps in plan.conversions.values() for step in steps}
    hoists = {step.name for each in (plan.hoists, plan.early) for steps in each.values() for step in steps}
    return names | made | hoists | {each.name for each in plan.declarations}


def changed_places(edits: Edits) -> Iterator[Position]:
    """Where edits change more than names."""
    for field in fields(edits):
        places = getattr(edits, field.name)
        if field.name not in ("reads", "targets") and not isinstance(places, str):
            yield from places


def within(inner: Position, outer: Position) -> bool:
    """Whether a place is in another."""
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def _left(known: _Known, statement: ast.stmt) -> _Known:
    """What is still what it was after a statement."""
    changed = stored(statement)
    return {mask: first for mask, first in known.items() if not first.names & changed}


def is_mask(node: ast.AST) -> bool:
    """Whether a node is a comparison, or several joined, in which nothing is called."""
    if not isinstance(node, ast.Compare) and not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd)):
        return False
    parts = [part for part in nodes_in(node) if not isinstance(part, _INNER)]
    return all(isinstance(part, _VALUES) for part in parts) and any(isinstance(part, ast.Subscript) for part in parts)


def _largest(node: ast.AST, known: _Known) -> Iterator[ast.expr]:
    """The masks in a node that are known and stand in no other such."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and is_mask(child) and ast.unparse(child) in known:
            yield child
        else:
            yield from _largest(child, known)


def names_of(node: ast.AST) -> frozenset[str]:
    """The variables that are named in a node."""
    return frozenset(each.id for each in nodes_in(node) if isinstance(each, ast.Name))


def spelled(mask: ast.expr, edits: Edits) -> str:
    """A mask in the port's names."""
    made = copy.deepcopy(mask)
    for node in nodes_in(made):
        if isinstance(node, ast.Name):
            node.id = edits.reads.get(position_of(node), node.id)
    return ast.unparse(made)


def _label(statement: ast.stmt) -> str:
    """What a statement is about: the variable that it defines, or the pointer that it stores through."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
    if isinstance(target, ast.Name):
        return target.id
    call = getattr(statement, "value", None)
    first = call.args[0] if isinstance(call, ast.Call) and call.args else None
    name = next((node.id for node in nodes_in(first) if isinstance(node, ast.Name)), "") if first is not None else ""
    return re.sub(r"_?ptrs?$", "", name, flags=re.IGNORECASE).lower() or "value"
