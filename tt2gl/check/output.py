"""What `check` tells: lines for people, and the JSON document."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from tt2gl.check.api import Compared, Report
from tt2gl.check.lowering import Lowering, lowering_to_json
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.document import header
from tt2gl.results import JsonDocument


def told(report: Report) -> list[Diagnostic]:
    """The diagnostics of a report, each once, with files as they are seen from the working directory."""
    home = report.lock.parent
    return [
        replace(one, file=os.path.relpath(home / one.file) if one.file else one.file)
        for one in dict.fromkeys(report.diagnostics)
    ]


def lines(report: Report) -> Iterator[str]:
    """All that a person is told: failures with their line and what was before and is now, notes, and a summary."""
    home = report.lock.parent
    shown = {id(one): one for one in report.kernels if one.findings}
    for one in told(report):
        yield str(one)
        if one.severity is Severity.NOTE and not report.updated:
            continue
        if one.code.startswith("TTG6") and one.code != "TTG610" and one.line:
            yield from _source_line(Path(one.file), one.line)
        kernel = next((kernel for kernel in shown.values() if _is_of(one, kernel, home)), None)
        if kernel is not None and kernel.before is not None:
            launched = kernel.before_launch != kernel.now.launch
            yield f"    before: {phrase(kernel.before)}{f'; called with {kernel.before_launch}' * launched}"
            yield f"    now:    {phrase(kernel.now.lowering)}{f'; called with {kernel.now.launch}' * launched}"
    yield summary(report)


def _is_of(diagnostic: Diagnostic, kernel: Compared, home: Path) -> bool:
    """Whether a diagnostic is the last of a kernel's: before and now are shown once."""
    last = kernel.findings[-1]
    start = f"{kernel.now.kernel} ({kernel.now.target}, launch {kernel.now.index}): "
    file = os.path.relpath(home / (last.spot[0] if last.spot else kernel.now.file))
    return diagnostic.message == start + last.message and diagnostic.file == file


def _source_line(path: Path, line: int) -> Iterator[str]:
    try:
        text = path.read_text("utf-8").splitlines()[line - 1].strip()
    except (OSError, UnicodeDecodeError, IndexError):
        return
    if text:
        yield f"    {text}"


def phrase(lowering: Lowering) -> str:
    """A lowering in a line."""
    if not lowering.compiles:
        return "does not compile"
    parts = [f"loads {' + '.join(map(str, lowering.loads)) or 'none'}"]
    parts.append(f"stores {' + '.join(map(str, lowering.stores)) or 'none'}")
    parts += [f"{count} {name}" for name, count in sorted(lowering.mma.items())]
    parts += [f"ring of {slots} {tile}" for tile, slots in sorted(lowering.rings.items())]
    parts += [f"conversions {lowering.conversions}", f"shared {lowering.shared}"]
    parts += [f"registers {lowering.registers}", f"spills {lowering.spills}"]
    return "; ".join(parts)


def summary(report: Report) -> str:
    """How many kernels were looked at, and how they are."""
    kernels = {(one.now.file, one.now.kernel) for one in report.kernels}
    counts = f"{_count(len(kernels), 'kernel')}, {_count(len(report.kernels), 'lowering')}"
    worse = sum(bool(one.findings) for one in report.kernels)
    better = sum(bool(one.better) and not one.findings for one in report.kernels)
    new = sum(one.before is None for one in report.kernels)
    stale = sum(one.code == "TTG610" for one in report.diagnostics)
    found = [f"{count} {word}" for count, word in ((worse, "worse"), (better, "better"), (new, "new")) if count]
    if stale:
        found.append(_count(stale, "stale port"))
    if report.updated:
        found.append(f"wrote {os.path.relpath(report.lock)}")
    same = "as in the lock" if report.kernels else "nothing to compare"
    return f"{counts}: {', '.join(found) or same}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def document(report: Report, seconds: float) -> JsonDocument:
    """The JSON document: the diagnostics, and each kernel with what it was and is."""
    home = report.lock.parent
    kernels = []
    for one in report.kernels:
        now = one.now
        verdict = "new" if one.before is None else "worse" if one.findings else "better" if one.better else "same"
        entry: JsonDocument = {
            "file": os.path.relpath(home / now.file),
            "kernel": now.kernel,
            "target": now.target,
            "launch": now.index,
            "called_with": now.launch,
            "check": {"verdict": verdict, "now": lowering_to_json(now.lowering)},
        }
        if one.before is not None:
            entry["check"]["before"] = lowering_to_json(one.before)
        if now.error:
            entry["check"]["error"] = now.error
        kernels.append(entry)
    verdicts = [entry["check"]["verdict"] for entry in kernels]
    return {
        **header(),
        "seconds": round(seconds, 3),
        "kernels": kernels,
        "diagnostics": [{**asdict(one), "severity": one.severity.value} for one in told(report)],
        "summary": {verdict: verdicts.count(verdict) for verdict in ("same", "better", "worse", "new")},
    }
