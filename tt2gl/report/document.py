"""The JSON document that every command prints with `--json`."""

from __future__ import annotations

import importlib.metadata
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import tt2gl
from tt2gl.diagnostics import Diagnostic
from tt2gl.results import CompileResult, DeviceResult, JsonDocument, KernelReport, SimulateResult


@dataclass(frozen=True)
class FileEntry:
    """A converted file: where it goes, whether that was there already just so, and the diff where one was asked for."""

    file: str
    output: str
    up_to_date: bool
    diff: str | None = None


def document(
    kernels: Sequence[KernelReport],
    *,
    seconds: float,
    diagnostics: Sequence[Diagnostic] = (),
    files: Sequence[FileEntry] = (),
) -> JsonDocument:
    """The whole document. `diagnostics` are those of files and of the run; a kernel's own are in its entry."""
    return {
        **header(),
        "seconds": round(seconds, 3),
        **({"files": [_without_none(asdict(entry)) for entry in files]} if files else {}),
        "kernels": [_kernel(report) for report in kernels],
        **({"diagnostics": [diagnostic.to_json() for diagnostic in diagnostics]} if diagnostics else {}),
        "summary": _summary(kernels),
    }


def header() -> JsonDocument:
    """The versions every document opens with; `triton` is null where none is installed."""
    try:
        triton = importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        triton = None
    return {"version": 1, "tt2gl": tt2gl.__version__, "triton": triton}


def _kernel(report: KernelReport) -> JsonDocument:
    entry: JsonDocument = {
        "file": report.file,
        "kernel": report.kernel,
        "target": report.target,
        "launch": report.launch,
        "status": report.status,
        "rules": list(report.rules),
        "diagnostics": [diagnostic.to_json() for diagnostic in report.diagnostics],
    }
    compiled = {"triton": report.triton, "gluon": report.gluon}
    if any(compiled.values()):
        entry["compile"] = {name: _compile(result) for name, result in compiled.items() if result is not None}
    if report.simulate is not None:
        entry["simulate"] = _simulate(report.simulate)
    if report.device is not None:
        entry["device"] = _device(report.device)
    return entry


def _compile(result: CompileResult) -> JsonDocument:
    return {
        "ok": result.ok,
        "metrics": asdict(result.metrics) if result.metrics is not None else {},
        "error": result.error,
    }


def _simulate(result: SimulateResult) -> JsonDocument:
    return {
        "equal": result.equal,
        "bitwise": result.bitwise,
        "max_error": _number(result.max_error),
        "findings": [asdict(finding) for finding in result.findings],
    }


def _device(result: DeviceResult) -> JsonDocument:
    fields = {**asdict(result), "speedup": result.speedup if result.gluon_ms else math.nan}
    return {name: _number(value) if isinstance(value, float) else value for name, value in fields.items()}


def _number(value: float) -> Any:
    """JSON has no infinities: they are tagged as launches tag them."""
    return value if math.isfinite(value) else {"float": str(value)}


def _summary(kernels: Sequence[KernelReport]) -> JsonDocument:
    statuses = Counter(report.status for report in kernels)
    summary: JsonDocument = {status: statuses[status] for status in ("converted", "kept", "failed")}
    ran = [result.equal for report in kernels for result in (report.simulate, report.device) if result is not None]
    if ran:
        summary |= {"equal": sum(ran), "not_equal": len(ran) - sum(ran)}
    return summary


def _without_none(fields: dict[str, Any]) -> JsonDocument:
    return {name: value for name, value in fields.items() if value is not None}
