"""Rule `imports`: a converted file imports Gluon beside Triton, and carries the layout helper that it uses.

import triton                                               # before
import triton.language as tl

import triton                                               # after
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import libcst as cst

from tt2gl.plan import ASYNC_LOAD, HOST_TILES, TMA_LOAD, TMA_STORE
from tt2gl.qualified_names import walk

IMPORTED = {"gluon": "triton.experimental.gluon", "gl": "triton.experimental.gluon.language"}
"""The names that converted code uses, and the modules they stand for."""


def import_lines(names: Mapping[str, str]) -> tuple[str, str]:
    """The two import statements; `names` says what a name of `IMPORTED` is called where the file has taken it."""
    gluon, gl = (names.get(name, name) for name in IMPORTED)
    aliased = "" if gluon == "gluon" else f" as {gluon}"
    return (
        f"from triton.experimental import gluon{aliased}",
        f"from triton.experimental.gluon import language as {gl}",
    )


_NVIDIA = "triton.experimental.gluon.language.nvidia"
_AMD = "triton.experimental.gluon.language.amd"
INSTRUCTIONS = {
    f"{_AMD}.cdna4.async_copy": ("load_shared_relaxed",),
    f"{_AMD}.gfx1250": ("tdm",),
    f"{_NVIDIA}.ampere": ("async_copy", "mma_v2"),
    f"{_NVIDIA}.blackwell": (
        "TensorMemoryLayout",
        "TensorMemoryScalesLayout",
        "allocate_tensor_memory",
        "tcgen05_commit",
        "tcgen05_mma",
        "tcgen05_mma_scaled",
    ),
    f"{_NVIDIA}.hopper": (
        "fence_async_shared",
        "mbarrier",
        "tma",
        "warpgroup_mma",
        "warpgroup_mma_init",
        "warpgroup_mma_wait",
    ),
}
"""What pipelines and products call, by module."""

ASYNC_COPIES = {
    "async_copy.global_load_to_shared": f"{_AMD}.cdna4",
    "async_copy.buffer_load_to_shared": f"{_AMD}.cdna4",
    "async_copy.global_to_shared": f"{_AMD}.gfx1250",
}
"""What copies to LDS on AMD, and the module that has its `async_copy`."""

_ASYNC_LOAD = f"""
try:
    from {_NVIDIA}.ampere.async_copy import {ASYNC_LOAD}
except ImportError:  # as it was called before Triton 3.8
    from {_NVIDIA}.ampere.async_copy import async_copy_global_to_shared as {ASYNC_LOAD}
"""

_HOST_TILES = """from triton.experimental.gluon.{module} import TensorDescriptor as TileDescriptor
from triton.runtime.jit import KernelInterface
"""

TMA_COPIES = {
    TMA_LOAD: ("async_load", "async_copy_global_to_shared"),
    TMA_STORE: ("async_store", "async_copy_shared_to_global"),
}
"""What converted code calls copies by TMA, and what Triton does: now, and before 3.8."""


TRITON_DOTS = {"triton_dot": "dot", "triton_dot_scaled": "dot_scaled"}
"""What converted code calls Triton's own products, where Gluon has no word for one."""


def _tma_copies(used: Collection[str]) -> str:
    """The imports of the copies by TMA that are used."""
    named = [(name, *known) for name, known in TMA_COPIES.items() if name in used]
    now, before = (
        "\n".join(f"    from {_NVIDIA}.hopper.tma import {names[place]} as {names[0]}" for names in named)
        for place in (1, 2)
    )
    return f"\ntry:\n{now}\nexcept ImportError:  # as it was called before Triton 3.8\n{before}\n"


def _instructions(code: str) -> Mapping[str, tuple[str, ...]]:
    """What pipelines and products call, by module: there is an `async_copy` for each kind of GPU."""
    for copy, module in ASYNC_COPIES.items():
        if f"{copy}(" in code:
            ampere = tuple(name for name in INSTRUCTIONS[f"{_NVIDIA}.ampere"] if name != "async_copy")
            beside = ("async_copy", *INSTRUCTIONS.get(module, ()))
            return {**INSTRUCTIONS, f"{_NVIDIA}.ampere": ampere, module: beside}
    return INSTRUCTIONS


def with_instructions(code: str) -> str:
    """The converted file with the instructions imported that it calls, after Gluon, in lines that end as its own."""
    used = set(re.findall(r"(?<![\w.])\w+(?=[.(])", code))
    lines = [
        f"from {module} import {', '.join(name for name in names if name in used)}\n"
        for module, names in _instructions(code).items()
        if used & set(names)
    ]
    lines = [line for line in lines if line not in code]
    dots = [f"{name} as {ours}" for ours, name in TRITON_DOTS.items() if ours in used]
    if dots and (line := f"from triton.language import {', '.join(dots)}\n") not in code:
        lines.append(line)
    if ASYNC_LOAD in used and _ASYNC_LOAD not in code:
        lines.append(_ASYNC_LOAD)
    host_tiles = _HOST_TILES.format(module="amd.gfx1250" if f"def {HOST_TILES}(*loaded)" in code else "nvidia.hopper")
    if f"def {HOST_TILES}(" in code and host_tiles not in code:
        lines.append(host_tiles)
    if used & TMA_COPIES.keys() and (copies := _tma_copies(used)) not in code:
        lines.append(copies)
    gluon = re.search(r"^from triton\.experimental\.gluon import language as \w+(\r?\n)", code, re.MULTILINE)
    if not lines or gluon is None:
        return code
    added = "".join(lines).replace("\n", gluon[1])
    return f"{code[: gluon.end()]}{added}{code[gluon.end() :]}"


def _imports_triton(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for part in statement.body:
        if isinstance(part, cst.Import):
            names = [cst.Module([]).code_for_node(alias.name) for alias in part.names]
        elif isinstance(part, cst.ImportFrom) and part.module is not None:
            names = [cst.Module([]).code_for_node(part.module)]
        else:
            continue
        if any(name == "triton" or name.startswith("triton.") for name in names):
            return True
    return False


def with_gluon(
    module: cst.Module, helpers: Sequence[cst.FunctionDef], first: int, names: Mapping[str, str]
) -> cst.Module:
    """The module with Gluon imported, and `helpers` above top-level statement `first`."""
    body = list(module.body)
    code = module.code
    imports = [cst.parse_statement(line) for line in import_lines(names) if line not in code]
    after = max((place + 1 for place in range(first) if _imports_triton(body[place])), default=None)
    blank = cst.EmptyLine(indent=False)
    added = [helper.with_changes(leading_lines=[blank, blank]) for helper in helpers]
    if after is None:
        after = first
        if imports and first > 0:
            imports[0] = imports[0].with_changes(leading_lines=[blank])
    return module.with_changes(body=[*body[:after], *imports, *body[after:first], *added, *body[first:]])


def top_level_index(module: cst.Module, contains: Callable[[cst.CSTNode], bool]) -> int:
    """The first top-level statement with a node inside that `contains` accepts."""
    for place, statement in enumerate(module.body):
        if any(contains(node) for node in walk(statement)):
            return place
    return len(module.body)
