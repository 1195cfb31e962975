"""Sizes of which a launch call makes how often a loop turns, as large as it takes for it to turn twice.

    NUM_BLOCK = triton.cdiv(n, BLOCK)                   for i in range(NUM_BLOCK):
    kernel[grid](q, n, BLOCK=BLOCK, NUM_BLOCK=NUM_BLOCK)    if i > 0: ...

One block is all that a small size has, and then a compiler leaves out what only later turns do: products, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tt2gl.infer.derived import worked_out
from tt2gl.infer.found import Known
from tt2gl.infer.kernel import Kernel
from tt2gl.infer.usage import Usage

_TIMES = 2


def turning_twice(
    kernel: Kernel, usage: Usage, known: Known, constexprs: Mapping[str, Any], free: Sequence[str]
) -> dict[str, int]:
    """A size of the constexprs in `free` that is guessed anew, with what the call makes of it; nothing else changes."""
    loops = [name for name in free if usage.evidence(name).turns and constexprs[name] == 1]
    for name in free if loops else ():
        if name in loops or usage.evidence(name).tile or type(constexprs[name]) is not int:
            continue
        size = {name: constexprs[name] * _TIMES}
        made = worked_out(kernel, known, {**constexprs, **size}, free)
        if made.keys() <= {*loops} and any(value > 1 for value in made.values()):
            return size | made
    return {}
