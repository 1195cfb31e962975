"""Why a kernel does not compile, in one line at the author's place: from exceptions, ptxas and what MLIR printed."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tt2gl.children import one_line
from tt2gl.diagnostics import shown
from tt2gl.slicing.slices import Slice, names_of


class CompileError(Exception):
    """A kernel did not compile; the message is one line."""


def explain(error: BaseException, kernel: Slice, printed: str = "") -> str:
    """One line on why a compilation failed: the innermost cause, at the author's line where that is known.

    Where the exception only says that something failed, MLIR has `printed` the reason. The modules of a slice keep the
    lines and columns of the author's files.
    """
    chain = _chain(error)
    places = _places(chain, kernel)
    said = next((line for line in map(_message, reversed(chain)) if line), type(chain[-1]).__name__)
    if said.startswith(_NOT_LINKED):
        said = _linker_fault(printed) or said
    fault = printed_fault(printed) if said in _SAYS_NOTHING else None
    if fault is None:
        return f"{places[-1]}: {said}" if places else said
    place = places[-1] if places else _author_line(fault.file, fault.line, kernel)
    return f"{place}: {fault.message}" if place else fault.message


def progress(error: BaseException, kernel: Slice) -> tuple[int, ...]:
    """How far a compilation came: the line in the kernel, then that in the helper called there, and so on inwards."""
    return tuple(int(place.split(":")[-2]) for place in _places(_chain(error), kernel))


def _chain(error: BaseException) -> list[BaseException]:
    chain = [error]
    while (inner := chain[-1].__cause__) is not None:
        chain.append(inner)
    return chain


def _places(chain: list[BaseException], kernel: Slice) -> list[str]:
    return [place for place in (_place(link, kernel) for link in chain) if place]


# Messages of exceptions that stand for a diagnostic on stderr.
_SAYS_NOTHING = frozenset({
    "AssertionError",
    "RuntimeError: error encountered during parsing",
    "RuntimeError: PassManager::run failed",
    "RuntimeError: failed to translate module to LLVM IR",
})  # fmt: skip


# What AMD's assembler and linker find wrong, they print.
_NOT_LINKED = "RuntimeError: LLD failed to link"
_LINKER_FAULT = re.compile(r"^(?:ld\.lld: )?error: (?P<message>.+)(?:\n[ \t]+(?P<line>\S.*))?", re.MULTILINE)


@dataclass(frozen=True)
class PrintedFault:
    """An error that MLIR printed; `file` is empty where it has no place."""

    file: str
    line: int
    message: str


_PRINTED_FAULT = re.compile(
    r"""^(?:(?:loc\()?"?(?P<file>[^\s"():][^"\n]*?)"?:(?P<line>\d+):\d+\)?:\s)?error:\s(?P<message>.+)
        (?P<more>(?:\n(?![^\n]*:\s(?:note|error|warning|remark):)\S.*)*)""",
    re.MULTILINE | re.VERBOSE,
)


def printed_fault(printed: str) -> PrintedFault | None:
    """The first error among what a compiler printed, with the sentences that follow it on lines of their own.

    The quoted source and the dump of the module, which come after, are indented or notes.
    """
    found = _PRINTED_FAULT.search(printed)
    if found is None:
        return None
    # The operand is known by its number; its type is a line by itself, and the layout at fault is named anyway.
    first = re.sub(r" \(.*? at index: \d+\)", "", found["message"])
    said = " ".join([first, *found["more"].split("\n")[1:]])
    return PrintedFault(found["file"] or "", int(found["line"] or 0), said.strip().removesuffix("."))


def _linker_fault(printed: str) -> str:
    """The first error of AMD's assembler or linker, with the instruction that it quotes."""
    found = _LINKER_FAULT.search(printed)
    if found is None:
        return ""
    quoted = f" ({found['line'].strip()})" if found["line"] else ""
    return f"the assembler or linker says: {found['message']}{quoted}"


def _author_line(file: str, line: int, kernel: Slice) -> str:
    """`file:line` for a place in a private module of a slice; columns differ between Triton's versions."""
    modules = names_of(kernel)
    return f"{shown(modules[Path(file).stem])}:{line}" if Path(file).stem in modules else ""


def _message(error: BaseException) -> str:
    """What an exception says in one line: without Triton's excerpt of the source, or ptxas's of everything."""
    if hasattr(error, "error_message") and hasattr(error, "node"):
        lines = [line.strip() for line in (error.error_message or "").splitlines() if line.strip()]
        # Triton keeps the `repr` of what it caught.
        if not lines and isinstance(error.node, ast.AST) and error.__cause__ is None:
            # An assertion of the compiler's without words, say, which is Triton's own: it says what it asks for.
            return f"{type(error).__name__}: {ast.unparse(error.node)}"
        return re.sub(r"""^(\w+)\((['"])(.*)\2\)$""", r"\1: \3", lines[0]) if lines else ""
    if type(error).__name__ == "PTXASError":
        faults = re.findall(r"^ptxas\b.*?\b(?:error|fatal)\s*: *(.+)", str(error), re.MULTILINE)
        return f"ptxas: {faults[0].strip()}" if faults else str(error).splitlines()[0]
    return one_line(error)


def _place(error: BaseException, kernel: Slice) -> str:
    """`file:line:column` of a Triton CompilationError, whose lines count from the `def` of a function it quotes.

    Triton quotes it without the indentation of its `def` and the blanks of lines that have nothing else.
    """
    node: Any = getattr(error, "node", None)
    text = getattr(error, "src", None)
    if not text or not hasattr(node, "lineno"):
        return ""
    quoted = _stripped(text.rstrip())
    for module in kernel.modules:
        lines = _stripped(module.text)
        start = lines.find(quoted)
        if start >= 0:
            before = lines.count("\n", 0, start)
            first = module.text.split("\n")[before]
            indentation = len(first) - len(first.lstrip())
            return f"{shown(module.path)}:{before + node.lineno}:{indentation + node.col_offset}"
    return ""


def _stripped(text: str) -> str:
    """Its lines without their indentation and the blanks at their ends, each between line breaks."""
    return "\n".join(("", *(line.strip() for line in text.split("\n")), ""))
