"""The producer slice of a loop: the statements that the addresses and masks of its loads need, and what is left.

Everything goes by names, backwards over the body and around it, until nothing is added.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.pipelining.flow import NONE, Names, inside, reads, writes
from tt2gl.trees import blocks, nodes_in


@dataclass(frozen=True)
class Slice:
    """A loop taken apart.

    `taken`: statements of the producer. `kept`: those of the body that stay, of which some are in both. `constants`:
    taken compile-time constants, which stand once before the loop. `carried`: names that the producer takes from one
    iteration to the next. `renamed`: names of the producer that something else uses too. `lasting`: names that what
    stays binds for the next iteration, or for after the loop.
    """

    taken: frozenset[ast.stmt]
    kept: frozenset[ast.stmt]
    constants: frozenset[ast.stmt]
    carried: Names
    renamed: Names
    lasting: Names


def slice_loop(
    loop: ast.For,
    loads: Mapping[ast.Call, Sequence[ast.expr]],
    live_after: Names,
    given: frozenset[ast.expr] = frozenset(),
    also: frozenset[ast.stmt] = frozenset(),
) -> Slice:
    """Take a loop apart. `loads`: what each load of it needs; `live_after`: names read after the loop.

    `given`: values that what stays has from the producer, so that it needs nothing for them. `also`: statements that
    are the producer's, too.
    """
    wanted, top = statements_for(loop, loads, also=also)
    constants = frozenset(each for each in wanted if is_constexpr(each))
    taken = wanted - constants
    consumer = _Consumer(frozenset(loads) | given, taken | constants)
    below = consumer.around(loop, live_after)
    kept_names = NONE.union(*(writes(each) for each in consumer.kept if not isinstance(each, ast.If)))
    taken_names = NONE.union(*map(writes, taken))
    carried = top & taken_names
    needed = below | live_after
    # Given anew by a statement that stays, a name may be of another type there than the producer's.
    others = NONE.union(*(writes(each) for each in consumer.kept - taken if not isinstance(each, ast.If)))
    renamed = (carried & (kept_names | needed)) | (taken_names & (needed | others))
    return Slice(taken, frozenset(consumer.kept) - constants, constants, carried, renamed, kept_names & needed)


def statements_for(
    loop: ast.For,
    loads: Mapping[ast.Call, Sequence[ast.expr]],
    skipped: frozenset[ast.AST] = frozenset(),
    also: frozenset[ast.stmt] = frozenset(),
) -> tuple[frozenset[ast.stmt], Names]:
    """The statements that loads need, and the names that those take from before an iteration.

    `skipped`: parts of statements that need nothing. `also`: statements that are wanted with those.
    """
    producer = _Producer(loads, skipped, also)
    top = producer.around(loop)
    return frozenset(producer.taken), top


def statements_before(block: Sequence[ast.stmt], live: Names) -> tuple[frozenset[ast.stmt], Names]:
    """The statements of a block that bind what is read after it, and the names that those take from before it."""
    producer = _Producer({}, frozenset())
    top = producer.before(block, live)
    return frozenset(producer.taken), top


@dataclass(frozen=True)
class Around:
    """What the loads of a loop need of the loop around theirs.

    `taken`: statements of that loop's body, before theirs; `gone`: those of them that nothing else needs. `top`: the
    names that all this reads from before a turn.
    """

    taken: frozenset[ast.stmt]
    gone: frozenset[ast.stmt]
    top: Names


def slice_around(
    outer: ast.For, inner: ast.For, loads: Mapping[ast.Call, Sequence[ast.expr]], parts: Slice, live_after: Names
) -> Around:
    """The slice of `inner`'s loads, of which `parts` is its own, in the body of the loop around it."""
    _, needed = statements_for(inner, loads)
    taken, top = statements_before(outer.body[: outer.body.index(inner)], needed - writes(inner.target))
    consumer = _Consumer(frozenset(loads) | (parts.taken - parts.kept), taken)
    consumer.around(outer, live_after)
    return Around(taken, taken - consumer.kept, top)


def is_constexpr(statement: ast.stmt) -> bool:
    """Whether a statement binds a compile-time constant, which can be done but once."""
    if not isinstance(statement, ast.AnnAssign):
        return False
    note = statement.annotation
    return (note.attr if isinstance(note, ast.Attribute) else getattr(note, "id", "")) == "constexpr"


class _Backwards:
    """Goes through statements from the last to the first, with the names that are read after each."""

    def around(self, loop: ast.For, after: Names = NONE) -> Names:
        """All of the body, as often as any name is added: those that are read from before an iteration."""
        live = after
        while True:
            # The loop binds its variable anew, whatever the body made of it.
            top = self.before(loop.body, live) - writes(loop.target)
            if top <= live:
                return top
            live |= top

    def before(self, statements: Sequence[ast.stmt], live: Names) -> Names:
        """The names that are read from before a block."""
        for statement in reversed(statements):
            live = self.through(statement, live)
        return live

    def through(self, statement: ast.stmt, live: Names) -> Names:
        """The names that are read from before one statement."""
        raise NotImplementedError


@dataclass
class _Producer(_Backwards):
    """Collects the statements that loads need."""

    loads: Mapping[ast.Call, Sequence[ast.expr]]
    skipped: frozenset[ast.AST]
    also: frozenset[ast.stmt] = frozenset()
    taken: set[ast.stmt] = field(default_factory=set)

    def through(self, statement: ast.stmt, live: Names) -> Names:
        if isinstance(statement, ast.If):
            found = self.before(statement.body, live) | self.before(statement.orelse, live)
            return found | reads(statement.test, self.skipped) if self.wanted(statement) else found
        if list(blocks(statement)):
            if not writes(statement) & live:
                return live
            self.taken.add(statement)
            return live | reads(statement, self.skipped)
        if writes(statement) & live or statement in self.also:
            self.taken.add(statement)
            live = (live - writes(statement)) | reads(statement, self.skipped)
        for node in nodes_in(statement):
            if isinstance(node, ast.Call) and node in self.loads:
                live = live.union(*(reads(each, self.skipped) for each in self.loads[node]))
        return live

    def wanted(self, statement: ast.stmt) -> bool:
        """Whether something of a statement is in the slice."""
        return any(each in self.taken for each in inside([statement])) or any(
            node in self.loads for node in nodes_in(statement) if isinstance(node, ast.Call)
        )


@dataclass
class _Consumer(_Backwards):
    """Collects what stays: all that was not taken, and of what was taken that which it reads."""

    loads: frozenset[ast.AST]
    taken: frozenset[ast.stmt]
    kept: set[ast.stmt] = field(default_factory=set)

    def through(self, statement: ast.stmt, live: Names) -> Names:
        if statement in self.taken and not writes(statement) & live:
            return live
        if isinstance(statement, ast.If):
            found = self.before(statement.body, live) | self.before(statement.orelse, live)
            if not any(each in self.kept for each in inside([*statement.body, *statement.orelse])):
                return live
            self.kept.add(statement)
            return found | reads(statement.test, self.loads)
        self.kept.update(inside([statement]))
        if isinstance(statement, (ast.For, ast.While)):
            return live | reads(statement, self.loads)
        return (live - writes(statement)) | reads(statement, self.loads)
