"""Speed as a chart: a bar for each kernel that ran on a GPU, to the right where the port is faster."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from tt2gl.report.page.contents import KernelPage

_LINE, _NAMES, _BARS, _VALUES = 18, 260, 420, 60
_LEAST_SPAN = 1.1  # the scale goes at least so far to both sides


def speed_chart(kernels: Sequence[KernelPage]) -> str:
    """An SVG of Triton's time over the port's on a scale of logarithms, slowest first; empty where nothing ran."""
    bars = sorted((page.speed, page.name, page.target, page.anchor) for page in kernels if page.speed)
    if not bars:
        return ""
    span = math.log(max(_LEAST_SPAN, *(max(speed, 1 / speed) for speed, *_ in bars)) * 1.02)
    middle = _NAMES + _BARS / 2
    height = _LINE * len(bars) + 22
    drawn = []
    for step in _steps(math.exp(span)):
        x = middle + math.log(step) / span * _BARS / 2
        drawn.append(
            f'<path class="grid" d="M{x:.1f} 16V{height}"/><text class="mid" x="{x:.1f}" y="11">{step:g}</text>'
        )
    for index, (speed, name, target, anchor) in enumerate(bars):
        y, length = 20 + index * _LINE, math.log(speed) / span * _BARS / 2
        side = "faster" if length >= 0 else "slower"
        shown = name if len(name) <= 34 else f"{name[:33]}…"
        drawn.append(
            f'<a href="#{escape(anchor)}"><text class="end" x="{_NAMES - 8}" y="{y + 12}">'
            f"<title>{escape(f'{name} ({target})')}</title>{escape(shown)}</text></a>"
            f'<rect class="{side}" x="{min(middle, middle + length):.1f}" y="{y + 2}" '
            f'width="{max(abs(length), 1):.1f}" height="{_LINE - 5}"/>'
            f'<text x="{_NAMES + _BARS + 6}" y="{y + 12}">{speed:.3f}</text>'
        )
    drawn.append(f'<path class="one" d="M{middle:.1f} 16V{height}"/>')
    width = _NAMES + _BARS + _VALUES
    words = "Triton's time over the port's, for each kernel that ran"
    return (
        f'<svg class="chart" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{words}">{"".join(drawn)}</svg>'
    )


def _steps(reach: float) -> list[float]:
    """Marks of the scale to both sides of 1, few enough to be read."""
    steps = next(
        (each for least, each in ((4, (2, 4, 8, 16)), (1.5, (1.25, 1.5, 2, 3))) if reach >= least),
        (1.05, 1.1, 1.2, 1.35),
    )
    inside = [step for step in steps if step <= reach]
    return [*(round(1 / step, 2) for step in reversed(inside)), 1, *inside]
