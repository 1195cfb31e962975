"""What was measured of kernels, as the cells of tables: one wording for the terminal and for reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from tt2gl.results import CompileResult, DeviceResult, KernelReport, Metrics, SimulateResult

Column = tuple[str, Callable[[Metrics], object]]

_COLUMNS: tuple[Column, ...] = (
    ("registers", lambda metrics: metrics.registers),
    ("spills", lambda metrics: metrics.spills),
    ("shared", lambda metrics: metrics.shared_bytes),
    ("loads", lambda metrics: _widths(metrics.global_loads)),
    ("stores", lambda metrics: _widths(metrics.global_stores)),
    ("conversions", lambda metrics: metrics.convert_layouts),
)
# Only where a kernel has some: what one step of its loops takes, and how far its loads run ahead.
_PIPELINE_COLUMNS: tuple[Column, ...] = (
    ("products", lambda metrics: _named(metrics.step_mma or metrics.mma)),
    ("copies", lambda metrics: _named(metrics.step_copies or metrics.copies)),
    ("rings", lambda metrics: _rings(metrics.rings)),
)


def columns(reports: Sequence[KernelReport]) -> tuple[Column, ...]:
    """The columns of a table of these kernels."""
    return (*_COLUMNS, *(column for column in _PIPELINE_COLUMNS if _has_some(column, reports)))


def _has_some(column: Column, reports: Sequence[KernelReport]) -> bool:
    results = (result for report in reports for result in (report.triton, report.gluon))
    return any(column[1](result.metrics) != "0" for result in results if result is not None and result.metrics)


def cell(result: CompileResult | None, show: Callable[[Metrics], object]) -> str:
    """One number of one compiler's result, or why there is none."""
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


def simulate_cell(result: SimulateResult | None) -> str:
    """What a simulation said."""
    if result is None:
        return "-"
    equal = "bitwise" if result.bitwise else f"within {result.max_error:.3g} ulp" if result.equal else "NO"
    faults = len(result.findings)
    return f"{equal}, {faults} fault{'s' * (faults > 1)}" if faults else equal


def device_cells(device: DeviceResult | None) -> tuple[str, ...]:
    """What a run on a GPU said: equality, both times, speed."""
    if device is None:
        return ("-", "-", "-", "-")
    equal = "bitwise" if device.bitwise else f"within {device.max_error:.2g}" if device.equal else "NO"
    return (equal, f"{device.triton_ms:.4f}", f"{device.gluon_ms:.4f}", f"{device.speedup:.3f}")
