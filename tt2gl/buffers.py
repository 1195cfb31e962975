"""Buffer operations in the plans of a file: what its kernels and their launches say, asked of `analysis.buffer_ops`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tt2gl.analysis.bodies import Reached, bodies_of, callers_first
from tt2gl.analysis.buffer_edits import Found, Refused, with_buffers
from tt2gl.analysis.buffer_ops import BufferOps
from tt2gl.analysis.buffer_sites import Sites
from tt2gl.analysis.buffer_sizes import Sizes
from tt2gl.analysis.graph import FunctionKey
from tt2gl.analysis.kernel import parsed
from tt2gl.analysis.moved_arguments import take_offsets
from tt2gl.analysis.offset_ranges import Body
from tt2gl.analysis.pointer_arguments import could_be_pairs, give
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.kernel_state import Kernel
from tt2gl.launches import TensorArg
from tt2gl.pipelining.direct import takes_offsets
from tt2gl.plan import FunctionPlan, Guard, Position
from tt2gl.targets import Target
from tt2gl.verify.compile import tensor_bytes

_HINT = "A plain access is right for any size; see the page of this code."


def buffered(
    plans: Sequence[FunctionPlan], kernels: Sequence[Kernel], target: Target, guard: bool = False
) -> list[FunctionPlan]:
    """The plans with buffer operations where they are proven to be right; the kernels are told where they are not.

    With `guard`, kernels check at each launch what is assumed.
    """
    guarded = frozenset(kernel.function.name for kernel in kernels if guard)
    reached = [
        Reached(
            kernel.function.name,
            parsed(kernel.slice),
            kernel.launches,
            [*kernel.facts.values(), *(facts for _, facts in kernel.turned)],
            kernel.function.name in guarded,
        )
        for kernel in kernels
        if kernel.slice is not None
    ]
    bodies, sizes = bodies_of(reached), Sizes(_sizes(kernels), guarded)
    planned = {(plan.path, plan.line) for plan in plans}
    files = {plan.path for plan in plans}
    # Helpers that need no layouts may have accesses all the same.
    helpers = [FunctionPlan(*key, False) for key in bodies if key[0] in files and key not in planned]
    _tell_of_others(plans, helpers, bodies, sizes, kernels, target)
    made: list[FunctionPlan] = []
    tensors: set[tuple[str, str]] = set()
    counts: set[tuple[str, str]] = set()
    every = (*plans, *helpers)
    decided = _decided([plan for plan in every if (plan.path, plan.line) in bodies], bodies, sizes, target)
    for plan in every:
        key = (plan.path, plan.line)
        found = decided.get(id(plan))
        if found is not None:
            for kernel in kernels:
                _tell(kernel, plan, found.refused)
            tensors |= found.tensors
            counts |= found.counts
        if found is not None and (found.accesses or found.passed or found.offsets or found.moved):
            made.append(with_buffers(plan, found, bodies[key].tree))
        elif key in planned:
            made.append(plan)
    names = {(plan.path, plan.line): bodies[plan.path, plan.line].kernel for plan in made if plan.is_kernel}
    return [
        replace(plan, guard=_guard(names[plan.path, plan.line], tensors, counts))
        if plan.is_kernel and names[plan.path, plan.line] in guarded
        else plan
        for plan in made
    ]


def _tell_of_others(
    plans: Sequence[FunctionPlan],
    helpers: Sequence[FunctionPlan],
    bodies: Mapping[FunctionKey, Body],
    sizes: Sizes,
    kernels: Sequence[Kernel],
    target: Target,
) -> None:
    """Note the helpers of other files whose accesses would be by buffers if they stood in this one."""
    files = {plan.path for plan in plans}
    others = {
        key: FunctionPlan(*key, False)
        for key, body in bodies.items()
        if key[0] not in files and Sites(body, target.buffers, target.buffer_atomics, ()).found
    }
    if not others:
        return
    every = [plan for plan in (*plans, *helpers, *others.values()) if (plan.path, plan.line) in bodies]
    decided = _decided(every, bodies, sizes, target)
    for key in others:
        bodies[key].pairs, bodies[key].carried, bodies[key].given = {}, {}, {}
    for body in bodies.values():
        body.moved = {}
    would = {key for key, plan in others.items() if decided[id(plan)].accesses}
    for kernel in kernels:
        kernel.accessed_elsewhere = frozenset(would & _reached(kernel))


def _reached(kernel: Kernel) -> set[FunctionKey]:
    return {(facts.path, facts.line) for seen in kernel.facts.values() for facts in seen.functions.values()}


def _decided(
    plans: Sequence[FunctionPlan], bodies: Mapping[FunctionKey, Body], sizes: Sizes, target: Target
) -> dict[int, Found]:
    """What becomes of each plan's accesses; helpers take offsets for tensors of pointers where all callers can."""
    by_function: dict[FunctionKey, list[FunctionPlan]] = {}
    for plan in plans:
        by_function.setdefault((plan.path, plan.line), []).append(plan)
    ordered = callers_first([bodies[key] for key in by_function])
    of = {id(bodies[key]): several for key, several in by_function.items()}
    for body in ordered:
        # A caller that is left as it is gives tensors of pointers.
        body.pairs = could_be_pairs(body) if all(id(caller) in of for caller, _ in body.callers) else {}
    # What broke a proof is what did so while the helper could still have been given offsets.
    reasons: dict[tuple[int, Position], Refused] = {}
    while True:
        found: dict[int, Found] = {}
        again = False
        unproven: list[tuple[Body, str]] = []
        for body in ordered:
            cannot = give(body)
            held: list[dict[str, str]] = []
            for plan in of[id(body)]:
                ops = BufferOps(body, sizes, target.buffers, target.buffer_atomics, _in_rings(plan))
                found[id(plan)] = decided = ops.decide()
                decided.refused = [reasons.setdefault((id(plan), each.position), each) for each in decided.refused]
                held.append(body.carried)
                unproven += ((body, name) for name in sorted(ops.unproven - body.moved.keys()))
            body.carried = {name: base for name, base in held[0].items() if all(name in each for each in held)}
            for name in sorted(cannot | (body.pairs.keys() - body.carried.keys())):
                del body.pairs[name]
                again = True
        for body, name in () if again else unproven:
            again |= take_offsets(body, name, ordered, sizes)
        if not again:
            return found


def _guard(kernel: str, tensors: set[tuple[str, str]], counts: set[tuple[str, str]]) -> Guard | None:
    """What a kernel is checked for."""
    large, negative = (tuple(sorted(name for of, name in each if of == kernel)) for each in (tensors, counts))
    return Guard(large, negative) if large or negative else None


def _sizes(kernels: Sequence[Kernel]) -> Mapping[tuple[str, str], int | None]:
    """The bytes of the largest tensor that launches give to each parameter, None where one does not say."""
    made: dict[tuple[str, str], int | None] = {}
    for kernel in kernels:
        for launch in kernel.launches:
            for name, kind in launch.signature.items():
                if kind.startswith("*"):
                    key, given = (kernel.function.name, name), (launch.args or {}).get(name)
                    size = tensor_bytes(given) if isinstance(given, TensorArg) else None
                    known = made.get(key, 0)
                    made[key] = None if size is None or known is None else max(size, known)
    return made


def _in_rings(plan: FunctionPlan) -> set[Position]:
    """The loads that go through shared memory ahead of their use, other than by copies that take offsets."""
    every = [plan.edits, *(copy for copies in plan.copies.values() for copy in copies)]
    by_offsets = {ring.name for ring in plan.rings if ring.registers or takes_offsets(ring.direct)}
    return {position for edits in every for position, (ring, _) in edits.staged.items() if ring not in by_offsets}


def _tell(kernel: Kernel, plan: FunctionPlan, refused: Sequence[Refused]) -> None:
    """Say to a kernel that reaches a function which accesses stay plain, and why."""
    if (plan.path, plan.line) not in _reached(kernel):
        return
    own = Path(plan.path).resolve() == Path(kernel.function.path).resolve()
    for each in refused:
        at = (str(kernel.function.path) if own else plan.path, *each.position[:2])
        told = Diagnostic("TTG340", Severity.NOTE, *at, f"This access is by no buffer operation: {each.reason}.", _HINT)
        if told not in kernel.diagnostics:
            kernel.diagnostics.append(told)
