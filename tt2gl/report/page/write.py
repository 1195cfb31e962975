"""A report on disk: the same contents three times, for people, for text and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tt2gl.files import write_text
from tt2gl.report.document import FileEntry, document
from tt2gl.report.page.contents import Contents, FileSides, contents
from tt2gl.report.page.html import html
from tt2gl.report.page.markdown import markdown
from tt2gl.results import JsonDocument


def write_report(folder: Path, title: str, files: Sequence[FileSides]) -> list[Path]:
    """Write `report.html`, `report.md` and `report.json` into a folder. Raises TTG005 where that fails."""
    found = contents(title, files)
    texts = {
        "report.html": html(found),
        "report.md": markdown(found),
        "report.json": json.dumps(report_document(found, files), indent=1, allow_nan=False) + "\n",
    }
    for name, text in texts.items():
        write_text(folder / name, text)
    return [folder / name for name in texts]


def report_document(found: Contents, files: Sequence[FileSides]) -> JsonDocument:
    """The JSON document that every command prints, with reasons, differences and layouts; without the seconds it took.

    What a report says follows from the port alone: the same port gives the same bytes.
    """
    diagnostics = [each for sides in files for each in sides.diagnostics]
    reports = [report for sides in files for report in sides.kernels]
    entries = [FileEntry(page.path, page.output, True, page.difference.text) for page in found.files]
    told = document(reports, seconds=0.0, diagnostics=diagnostics, files=entries)
    del told["seconds"]
    for entry in told.get("files", []):
        del entry["up_to_date"]
    pages = {(page.file, page.name, page.target): page for page in found.kernels}
    described = set()
    for entry in told["kernels"]:
        page = pages[entry["file"], entry["kernel"], entry["target"]]
        if page.anchor not in described:  # once a kernel, with its first launch
            described.add(page.anchor)
            entry |= {"diff": page.diff, "layouts": [asdict(layout) for layout in page.layouts]}
    told["reasons"] = [
        {
            "code": reason.code,
            "severity": reason.severity.value,
            "told": reason.count,
            "kernels": len(reason.kernels),
            "holds": [{"file": page.file, "kernel": page.name, "target": page.target} for page in reason.held],
            "alone": reason.alone,
            "lines": reason.lines,
            "messages": list(reason.examples),
            "hint": reason.hint,
        }
        for reason in found.reasons
    ]
    return told
