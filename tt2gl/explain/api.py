"""The choices behind a line: a file is converted, what was decided is watched, and told at the author's lines.

A line of a port is taken for the line of the original that it was made of; one that declares a layout or a buffer, for
all that this serves.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tt2gl.analysis.reasons import Reason, reasons
from tt2gl.convert import convert
from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.kernel_state import Kernel
from tt2gl.launches import Launch
from tt2gl.lowering.lowered_source import LoweredSource
from tt2gl.results import Conversion


@dataclass(frozen=True)
class Under:
    """A launch that a choice holds for: what it rests on there, and Triton's own choice."""

    launch: int
    facts: str
    triton: str


@dataclass(frozen=True)
class Explanation:
    """One choice: where (`line` to `last_line` of the author's file, `text` there), of which kernel, what and why.

    `kind`: layout, conversion, buffer, instruction, or kept; `weighed`: what else was to be had, and its cost; `names`:
    the layouts and buffers of the port that it is about; `launches`: those that it holds for.
    """

    file: str
    line: int
    column: int
    last_line: int
    text: str
    kernel: str
    kind: str
    chosen: str
    why: str
    weighed: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    launches: tuple[Under, ...] = ()


@dataclass(frozen=True)
class Explained:
    """A file's choices, in the order of the source, and the target that it was converted for."""

    target: str
    conversion: Conversion
    choices: tuple[Explanation, ...]


def explain(
    path: str | Path,
    *,
    target: str | None = None,
    launches: Sequence[Launch] | None = None,
    root: Path | None = None,
    timeout: float = 60.0,
) -> Explained:
    """All choices of a Triton file's conversion. Raises DiagnosticError as `convert` does."""
    found: list[Explanation] = []

    def watch(known: LoweredSource, kernels: Sequence[Kernel]) -> None:
        for kernel in kernels:
            found.extend(_of_kernel(known, kernel))

    conversion = convert(path, target=target, launches=launches, root=root, timeout=timeout, watch=watch)
    choices = sorted(found, key=lambda one: (one.file, one.line, one.column, one.kernel, one.kind))
    targets = [report.target for report in conversion.kernels]
    return Explained(targets[0] if targets else "", conversion, tuple(choices))


def at_line(choices: Sequence[Explanation], file: str, line: int) -> list[Explanation]:
    """The choices at a line of the author's file."""
    return [one for one in choices if one.file == file and one.line <= line <= one.last_line]


def at_port_line(choices: Sequence[Explanation], file: str, original: str, port: str, line: int) -> list[Explanation]:
    """The choices behind a line of the port (its text is `port`), which was made of `original`, the text of `file`."""
    lines = port.splitlines()
    text = lines[line - 1] if 0 < line <= len(lines) else ""
    declared = re.match(r"\s*(\w+)(?:: gl\.constexpr)? = ", text)
    if declared is not None and (about := [one for one in choices if declared[1] in one.names]):
        # What asked for a layout says why it is as it is; what only has it does not.
        return [one for one in about if one.chosen.startswith(f"{declared[1]} = ")] or about
    words = set(re.findall(r"\w+", text))
    if copied := [one for one in choices if one.kind == "buffer" and words & set(one.names)]:
        return copied
    known = _made_of(text, original.splitlines())
    if known is not None and (here := at_line(choices, file, known)):
        return here
    return [one for one in choices if words & set(one.names)]


# A port's line differs from the author's by the names of modules and by what is said of layouts.
_LAYOUT = re.compile(r",? ?(?:layout=)?(?:gl\.SliceLayout\([^()]*\)|\w*layout\b)")
_PRODUCT = re.compile(r"\b(?:warpgroup_mma|mma_v2|tcgen05_mma|dot_fma)\(")
_ALIKE = 0.6


def _made_of(text: str, lines: Sequence[str]) -> int | None:
    """The number of the line that is most like a port's, None where none is."""
    wanted = _plain(text)
    if not wanted:
        return None
    ratios = [
        (difflib.SequenceMatcher(None, wanted, _plain(line), autojunk=False).ratio(), -number)
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]
    best, number = max(ratios, default=(0.0, 0))
    return -number if best >= _ALIKE else None


def _plain(text: str) -> str:
    plain = re.sub(r"\b(?:gl|tl|gluon|triton)\.|, is_async=True", "", _LAYOUT.sub("", text.partition("#")[0]))
    return _PRODUCT.sub("dot(", plain).strip()


def _of_kernel(known: LoweredSource, kernel: Kernel) -> Iterator[Explanation]:
    name, path = kernel.function.name, str(known.source.path)
    if kernel.kept is not None:
        line, text = kernel.kept.line, _line(known.source.text, kernel.kept.line)
        why = f"{kernel.kept.code} {kernel.kept.message}"
        # Diagnostics of kernels are in the author's words by now.
        at = (kernel.kept.file, line, kernel.kept.column, line, text)
        yield Explanation(*at, name, "kept", "it stays Triton", why)
    if kernel.variants is None:
        return
    for analysis in kernel.variants.analyses:
        places = [_place(kernel, scene.launch) for scene in analysis.scenes]
        for reason in reasons(analysis):
            # Flags that analysis turned, to see what no launch reaches, are nobody's launches.
            held = [(places[index], case) for index, case in reason.under if places[index] is not None]
            if not held:
                continue
            first, last = (_author_line(known, reason, reason.position[place]) for place in (0, 2))
            own = Path(reason.file).resolve() == known.work.path.resolve()
            text = _segment(known.work.text if own else Path(reason.file).read_text("utf-8"), reason)
            yield Explanation(
                path if own else reason.file,
                first,
                reason.position[1],
                max(first, last),
                text,
                reason.body or name,
                reason.kind,
                reason.chosen,
                reason.why,
                reason.weighed,
                reason.names,
                tuple(Under(launch, case.facts, case.triton) for launch, case in held if launch is not None),
            )


def _place(kernel: Kernel, launch: Launch) -> int | None:
    return kernel.launches.index(launch) if launch in kernel.launches else None


def _author_line(known: LoweredSource, reason: Reason, line: int) -> int:
    here = Diagnostic("", Severity.NOTE, reason.file, line or 1, 0, "")
    return known.told(here).line


def _segment(text: str, reason: Reason) -> str:
    """The source at a reason's place: its first line."""
    line, column, last, end = reason.position
    lines = text.splitlines()
    if not 0 < line <= len(lines):
        return ""
    own = lines[line - 1].encode()
    return (own[column:end] if last == line else own[column:] + b" ...").decode(errors="replace")


def _line(text: str, line: int) -> str:
    lines = text.splitlines()
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""
