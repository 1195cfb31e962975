"""What people read: diagnostics, one line a converted file, a table of two compilers' results."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.results import CompileResult, Conversion, DeviceResult, KernelReport, Metrics, SimulateResult, Status

_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}
_STATUS_STYLES: dict[Status, str] = {"converted": "green", "kept": "yellow", "failed": "red"}
_STATUS_WORDS: dict[Status, str] = {"converted": "converted", "kept": "kept as Triton", "failed": "failed"}
_PLAIN_WIDTH = 200  # columns of a table in a file or pipe: nothing there to wrap for


def console(stream: IO[str]) -> Console:
    """A console that leaves lines whole: a wrapped diagnostic can be neither searched nor clicked."""
    width = None if stream.isatty() else _PLAIN_WIDTH
    return Console(file=stream, width=width, soft_wrap=True, highlight=False, emoji=False, markup=False)


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


_Column = tuple[str, Callable[[Metrics], object]]

_COLUMNS: tuple[_Column, ...] = (
    ("registers", lambda metrics: metrics.registers),
    ("spills", lambda metrics: metrics.spills),
    ("shared", lambda metrics: metrics.shared_bytes),
    ("loads", lambda metrics: _widths(metrics.global_loads)),
    ("stores", lambda metrics: _widths(metrics.global_stores)),
    ("conversions", lambda metrics: metrics.convert_layouts),
)
# Only where a kernel has some: what one step of its loops takes, and how far its loads run ahead.
_PIPELINE_COLUMNS: tuple[_Column, ...] = (
    ("products", lambda metrics: _named(metrics.step_mma or metrics.mma)),
    ("copies", lambda metrics: _named(metrics.step_copies or metrics.copies)),
    ("rings", lambda metrics: _rings(metrics.rings)),
)


def print_verification(reports: Sequence[KernelReport]) -> None:
    """A table on stdout, a row for each kernel, target and launch: what Triton made of it | what Gluon did."""
    table = Table(title="Triton | Gluon; loads and stores: instructions x bits", title_justify="left", box=None)
    simulated = any(report.simulate for report in reports)
    ran = any(report.device for report in reports)
    columns = (*_COLUMNS, *(column for column in _PIPELINE_COLUMNS if _has_some(column, reports)))
    for heading in ("kernel", "target", "launch", "status", *(heading for heading, _ in columns)):
        table.add_column(heading, no_wrap=True)
    if simulated:
        table.add_column("simulated", no_wrap=True)
    for heading in ("equal", "Triton ms", "Gluon ms", "speed") if ran else ():
        table.add_column(heading, no_wrap=True)
    for report in reports:
        status = Text(report.status, _STATUS_STYLES[report.status])
        equal = (_simulate_cell(report.simulate),) if simulated else ()
        measured = _device_cells(report.device) if ran else ()
        cells = (_pair(report.triton, report.gluon, show) for _, show in columns)
        table.add_row(report.kernel, report.target, str(report.launch), status, *cells, *equal, *measured)
    console(sys.stdout).print(table)


def _has_some(column: _Column, reports: Sequence[KernelReport]) -> bool:
    results = (result for report in reports for result in (report.triton, report.gluon))
    return any(column[1](result.metrics) != "0" for result in results if result is not None and result.metrics)


def _pair(triton: CompileResult | None, gluon: CompileResult | None, show: Callable[[Metrics], object]) -> str:
    return " | ".join(_cell(result, show) for result in (triton, gluon))


def _cell(result: CompileResult | None, show: Callable[[Metrics], object]) -> str:
    if result is None:
        return "-"
    if result.metrics is None:
        return "ok" if result.ok else "error"
    value = show(result.metrics)
    return "?" if value is None else str(value)


def _widths(instructions: dict[str, int]) -> str:
    """Instructions by width, widest first: `4x128 1x32`."""
    widest_first = sorted(instructions.items(), key=lambda item: -int(item[0]))
    return " ".join(f"{count}x{width}" for width, count in widest_first) or "0"


def _rings(rings: dict[str, list[int]]) -> str:
    """Every ring as its slots and its tile: `3x128x64xf16`."""
    return " ".join(f"{slots}x{tile}" for tile, depths in rings.items() for slots in depths) or "0"


def _named(instructions: dict[str, int]) -> str:
    """Instructions by name, without the types that they end in: `8xwgmma.m64n128k16`."""
    short: Counter[str] = Counter()
    for name, count in instructions.items():
        short[re.sub(r"(\.m\d+n\d+k\d+)\..*", r"\1", name)] += count
    return " ".join(f"{count}x{name}" for name, count in short.items()) or "0"


def _simulate_cell(result: SimulateResult | None) -> str:
    if result is None:
        return "-"
    equal = "bitwise" if result.bitwise else f"within {result.max_error:.3g} ulp" if result.equal else "NO"
    faults = len(result.findings)
    return f"{equal}, {faults} fault{'s' * (faults > 1)}" if faults else equal


def _device_cells(device: DeviceResult | None) -> tuple[str, ...]:
    if device is None:
        return ("-", "-", "-", "-")
    equal = "bitwise" if device.bitwise else f"within {device.max_error:.2g}" if device.equal else "NO"
    return (equal, f"{device.triton_ms:.4f}", f"{device.gluon_ms:.4f}", f"{device.speedup:.3f}")
