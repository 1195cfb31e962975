"""The texts of layouts: what all launches and callers want of a place, said in one way, by a name where it has one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.choices import conditional
from tt2gl.analysis.collected import Body, Conflict
from tt2gl.analysis.extents import evaluated
from tt2gl.analysis.facts import Position
from tt2gl.analysis.naming import part_name, reshaped_name
from tt2gl.analysis.passing import Passing
from tt2gl.analysis.terms import (
    IN_RING,
    BlockScale,
    Cut,
    Exchanged,
    Narrowed,
    Operand,
    Pair,
    Reshaped,
    Root,
    Stored,
    Term,
    Turned,
    based_on,
    renamed,
    rendered,
    root_of,
)
from tt2gl.analysis.versions import Wanted
from tt2gl.launches import Launch
from tt2gl.names import unused
from tt2gl.plan import ENTRY
from tt2gl.stages import Declaration

_Named = Operand | Turned | Exchanged | Reshaped | Narrowed | BlockScale


class Spelling:
    """Spells the layouts of functions, by the names of kernels' layouts and of helpers' parameters."""

    def __init__(self, kernels: Mapping[Body, KernelAnalysis], passing: Passing) -> None:
        self._kernels = kernels
        self._passing = passing
        self._choices: dict[Body, dict[str, tuple[dict[int, str], str]]] = {}
        self._derivations: dict[Body, dict[str, str]] = {}

    def spelled(self, key: Body, wanted: Wanted, position: Position) -> str:
        """The one text for what all contexts want at a place. Raises `Conflict` where there is none.

        A kernel says it by its layouts' names, by a name of its own where it depends on a flag; a helper by the
        parameter that brings it.
        """
        if IN_RING in wanted.values():
            if any(term != IN_RING for term in wanted.values()):
                raise Conflict(key, position, [wanted])
            return ""
        if key not in self._kernels:
            made_of = self._passing.roots(key, wanted)
            for name, group in self._passing.parameters.get(key, {}).items():
                if all(group.get(context) == term for context, term in made_of.items()):
                    term = next(iter(wanted.values()))
                    return name if made_of == wanted else rendered(based_on(term, Root(name)))
            raise Conflict(key, position, [wanted])
        analysis = self._kernels[key]
        said = {context[1]: rendered(renamed(term, analysis.names)) for context, term in wanted.items()}
        if len(set(said.values())) == 1:
            text, term = next(iter(said.values())), next(iter(wanted.values()))
            return self._with_names(analysis, text, term)
        return self._choice(analysis, said, position, wanted)

    def extents(self, key: Body, wanted: Wanted, position: Position) -> tuple[str, ...]:
        """The extents of what is put into shared memory at a place: a tile may be turned under a flag."""
        told = {context: term.dims for context, term in wanted.items() if isinstance(term, Stored)}
        said = next(iter(told.values()))
        if len(set(told.values())) == 1:
            return said
        if key not in self._kernels:
            raise Conflict(key, position, [wanted])
        launches = [scene.launch for scene in self._kernels[key].scenes]
        if all(_are_alike(said, dims, launches[context[1]]) for context, dims in told.items()):
            return said
        by_axis = ({context[1]: dims[axis] for context, dims in told.items()} for axis in range(len(said)))
        chosen = [
            next(iter(texts)) if len(texts := set(each.values())) == 1 else conditional(each, launches)
            for each in by_axis
        ]
        if any(text is None for text in chosen):
            raise Conflict(key, position, [wanted])
        return tuple(text for text in chosen if text is not None)

    def told_apart(self, key: Body, wanted: Wanted, position: Position) -> str:
        """What tells a version of a variable from others: its layout.

        In a helper an argument, and what is computed of it in that layout, comes in one that is not spelled.
        """
        try:
            return self.spelled(key, wanted, position)
        except Conflict:
            if position != ENTRY and key in self._kernels:
                raise
            return "as it comes"

    def _with_names(self, analysis: KernelAnalysis, text: str, term: Term) -> str:
        """A layout's source, with a name for what it has of a product, or of a value reshaped or split."""
        inner = term
        while isinstance(inner, Cut | Pair):
            inner = inner.parent
        if not isinstance(inner, _Named):
            return text
        said = rendered(renamed(inner, analysis.names))
        return text.replace(said, self._derived(analysis, said, inner))

    def _derived(self, analysis: KernelAnalysis, text: str, term: _Named) -> str:
        """The name of a layout that follows from another, of a dot's: `rhs_layout`, or `acc_rhs_layout` of several."""
        known = self._derivations.setdefault(analysis.body(analysis.function), {})
        text = self._with_names(analysis, text, term.parent) if isinstance(term, Reshaped) else text
        if text not in known:
            other = "turned" if isinstance(term, Turned) else "stored"
            operand = term.parent if isinstance(term, Turned | BlockScale) else term
            side = ("lhs", "rhs")[operand.index] if isinstance(operand, Operand) else other
            side = f"{side}_turned" if side != other and isinstance(term, Turned) else side
            whole = analysis.names[root_of(term).name].removesuffix("_layout")
            name = f"{side}_layout" if whole == "mma" else f"{whole}_{side}_layout"
            if isinstance(term, BlockScale):
                name = f"{side}_scale_layout" if side != other else f"{whole}_block_scale_layout"
            if isinstance(term, Reshaped):
                name = reshaped_name(analysis.names[root_of(term).name])
            if isinstance(term, Narrowed):
                name = part_name(analysis.names[root_of(term).name])
            known[text] = unused(name, {*analysis.taken, *analysis.names.values(), *known.values()})
        return known[text]

    def _choice(self, analysis: KernelAnalysis, said: dict[int, str], position: Position, wanted: Wanted) -> str:
        """A name for a layout that depends on a flag: the known one that agrees, or a new one."""
        body = analysis.body(analysis.function)
        known = self._choices.setdefault(body, {})
        launches, lanes = [scene.launch for scene in analysis.scenes], analysis.scenes[0].lanes
        told = {*said.values()}
        extents = [row.extent for row in analysis.classes.classes if row.extent and analysis.names[row.name] in told]
        for name, (others, _) in known.items():
            together = {**others, **said}
            shared = others.keys() & said.keys()
            if len(shared) > 1 and all(others[i] == said[i] for i in shared):
                source = conditional(together, launches, extents, lanes)
                if source is not None:
                    known[name] = (together, source)
                    return name
        source = conditional(said, launches, extents, lanes)
        if source is None:
            raise Conflict(body, position, [wanted])
        taken = {*analysis.taken, *analysis.names.values(), *known}
        name = unused("chosen_layout", taken)
        known[name] = (said, source)
        return name

    def declared(self, key: Body) -> list[Declaration]:
        """The layouts of a kernel that got their names here."""
        derived = self._derivations.get(key, {})
        choices = self._choices.get(key, {})
        return [
            *(Declaration(name, source, "") for source, name in derived.items()),
            *(Declaration(name, source, "") for name, (_, source) in choices.items()),
        ]


def _are_alike(one: Sequence[str], other: Sequence[str], launch: Launch) -> bool:
    """Whether extents, as source, are the same numbers under a launch; those that are not known are taken for it."""
    both = ((evaluated(a, launch), evaluated(b, launch)) for a, b in zip(one, other, strict=True) if a != b)
    return all(a == b or a is None or b is None for a, b in both)
