"""What the author's text says of the loops that loads go through rings in, as launches see it."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from tt2gl.analysis.facts import (
    ConstFact,
    Fact,
    FunctionFact,
    FunctionFacts,
    LaunchFacts,
    OtherFact,
    Position,
    TensorFact,
    TupleFact,
)
from tt2gl.analysis.graph import FunctionKey, Node
from tt2gl.analysis.operations import short_name
from tt2gl.analysis.statics import position_of
from tt2gl.pipelining import ahead
from tt2gl.pipelining.flow import targets
from tt2gl.pipelining.loads import other_of
from tt2gl.trees import nodes_in


class AuthorText:
    """The functions of `trees`, by path, with what all launches found in them."""

    def __init__(self, trees: Mapping[str, ast.Module], facts: Sequence[LaunchFacts]) -> None:
        self.facts = facts
        self.functions: Mapping[FunctionKey, ast.FunctionDef] = {
            (path, node.lineno): node
            for path, tree in trees.items()
            for node in nodes_in(tree)
            if isinstance(node, ast.FunctionDef)
        }
        self.helpers = {function.name: function for function in self.functions.values()}

    @property
    def seen(self) -> set[FunctionKey]:
        """The functions that launches reach."""
        return self.functions.keys() & {(known.path, known.line) for each in self.facts for known in _all(each)}

    def _known(self, key: FunctionKey) -> list[FunctionFacts]:
        return [known for seen in self.facts for known in _all(seen) if (known.path, known.line) == key]

    @cached_property
    def aliases(self) -> Mapping[str, str]:
        """The names by which functions call Triton's own, as `exp2` of `exp2 = tl.exp2`, each with theirs."""
        return {name: own for name, own in self._aliases() if name not in self.helpers}

    def _aliases(self) -> Iterator[tuple[str, str]]:
        for known in (known for seen in self.facts for known in _all(seen)):
            function = self.functions.get((known.path, known.line))
            for call in nodes_in(function) if function is not None else ():
                if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
                    said = known.expressions.get(position_of(call.func))
                    if isinstance(said, FunctionFact) and said.path is None:
                        yield call.func.id, short_name(said.name)

    def pointers(self, key: FunctionKey) -> frozenset[str]:
        """The names of a function that hold pointers under some launch, descriptors and tuples of them too."""
        own = self._known(key)
        found: set[str] = set()
        for node in nodes_in(self.functions[key]):
            if isinstance(node, ast.Name):
                said = (known.expressions.get(position_of(node)) for known in own)
                if any(map(_points, said)):
                    found.add(node.id)
        return frozenset(found)

    def loads_of_others(self) -> set[tuple[FunctionKey, Position]]:
        """The loads that give something else than zeros where their masks do not hold."""
        return {
            (key, position_of(call))
            for key, function in self.functions.items()
            for call in nodes_in(function)
            if isinstance(call, ast.Call) and other_of(call) is not None
        }

    def rereads(
        self,
        key: FunctionKey,
        loop: ast.For | None,
        loads: Sequence[Node],
        pointers: Mapping[FunctionKey, frozenset[str]],
    ) -> bool:
        """Whether a loop writes what loads inside it read; `pointers`: the names that hold such, by function."""
        assert loop is not None
        places = [node.site.position for node in loads]
        return ahead.rereads(self.functions[key], loop, places, self.helpers, pointers[key], self.aliases)

    def rereading(
        self, key: FunctionKey, loads: Sequence[Node], pointers: Mapping[FunctionKey, frozenset[str]]
    ) -> list[ast.For]:
        """The loops that a function's own of those loads are in, and those around, that write what they read."""
        found: list[ast.For] = []
        for loop in nodes_in(self.functions[key]):
            if isinstance(loop, ast.For):
                body = {*nodes_in(loop)}
                inside = [node for node in loads if node.site.function == key and node.loop in body]
                if inside and self.rereads(key, loop, inside, pointers):
                    found.append(loop)
        return found

    def wide(self, key: FunctionKey, loop: ast.For | None) -> Iterator[str]:
        """A loop's variable where it has 64 bits, also under the name it gets where its body assigns to it."""
        if loop is None or not isinstance(loop.target, ast.Name):
            return
        own = self._known(key)
        for node in nodes_in(loop):
            if isinstance(node, ast.Name) and node.id == loop.target.id and isinstance(node.ctx, ast.Load):
                said = (known.expressions.get(position_of(node)) for known in own)
                if any(isinstance(fact, TensorFact) and fact.dtype == "int64" for fact in said):
                    yield from (node.id, f"{node.id}_turn")
                    return

    def flattened(self, key: FunctionKey, rereading: Sequence[ast.For]) -> frozenset[str]:
        """The variables of a function's loops that the author flattens, but those of the loops `rereading`."""
        own = self._known(key)
        found: set[str] = set()
        for loop in nodes_in(self.functions[key]):
            if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name) and isinstance(loop.iter, ast.Call):
                for said in (each.value for each in loop.iter.keywords if each.arg == "flatten"):
                    if all(_is_true(said, known) for known in own):
                        found.add(loop.target.id)
        return frozenset(found).difference(*(targets(loop.target) for loop in rereading))


def _all(facts: LaunchFacts) -> Iterator[FunctionFacts]:
    yield from facts.functions.values()


def _is_true(said: ast.expr, known: FunctionFacts) -> bool:
    fact = known.expressions.get(position_of(said))
    return bool(said.value if isinstance(said, ast.Constant) else isinstance(fact, ConstFact) and fact.value)


def _points(fact: Fact | None) -> bool:
    match fact:
        case TensorFact():
            return fact.is_pointer
        case TupleFact(items=items):
            return any(map(_points, items))
        case OtherFact(kind=kind):
            return "descriptor" in kind
    return False
