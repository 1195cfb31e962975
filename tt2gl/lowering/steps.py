"""One step of lowering: a file's functions edited, and all that the next step and the user's diagnostics need of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from tt2gl.diagnostics import Diagnostic
from tt2gl.edits import BYTE_ORDER_MARK, Edit, LineMap, apply
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.pointer_calls import Refused
from tt2gl.source import SourceFile


@dataclass(frozen=True)
class Lowered:
    """A file without what could be lowered.

    `text` is the author's where there was nothing to do. `functions`: the names of those lowered. `kept`: why others
    stay as they are, at the author's lines, by function. `originals`: of each lowered function, all that have to be put
    back together with it, as they are and as the author has them.
    """

    text: str
    lines: LineMap
    functions: tuple[str, ...]
    kept: Mapping[str, Diagnostic]
    originals: Mapping[str, tuple[tuple[str, str], ...]] = field(default_factory=dict)

    def restored(self, text: str, names: Iterable[str]) -> str:
        """A text made from this one, in which functions that are still as lowered are the author's again."""
        for name in names:
            for made, original in self.originals.get(name, ()):
                text = text.replace(made, original)
        return text


class Step:
    """A file to be edited: `text` is what was parsed, which a byte order mark is no part of, and `spans` lie in it."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self.text = source.text.removeprefix(BYTE_ORDER_MARK)

    @cached_property
    def spans(self) -> Spans:
        """Where nodes stand."""
        return Spans(self.source, self.text.encode())

    def done(
        self,
        edits: Sequence[Edit],
        functions: Iterable[str],
        kept: Mapping[str, Diagnostic] | None = None,
        originals: Mapping[str, tuple[tuple[str, str], ...]] | None = None,
    ) -> Lowered:
        """The file with all edits made."""
        new, lines = apply(self.text, edits)
        mark = self.source.text.removesuffix(self.text)
        return Lowered(mark + new, lines, tuple(functions), kept or {}, originals or {})


def each_function(
    source: SourceFile,
    words: Iterable[str],
    edits_of: Callable[[JitFunction, Spans], Iterable[Edit]],
    told: Callable[[Refused], Diagnostic] | None = None,
) -> Lowered:
    """Edit every Triton function of a file that has one of some words, each on its own.

    Where `edits_of` refuses one, it stays as it is, and `told` says why.
    """
    step, edits, done = Step(source), list[Edit](), list[str]()
    kept: dict[str, Diagnostic] = {}
    for function in source.functions if any(word in step.text for word in words) else ():
        if function.dialect != "triton":
            continue
        try:
            own = list(edits_of(function, step.spans))
        except Refused as refused:
            if told is None:
                raise
            kept[function.name] = told(refused)
            continue
        if own:
            edits += own
            done.append(function.name)
    return step.done(edits, done, kept)
