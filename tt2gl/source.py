"""A Python file as tt2gl sees it: parsed, with its jit functions and the calls that launch them.

Nothing here runs or imports the file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, CodeRange, CodeSpan, MetadataWrapper, PositionProvider

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.edits import BYTE_ORDER_MARK, LineMap, apply
from tt2gl.jit_calls import decorations, jit_calls
from tt2gl.jit_decorators import in_place
from tt2gl.jit_functions import JitFunction, jit_functions, resolver_of
from tt2gl.launch_calls import LaunchCall, launch_calls, other_names
from tt2gl.qualified_names import QualifiedNames
from tt2gl.trees import python_tree


@dataclass(frozen=True)
class Undecorated:
    """A file in which calls make kernels of functions, and which of its lines each line of it decorated is."""

    text: str
    lines: LineMap


@dataclass(frozen=True, eq=False)
class SourceFile:
    """One parsed file. `text` is exact (newlines as on disk); `module` is `wrapper.module`, `names` what it says.

    Where functions are made kernels by a call, the text has them decorated, and `undecorated` is as the author has it.
    """

    path: Path
    text: str
    module: cst.Module
    wrapper: MetadataWrapper
    names: QualifiedNames
    functions: tuple[JitFunction, ...]
    undecorated: Undecorated | None = None

    @property
    def author_text(self) -> str:
        """The text as it is on disk."""
        return self.undecorated.text if self.undecorated is not None else self.text

    def author_line(self, line: int) -> int:
        """The line on disk of a line of the text."""
        return self.undecorated.lines.author(line, 0)[0] if self.undecorated is not None else line

    def told(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic about the text as one about that on disk."""
        is_own = Path(diagnostic.file).resolve() == self.path.resolve()
        return replace(diagnostic, line=self.author_line(diagnostic.line)) if is_own else diagnostic

    # Asked by way of the wrapper, LibCST builds the whole tree anew besides, for providers that nobody asked for.
    @cached_property
    def positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        """Where nodes stand, by lines and columns."""
        return cast(Mapping[cst.CSTNode, CodeRange], PositionProvider()._gen(self.wrapper))

    @cached_property
    def spans(self) -> Mapping[cst.CSTNode, CodeSpan]:
        """Where nodes stand, in bytes."""
        return cast(Mapping[cst.CSTNode, CodeSpan], ByteSpanPositionProvider()._gen(self.wrapper))

    @cached_property
    def launches(self) -> tuple[LaunchCall, ...]:
        """Every launch call of the file."""
        names = [function.name for function in self.functions]
        return launch_calls(python_tree(self.text), names) if names else ()

    @cached_property
    def kernels(self) -> tuple[JitFunction, ...]:
        """The entry kernels: launched in the file, or neither used by another jit function nor returning a value.

        Methods of aggregates are none.
        """
        launched = {call.kernel for call in self.launches}
        others = other_names(python_tree(self.text), [function.name for function in self.functions])
        used = {
            others.get(name, name)
            for function in self.functions
            for name in function.names_read
            if name != function.name
        }
        return tuple(
            function
            for function in self.functions
            if function.name in launched or not (function.name in used or function.returns_value or function.is_method)
        )

    def kernel(self, name: str) -> JitFunction:
        """The jit function of that name. Raises KeyError where the file has none."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)


def read_source(path: Path | str, text: str | None = None) -> SourceFile:
    """Read and parse one file; `text` stands in for what is on disk.

    A file without kernels is no error here. Raises DiagnosticError: TTG001 no such file, TTG002 cannot be read as
    Python text, TTG003 syntax error.
    """
    path = Path(path)
    return _decorated(_parsed(path, _read_text(path) if text is None else text))


def _decorated(source: SourceFile) -> SourceFile:
    """The file with Triton's decorators in place of calls that make kernels of functions, and of those of its own."""
    resolver = resolver_of(source.module, source.names)
    calls = jit_calls(source.module, resolver)
    text = source.text.removeprefix(BYTE_ORDER_MARK)
    edits = [*decorations(calls, source.module, resolver, text, source.spans)] if calls else []
    edits += in_place(source.module, resolver, text, lambda node: source.spans[node])
    if not edits:
        return source
    made, lines = apply(text, edits)
    mark = source.text.removesuffix(text)
    return replace(_parsed(source.path, mark + made), undecorated=Undecorated(source.text, lines))


def _parsed(path: Path, text: str) -> SourceFile:
    try:
        parsed = text.removeprefix("\ufeff")
        module = cst.parse_module(parsed)
    except cst.ParserSyntaxError as error:
        raise _syntax_error(path, text, error.raw_line, error.raw_column, error.message) from None
    except (RecursionError, ValueError) as error:
        raise _bad(path, f"The file cannot be parsed: {error}.") from None
    try:
        wrapper = MetadataWrapper(module, unsafe_skip_copy=True)
        names = QualifiedNames(wrapper.module)
        functions = tuple(jit_functions(path, parsed, module, names))
    except SyntaxError as error:
        raise _syntax_error(path, text, error.lineno or 0, error.offset or 0, error.msg) from None
    except (RecursionError, MemoryError):
        raise _bad(path, "The file is nested too deeply to be parsed.") from None
    return SourceFile(path, text, wrapper.module, wrapper, names, functions)


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DiagnosticError(
            Diagnostic("TTG001", Severity.ERROR, str(path), 0, 0, "No such file.", "Check the path."),
            ExitCode.NO_INPUT,
        ) from None
    except OSError as error:
        raise _bad(path, f"The file cannot be read: {error.strerror or error}.") from None
    if b"\0" in raw:
        raise _bad(path, "The file is binary, not Python source.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _bad(path, f"The file is not UTF-8 (byte {error.start}).", line) from None


def _bad(path: Path, message: str, line: int = 0) -> DiagnosticError:
    hint = "Give a readable Python file in UTF-8."
    return DiagnosticError(Diagnostic("TTG002", Severity.ERROR, str(path), line, 0, message, hint), ExitCode.BAD_SOURCE)


def _syntax_error(path: Path, text: str, line: int, column: int, message: str) -> DiagnosticError:
    """Prefer Python's own words for a syntax error: the parser of libcst says only what tokens it wanted."""
    try:
        compile(text.removeprefix("\ufeff"), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line, column = error.lineno or line, max((error.offset or 1) - 1, 0)
        message = error.msg
    except (ValueError, RecursionError, MemoryError, OverflowError):
        pass
    message = message.strip().splitlines()[0].rstrip(".")
    return DiagnosticError(
        Diagnostic(
            "TTG003",
            Severity.ERROR,
            str(path),
            line,
            column,
            f"Syntax error: {message}.",
            "Correct it, or check that the file is Python 3.",
        ),
        ExitCode.BAD_SOURCE,
    )
