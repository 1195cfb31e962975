"""Calls of jit helpers: the helper's body is walked at each call, with its arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import takewhile
from typing import TYPE_CHECKING

from tt2gl.analysis.arguments import Arguments
from tt2gl.analysis.facts import ConstFact
from tt2gl.analysis.frames import Frame, Value
from tt2gl.analysis.graph import CallSite, Definition, Node, Site, Web
from tt2gl.analysis.statics import Static, position_of
from tt2gl.trees import nodes_in

if TYPE_CHECKING:
    from tt2gl.analysis.builder import Builder


class HelperReader:
    """Walks helpers."""

    def __init__(self, builder: Builder) -> None:
        self.builder = builder

    def read(self, node: ast.Call, arguments: Arguments, frame: Frame) -> Value:
        """A jit helper: its body walked with this call's arguments."""
        instance = frame.facts.callees.get(position_of(node))
        if instance is None or instance not in self.builder.facts.functions:
            return Static(None, frame.facts.expressions.get(position_of(node)))
        facts = self.builder.facts.functions[instance]
        key = (facts.path, facts.line)
        function = self.builder.functions[key]
        chain = ((frame.key[0], node.lineno, node.col_offset), *frame.chain)
        same_file = key[0] == self.builder.facts.functions[self.builder.facts.entry].path
        inner = Frame(key, facts, self.builder.globals[key[0]] if same_file else frozenset(), chain, depth=frame.depth)
        parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
        defaults = dict(zip([p.arg for p in parameters][::-1], function.args.defaults[::-1], strict=False))
        taken = [(each.arg, arguments.get(each.arg, place)) for place, each in enumerate(parameters)]
        values = {name: self.builder.evaluate(argument, frame) for name, argument in taken if argument is not None}
        mark = self.builder.graph.mark()
        for name, argument in taken:
            if argument is None:
                default = defaults.get(name)
                value = ConstFact(default.value) if isinstance(default, ast.Constant) else None
                inner.env[name] = Static(ast.unparse(default) if default is not None else None, value)
            else:
                self.bind(name, argument, values[name], inner, frame)
        namesakes: dict[str, list[str]] = {}
        for name, bound in inner.env.items():
            if isinstance(bound, Static) and (said := bound.text or bound.pointer):
                namesakes.setdefault(said, []).append(name)
        words = {said: names[-1] for said, names in namesakes.items()}
        self.builder.graph.words[key, chain], self.builder.graph.namesakes[key, chain] = words, namesakes
        self.builder.graph.calls.append(CallSite(frame.key, key, position_of(node), frame.chain))
        self.builder.body(function.body, inner)
        for name in named_constants(function):
            if isinstance(constant := inner.env.get(name), Static) and constant.text:
                words.setdefault(constant.text, name)
        if not inner.returns:
            return Static(None)
        tensors = [value for value in values.values() if isinstance(value, Node)]
        if is_one_operation(function, self.builder.graph.since(mark), inner.returns):
            self.builder.graph.forget(mark)
            return self.builder.elementwise(node, tensors, frame)
        if len(inner.returns) > 1 and all(isinstance(value, Node) for value in inner.returns):
            return self.builder.passed(node, self.joined(inner), frame)
        return self.builder.passed(node, inner.returns[-1], frame)

    def bind(self, name: str, argument: ast.expr, value: Value, inner: Frame, outer: Frame) -> None:
        """A parameter takes an argument: a tensor as a definition of its own."""
        if isinstance(value, Node):
            site = Site(outer.key, position_of(argument), outer.statement, outer.chain)
            taken = Node("argument", site, value.shape, value.dims, value.bits, depth=outer.depth)
            taken.value, taken.cheap = value, value.cheap
            self.builder.graph.nodes.append(taken)
            argument_of = Definition(name, site, taken, outer.depth, clonable=False, entry=inner.chain)
            inner.env[name] = self.builder.define(argument_of, inner)
        else:
            inner.env[name] = value

    def joined(self, inner: Frame) -> Node:
        """One value of a helper that returns in several places."""
        web = Web("return", inner.key)
        for value in inner.returns:
            assert isinstance(value, Node)
            web.definitions.append(Definition("return", value.site, value, value.depth, clonable=False, web=web))
        self.builder.graph.webs.append(web)
        first = web.definitions[0].node
        reading = Node("read", first.site, first.shape, first.dims, first.bits, depth=inner.depth, web=web)
        self.builder.graph.nodes.append(reading)
        return reading


def named_constants(function: ast.FunctionDef) -> list[str]:
    """The constants that a helper computes of others before its first loop or branch, and gives names for good."""
    plain = list(takewhile(lambda each: not isinstance(each, ast.For | ast.While | ast.If), function.body))
    made = [
        each.target.id
        for each in plain
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value is not None
        if "constexpr" in ast.unparse(each.annotation)
        if not isinstance(each.value, ast.Name) and any(isinstance(node, ast.Name) for node in nodes_in(each.value))
    ]
    stored = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    return [name for name in made if stored.count(name) == 1]


def is_one_operation(function: ast.FunctionDef, inside: Sequence[Node], returns: Sequence[Value]) -> bool:
    """Whether a helper is to its callers what `tl.exp` is: of one tensor it makes another, element by element.

    Its text needs no layouts then, whoever calls it. It has no branches, which other calls might take.
    """
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    open_to_tensors = [
        each for each in parameters if "constexpr" not in ast.unparse(each.annotation or ast.Constant(0))
    ]
    plain = all(isinstance(each, ast.Assign | ast.Expr | ast.Return) for each in function.body)
    plain &= not any(isinstance(each, ast.IfExp) for statement in function.body for each in nodes_in(statement))
    shapes = {each.shape for each in inside}
    alone = len(open_to_tensors) == len(shapes) == len(returns) == 1 and isinstance(returns[0], Node)
    return plain and alone and all(each.kind in ("argument", "read", "elementwise") for each in inside)
