"""A file as the stages of a conversion see it: the author's, with what Gluon has no words for in other words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import libcst as cst

from tt2gl.diagnostics import Diagnostic
from tt2gl.lowering.absent_masks import absent_masks
from tt2gl.lowering.arguments_again import Again, arguments_again
from tt2gl.lowering.asked_types import asked_types
from tt2gl.lowering.block_pointers import lowered
from tt2gl.lowering.combiners import combiners
from tt2gl.lowering.concatenations import concatenations
from tt2gl.lowering.constant_quotients import with_constant_quotients
from tt2gl.lowering.descriptor_names import descriptor_names
from tt2gl.lowering.descriptors import lowered_descriptors
from tt2gl.lowering.early_masks import early_masks
from tt2gl.lowering.early_returns import early_returns
from tt2gl.lowering.equal_values import made_once
from tt2gl.lowering.first_turns import with_first_turns_apart
from tt2gl.lowering.host_descriptors import parted_descriptors
from tt2gl.lowering.idle_casts import without_idle_casts
from tt2gl.lowering.imported_helpers import Place, with_helpers
from tt2gl.lowering.inlining import inlined
from tt2gl.lowering.joined_descriptors import joined_descriptors
from tt2gl.lowering.known_choices import known_choices
from tt2gl.lowering.known_flags import known_flags
from tt2gl.lowering.known_tests import known_tests
from tt2gl.lowering.later_sums import later_sums
from tt2gl.lowering.loaded_parameters import loaded_parameters
from tt2gl.lowering.making_helpers import written_out
from tt2gl.lowering.named_advances import named_advances
from tt2gl.lowering.named_zeros import named_zeros
from tt2gl.lowering.names_again import NameAgain, with_names_again
from tt2gl.lowering.passed_descriptors import passed_in_parts
from tt2gl.lowering.precise_dots import OF_BACKENDS, precise_dots
from tt2gl.lowering.reorderings import reorderings
from tt2gl.lowering.scalar_likes import without_scalar_likes
from tt2gl.lowering.scaled_dots import turned_dots
from tt2gl.lowering.single_turns import without_single_turns
from tt2gl.lowering.steps import Lowered
from tt2gl.lowering.summed_products import with_summed_products
from tt2gl.lowering.sums_in_arms import sums_in_arms
from tt2gl.lowering.truths_as_bytes import with_truths_as_bytes
from tt2gl.lowering.turns_apart import with_turns_apart
from tt2gl.lowering.type_tests import type_tests
from tt2gl.plan import EqualValue, TurnsApart
from tt2gl.source import SourceFile, read_source
from tt2gl.targets import Target, mover


@dataclass(frozen=True)
class LoweredSource:
    """The author's file (`source`), and the one that takes its place (`work`): the same where nothing was lowered.

    `parted`: the kernels that take the parts of tensor descriptors in their place.
    """

    source: SourceFile
    work: SourceFile
    steps: tuple[tuple[Lowered, SourceFile], ...] = ()
    parted: frozenset[str] = frozenset()

    def told(self, diagnostic: Diagnostic) -> Diagnostic:
        """A diagnostic about the working file as one about the author's."""
        if not self.steps or not _same(diagnostic.file, self.source.path):
            return diagnostic
        line, column = diagnostic.line, diagnostic.column
        for step, _ in reversed(self.steps):
            line, column = step.lines.author(line, column)
        return replace(diagnostic, line=line, column=column)

    def is_added(self, diagnostic: Diagnostic) -> bool:
        """Whether a diagnostic about the working file speaks of a function that lowering has added."""
        if not self.steps or not _same(diagnostic.file, self.source.path):
            return False
        own = {function.name for function in self.source.functions}
        added = [self.work.positions[each.node] for each in self.work.functions if each.name not in own]
        return any(span.start.line <= diagnostic.line <= span.end.line for span in added)

    def reason(self, functions: Iterable[str]) -> Diagnostic | None:
        """Why one of these functions was not lowered, at the author's line."""
        named = list(functions)
        for place, (step, _) in enumerate(self.steps):
            for name in named:
                if name in step.kept:
                    known = step.kept[name]
                    line, column = known.line, known.column
                    for before, _ in reversed(self.steps[:place]):
                        line, column = before.lines.author(line, column)
                    return replace(known, line=line, column=column)
        return None

    def restored(self, text: str, kept: Iterable[str]) -> str:
        """A text made from the working file, in which functions that stayed Triton are as the author has them."""
        names = list(kept)
        for step, before in reversed(self.steps):
            for name in names:
                if name in step.originals:
                    text = step.restored(text, [name])
                elif name in step.functions:
                    for made, original in _pairs(read_source(before.path, step.text), before, name):
                        text = text.replace(made, original)
        return text


def with_inlined(
    known: LoweredSource,
    ahead: Collection[tuple[int, int]],
    torn: Collection[tuple[int, int]] = (),
    reached: Collection[int] = (),
    products: Collection[tuple[int, int]] = (),
    remade: Collection[tuple[int, int]] = (),
) -> LoweredSource | None:
    """The file with the helpers called at these places of the working file written out; None where none can be.

    `reached`: the lines of the working file's definitions that launches call.
    """
    made = _with(known, inlined(known.work, ahead, torn, reached, products, remade))
    # A helper may choose between products for a sum of its caller's.
    return (_with(made, sums_in_arms(made.work)) or made) if made is not None else None


def with_single_turns(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file with the loops at these places of the working file written out; None where none can be."""
    return _with(known, without_single_turns(known.work, places))


def with_quotients_written_out(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file with the quotients at these places of the working file as constants; None where none can be."""
    return _with(known, with_constant_quotients(known.work, places))


def with_loops_written_out(known: LoweredSource, loops: Collection[TurnsApart]) -> LoweredSource | None:
    """The file with each turn of these loops of the working file written; None where none can be."""
    return _with(known, with_turns_apart(known.work, loops))


def with_bare_products(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file without the casts of the products at these places of the working file; None where there are none."""
    return _with(known, without_idle_casts(known.work, places))


def with_scalars_by_type(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file with scalars made by their type at these places of the working file; None where there are none."""
    return _with(known, without_scalar_likes(known.work, places))


def with_products_of_sums(
    known: LoweredSource, places: Collection[tuple[int, int]], precision: str
) -> LoweredSource | None:
    """The file with the sums at these places of the working file as products; None where there are none."""
    return _with(known, with_summed_products(known.work, places, precision))


def with_first_turns(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file with the first turns of these loops of the working file apart; None where none can be."""
    return _with(known, with_first_turns_apart(known.work, places))


def with_equal_values(known: LoweredSource, equal: Collection[EqualValue]) -> LoweredSource | None:
    """The file without loads and products that make what a name has; None where there are none."""
    return _with(known, made_once(known.work, equal))


def with_other_names(known: LoweredSource, places: Collection[NameAgain]) -> LoweredSource | None:
    """The file with other names for these in the loops at their places of the working file; None where none are."""
    return _with(known, with_names_again(known.work, places))


def with_arguments_again(known: LoweredSource, wanted: Collection[Again]) -> LoweredSource | None:
    """The file with arguments that helpers are given once more; None where none are."""
    made = None
    while (step := _with(made or known, arguments_again((made or known).work, wanted))) is not None:
        made = step
    return made


def with_bytes_loaded(known: LoweredSource, places: Collection[tuple[int, int]]) -> LoweredSource | None:
    """The file with truth values loaded as bytes at these places of the working file; None where there are none."""
    return _with(known, with_truths_as_bytes(known.work, places))


def _with(known: LoweredSource, step: Lowered) -> LoweredSource | None:
    """The file after one more step; None where that had nothing to do."""
    if not step.functions:
        return None
    return replace(known, work=read_source(known.work.path, step.text), steps=(*known.steps, (step, known.work)))


def lowered_source(
    source: SourceFile,
    target: Target,
    root: Path | None = None,
    helpers: Collection[Place] = (),
    precisions: Collection[str] = (),
    hosts: Mapping[str, Mapping[str, int]] | None = None,
    again: Collection[Again] = (),
) -> LoweredSource:
    """Lower block pointers, products that Triton makes otherwise, what has any order, and descriptors nothing copies.

    `helpers` of other files are brought into this one first. `precisions`: names for a precision of products that may
    be several. `hosts`: by kernel, the descriptors that it gets from the host, with their ranks.
    `again`: arguments that helpers are given once more.
    """
    found: list[tuple[Lowered, SourceFile]] = []
    work = source
    if helpers:
        step = with_helpers(source, helpers, target.name, root)
        found.append((step, work))
        work = read_source(work.path, step.text)
    lowerings: list[Callable[[SourceFile], Lowered]] = [
        named_advances,
        partial(lowered, at_use=target.backend == "cuda"),
    ]
    if not mover(target):
        named = partial(descriptor_names, target=target.name, root=root)
        lowerings += [named, joined_descriptors, written_out, passed_in_parts, lowered_descriptors]
    taken_apart = parted_descriptors(work, hosts or {})
    if taken_apart.functions or taken_apart.kept:
        found.append((taken_apart, work))
        work = read_source(work.path, taken_apart.text)
    if target.backend == "cuda":
        lowerings.append(turned_dots)
    several = partial(precise_dots, named=precisions, precisions=OF_BACKENDS[target.backend])
    lowerings += [
        several,
        sums_in_arms,
        later_sums,
        concatenations,
        reorderings,
        asked_types,
        named_zeros,
        absent_masks,
        known_flags,
        known_tests,
        known_choices,
        type_tests,
        combiners,
        early_returns,
    ]
    if target.vendor == "AMD":
        lowerings.append(early_masks)
    if target.buffers:
        lowerings.append(loaded_parameters)
    # Of a name's copies, each wants what it is made of in its own layout.
    lowerings += [partial(arguments_again, wanted=again)] * len(again)
    for lowering in lowerings:
        step = lowering(work)
        if step.functions or step.kept:
            found.append((step, work))
        if step.functions:
            work = read_source(work.path, step.text)
    return LoweredSource(source, work, tuple(found), frozenset(taken_apart.functions))


def has_block_pointers() -> bool:
    """Whether the installed Triton compiles block pointers: `tl.make_block_ptr` itself is there either way."""
    from triton.language.semantic import TritonSemantic

    return hasattr(TritonSemantic, "make_block_ptr")


def without_block_pointers(source: SourceFile) -> SourceFile:
    """The file with its block pointers lowered, where that could be done."""
    for lowering in (named_advances, lowered):
        step = lowering(source)
        source = read_source(source.path, step.text) if step.functions else source
    return source


def _pairs(made: SourceFile, before: SourceFile, name: str) -> Iterator[tuple[str, str]]:
    """The functions of a name in a lowered file, each beside what it was."""
    after = [function for function in made.functions if function.name == name]
    originals = [function for function in before.functions if function.name == name]
    for one, other in zip(after, originals, strict=True):
        yield _code(made, one.node), _code(before, other.node)


def _code(source: SourceFile, node: cst.FunctionDef) -> str:
    return source.module.code_for_node(node.with_changes(leading_lines=[]))


def _same(file: str, path: str | Path) -> bool:
    return Path(file).resolve() == Path(path).resolve()
