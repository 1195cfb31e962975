"""Rule `buffer_ops`: what was found of a function's accesses, as edits of its plan.

Variables that held tensors of pointers hold offsets then, and are called so.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from tt2gl.analysis.pointer_arguments import offsets_name
from tt2gl.names import listed, unused
from tt2gl.plan import BufferAccess, Edits, FunctionPlan, Hoist, Position
from tt2gl.trees import nodes_in


@dataclass(frozen=True)
class Refused:
    """An access that stays plain, and why."""

    position: Position
    reason: str


@dataclass
class Found:
    """What becomes of a function's accesses.

    `bases`: reads of a variable that become ones of its scalar pointer; `rebased`: those that become a sum of that and
    the offsets again. `pointers`: of what atomics take by a variable, its scalar pointer. `tensors`, `counts`:
    parameters, of kernels, that are assumed to end below 2 GiB, and not to be negative. `passed`: the scalar pointers
    that a call gives beside offsets, by the helper's names; `paired`: the parameters that are such offsets, by the
    names of their pointers. `offsets`: what holds offsets that a call gives beside scalar pointers, by the helper's
    names; `moved`: the parameters that are such pointers, by the names of their offsets. `carried`: the scalar pointers
    that variables hold offsets from. `zeros`: what is moved by nothing up to a loop or a branch.
    """

    accesses: dict[Position, BufferAccess] = field(default_factory=dict)
    sides: dict[Position, str] = field(default_factory=dict)
    narrowed: dict[Position, str] = field(default_factory=dict)
    stretched: dict[Position, str] = field(default_factory=dict)
    reads: dict[Position, str] = field(default_factory=dict)
    targets: dict[Position, str] = field(default_factory=dict)
    bases: dict[Position, str] = field(default_factory=dict)
    rebased: dict[Position, str] = field(default_factory=dict)
    begun: dict[Position, str] = field(default_factory=dict)
    pointers: dict[Position, str] = field(default_factory=dict)
    passed: dict[Position, dict[str, str]] = field(default_factory=dict)
    paired: dict[str, str] = field(default_factory=dict)
    carried: dict[str, str] = field(default_factory=dict)
    zeros: dict[tuple[int, int], list[str]] = field(default_factory=dict)
    offsets: dict[Position, dict[str, str]] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    refused: list[Refused] = field(default_factory=list)
    tensors: set[tuple[str, str]] = field(default_factory=set)
    counts: set[tuple[str, str]] = field(default_factory=set)


def with_buffers(plan: FunctionPlan, found: Found, tree: ast.FunctionDef) -> FunctionPlan:
    """The plan with buffer operations, and what they assume."""
    named = [each.arg for each in _arguments(tree) if each.arg in found.paired]
    if named:
        plan = _by_pointers(plan, found.paired)
    if found.carried and plan.rings:
        plan = replace(plan, rings=_by_pointers(plan, found.carried).rings)
    taken = {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)} | {each.arg for each in _arguments(tree)}
    labels = _Labels(taken | {declaration.name for declaration in plan.declarations}, found.moved)

    passed = {
        at: {**found.passed.get(at, {}), **{name: labels.offset(of) for name, of in found.offsets.get(at, {}).items()}}
        for at in (*found.passed, *(at for at in found.offsets if at not in found.passed))
    }

    def apply(edits: Edits) -> Edits:
        return replace(
            edits,
            reads={
                **edits.reads,
                **found.bases,
                **{at: labels.offset(edits.reads.get(at, name)) for at, name in found.reads.items()},
            },
            targets={
                **edits.targets,
                **{at: labels.offset(edits.targets.get(at, name)) for at, name in found.targets.items()},
            },
            fills={at: _of_pointer(fill, found.pointers.get(at)) for at, fill in edits.fills.items()},
            buffers=found.accesses,
            rebased=found.rebased,
            sides=found.sides,
            narrowed=found.narrowed,
            stretched=found.stretched,
            begun={at: labels.offset(edits.targets.get(at, name)) for at, name in found.begun.items()},
            arguments={
                **edits.arguments,
                **{at: (*edits.arguments.get(at, ()), *given.items()) for at, given in passed.items()},
            },
        )

    copies = {statement: tuple(apply(each) for each in several) for statement, several in plan.copies.items()}
    edits = apply(plan.edits)
    conversions = {
        statement: tuple(
            replace(step, source=labels.known.get(step.source, step.source), target=labels.of(step.target, step.source))
            for step in steps
        )
        for statement, steps in plan.conversions.items()
    }
    pairs = {name: (labels.offset(name), found.paired[name]) for name in named}
    pairs |= {name: (name, offsets) for name, offsets in found.moved.items()}
    zeros = {at: tuple(Hoist(labels.offset(name), "0") for name in names) for at, names in found.zeros.items()}
    plan = replace(plan, copies=copies, conversions=conversions, zeros=zeros)
    return replace(plan, edits=edits, notes=tuple(_notes(found)), pairs=pairs)


def _by_pointers(plan: FunctionPlan, paired: Mapping[str, str]) -> FunctionPlan:
    """The plan with scalar pointers wherever a text asks for the type of what has become offsets."""
    asked = re.compile(rf"\b({'|'.join(paired)})\b")
    asked_for_type = re.compile(rf"{asked.pattern}(?=\.dtype)")

    def spelled(value: Any, pattern: re.Pattern[str]) -> Any:
        match value:
            case str():
                return pattern.sub(lambda found: paired[found[0]], value)
            case tuple():
                return tuple(spelled(each, pattern) for each in value)
            case Mapping():
                return {key: spelled(each, pattern) for key, each in value.items()}
        if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{each.name: spelled(getattr(value, each.name), pattern) for each in fields(value)})
        return value

    # A ring may be called as a variable is, which is what is loaded by then.
    rings = tuple(replace(spelled(ring, asked), name=ring.name) for ring in plan.rings)
    return replace(
        plan,
        declarations=spelled(plan.declarations, asked),
        rings=rings,
        edits=spelled(plan.edits, asked_for_type),
        copies=spelled(plan.copies, asked_for_type),
    )


def _of_pointer(fill: tuple[tuple[str, ...], str], pointer: str | None) -> tuple[tuple[str, ...], str]:
    """A scalar's tile of what a pointer is of, where it is of what some pointer is of."""
    (*extents, dtype), layout = fill
    of_pointer = pointer is not None and dtype.endswith(".dtype.element_ty")
    return (*extents, f"{pointer}.dtype.element_ty" if of_pointer else dtype), layout


def _arguments(tree: ast.FunctionDef) -> list[ast.arg]:
    return [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]


def _notes(found: Found) -> Iterator[str]:
    """What is assumed, in words."""
    if found.tensors:
        counts = f"; {_named(found.counts)} not negative" if found.counts else ""
        yield f"buffer operations, as under the launches: less than 2 GiB from {_named(found.tensors)} on{counts}"


def _named(parameters: Collection[tuple[str, str]]) -> str:
    return listed(sorted({name for _, name in parameters}))


class _Labels:
    """The names of variables that hold offsets, by what they are called as pointers."""

    def __init__(self, taken: set[str], known: Mapping[str, str]) -> None:
        self.taken, self.known = taken | {*known.values()}, {**known}

    def offset(self, name: str) -> str:
        """The name of a variable's offsets."""
        if name not in self.known:
            self.known[name] = unused(offsets_name(name), self.taken)
            self.taken.add(self.known[name])
        return self.known[name]

    def of(self, target: str, source: str) -> str:
        """The name of what offsets are converted to; any other's stays."""
        return self.offset(target) if source in self.known else target


__all__ = ["Found", "Refused", "with_buffers"]
