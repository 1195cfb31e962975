"""Values for constexprs that nothing in the file fixes, by use and name."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from tt2gl.host.values import Function
from tt2gl.infer.kernel import Kernel, launch_value
from tt2gl.infer.names import FLAG_NAME, FLOAT_NAME, SIZE_NAME, STRIDE_NAME, VALUES, named_dtype
from tt2gl.infer.usage import Usage
from tt2gl.launches import DtypeValue

_OUTER_STRIDE = 1024


def guess_constexpr(kernel: Kernel, usage: Usage, name: str, flags: bool, known: Mapping[str, Any]) -> tuple[Any, bool]:
    """A value for a constexpr, and whether it is a flag that was set as `flags` asks; `known`: what others are."""
    facts = usage.evidence(name)
    if facts.asserted is not None:
        return facts.asserted, False
    if facts.strings:
        return facts.strings[0], False
    if facts.asked:
        return facts.asked, False
    if facts.dtype:
        return DtypeValue(named_dtype(name)), False
    upper = name.upper()
    if not facts.integer and not facts.number and not facts.float:
        if facts.truth or (FLAG_NAME.search(name) and not facts.ordered):
            return flags, flags
        if facts.none:
            return None, False
    if facts.called:
        return _some_helper(kernel), False
    if not facts.integer and (facts.float or (FLOAT_NAME.search(name) and not SIZE_NAME.search(name))):
        return (1e-6 if "EPS" in upper else 1.0), False
    if STRIDE_NAME.search(name) and not facts.tile:
        return 1 if facts.unit else _OUTER_STRIDE, False
    for pattern, value in VALUES:
        if re.search(pattern, upper):
            return value, False
    if facts.unrolled:
        # A thousand copies of a loop's body take a compiler minutes, and show nothing that a few do not.
        return 4, False
    if facts.tile or "BLOCK" in upper or upper.endswith(("_SIZE", "TILE")):
        return _tile(kernel, usage, name), False
    if facts.integers and not facts.integer and not facts.number:
        return facts.integers[0], False
    named = SIZE_NAME.search(name) or SIZE_NAME.search(name.lower())
    if facts.offset or facts.size or facts.stride or facts.number or facts.whole or (named and not facts.integers):
        return max(64, *_tiles(usage, known)) if named else 16, False
    return (flags, flags) if facts.none or not facts.integers else (facts.integers[0], False)


def _tile(kernel: Kernel, usage: Usage, name: str) -> int:
    tiles = [
        parameter.name
        for parameter in kernel.fn.parameters
        if parameter.is_constexpr
        and (usage.facts[parameter.name].tile or "BLOCK" in parameter.name.upper())
        and not any(re.search(pattern, parameter.name.upper()) for pattern, _ in VALUES)
    ]
    others = [p.name for p in kernel.fn.parameters if p.is_constexpr and re.search(r"HEAD_?DIM|DMODEL", p.name.upper())]
    if any(facts.rank for facts in usage.facts.values()):
        return 64  # the block of a guessed descriptor
    if usage.rank > 2:
        return 16  # three dimensions and more: the product must stay a tile
    if len(tiles) <= 1 and not others:
        return 1024 if usage.rank == 1 else 64
    if re.search(r"_?B?K$", name.upper()):
        return 128 if usage.scaled else 32  # no fewer have an instruction that takes scales
    if usage.products and re.search(r"_(H|HEADS?)$", name.upper()):
        return 16  # heads that share their keys are few
    # With fewer rows of a product, no warp group could take it.
    return 64 if usage.products or usage.scaled or len(tiles) <= 2 else 32


def _tiles(usage: Usage, known: Mapping[str, Any]) -> list[int]:
    """The extents of tiles that are known, and one: sizes are not smaller, or no loop over tiles would run."""
    return [1, *(value for name, value in known.items() if usage.evidence(name).tile and type(value) is int)]


def _some_helper(kernel: Kernel) -> Any:
    """A jit function of the file that takes one argument, for a constexpr that is called."""
    for name, node in ((node.name, node) for node in kernel.module.scopes if isinstance(node, ast.FunctionDef)):
        if node is not kernel.node and len(node.args.args) == 1 and node.decorator_list:
            value = kernel.value(ast.Name(name, ast.Load(), lineno=1, col_offset=0), kernel.module.scope)
            if isinstance(value, Function):
                return launch_value(value)
    return None
