"""Calls of jit helpers: the helper's body is walked at each call, with its arguments."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tt2gl.analysis.arguments import Arguments
from tt2gl.analysis.facts import ConstFact
from tt2gl.analysis.frames import Frame, Value
from tt2gl.analysis.graph import CallSite, Definition, Node, Site, Web
from tt2gl.analysis.statics import Static, position_of

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
        for place, parameter in enumerate(parameters):
            argument = arguments.get(parameter.arg, place)
            if argument is None:
                default = defaults.get(parameter.arg)
                value = ConstFact(default.value) if isinstance(default, ast.Constant) else None
                inner.env[parameter.arg] = Static(ast.unparse(default) if default is not None else None, value)
            else:
                self.bind(parameter.arg, argument, self.builder.evaluate(argument, frame), inner, frame)
        given = [(value.text or value.pointer, name) for name, value in inner.env.items() if isinstance(value, Static)]
        words = {said: name for said, name in given if said}
        self.builder.graph.words[key, chain] = words
        self.builder.graph.calls.append(CallSite(frame.key, key, position_of(node), frame.chain))
        self.builder.body(function.body, inner)
        if not inner.returns:
            return Static(None)
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
