"""A report in Markdown: what the page says, without its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from tt2gl.diagnostics import Diagnostic
from tt2gl.report.document import header
from tt2gl.report.page import tables
from tt2gl.report.page.contents import Contents, KernelPage

# What Markdown, or the HTML in it, would read as its own.
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&])")


def markdown(contents: Contents) -> str:
    """The report's text."""
    versions = header()
    title = f"{', '.join(contents.targets)}; Triton {versions['triton']}, tt2gl {versions['tt2gl']}"
    parts = [f"# {_plain(contents.title)}", _plain(title), *_ported(contents)]
    if contents.reasons:
        parts += ["## What stayed, and why", *_reasons(contents)]
    speeds = sorted((page.speed, page.name, page.target) for page in contents.kernels if page.speed)
    if speeds:
        rows = [[name, target, f"{speed:.3f}"] for speed, name, target in speeds]
        parts += ["## Speed", "Triton's time over the port's.", _table(("kernel", "target", "speed"), rows)]
    parts.append("## Kernels")
    for page in contents.kernels:
        parts += _kernel(page)
    parts.append("## Files")
    for file in contents.files:
        parts.append(f"### {_plain(file.path)} ({file.target})")
        parts += [_told(file.diagnostics)] if file.diagnostics else []
        parts += [_fenced(file.difference.text)] if file.difference.rows else []
    return "\n\n".join(parts) + "\n"


def _ported(contents: Contents) -> Iterator[str]:
    yield "## What ported"
    totals = tables.totals(contents)
    yield _table(totals.headings, [[each.text for each in row] for row in totals.rows])
    headings = ("kernel", "file", "target", "status", "launches", "equal", "speed", "diagnostics")
    yield _table(
        headings,
        [
            [page.name, f"{page.file}:{page.line}", page.target, tables.WORDS[page.status], *tables.overview(page)]
            for page in contents.kernels
        ],
    )


def _reasons(contents: Contents) -> Iterator[str]:
    yield (
        "Holds: kernels that are not ported for it; alone: those of them that nothing else holds; lines: their source, "
        "which a port by hand has to take up."
    )
    headings = ("code", "told", "kernels", "holds", "alone", "lines", "what it says")
    rows = [
        [
            reason.code,
            *map(str, (reason.count, len(reason.kernels), len(reason.held), reason.alone, reason.lines)),
            f"{reason.examples[0]} {reason.hint}",
        ]
        for reason in contents.reasons
    ]
    yield _table(headings, rows)


def _kernel(page: KernelPage) -> Iterator[str]:
    yield f"### {_plain(page.name)} ({page.target}): {tables.WORDS[page.status]}"
    yield _plain(f"{page.file}:{page.line}")
    if page.diagnostics:
        yield _told(page.diagnostics)
    found = tables.lowering(page.reports)
    yield _table(found.headings, [[each.text for each in row] for row in found.rows])
    if page.layouts:
        lines = (f"`{each.name}` = `{each.text}`, {' × '.join(map(str, each.shape))}" for each in page.layouts)
        yield "\n".join(f"- {line.rstrip(', ')}" for line in lines)
    if page.bodies:
        yield _fenced(page.diff)


def _told(diagnostics: Sequence[Diagnostic]) -> str:
    return "\n".join(f"- {_plain(str(each))}" for each in diagnostics)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plain(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _fenced(diff: str) -> str:
    """A block whose fence is longer than any in it."""
    longest = max((len(run) for run in re.findall("`+", diff)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}diff\n{diff}\n{fence}"
