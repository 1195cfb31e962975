"""Loads and products that are made again where a name has what they make: Triton's CSE pass makes them once.

k = tl.load(k_ptrs)
...
k2 = tl.load(k2_ptrs)           # the same addresses, as `K == V`
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tt2gl.analysis.facts import ConstFact, FunctionFact, LaunchFacts
from tt2gl.analysis.statics import position_of
from tt2gl.analysis.symbolic_values import (
    MERGED,
    PURE,
    Condition,
    Conditions,
    Reader,
    Scope,
    Value,
    asking,
    bind,
    same,
)
from tt2gl.pipelining.flow import reads, writes
from tt2gl.plan import EqualValue
from tt2gl.trees import functions_in, nodes_in

_Place = tuple[int, int]
_Tests = frozenset[str]


def equal_values(
    facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path, guessed: Collection[str] = ()
) -> set[EqualValue]:
    """The assignments of a kernel that make what a name has already, by what is known under some launch.

    Loads are of one block, with nothing between that may write. What makes them equal is asked of the constants; of
    kernels that are named among the `guessed`, whose constants are, only what always is equal is taken.
    """
    own = str(path.absolute())
    functions = {(file, each.lineno): each for file, tree in trees.items() for each in functions_in(tree)}
    found: dict[_Place, tuple[str, set[_Tests]]] = {}
    for seen in facts:
        entry = seen.functions[seen.entry]
        function = functions.get((entry.path, entry.line))
        if function is not None and entry.path == own:
            for (place, name), tests in _Walk(seen, functions, function).found.items():
                if not (tests and entry.name in guessed) and found.setdefault(place, (name, set()))[0] == name:
                    found[place][1].add(tests)
    return {EqualValue(place, name, _joined(tests)) for place, (name, tests) in found.items()}


def _joined(alternatives: Collection[_Tests]) -> str:
    """What has to hold, of tests of which each alone would do, all of its parts; empty where it always does."""
    left = set(alternatives)
    while pair := _told_by_one(left):
        one, part = pair
        left = left - {one, one - {part} | {_not(part)}} | {one - {part}}
    if frozenset() in left:
        return ""
    texts = sorted(" and ".join(sorted(each)) for each in left)
    return texts[0] if len(texts) == 1 else " or ".join(f"({each})" for each in texts)


def _told_by_one(tests: Collection[_Tests]) -> tuple[_Tests, str] | None:
    """The first of several tests that another one is but for a part that is the contrary, and that part."""
    for one in sorted(tests, key=sorted):
        for part in sorted(one):
            if one - {part} | {_not(part)} in tests:
                return one, part
    return None


def _not(test: str) -> str:
    return test.removeprefix("not ") if test.startswith("not ") else f"not {test}"


class _Walk:
    """A kernel's statements, one after the other, under one launch; `found`: what they make again."""

    def __init__(
        self, facts: LaunchFacts, functions: Mapping[tuple[str, int], ast.FunctionDef], function: ast.FunctionDef
    ) -> None:
        self.reader = Reader(facts, functions)
        self.known: dict[tuple[Value, Value], Conditions | None] = {}
        self.found: dict[tuple[_Place, str], _Tests] = {}
        # A load that nobody asks for is gone before Triton looks for another like it.
        self.asked_for = reads(function)
        entry, stored = facts.functions[facts.entry], _stored(function.body)
        said = {
            node.id: fact
            for node in nodes_in(function)
            if isinstance(node, ast.Name) and isinstance(fact := entry.expressions.get(position_of(node)), ConstFact)
        }
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        fixed = {each.arg for each in parameters if _is_constexpr(each.annotation)} - stored
        values = {
            each.arg: Value(text=Condition(each.arg), constant=said.get(each.arg)) if each.arg in fixed else Value()
            for each in parameters
        }
        self.block(function.body, Scope(entry, values, True, frozenset(fixed)))

    def block(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Walk the statements of a block."""
        for statement in statements:
            if any(isinstance(node, ast.NamedExpr) for node in nodes_in(statement)):
                self._forgotten([statement], scope)
            else:
                self._statement(statement, scope)

    def _statement(self, statement: ast.stmt, scope: Scope) -> None:
        match statement:
            case ast.Assign(targets=[target], value=value):
                made = self.reader.value(value, scope)
                if isinstance(target, ast.Name):
                    self._compared(statement, target.id, made, scope)
                bind(target, made, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                bind(target, self.reader.value(value, scope), scope)
            case ast.AugAssign(target=ast.Name(id=name), op=op, value=value):
                before, more = scope.values.get(name, Value()), self.reader.value(value, scope)
                scope.values[name] = Value(type(op).__name__, (before, more), heavy=before.heavy or more.heavy)
            case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                self.reader.value(value, scope)
            case ast.If():
                self._branch(statement, scope)
            case ast.For(body=body) | ast.While(body=body):
                self._forgotten([statement], scope)
                self.block(body, scope)
                self._forgotten([statement], scope)
            case ast.Pass() | ast.Break() | ast.Continue():
                pass
            case _:
                self._forgotten([statement], scope)

    def _branch(self, branch: ast.If, scope: Scope) -> None:
        """Walk a branch: one side of it alone, where constants decide and say so in the kernel's words."""
        fact, test = scope.fact(branch.test), scope.condition(branch.test)
        both = [*branch.body, *branch.orelse]
        if isinstance(fact, ConstFact) and test is not None and position_of(branch.test) not in scope.facts.turned:
            taken, other = (branch.body, branch.orelse) if fact.value else (branch.orelse, branch.body)
            asked = Condition(test.text if fact.value else f"not {test.text}", test.names)
            self.block(taken, scope)
            if not all(_is_pure(each) for each in other):
                self.reader.written()
            for name in sorted(_stored(both)):
                scope.values[name] = asking(scope.values.get(name, Value()), {asked})
            return
        self.reader.value(branch.test, scope)
        for side in (branch.body, branch.orelse):
            self.reader.written()
            before = dict(scope.values)
            self.block(side, scope)
            scope.values = before
        self._forgotten(both, scope)

    def _forgotten(self, statements: Sequence[ast.stmt], scope: Scope) -> None:
        """Know nothing of what statements assign, nor of memory."""
        self.reader.written()
        for name in sorted(_stored(statements)):
            scope.values[name] = Value()

    def _compared(self, statement: ast.Assign, name: str, made: Value, scope: Scope) -> None:
        """Note a statement that makes what another name stands for."""
        if not made.heavy or not any(_is_merged(node, scope) for node in nodes_in(statement.value)):
            return
        for other, value in scope.values.items():
            known = value.heavy and other != name and other in self.asked_for
            asked = same(value, made, self.known) if known else None
            if asked is not None and all(scope.values.get(n) is v for each in asked for n, v in each.names):
                self.found[(statement.lineno, statement.col_offset), other] = frozenset(each.text for each in asked)
                return


def _is_merged(node: ast.AST, scope: Scope) -> bool:
    """Whether a node is a call that loads or multiplies."""
    callee = scope.fact(node.func) if isinstance(node, ast.Call) else None
    return isinstance(callee, FunctionFact) and callee.path is None and callee.name.rpartition(".")[2] in MERGED


def _is_pure(statement: ast.stmt) -> bool:
    """Whether a statement that no launch reaches calls nothing but what computes, by its name."""
    calls = [node.func for node in nodes_in(statement) if isinstance(node, ast.Call)]
    return all(isinstance(each, ast.Attribute) and each.attr in PURE for each in calls)


def _is_constexpr(annotation: ast.expr | None) -> bool:
    return annotation is not None and ast.unparse(annotation).endswith("constexpr")


def _stored(statements: Sequence[ast.stmt]) -> frozenset[str]:
    return frozenset().union(*map(writes, statements))
