"""Partitions of a kernel's warps: the functions that they run, and the call that starts them."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.flow import NONE, Liveness
from tt2gl.pipelining.texts import WIDTH
from tt2gl.pipelining.trees import code, statement
from tt2gl.pipelining.walking import Lines
from tt2gl.trees import nodes_in

WORKER_REGISTERS = "24"
"""Registers of a thread that only starts copies or products: what Triton asks for its own."""


def names_before(function: ast.FunctionDef, loop: ast.stmt) -> list[str]:
    """The names that a function has before a loop, as it gets them."""
    arguments = function.args
    found = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    for each in function.body[: function.body.index(loop)]:
        found += [node.id for node in nodes_in(each) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return list(dict.fromkeys(found))


def arguments_of(lines: Lines, known: Sequence[str], fixed: Collection[str]) -> list[str]:
    """Which of the `known` names a partition reads before it binds them: what it takes, constants (`fixed`) last."""
    needed = Liveness().before(ast.parse("".join(map(code, lines))).body, NONE)
    return sorted((name for name in dict.fromkeys(known) if name in needed), key=lambda name: name in fixed)


def partition(
    name: str, says: str, arguments: Sequence[str], fixed: Collection[str], lines: Lines
) -> cst.BaseStatement:
    """A partition's function."""
    parameters = [f"{each}: gl.constexpr" if each in fixed else each for each in arguments]
    made = cst.parse_statement(f"@gluon.jit\ndef {name}({', '.join(parameters)}):\n    pass\n")
    assert isinstance(made, cst.FunctionDef)
    told = statement(f'"""{says}"""')
    gap = [cst.EmptyLine(indent=False), cst.EmptyLine(indent=False)]
    return made.with_changes(body=cst.IndentedBlock([told, *lines]), leading_lines=gap)


def call_of(
    names: Sequence[str],
    given: Sequence[Sequence[str]],
    warps: Sequence[str],
    registers: Sequence[str],
    results: Sequence[str] = (),
) -> str:
    """The call of the partitions, the first of which has the warps of the launch, and gives `results`."""
    rows = []
    for name, arguments in zip(names, given, strict=True):
        flat = f"        ({name}, ({', '.join(arguments)}{',' if len(arguments) == 1 else ''})),"
        if len(flat) > WIDTH:
            own = " " * 16
            inside = textwrap.fill(", ".join(arguments) + ",", WIDTH, initial_indent=own, subsequent_indent=own)
            flat = f"        (\n            {name},\n            (\n{inside}\n            ),\n        ),"
        rows.append(flat)
    ends = f"    [{', '.join(warps)}],\n    [{', '.join(registers)}],\n"
    targets = f"{', '.join(results)} = " if results else ""
    return f"{targets}gl.warp_specialize(\n    [\n" + "\n".join(rows) + "\n    ],\n" + ends + ")"


@dataclass(frozen=True)
class SlotBarriers:
    """Two mbarriers for each of `count` slots: that something is there, and that it is free. `each`: an unused name."""

    there: str
    free: str
    count: str
    each: str

    def made(self) -> Lines:
        """What makes them."""
        shape = f"gl.int64, [{self.count}, 1], mbarrier.MBarrierLayout()"
        made: Lines = [statement(f"{name} = gl.allocate_shared_memory({shape})") for name in (self.there, self.free)]
        return [*made, self._all("mbarrier.init({}, count=1)")]

    def gone(self) -> cst.BaseStatement:
        """What ends them."""
        return self._all("mbarrier.invalidate({})")

    def _all(self, source: str) -> cst.BaseStatement:
        inner = [statement(source.format(f"{name}.index({self.each})")) for name in (self.there, self.free)]
        span = cst.parse_expression(f"gl.static_range({self.count})")
        return cst.For(cst.Name(self.each), span, cst.IndentedBlock(inner))


def next_slot(slot: str, phase: str, count: str) -> Lines:
    """What moves on to the next of `count` slots, whose phase turns where they begin anew."""
    return [
        statement(f"{slot} = gl.where({slot} + 1 >= {count}, 0, {slot} + 1)"),
        statement(f"{phase} = {phase} ^ ({slot} == 0)"),
    ]
