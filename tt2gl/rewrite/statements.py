"""Applies the rules to a function's statements, which may stand several times, with conversions and hoists beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile

import libcst as cst

from tt2gl.names import claimed
from tt2gl.plan import FunctionPlan, Position
from tt2gl.rewrite.conversions import conversion_lines, recast_lines
from tt2gl.rewrite.dots import names_in
from tt2gl.rewrite.expressions import Expressions, Locate, Qualify
from tt2gl.rewrite.hoists import Loop, before_loop, early_line
from tt2gl.rewrite.idle_statements import has_idle, without_idle
from tt2gl.rewrite.ranges import counting
from tt2gl.rewrite.tuples import part_of, targets_of

_NOWHERE = (0, 0, 0, 0)
Statements = cst.SimpleStatementLine | cst.SimpleStatementSuite


class FunctionBody(Expressions):
    """Edits a whole function: statements that stand once, those that stand several times, conversions, hoists."""

    def __init__(self, plan: FunctionPlan, locate: Locate, qualify: Qualify, renamed: Mapping[str, str]) -> None:
        super().__init__(plan.edits, locate, qualify, renamed, _planned_names(plan))
        self.copies, self.conversions, self.hoists = plan.copies, plan.conversions, plan.hoists
        self.early, self.zeros = plan.early, plan.zeros
        self.partitioned = plan.partitioned
        self.narrow: dict[str, str] = {}

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """Note the author's variables."""
        self.taken |= set(names_in(node))

    def leave_For(
        self, original_node: cst.For, updated_node: cst.For
    ) -> cst.For | cst.FlattenSentinel[cst.BaseStatement]:
        """A loop, after what it no longer makes itself."""
        called = self.qualify(original_node.iter.func) if isinstance(original_node.iter, cst.Call) else ()
        place = self.locate(original_node)
        apart = place is not None and place[:2] in self.partitioned
        return self._after_hoists(original_node, counting(updated_node, called, partitioned=apart))

    def leave_While(
        self, original_node: cst.While, updated_node: cst.While
    ) -> cst.While | cst.FlattenSentinel[cst.BaseStatement]:
        """A loop, after what it no longer makes itself."""
        return self._after_hoists(original_node, updated_node)

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If | cst.FlattenSentinel[cst.BaseStatement]:
        """A branch, after what is made before it."""
        return self._after_hoists(original_node, updated_node)

    def _after_hoists(self, original: cst.CSTNode, updated: Loop) -> Loop | cst.FlattenSentinel[cst.BaseStatement]:
        place: Position = self.locate(original) or _NOWHERE
        steps = (*self.zeros.get(place[:2], ()), *self.hoists.get(place[:2], ()))
        return before_loop(updated, steps) if steps else updated

    def leave_IndentedBlock(
        self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock
    ) -> cst.IndentedBlock:
        """A block without the statements that say nothing any more, as those of the author's do that did before."""
        return updated_node if has_idle(original_node) else without_idle(updated_node)

    def leave_SimpleStatementSuite(
        self, original_node: cst.SimpleStatementSuite, updated_node: cst.SimpleStatementSuite
    ) -> cst.BaseSuite:
        """A body on its header's line becomes a block where one of its statements becomes several."""
        line = self._lines(original_node, updated_node)
        return updated_node if line is None else cst.IndentedBlock(line)

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.FlattenSentinel[cst.BaseStatement]:
        """One line, or the copies that the plan asks for, each followed by its conversions."""
        lines = self._lines(original_node, updated_node)
        if lines is None:
            return updated_node
        # Comments speak of the author's statement: those above it of all that it became, those at its end of itself.
        early = sum(len(self.early.get(self.locate(each) or _NOWHERE, ())) for each in original_node.body[:1])
        blank = list(takewhile(lambda line: early > 0 and line.comment is None, updated_node.leading_lines))
        lines[0] = lines[0].with_changes(leading_lines=blank)
        lines[early] = lines[early].with_changes(leading_lines=updated_node.leading_lines[len(blank) :])
        spoken = _place(original_node.body[0], lines, early) if len(original_node.body) == 1 else -1
        lines[spoken] = lines[spoken].with_changes(trailing_whitespace=updated_node.trailing_whitespace)
        return cst.FlattenSentinel(lines)

    def _lines(self, original: Statements, updated: Statements) -> list[cst.SimpleStatementLine] | None:
        """Each statement on a line of its own, its copies and conversions after it; None where there are none."""
        places = [self.locate(statement) or _NOWHERE for statement in original.body]
        parts = [[self.locate(part) or _NOWHERE for part in targets_of(statement)] for statement in original.body]
        changed = {*self.copies, *self.conversions, *self.before, *self.early}
        if changed.isdisjoint([*places, *(part for own in parts for part in own)]):
            return None
        lines: list[cst.SimpleStatementLine] = []
        for before, after, place, own in zip(original.body, updated.body, places, parts, strict=True):
            lines += [early_line(step) for step in self.early.get(place, ())]
            lines += map(_line, self.before.get(place, ()))
            # The plan knows the parts of `a, b = x, y` by their targets.
            apart: list[tuple[Position, int | None]] = [(part, index) for index, part in enumerate(own)]
            for part, index in apart if changed.intersection(own) else [(place, None)]:
                made, steps = self._copies(before, after, part, index), self.conversions.get(part, ())
                recast = [step for step in steps if step.recast]
                lines += map(_line, recast_lines(made, recast, self._narrow(recast[0].source)) if recast else made)
                lines += [line for step in steps if not step.recast for line in conversion_lines(step)]
        return lines

    def _narrow(self, name: str) -> str:
        """What is called what a name is cast from to more bits: the same wherever it gets a value."""
        if name not in self.narrow:
            self.narrow[name] = claimed(f"{name}_narrow", self.taken)
        return self.narrow[name]

    def _copies(
        self, original: cst.BaseSmallStatement, updated: cst.BaseSmallStatement, place: Position, index: int | None
    ) -> list[cst.BaseSmallStatement]:
        """The copies of a statement, or of one part of it, at a place."""
        if place not in self.copies:
            return [part_of(updated, index)]
        made: list[list[cst.BaseSmallStatement]] = []
        for edits in self.copies[place]:
            editor = Expressions(edits, self.locate, self.qualify, self.renamed, self.taken)
            copy = original.visit(editor)
            assert isinstance(copy, cst.BaseSmallStatement)
            made.append([*(line for lines in editor.before.values() for line in lines), part_of(copy, index)])
        # `mask &= ...` of a scalar: the copy that makes `mask_o` of `mask` reads it before the other changes it.
        bound = [_bound(lines[-1]) for lines in made]
        waits = [not set().union(*bound) & set(names_in(each[-1])) - own for each, own in zip(made, bound, strict=True)]
        return [line for place in sorted(range(len(made)), key=waits.__getitem__) for line in made[place]]


def _line(statement: cst.BaseSmallStatement) -> cst.SimpleStatementLine:
    return cst.SimpleStatementLine([statement.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])


def _place(statement: cst.BaseSmallStatement, lines: Sequence[cst.SimpleStatementLine], start: int) -> int:
    """Which of the lines that a statement became, from `start` on, is itself, and not what it is given."""
    names, kind = _bound(statement), type(statement)
    made = ((at, line.body[0]) for at, line in enumerate(lines) if at >= start)
    itself = (at for at, each in made if (names & _bound(each) if names else isinstance(each, kind)))
    return next(itself, start)


def _bound(statement: cst.BaseSmallStatement) -> set[str]:
    """The names that an assignment binds."""
    match statement:
        case cst.Assign(targets=targets):
            return {name for target in targets for name in names_in(target.target)}
        case cst.AugAssign(target=target) | cst.AnnAssign(target=target):
            return set(names_in(target))
    return set()


def _planned_names(plan: FunctionPlan) -> set[str]:
    """The variables that a plan adds to a function."""
    edits = [plan.edits, *(copy for copies in plan.copies.values() for copy in copies)]
    names = {name for each in edits for name in (*each.targets.values(), *each.reads.values())}
    names |= {step.target for steps in plan.conversions.values() for step in steps}
    return names | {declaration.name for declaration in plan.declarations}
