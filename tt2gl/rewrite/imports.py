"""Rule `imports`: a converted file imports Gluon beside Triton, and carries the layout helper that it uses.

A file that does without Triton where there is none, its kernels under `if HAS_TRITON:` or in a function that imports
Triton itself, imports Gluon there, too.

import triton                                               # before
import triton.language as tl

import triton                                               # after
import triton.language as tl
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice, takewhile
from textwrap import indent

import libcst as cst

from tt2gl.qualified_names import REEXPORTED, walk
from tt2gl.syntax import is_name
from tt2gl.trees import python_tree
from tt2gl.words import ASYNC_LOAD, HOST_PARTS, HOST_TILES, TMA_LOAD, TMA_STORE

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
    f"{_NVIDIA}.blackwell.tma": ("async_gather", "async_scatter"),
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

_INTERFACE = "from triton.runtime.jit import KernelInterface\n"
_HOST_TILES = f"""from triton.experimental.gluon.{{module}} import TensorDescriptor as TileDescriptor
{_INTERFACE}"""

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
    used, known = set(re.findall(r"(?<![\w.])\w+(?=[.(])", code)), _unindented(code)
    lines = [
        f"from {module} import {', '.join(name for name in names if name in used)}\n"
        for module, names in _instructions(code).items()
        if used & set(names)
    ]
    lines, tried = [line for line in lines if line not in known], []
    dots = [f"{name} as {ours}" for ours, name in TRITON_DOTS.items() if ours in used]
    if dots and (line := f"from triton.language import {', '.join(dots)}\n") not in known:
        lines.append(line)
    if ASYNC_LOAD in used and _unindented(_ASYNC_LOAD) not in known:
        tried.append(_ASYNC_LOAD)
    host_tiles = _HOST_TILES.format(module="amd.gfx1250" if f"def {HOST_TILES}(*loaded)" in code else "nvidia.hopper")
    if f"def {HOST_TILES}(" in code and host_tiles not in known:
        lines.append(host_tiles)
    if f"def {HOST_PARTS}(" in code and _INTERFACE not in known:
        lines.append(_INTERFACE)
    if used & TMA_COPIES.keys() and _unindented(copies := _tma_copies(used)) not in known:
        tried.append(copies)
    gluon = re.search(r"^([ \t]*)from triton\.experimental\.gluon import language as \w+(\r?\n)", code, re.MULTILINE)
    if gluon is None:
        return code

    def as_there(texts: Sequence[str]) -> str:
        return indent("".join(texts), gluon[1]).replace("\n", gluon[2])

    behind = _behind_imports(code, gluon.end()) if tried else gluon.end()
    between = code[gluon.end() : behind]
    apart = gluon[2] if tried and code[behind:].split("\n", 1)[0].strip() else ""
    return f"{code[: gluon.end()]}{as_there(lines)}{between}{as_there(tried)}{apart}{code[behind:]}"


def _unindented(text: str) -> str:
    """Text as it is asked whether lines are in it, under whatever they stand and however they end."""
    return re.sub(r"^[ \t]+|\r$", "", text, flags=re.MULTILINE)


def _behind_imports(code: str, end: int) -> int:
    """Where the imports end that the one at whose `end` a line ends stands among."""
    start = code.count("\n", 0, end)
    for node in ast.walk(python_tree(code.removeprefix("\ufeff"))):
        body = [*getattr(node, "body", ())] if isinstance(node, ast.Module | ast.If | ast.FunctionDef) else []
        for at, statement in enumerate(body):
            if statement.end_lineno == start and isinstance(statement, ast.ImportFrom):
                run = takewhile(lambda each: isinstance(each, ast.Import | ast.ImportFrom), body[at:])
                *_, last = run
                lines = (match.end() for match in re.finditer("\n", code))
                return next(islice(lines, (last.end_lineno or start) - 1, None), len(code))
    return end


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


def _names_triton(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    """Whether a statement imports Triton, or what a package calls so."""
    parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
    aliases = [part.names for part in parts if isinstance(part, cst.ImportFrom)]
    named = [alias.name for names in aliases if not isinstance(names, cst.ImportStar) for alias in names]
    return _imports_triton(statement) or any(is_name(name, *REEXPORTED) for name in named)


def is_guarded(module: cst.Module, contains: Callable[[cst.CSTNode], bool]) -> bool:
    """Whether all functions that `contains` accepts stand under one condition, and Triton's import under some, too.

    Or all stand in one function that imports Triton.
    """
    holders = [statement for statement in module.body if any(contains(node) for node in walk(statement))]
    always = any(_imports_triton(statement) for statement in module.body[: module.body.index(holders[0])])
    if len(holders) == 1 and isinstance(holders[0], cst.FunctionDef) and not contains(holders[0]):
        return not always and any(_imports_triton(line) for line in holders[0].body.body)
    tests: set[str] = set()
    for statement in holders:
        if not isinstance(statement, cst.If) or (
            statement.orelse is not None and any(contains(node) for node in walk(statement.orelse))
        ):
            return False
        tests.add(module.code_for_node(statement.test))
    return len(tests) == 1 and not always


def with_gluon(
    module: cst.Module, helpers: Sequence[cst.FunctionDef], first: int, names: Mapping[str, str], guarded: bool = False
) -> cst.Module:
    """The module with Gluon imported, and `helpers` above top-level statement `first`, or at the top of its block."""
    body = list(module.body)
    if guarded:
        holder = body[first]
        block = cst.ensure_type(holder.body, cst.IndentedBlock)
        lines = _missing(module, names)
        blank = cst.EmptyLine(indent=False)
        defined = [helper.with_changes(leading_lines=[blank]) for helper in helpers]
        triton = next((at for at, line in enumerate(block.body) if _imports_triton(line)), 0)
        at = next((at for at, line in enumerate(block.body) if at >= triton and not _imports(line)), len(block.body))
        rest = [_after_blank_line(line, blank) if lines or defined else line for line in block.body[at : at + 1]]
        block = block.with_changes(body=[*block.body[:at], *lines, *defined, *rest, *block.body[at + 1 :]])
        return module.with_changes(body=[*body[:first], holder.with_changes(body=block), *body[first + 1 :]])
    imports = _missing(module, names)
    after = max((place + 1 for place in range(first) if _names_triton(body[place])), default=None)
    blank = cst.EmptyLine(indent=False)
    added = [helper.with_changes(leading_lines=[blank, blank]) for helper in helpers]
    if after is None:
        after = first
        if imports and first > 0:
            above = [blank] * (2 if isinstance(body[first - 1], cst.FunctionDef | cst.ClassDef) else 1)
            imports[0] = imports[0].with_changes(leading_lines=above)
    return module.with_changes(body=[*body[:after], *imports, *body[after:first], *added, *body[first:]])


def _missing(module: cst.Module, names: Mapping[str, str]) -> list[cst.SimpleStatementLine | cst.BaseCompoundStatement]:
    """The imports of Gluon that the module does not have."""
    there = [node for node in walk(module) if isinstance(node, cst.Import | cst.ImportFrom)]
    known = [module.code_for_node(node) for node in there]
    return [cst.parse_statement(line) for line in import_lines(names) if not any(line in each for each in known)]


def _imports(statement: cst.BaseStatement | cst.BaseSmallStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(
        isinstance(part, cst.Import | cst.ImportFrom) for part in statement.body
    )


def _after_blank_line(
    statement: cst.BaseStatement | cst.BaseSmallStatement, blank: cst.EmptyLine
) -> cst.BaseStatement | cst.BaseSmallStatement:
    lines = getattr(statement, "leading_lines", ())
    if lines and lines[0].comment is None:
        return statement
    return statement.with_changes(leading_lines=[blank, *lines])


def top_level_index(module: cst.Module, contains: Callable[[cst.CSTNode], bool]) -> int:
    """The first top-level statement with a node inside that `contains` accepts."""
    for place, statement in enumerate(module.body):
        if any(contains(node) for node in walk(statement)):
            return place
    return len(module.body)
