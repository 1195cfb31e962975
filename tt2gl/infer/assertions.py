"""Constexprs that nothing fixes, changed until what a kernel asserts of them holds.

tl.static_assert(BLOCK_K % 256 == 0)                    BLOCK_K=32 becomes 256
tl.static_assert(BITS == 4 or BITS == 8)                BITS=16 becomes 8
if GROUP != BLOCK_K: raise ValueError(...)              GROUP=64 becomes what BLOCK_K is
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tt2gl.host.values import Frame, HostRaise, Undecided
from tt2gl.infer.blocks import assigned
from tt2gl.infer.kernel import Kernel
from tt2gl.trees import nodes_in

_POWERS = tuple(2**exponent for exponent in range(13))
_PLAIN = (bool, int, float, str)
_DEPTH = 2

Requirement = tuple[ast.expr, bool]
"""A condition, and whether the compiler goes on only where it holds, or only where it does not."""


def held_to(
    kernel: Kernel, requirements: Sequence[Requirement], constexprs: Mapping[str, Any], free: Sequence[str]
) -> dict[str, Any]:
    """Those of the constexprs in `free` that have to be others for the requirements, with what they are then.

    One is changed after the other, each to the nearest value by which fewer requirements are not met, and no other is.
    """
    changed: dict[str, Any] = {}
    tests = [requirement for requirement in requirements if _names(kernel, requirement[0], _DEPTH) & constexprs.keys()]
    unmet = _unmet(kernel, tests, constexprs)
    while unmet:
        found = _first_better(kernel, tests, {**constexprs, **changed}, [name for name in free if name not in changed])
        if found is None:
            break
        changed.update(found)
        unmet = _unmet(kernel, tests, {**constexprs, **changed})
    return changed


def _first_better(
    kernel: Kernel, tests: Sequence[Requirement], constexprs: Mapping[str, Any], free: Sequence[str]
) -> dict[str, Any] | None:
    """One constexpr changed so that less is unmet, and nothing that was met before."""
    unmet = _unmet(kernel, tests, constexprs)
    for place in sorted(unmet):
        names = _names(kernel, tests[place][0], _DEPTH)
        for name in (name for name in free if name in names):
            for value in _others(tests[place][0], constexprs, name):
                if _unmet(kernel, tests, {**constexprs, name: value}) < unmet:
                    return {name: value}
    return None


def _unmet(kernel: Kernel, tests: Sequence[Requirement], constexprs: Mapping[str, Any]) -> frozenset[int]:
    """The places of the requirements that are known not to be met."""
    values = {name: value for name, value in constexprs.items() if isinstance(value, _PLAIN)}
    frame = Frame(kernel.scope, values)
    return frozenset(
        place
        for place, (test, holds) in enumerate(tests)
        if (value := _value(kernel, test, frame)) is not None and value is not holds
    )


def _value(kernel: Kernel, test: ast.expr, frame: Frame) -> bool | None:
    """Whether a condition holds, None where that cannot be told."""
    try:
        assert frame.locals is not None
        names = _names(kernel, test, 1)
        # In the order of their assignments: one may be made of another.
        for name, values in assigned(kernel.node).items():
            if name in names and name not in frame.locals and len(values) == 1:
                frame.locals[name] = kernel.evaluator.evaluate(values[0], frame)
        value = kernel.evaluator.evaluate(test, frame)
    except (Undecided, HostRaise):
        return None
    return bool(value) if isinstance(value, _PLAIN) else None


def _names(kernel: Kernel, test: ast.expr, depth: int) -> frozenset[str]:
    """The names that a condition reads, and so on through what the kernel assigns once."""
    names = {node.id for node in nodes_in(test) if isinstance(node, ast.Name)}
    for name in tuple(names) if depth > 1 else ():
        values = assigned(kernel.node).get(name, ())
        if len(values) == 1 and name not in kernel.names:
            names |= _names(kernel, values[0], depth - 1)
    return frozenset(names)


def _others(test: ast.expr, constexprs: Mapping[str, Any], name: str) -> Iterator[Any]:
    """What a constexpr may be instead, the likeliest first: what stands beside it, and sizes near to its own."""
    own = constexprs[name]
    whole = own is None or isinstance(own, int)
    near = own if isinstance(own, int) else 0
    if isinstance(own, bool):
        yield not own
    beside = [constexprs.get(node.id) for node in nodes_in(test) if isinstance(node, ast.Name)]
    written = [node.value for node in nodes_in(test) if isinstance(node, ast.Constant)]
    numbers = (each for each in (*written, *_POWERS) if type(each) is int and each)
    sizes = sorted(numbers, key=lambda each: abs(each - near))
    for value in (*beside, *(sizes if whole else ()), *written):
        if type(value) is (int if whole else type(own)) and value != own:
            yield value
    # A word may be left out.
    if isinstance(own, str):
        yield None
