"""Rule `hoist` on NVIDIA: a mask wanted in several layouts is made part by part, in the last of the layouts first.

    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)                        # before
    mask_y = (offs_m_y[:, None] < M) & (offs_n_y[None, :] < N)

    offs_m_y_mask = offs_m_y[:, None] < M                                       # after
    offs_m_mask = offs_m[:, None] < M
    offs_n_y_mask = offs_n_y[None, :] < N
    offs_n_mask = offs_n[None, :] < N
    mask_y = offs_m_y_mask & offs_n_y_mask
    mask = offs_m_mask & offs_n_mask

Triton computes a value again, for who wants it in another layout, one operation after the other, each before the one
that is there already. ptxas keeps what was compared first, and where threads have many elements of a row or a column
their order says which masks are predicates and which are numbers: a transposing copy of 32x32 unaligned floats takes 32
registers so for 51 on sm90 (Triton's kernel 32), with whole masks in this order 37, with parts in the other 48.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from tt2gl.analysis.shared_masks import changed_places, is_mask, names_of, planned_names, spelled, within
from tt2gl.analysis.statics import position_of
from tt2gl.names import claimed
from tt2gl.plan import Edits, FunctionPlan, Hoist, Position
from tt2gl.trees import nodes_in


def masks_in_parts(plan: FunctionPlan, function: ast.FunctionDef) -> FunctionPlan:
    """The plan with the parts of masks that stand in several layouts made in turn."""
    taken = planned_names(plan) | {node.id for node in nodes_in(function) if isinstance(node, ast.Name)}
    copies, early = dict(plan.copies), dict(plan.early)
    for statement in nodes_in(function):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=mask) if is_mask(mask) and name not in names_of(mask):
                at = position_of(statement)
            case _:
                continue
        every = copies.get(at, ())
        if len(every) < 2 or _changes(every, mask):
            continue
        last_first = tuple(reversed(every))
        steps, names = _steps(mask, last_first, taken)
        if not steps:
            continue
        early[at] = (*early.get(at, ()), *steps)
        pairs = zip(last_first, names, strict=True)
        copies[at] = tuple(replace(each, replaced={**each.replaced, **own}) for each, own in pairs)
    return replace(plan, copies=copies, early=early)


def _changes(copies: tuple[Edits, ...], mask: ast.expr) -> bool:
    """Whether the copies of a mask are more than other names."""
    return any(within(at, position_of(mask)) for edits in copies for at in changed_places(edits))


def _steps(mask: ast.expr, copies: tuple[Edits, ...], taken: set[str]) -> tuple[list[Hoist], list[dict[Position, str]]]:
    """What is compared before a mask, and what stands for it in each of its copies."""
    steps: list[Hoist] = []
    names: list[dict[Position, str]] = [{} for _ in copies]
    parts = [part for part in _parts(mask) if any(isinstance(node, ast.Compare) for node in nodes_in(part))]
    every = [(part, [spelled(part, edits) for edits in copies]) for part in parts]
    # A number, or what several have in one layout, the compiler makes once by itself.
    apart = [(part, sources) for part, sources in every if len(set(sources)) == len(sources)]
    for part, sources in apart if len(apart) > 1 else ():
        for source, own in zip(sources, names, strict=True):
            own[position_of(part)] = claimed(f"{_first(source)}_mask", taken)
            steps.append(Hoist(own[position_of(part)], source))
    return steps, names


def _parts(mask: ast.expr) -> Iterator[ast.expr]:
    """What a mask joins."""
    if isinstance(mask, ast.BinOp) and isinstance(mask.op, ast.BitAnd):
        yield from _parts(mask.left)
        yield from _parts(mask.right)
    else:
        yield mask


def _first(source: str) -> str:
    """The variable that an expression names first."""
    names = [node for node in nodes_in(ast.parse(source)) if isinstance(node, ast.Name)]
    return min(names, key=lambda node: (node.lineno, node.col_offset)).id
