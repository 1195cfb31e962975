"""Diagnostics as SARIF 2.1.0, which code scanning services read."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import tt2gl
from tt2gl.diagnostics import Diagnostic, Severity

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(diagnostics: Sequence[Diagnostic]) -> dict[str, Any]:
    """One run's diagnostics; files are relative to the root of the sources."""
    codes = sorted({diagnostic.code for diagnostic in diagnostics})
    driver = {"name": "tt2gl", "version": tt2gl.__version__, "rules": [{"id": code} for code in codes]}
    results = [_result(diagnostic, codes.index(diagnostic.code)) for diagnostic in diagnostics]
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    where: dict[str, Any] = {"artifactLocation": {"uri": quote(diagnostic.file), "uriBaseId": "%SRCROOT%"}}
    if diagnostic.line:
        where["region"] = {"startLine": diagnostic.line, "startColumn": diagnostic.column + 1}
    said = " ".join(filter(None, (diagnostic.message, diagnostic.hint)))
    # The same finding has the same fingerprint when lines above it come or go.
    fingerprint = hashlib.sha256(f"{diagnostic.code}\0{diagnostic.file}\0{diagnostic.message}".encode()).hexdigest()
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": said},
        "locations": [{"physicalLocation": where}],
        "partialFingerprints": {"tt2gl/v1": fingerprint[:32]},
    }
