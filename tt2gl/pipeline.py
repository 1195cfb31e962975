"""Software pipelining from source to source: the second step of a conversion, on Gluon text with markers.

The first step writes a load that is to go through a ring of tiles in shared memory as a marker:

    for k in range(0, gl.cdiv(K, BLOCK_K)):
        a = _tt2gl_ring_a(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)

and here the loop becomes what keeps copies under way while it computes: a prologue that starts the first ones, a
steady state that waits for the oldest and starts the next, and a drain.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence

import libcst as cst

from tt2gl.pipelining.ahead import Ahead, can_run_ahead
from tt2gl.pipelining.chosen_reads import with_chosen_reads
from tt2gl.pipelining.fences import with_reads_above_fences, with_single_fences
from tt2gl.pipelining.headers import with_own_variables
from tt2gl.pipelining.lookups import needed_by_lookups, with_plain_lookups
from tt2gl.pipelining.loops import FunctionWriter
from tt2gl.pipelining.lowered_reads import with_lowered_reads
from tt2gl.pipelining.naming import fresh_names
from tt2gl.pipelining.own_loads import with_own_loads_first
from tt2gl.pipelining.partitions import partitioned
from tt2gl.pipelining.rings import LoopRings, NotPipelinedError
from tt2gl.pipelining.stored_parts import with_stored_parts
from tt2gl.pipelining.tcgen05 import with_tensor_memory
from tt2gl.pipelining.uniform_parts import with_uniform_parts
from tt2gl.pipelining.walking import Lines, walked, with_blocks
from tt2gl.pipelining.wgmma import launched_asynchronously
from tt2gl.plan import FilePlan, FunctionPlan, Ring
from tt2gl.source import SourceFile
from tt2gl.stages import LOOKED_UP
from tt2gl.trees import nodes_in, python_tree
from tt2gl.words import ASYNC_LOAD

__all__ = ["Ahead", "LoopRings", "NotPipelinedError", "Ring", "can_run_ahead", "pipelined", "staged"]


Place = tuple[str, int, int]
"""A statement of the author's: file, line and column."""

COPY = "async_copy.async_copy_global_to_shared"
"""What copies to shared memory are called, unless it is said otherwise."""

_BYTE_ORDER_MARK = "\ufeff"
_ALIAS = re.compile(r"^[ \t]*from triton\.experimental\.gluon import language as (\w+)", re.MULTILINE)


def staged(text: str, source: SourceFile, plan: FilePlan) -> tuple[str, frozenset[Place]]:
    """A rewritten file with the loops of its converted functions pipelined, as `plan` has their rings.

    And the loops of the author's whose parts have warps of their own now. Raises NotPipelinedError, with the function,
    for a loop that cannot be.
    """
    alias = _ALIAS.search(text)
    if alias is None or alias[1] == "gl":
        return _staged(text, source, plan)
    # What is written here says `gl`, which the author has taken: until it is written, the author's is called as ours.
    made, parted = _staged(_swapped(text, alias[1]), source, plan)
    return _swapped(made, alias[1]), parted


def _swapped(text: str, alias: str) -> str:
    """The text with `gl` and what the file calls it instead in each other's place."""
    return re.sub(rf"\b(gl|{alias})\b", lambda found: alias if found[0] == "gl" else "gl", text)


def _staged(text: str, source: SourceFile, plan: FilePlan) -> tuple[str, frozenset[Place]]:
    """The same, in a file where Gluon's language is called `gl`."""
    bare = text.removeprefix(_BYTE_ORDER_MARK)
    mark, text = text[: len(text) - len(bare)], with_own_variables(bare)
    asking = _specs(text, source, plan, [each for each in plan.functions if each.partitioned])
    parted: set[Place] = set()
    if asking:
        text, done = partitioned(text, [*asking])
        parted = {(asking[spec].path, *place) for spec in done for place in asking[spec].partitioned}
    specs = _specs(text, source, plan, plan.functions)
    held = {spec.function: [ring.name for ring in spec.rings if ring.held] for spec in specs}
    text = with_own_loads_first(text, {name: rows for name, rows in held.items() if rows})
    try:
        made = pipelined(text, [*specs], ASYNC_LOAD) if specs else text
        made = with_chosen_reads(
            with_lowered_reads(made, {spec.function for spec in specs}), {spec.function for spec in specs}
        )
        through = _through_registers(specs)
        return mark + with_stored_parts(with_uniform_parts(made, through), through), frozenset(parted)
    except NotPipelinedError:
        for spec, function in specs.items():
            try:
                pipelined(text, [spec], ASYNC_LOAD)
            except NotPipelinedError as error:
                raise NotPipelinedError(str(error), (function.path, function.line)) from error
        raise


def _through_registers(specs: Mapping[LoopRings, FunctionPlan]) -> set[str]:
    """The kernels all of whose tiles come to shared memory through registers, of which AMD's compiler orders all."""
    through = {spec.function: all(ring.registers for ring in spec.rings) for spec in specs if spec.rings}
    return {
        name
        for name, registers in through.items()
        if registers and all(function.is_kernel for spec, function in specs.items() if spec.function == name)
    }


def _specs(
    text: str, source: SourceFile, plan: FilePlan, functions: Sequence[FunctionPlan]
) -> dict[LoopRings, FunctionPlan]:
    """What there is to know of the functions whose loops or products are written here, where they stand in the text."""
    names = {function.line: function.name for function in source.functions}
    places: dict[str, list[int]] = {}
    for node in nodes_in(python_tree(text)):
        if isinstance(node, ast.FunctionDef):
            places.setdefault(node.name, []).append(node.lineno)
    specs: dict[LoopRings, FunctionPlan] = {}
    for function in sorted(functions, key=lambda function: function.line):
        name = function.name or names[function.line]
        # A name of ours is the only one of its kind; the author's may stand several times.
        alike = [line for line, known in sorted(names.items()) if known == name] or [function.line]
        line = sorted(places[name])[alike.index(function.line)]
        products = [*function.edits.dots.values()]
        if function.rings or any(dot.instruction in ("wgmma", "tcgen05", "tcgen05_scaled") for dot in products):
            specs[_spec(function, name, line, plan)] = function
    return specs


def _spec(function: FunctionPlan, name: str, line: int, plan: FilePlan) -> LoopRings:
    rings = function.rings
    split = bool(rings) and all(ring.split for ring in rings)
    stages = function.stages.used if function.stages is not None and not split else "2"
    dots = function.edits.dots.values()
    released = bool(dots) and all(dot.ends_at_once for dot in dots)
    read_on = any(ring.in_memory and not ring.ends_at_once for ring in rings) and not released
    spare = read_on or any(ring.direct for ring in rings)
    buffers = stages if spare or not rings else f"{stages} - 1"
    others = frozenset(dot.name for dot in dots if dot.dtype != "gl.float32")
    # Triton loads or copies what says where tiles are earlier only where there is a stage for that, too.
    looks_ahead = not any(ring.located for ring in rings) and (
        any(ring.registers or ring.direct or ring.tile for ring in rings)
        or (function.stages is not None and function.stages.schedule is LOOKED_UP)
    )
    return LoopRings(
        name,
        line,
        rings,
        buffers,
        others,
        function.wide,
        function.rings_outside,
        released,
        function.flattened,
        looks_ahead,
        plan.slots_apart,
        plan.fenced,
    )


def _plain(text: str, specs: Sequence[LoopRings]) -> dict[str, Sequence[Ring]]:
    """The rings, by functions, whose lookups are loads."""
    found: dict[str, Sequence[Ring]] = {spec.function: spec.rings for spec in specs if not spec.looks_ahead}
    asked = {spec.function: spec.rings for spec in specs if sum(ring.looked_up for ring in spec.rings) > 1}
    for node in nodes_in(python_tree(text)) if asked.keys() - found.keys() else ():
        if isinstance(node, ast.FunctionDef) and node.name in asked.keys() - found.keys():
            found[node.name] = needed_by_lookups(node, asked[node.name])
    return found


def pipelined(text: str, specs: Sequence[LoopRings], copy: str = COPY) -> str:
    """The text with every loop that has markers pipelined, and products of several warps left running where they may.

    The functions are those of `specs`; `copy` is what copies to shared memory are called. Raises NotPipelinedError for
    a loop that cannot be.
    """
    text = with_plain_lookups(text, _plain(text, specs))
    tree, module = python_tree(text), cst.parse_module(text)
    wanted = {(spec.function, spec.line): spec for spec in specs}
    helpers = {node.name: node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)}

    def function(statement: ast.stmt, line: cst.BaseStatement, indent: int) -> Lines:
        if isinstance(statement, ast.FunctionDef) and isinstance(line, cst.FunctionDef):
            spec = wanted.get((statement.name, statement.lineno))
            if spec is not None:
                fresh = fresh_names(tree, statement)
                writer = FunctionWriter(spec, copy, statement, fresh, helpers=helpers)
                made = writer.written(line, indent)
                running = launched_asynchronously(with_single_fences(made), spec.synchronous, writer.freed)
                return [with_tensor_memory(with_reads_above_fences(running, fresh), fresh, writer.freed)]
        if not any(
            (each.name, each.lineno) in wanted for each in nodes_in(statement) if isinstance(each, ast.FunctionDef)
        ):
            return [line]
        return [with_blocks(statement, line, function, indent)]

    lines = walked(tree.body, cst.IndentedBlock(module.body), function, 0)
    return module.with_changes(body=lines).code
