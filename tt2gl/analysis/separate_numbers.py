"""Names that stand for one integer after the other, told apart.

    start = row * BLOCK              # `start` is one thing up to here
    acc = walked(acc, start, steps)
    start += steps * BLOCK           # and another from here on
    steps = (n - start) // BLOCK     # may be negative; the `steps` that `start` was moved by were not

Assignments that reach a read together keep one name, as those of loops and branches do.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tt2gl.analysis.facts import ConstFact, TensorFact
from tt2gl.analysis.offset_ranges import Body, definitions_of
from tt2gl.pipelining.flow import writes
from tt2gl.trees import nodes_in

_State = Mapping[str, frozenset[ast.stmt | None]]
"""The assignments that reach a place, by name; None is what a parameter is given."""

_UNREAD = (ast.With, ast.Try, ast.FunctionDef, ast.Lambda, ast.NamedExpr, ast.comprehension, ast.Break, ast.Continue)


def tell_numbers_apart(body: Body) -> None:
    """Give each such integer a name of its own in the tree of a function; `authors` says what the author calls it."""
    tree = copy.deepcopy(body.tree)
    if any(isinstance(node, _UNREAD) for statement in tree.body for node in nodes_in(statement)):
        return
    walk = _Walk()
    walk.block(tree.body, {name: frozenset({None}) for name in body.arguments})
    taken = {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)} | set(body.arguments)
    called: dict[tuple[str, ast.stmt | None], str] = {}
    for name in sorted(body.definitions):
        groups = walk.together(name, name in body.arguments)
        if len(groups) < 2 or not _is_integer(body, tree, name):
            continue
        for number, group in enumerate(groups[1:], start=2):
            own = f"{name}_{number}"
            while own in taken:
                own += "_"
            taken.add(own)
            body.authors[own] = body.authors.get(name, name)
            called |= {(name, statement): own for statement in group}
    if called:
        body.tree = _WholeSums(walk.renamed(called)).visit(tree)
        body.definitions = definitions_of(body.tree)


def _is_integer(body: Body, tree: ast.FunctionDef, name: str) -> bool:
    """Whether all that was said of a name is that it has integers."""
    named = [node for node in nodes_in(tree) if isinstance(node, ast.Name) and node.id == name]
    # Of what is assigned to, Triton's frontend says no more than its name.
    facts = {fact for node in named for fact in body.said(node)} - {ConstFact(name)}
    return all(
        isinstance(fact.value, int)
        if isinstance(fact, ConstFact)
        else isinstance(fact, TensorFact) and fact.dtype.startswith(("int", "uint"))
        for fact in facts
    )


@dataclass
class _Walk:
    """Which assignments reach each read of a name, and what each binds, as found on the way through a function."""

    reads: dict[ast.Name, frozenset[ast.stmt | None]] = field(default_factory=dict)
    made: dict[ast.Name, ast.stmt] = field(default_factory=dict)

    def block(self, statements: Sequence[ast.stmt], state: _State) -> _State:
        """What reaches the end of a block."""
        for statement in statements:
            state = self._through(statement, state)
        return state

    def _through(self, statement: ast.stmt, state: _State) -> _State:
        match statement:
            case ast.If(test=test, body=first, orelse=second):
                self._read(test, state)
                return _joined(self.block(first, state), self.block(second, state))
            case ast.For(target=target, iter=head, body=inner):
                self._read(head, state)
                return self._loop(inner, state, self._bound(target, statement), None)
            case ast.While(test=test, body=inner):
                return self._loop(inner, state, {}, test)
        self._read(statement, state)
        return {**state, **self._bound(statement, statement)}

    def _loop(self, inner: Sequence[ast.stmt], state: _State, bound: _State, test: ast.expr | None) -> _State:
        while True:
            if test is not None:
                self._read(test, state)
            around = _joined(state, self.block(inner, {**state, **bound}))
            if around == state:
                return state
            state = around

    def _read(self, node: ast.AST, state: _State) -> None:
        for name in _names(node):
            if isinstance(name.ctx, ast.Load) or isinstance(node, ast.AugAssign) and name is node.target:
                self.reads[name] = state.get(name.id, frozenset())

    def _bound(self, node: ast.AST, statement: ast.stmt) -> _State:
        self.made |= {name: statement for name in _names(node) if isinstance(name.ctx, ast.Store)}
        return {name: frozenset({statement}) for name in writes(node)}

    def together(self, name: str, is_given: bool) -> list[set[ast.stmt | None]]:
        """The assignments to a name by who is read together, that of a parameter first."""
        groups: list[set[ast.stmt | None]] = [{None}] if is_given else []
        groups += [{statement} for node, statement in self.made.items() if node.id == name]
        for reached in [reached for node, reached in self.reads.items() if node.id == name]:
            touched = [group for group in groups if group & reached]
            if len(touched) > 1:
                groups = [group for group in groups if group not in touched]
                groups.append(set().union(*touched))
        return sorted(groups, key=lambda group: min(0 if each is None else each.lineno for each in group))

    def renamed(self, called: Mapping[tuple[str, ast.stmt | None], str]) -> dict[ast.stmt, str]:
        """Have reads and assignments use their own names; what those read that add in place to another name's value."""
        before: dict[ast.stmt, str] = {}
        for node, reached in self.reads.items():
            # What is read together has one name; where a read may come after no assignment, theirs.
            name = min((called[node.id, each] for each in reached if (node.id, each) in called), default=node.id)
            if isinstance(node.ctx, ast.Load):
                node.id = name
            elif name != called.get((node.id, self.made[node]), node.id):
                before[self.made[node]] = name
        for node, statement in self.made.items():
            node.id = called.get((node.id, statement), node.id)
        return before


class _WholeSums(ast.NodeTransformer):
    """Has `x += n` read another name than it assigns to; of what it then says, nothing was said at any place."""

    def __init__(self, before: Mapping[ast.stmt, str]) -> None:
        self._before = before

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        if node not in self._before:
            return node
        nowhere = {"lineno": 0, "col_offset": -1, "end_lineno": 0, "end_col_offset": -1}
        read = ast.Name(self._before[node], ast.Load(), **nowhere)
        made = ast.Assign([node.target], ast.BinOp(read, node.op, node.value, **nowhere))
        return ast.copy_location(made, node)


def _names(node: ast.AST) -> Iterator[ast.Name]:
    return (each for each in nodes_in(node) if isinstance(each, ast.Name))


def _joined(first: _State, second: _State) -> _State:
    return {name: first.get(name, frozenset()) | second.get(name, frozenset()) for name in {**first, **second}}


__all__ = ["tell_numbers_apart"]
