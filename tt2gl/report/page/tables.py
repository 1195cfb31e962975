"""The tables of a report as plain cells, for HTML and Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tt2gl.report.cells import cell, columns, device_cells, simulate_cell
from tt2gl.report.page.contents import Contents, KernelPage
from tt2gl.results import KernelReport, Status

WORDS: dict[Status, str] = {"converted": "converted", "kept": "kept as Triton", "failed": "failed"}
"""How a status is told, everywhere."""


@dataclass(frozen=True)
class Cell:
    """A cell's text; for a pair of Triton's and Gluon's, what each is, and whether they differ."""

    text: str
    differs: bool = False


@dataclass(frozen=True)
class Table:
    """Headings and rows of as many cells."""

    headings: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def lowering(reports: Sequence[KernelReport]) -> Table:
    """What Triton's compiler made of a kernel beside what became of its port, a row for each launch."""
    compiled = [report for report in reports if report.triton is not None or report.gluon is not None]
    shown = columns(compiled) if compiled else ()
    simulated = any(report.simulate for report in reports)
    ran = any(report.device for report in reports)
    headings = ["launch", "status", *(heading for heading, _ in shown)]
    headings += ["simulated"] * simulated + ["equal", "Triton ms", "Gluon ms", "speed"] * ran
    rows = []
    for report in reports:
        row = [Cell(str(report.launch)), Cell(WORDS[report.status])]
        for _, show in shown:
            triton, gluon = cell(report.triton, show), cell(report.gluon, show)
            row.append(Cell(f"{triton} | {gluon}", triton != gluon))
        row += [Cell(simulate_cell(report.simulate))] * simulated
        row += [Cell(text) for text in device_cells(report.device)] * ran
        rows.append(tuple(row))
    return Table(tuple(headings), tuple(rows))


def totals(contents: Contents) -> Table:
    """Kernels by target and status."""
    rows = [
        (Cell(target), *(Cell(str(contents.with_status(status, target))) for status in WORDS))
        for target in contents.targets
    ]
    return Table(("target", *WORDS.values()), tuple(rows))


def overview(page: KernelPage) -> tuple[str, ...]:
    """A kernel in the list of all: launches, equality, speed, codes told."""
    speed = "–" if page.speed is None else f"{page.speed:.3f}"
    codes = ", ".join(sorted({each.code for each in page.diagnostics})) or "–"
    return (str(len(page.reports)), page.equality, speed, codes)
