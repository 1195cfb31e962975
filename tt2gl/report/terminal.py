"""What people read: diagnostics, one line a converted file, a table of two compilers' results."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.cells import cell, columns, device_cells, simulate_cell
from tt2gl.results import Conversion, KernelReport, Status

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_STATUS_STYLES: dict[Status, str] = {"converted": "green", "kept": "yellow", "failed": "red"}
_STATUS_WORDS: dict[Status, str] = {"converted": "converted", "kept": "kept as Triton", "failed": "failed"}
_WIDEST = 10_000  # columns: more than a table has


def console(stream: IO[str]) -> Console:
    """A console that leaves lines whole: a wrapped diagnostic cannot be searched or clicked, a cut figure not read."""
    return Console(file=stream, width=_WIDEST, soft_wrap=True, highlight=False, emoji=False, markup=False)


def print_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Each diagnostic once, on stderr: launches of one kernel often say the same."""
    target = console(sys.stderr)
    for diagnostic in dict.fromkeys(diagnostics):
        text = Text(str(diagnostic))
        text.highlight_words([diagnostic.code], _STYLES[diagnostic.severity])
        target.print(text)


def print_conversion(conversion: Conversion, outcome: str) -> None:
    """The diagnostics of a converted file, then one line: its kernels by status, and `outcome`."""
    print_diagnostics(all_diagnostics(conversion))
    console(sys.stderr).print(Text(f"{conversion.path}: {tally(conversion.kernels)}; {outcome}"))


def all_diagnostics(conversion: Conversion) -> list[Diagnostic]:
    """The diagnostics of a file and of its kernels, in the order of the source."""
    found = [*conversion.diagnostics, *(each for report in conversion.kernels for each in report.diagnostics)]
    return sorted(found, key=lambda each: (each.file, each.line, each.column))


def tally(reports: Sequence[KernelReport]) -> str:
    """Targets, then kernels by status, counted by name: one is converted when it is under all its launches."""
    statuses: dict[str, Status] = {}
    for status in _STATUS_WORDS:  # the worst status of a kernel comes last and stays
        statuses |= {report.kernel: report.status for report in reports if report.status == status}
    counts = Counter(statuses.values())
    told = ", ".join(f"{counts[status]} {words}" for status, words in _STATUS_WORDS.items() if counts[status])
    targets = ", ".join(dict.fromkeys(report.target for report in reports))
    return f"{targets}: {told}" if told else "no kernel"


def print_verification(reports: Sequence[KernelReport]) -> None:
    """A table on stdout, a row for each kernel, target and launch: what Triton made of it | what Gluon did."""
    table = Table(title="Triton | Gluon; loads and stores: instructions x bits", title_justify="left", box=None)
    simulated = any(report.simulate for report in reports)
    ran = any(report.device for report in reports)
    shown = columns(reports)
    for heading in ("kernel", "target", "launch", "status", *(heading for heading, _ in shown)):
        table.add_column(heading, no_wrap=True)
    if simulated:
        table.add_column("simulated", no_wrap=True)
    for heading in ("equal", "Triton ms", "Gluon ms", "speed") if ran else ():
        table.add_column(heading, no_wrap=True)
    for report in reports:
        status = Text(report.status, _STATUS_STYLES[report.status])
        equal = (simulate_cell(report.simulate),) if simulated else ()
        measured = device_cells(report.device) if ran else ()
        cells = (f"{cell(report.triton, show)} | {cell(report.gluon, show)}" for _, show in shown)
        table.add_row(report.kernel, report.target, str(report.launch), status, *cells, *equal, *measured)
    console(sys.stdout).print(table)
