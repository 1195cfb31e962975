"""Rule `hoist`: integers that a loop steps for what comes after it take all steps at once behind it.

    for i in range(0, turns):                                                                 # before
        ...
        cols += BLOCK

    for i in range(0, turns):                                                                 # after
        ...
    cols += (gl.maximum(turns, 0) * BLOCK).to(cols.dtype)

They would take registers through all of the loop, in as many layouts as they are read in behind it. Triton carries one
set of them and converts that; LLVM knows the sum for scalars alone. Integers come to the same in any number of steps,
floats do not: only ranges move, that take steps of other ranges' sizes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.counting import header_of
from tt2gl.pipelining.flow import NONE, Liveness, Names, inside, reads, writes
from tt2gl.pipelining.rings import NotPipelinedError
from tt2gl.pipelining.static import called, parameters
from tt2gl.pipelining.texts import operand
from tt2gl.trees import nodes_in


def with_steps_behind(text: str, functions: Collection[str]) -> str:
    """The text with such steps of these functions behind their loops."""
    return in_functions(text, functions, lambda places, function: _Function(places, function).edits())


@dataclass(frozen=True)
class _Function:
    places: Places
    function: ast.FunctionDef

    def edits(self) -> Iterator[Edit]:
        """The edits of a function, loop by loop."""
        live = Liveness()
        live.before(self.function.body, frozenset())
        for loop in inside(self.function.body):
            if not isinstance(loop, ast.For) or (turns := _turns(loop)) is None:
                continue
            changed = writes(loop.target).union(*map(writes, loop.body))
            for step in loop.body if not reads(ast.parse(turns)) & changed else ():
                if isinstance(step, ast.AugAssign) and self._is_for_later(step, loop, live):
                    yield from self._moved(step, loop, turns)

    def _is_for_later(self, step: ast.AugAssign, loop: ast.For, live: Liveness) -> bool:
        """Whether a loop does nothing with an integer but this step, and the integer is read behind it."""
        if not isinstance(step.target, ast.Name) or not isinstance(step.op, ast.Add | ast.Sub):
            return False
        name, others = step.target.id, [each for each in loop.body if each is not step]
        known = self._is_size(step.value) and not reads(step.value) & writes(loop)
        alone = known and not any(name in reads(each) | writes(each) for each in others)
        whole = all(each.lineno != step.lineno for each in others) and len(loop.body) > 1
        return alone and whole and name in live.after[loop] and self._is_integer(name, frozenset())

    def _is_integer(self, name: str, above: frozenset[str]) -> bool:
        """Whether all that a name is ever given is a range, or another such name, but for steps of sizes."""
        made = [each for each in inside(self.function.body) if name in _bound(each)]
        values = [each.value for each in made if isinstance(each, ast.Assign) and len(each.targets) == 1]
        steps = [each for each in made if isinstance(each, ast.AugAssign) and self._is_size(each.value)]
        if name in above | parameters(self.function) or not values or len(values) + len(steps) < len(made):
            return False
        return all(self._is_range(value, above | {name}) for value in values)

    def _is_range(self, value: ast.expr, above: frozenset[str]) -> bool:
        match value:
            case ast.Call() if called(value) == "arange":
                return True
            case ast.Name(id=name):
                return self._is_integer(name, above)
        return False

    def _is_size(self, value: ast.expr) -> bool:
        """Whether a value is a whole number: written as one, or what ranges end at."""
        if isinstance(value, ast.Constant):
            return type(value.value) is int
        calls = (node for node in nodes_in(self.function) if isinstance(node, ast.Call) and called(node) == "arange")
        return isinstance(value, ast.Name) and any(value.id in map(ast.unparse, call.args) for call in calls)

    def _moved(self, step: ast.AugAssign, loop: ast.For, turns: str) -> Iterator[Edit]:
        """A step behind its loop, as often as that has turns."""
        yield Edit(*self.places.lines(step), "")
        _, below = self.places.lines(loop)
        sign = "+" if isinstance(step.op, ast.Add) else "-"
        name = ast.unparse(step.target)
        said = f"{name} {sign}= ({turns} * {ast.unparse(step.value)}).to({name}.dtype)"
        yield Edit(below, below, f"{' ' * loop.col_offset}{said}\n")


def _bound(statement: ast.stmt) -> Names:
    """The names that a statement itself binds."""
    if isinstance(statement, ast.For):
        return writes(statement.target)
    return NONE if isinstance(statement, ast.While | ast.If) else writes(statement)


def _turns(loop: ast.For) -> str | None:
    """How many turns a loop has, as source; None where its step may be negative, or it is unrolled."""
    try:
        header = header_of(loop)
    except NotPipelinedError:
        return None
    lower, upper, step = map(ast.unparse, (header.lower, header.upper, header.step))
    if not step.isdigit() and not (lower == "0" and step.isidentifier()):
        return None
    span = operand(upper) if lower == "0" else f"{operand(upper)} - {operand(lower)}"
    return f"gl.maximum({span}, 0)" if step == "1" else f"gl.cdiv(gl.maximum({span}, 0), {step})"
