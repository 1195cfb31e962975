"""What a report says, whatever it is written in: kernels with their results, reasons by count, and differences."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.report.page.differences import Difference, difference
from tt2gl.results import KernelReport, NamedLayout, Status

_WORST: tuple[Status, ...] = ("failed", "kept", "converted")


@dataclass(frozen=True)
class FileSides:
    """One file for one target: its text and its port's, what became of its kernels, the layouts that they name."""

    path: str
    output: str
    target: str
    original: str
    port: str
    kernels: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    layouts: tuple[NamedLayout, ...] = ()


@dataclass(frozen=True)
class Body:
    """A function that a kernel became, and how it differs from the kernel."""

    name: str
    difference: Difference


@dataclass(frozen=True)
class KernelPage:
    """One kernel on one target, under all its launches. `lines` are those of its source, `anchor` its place.

    `bodies` are several where it chooses one when it is compiled: then those first, and last what chooses.
    """

    anchor: str
    name: str
    file: str
    line: int
    target: str
    status: Status
    lines: int
    reports: tuple[KernelReport, ...]
    diagnostics: tuple[Diagnostic, ...]
    bodies: tuple[Body, ...]
    layouts: tuple[NamedLayout, ...]

    @property
    def equal(self) -> bool | None:
        """Whether it was equal wherever it ran; None where it did not."""
        ran = [each.equal for report in self.reports for each in (report.simulate, report.device) if each is not None]
        return all(ran) if ran else None

    @property
    def equality(self) -> str:
        """Equality in words."""
        ran = [each for report in self.reports for each in (report.simulate, report.device) if each is not None]
        if not ran:
            return "–"
        how = "bit for bit" if all(each.bitwise for each in ran) else "within bounds" if self.equal else "NOT EQUAL"
        by = dict.fromkeys("GPU" if report.device else "simulated" for report in self.reports if _ran(report))
        many = sum(_ran(report) for report in self.reports)
        return f"{how} ({', '.join(by)}, {many} of {len(self.reports)})"

    @property
    def diff(self) -> str:
        """The differences of all its functions, each under its name."""
        return "\n".join(f"@@ {body.name}\n{body.difference.text}" for body in self.bodies)

    @property
    def speed(self) -> float | None:
        """Triton's time over the port's, the geometric mean of its launches."""
        return geometric_mean([each.device.speedup for each in self.reports if each.device and each.device.gluon_ms])


@dataclass(frozen=True)
class FilePage:
    """What changed of a file outside its kernels, and what is said of the file itself."""

    path: str
    output: str
    target: str
    diagnostics: tuple[Diagnostic, ...]
    difference: Difference


@dataclass(frozen=True)
class Reason:
    """A code: how often it is told, of which kernels, and which of these stay Triton or fail for it.

    `alone` of them for nothing else, so that to mend it ports them; `lines` is the source of those held back: what a
    port by hand has to take up.
    """

    code: str
    severity: Severity
    count: int
    kernels: tuple[KernelPage, ...]
    held: tuple[KernelPage, ...]
    alone: int
    lines: int
    examples: tuple[str, ...]
    hint: str


@dataclass(frozen=True)
class Contents:
    """All of a report."""

    title: str
    kernels: tuple[KernelPage, ...]
    files: tuple[FilePage, ...]
    reasons: tuple[Reason, ...]

    @property
    def targets(self) -> list[str]:
        """The targets, in the order of the files."""
        return list(dict.fromkeys(page.target for page in self.files))

    def with_status(self, status: Status, target: str | None = None) -> int:
        """How many kernels came to this, on one target or on all."""
        return sum(each.status == status and target in (None, each.target) for each in self.kernels)

    @property
    def speed(self) -> float | None:
        """The geometric mean of all kernels' speeds."""
        return geometric_mean([each.speed for each in self.kernels if each.speed])


def contents(title: str, files: Sequence[FileSides]) -> Contents:
    """Put a report together. A kernel is converted when it is under all its launches, as everywhere."""
    kernels: list[KernelPage] = []
    pages: list[FilePage] = []
    for number, sides in enumerate(files):
        before, after = _functions(sides.original), _functions(sides.port)
        names = list(dict.fromkeys(report.kernel for report in sides.kernels))
        bodies = {name: _bodies(name, names, before, after) for name in names}
        for name in names:
            kernels.append(_kernel(f"k{number}-{name}", name, sides, before, bodies[name], after))
        taken = [place for each in bodies.values() for name in each for place in after[name]]
        left = _without(sides.original, [place for name in names for place in before.get(name, ())])
        rest = difference(left, _without(sides.port, taken))
        pages.append(FilePage(sides.path, sides.output, sides.target, sides.diagnostics, rest))
    return Contents(title, tuple(kernels), tuple(pages), tuple(_reasons(kernels)))


def geometric_mean(values: Sequence[float]) -> float | None:
    """The geometric mean, None of nothing."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values and min(values) > 0 else None


def _ran(report: KernelReport) -> bool:
    return report.simulate is not None or report.device is not None


# --------------------------------------------------------------------------------------------------- one kernel

_Lines = list[tuple[int, str]]
_Places = dict[str, list[tuple[int, int]]]


def _kernel(
    anchor: str, name: str, sides: FileSides, before: _Places, bodies: Sequence[str], after: _Places
) -> KernelPage:
    reports = tuple(report for report in sides.kernels if report.kernel == name)
    status = next(status for status in _WORST if any(report.status == status for report in reports))
    places = before.get(name, [])
    old = _cut(sides.original, places)
    found = []
    for body in bodies:
        chooses = body == name and len(bodies) > 1
        change = difference([] if chooses else old, _cut(sides.port, after[body]))
        found += [Body(body, change)] if change.rows else []
    diagnostics = tuple(dict.fromkeys(each for report in reports for each in report.diagnostics))
    layouts = tuple(layout for layout in sides.layouts if layout.kernel == name)
    line = places[0][0] + 1 if places else 0
    return KernelPage(
        anchor, name, sides.path, line, sides.target, status, len(old), reports, diagnostics, tuple(found), layouts
    )


def _functions(text: str) -> _Places:
    """The lines of every function of a file by name, decorators with it: from one counted from 0 up to another."""
    try:
        tree = ast.parse(text.removeprefix("\ufeff"))
    except (SyntaxError, ValueError):
        return {}
    places: _Places = {}
    for node in _statements(tree):
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            places.setdefault(node.name, []).append((start, node.end_lineno or node.lineno))
    return places


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """All statements of a tree: expressions are most of it, and have no functions in them."""
    for part in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, part, ())
        for each in inner if isinstance(inner, list) else ():
            yield each
            yield from _statements(each)


def _bodies(name: str, kernels: Sequence[str], before: _Places, after: _Places) -> list[str]:
    """A port's functions that are a kernel: the bodies that it chooses from, new and named after it, and itself."""
    found = [each for each in after if each not in before and each != name and _owner(each, kernels) == name]
    return [*found, *([name] if name in after else [])]


def _owner(function: str, kernels: Sequence[str]) -> str | None:
    return max((kernel for kernel in kernels if function.startswith(f"{kernel}_")), key=len, default=None)


def _cut(text: str, places: Sequence[tuple[int, int]]) -> _Lines:
    lines = text.split("\n")
    return [(number + 1, lines[number]) for start, end in sorted(places) for number in range(start, end)]


def _without(text: str, places: Sequence[tuple[int, int]]) -> _Lines:
    gone = {number for start, end in places for number in range(start, end)}
    return [(number + 1, line) for number, line in enumerate(text.split("\n")) if number not in gone]


# ------------------------------------------------------------------------------------------------------ reasons


def _reasons(kernels: Sequence[KernelPage]) -> Iterator[Reason]:
    """Every code that is told of a kernel; first what holds most source back, then by how often it is told."""
    holding = {page.anchor: {each.code for each in _holding(page)} for page in kernels if page.status != "converted"}
    found = []
    for code in sorted({each.code for page in kernels for each in page.diagnostics}):
        told = [each for page in kernels for each in page.diagnostics if each.code == code]
        pages = tuple(page for page in kernels if code in {each.code for each in page.diagnostics})
        held = tuple(page for page in pages if code in holding.get(page.anchor, ()))
        alone = sum(holding[page.anchor] == {code} for page in held)
        examples = tuple(dict.fromkeys(each.message for each in told))
        lines = sum(page.lines for page in held)
        severity = min((each.severity for each in told), key=list(Severity).index)
        found.append(Reason(code, severity, len(told), pages, held, alone, lines, examples, told[0].hint))
    yield from sorted(found, key=lambda each: (-each.lines, -len(each.held), -each.count, each.code))


def _holding(page: KernelPage) -> list[Diagnostic]:
    """What holds a kernel back: the gravest of what is said of it under the launches that are not converted."""
    told = [each for report in page.reports if report.status != "converted" for each in report.diagnostics]
    grave = min((list(Severity).index(each.severity) for each in told), default=0)
    return [each for each in told if list(Severity).index(each.severity) == grave]
