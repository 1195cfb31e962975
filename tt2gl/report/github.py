"""Diagnostics as workflow commands, which GitHub shows at the lines of a pull request."""

from __future__ import annotations

from tt2gl.diagnostics import Diagnostic, Severity

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def annotation(diagnostic: Diagnostic) -> str:
    """One diagnostic as a line; the file is relative to the root of the repository."""
    fields = {"file": diagnostic.file, "title": diagnostic.code}
    if diagnostic.line:
        fields |= {"line": str(diagnostic.line), "col": str(diagnostic.column + 1)}
    said = " ".join(filter(None, (diagnostic.message, diagnostic.hint)))
    shown = ",".join(
        f"{name}={_escaped(value).replace(':', '%3A').replace(',', '%2C')}" for name, value in fields.items()
    )
    return f"::{_COMMANDS[diagnostic.severity]} {shown}::{_escaped(said)}"


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
