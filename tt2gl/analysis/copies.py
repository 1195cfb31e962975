"""Statements that stand several times, once for each layout of what they define: whether all launches can read them.

Each copy is compiled under every launch that comes by, also where only others read what it defines. So what a copy
reads must have that name under each of these, on whatever side of a branch they define it.
"""

from __future__ import annotations

from tt2gl.analysis.collected import Body, Conflict, Function
from tt2gl.analysis.labels import Labels
from tt2gl.analysis.versions import Context


def copies_are_defined(key: Body, function: Function, labels: Labels) -> None:
    """Raise Conflict where a copy of a statement reads a name that some launch does not define on its way there."""
    copied = function.copied
    if not copied:
        return
    known: dict[tuple[str, Context], set[str]] = {}
    for context, web in function.webs:
        for group in function.groups:
            if group.name == web.name and group.statements & set(web.statements):
                wanted = [each for version in group.versions for each in version.wanted.items()]
                names = (name for each in wanted for name in labels.named(web.name, *each))
                known.setdefault((web.name, context), set()).update(names)
    coming = {
        statement: {context for context, web in function.webs if statement in web.statements} for statement in copied
    }
    for (kind, position), entries in function.slots.items():
        statement = function.statements[position]
        if kind != "read" or statement not in copied:
            continue
        name = function.variables[position]
        read = {labels.label(name, entry.context, entry.term) for entry in entries}
        for context in coming[statement]:
            defined = known.get((name, context))
            if defined is not None and not read <= defined:
                terms = dict.fromkeys(entry.term for entry in entries)
                # Each copy by itself: launches that read others may have a text of their own.
                raise Conflict(key, position, [{e.context: term for e in entries if e.term == term} for term in terms])
