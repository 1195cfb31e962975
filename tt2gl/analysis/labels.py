"""What each variable is called in each of its layouts, in one text for all launches and callers.

A launch that has a row in one layout may have it under two names, for the sake of launches that convert it:

    q = gl.load(q_ptr + columns)                              # no read of `q` asks for this in another layout
    q = q.to(gl.int32) & 0xFF
    q_cols = gl.convert_layout(q, gl.SliceLayout(0, layout))  # idle where `q` has that layout
    differ = q_cols[None, :] ^ documents

A read may go by the other name where all that it may come after has that: `q_cols` is not made of what was loaded, but
nothing that is read below comes from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping

from tt2gl.analysis.collected import Body, Conflict, Function
from tt2gl.analysis.facts import Position
from tt2gl.analysis.naming import suffixed
from tt2gl.analysis.terms import Term
from tt2gl.analysis.versions import Context, Wanted

_UNKNOWN: Mapping[Context, Position] = {}


class Labels:
    """What each variable is called in each of its layouts."""

    def __init__(self, key: Body, function: Function, said: Callable[[Wanted, Position], str]) -> None:
        self.key = key
        self.labels: dict[tuple[str, Context, Term], str] = {}
        idle: dict[tuple[str, Context, Term], list[str]] = {}
        self.beside: dict[tuple[str, Context, Term, Position], list[str]] = {}
        groups: Counter[tuple[str, Context, Term]] = Counter()
        several = {group.name for group in function.groups if len(group.versions) > 1}
        taken = {group.name for group in function.groups}
        for name in sorted(several):
            known: dict[str, str] = {}
            for group in function.groups:
                if group.name != name:
                    continue
                place = min(group.statements)
                layouts = [said(version.wanted, place) for version in group.versions]
                dear = len(group.computed) > 1 and not group.cheap
                if dear or len(set(layouts)) != len(layouts):
                    # A second copy, above all one under the same name, would do twice what may only be done once.
                    raise Conflict(key, place, [version.wanted for version in group.versions])
                named = name in {known.get(layout) for layout in layouts}
                for version, layout in zip(group.versions, layouts, strict=True):
                    if layout not in known:
                        known[layout] = name if not named else suffixed(name, layout, taken)
                        named = True
                        taken.add(known[layout])
                    for context, term in version.wanted.items():
                        if context in version.idle:
                            idle.setdefault((name, context, term), []).append(known[layout])
                            for statement in group.statements:
                                self.beside.setdefault((name, context, term, statement), []).append(known[layout])
                            continue
                        groups[name, context, term] += 1
                        if self.labels.setdefault((name, context, term), known[layout]) != known[layout]:
                            raise Conflict(key, place, [version.wanted for version in group.versions])

        # A name that only some of a variable's definitions have is not read after the others.
        self.idle = {at: [n for n in names if names.count(n) == groups[at]] for at, names in idle.items()}

    def named(self, variable: str, context: Context, term: Term, source: Position | None = None) -> list[str]:
        """All names of the variable in a layout, its own first: others may convert what is right as it is.

        `source`: one of the statements that it is read after, if known.
        """
        at = (variable, context, term)
        beside = self.beside.get((*at, source), ()) if source is not None else ()
        return [self.label(*at), *self.idle.get(at, ()), *beside]

    def label(self, variable: str, context: Context, term: Term) -> str:
        """The variable's name in a layout."""
        return self.labels.get((variable, context, term), variable)

    def mentioned(self, variable: str, statements: Collection[Position], function: Function, position: Position) -> str:
        """The variable's name in any layout that each of these statements makes it in; empty where its own is one."""
        groups = [
            each for each in function.groups if each.name == variable and not each.statements.isdisjoint(statements)
        ]
        made = [[v.wanted for v in group.versions] for group in groups if group.versions]
        known = [[self.label(variable, *each) for wanted in versions for each in wanted.items()] for versions in made]
        if not known or all(variable in names for names in known):
            return ""
        if name := next((name for name in known[0] if all(name in names for names in known)), ""):
            return name
        raise Conflict(self.key, position, [wanted for versions in made for wanted in versions])

    def others(self, variable: str) -> list[str]:
        """What else a variable is called."""
        return sorted({name for (of, *_), name in self.labels.items() if of == variable} - {variable})

    def read_at(self, position: Position, function: Function, wanted: Wanted) -> str:
        """The name that a variable is read by at a place, whatever the context; empty where its own stands."""
        return self.common(function.variables[position], wanted, position, function.sources.get(position, {}))

    def common(
        self, variable: str, wanted: Wanted, position: Position, sources: Mapping[Context, Position] = _UNKNOWN
    ) -> str:
        """The variable's name at a place, whatever the context; empty where its own stands.

        `sources`: one of the statements that a context reads it after there.
        """
        known = [self.named(variable, context, term, sources.get(context)) for context, term in wanted.items()]
        name = next((name for name in known[0] if all(name in names for names in known)), None)
        if name is None:
            raise Conflict(self.key, position, [wanted])
        return "" if name == variable else name
