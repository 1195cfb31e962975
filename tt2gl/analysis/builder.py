"""Builds the value graph: walks a kernel as Triton's frontend does, with the facts it gave deciding what is static.

Does not handle block pointers: they raise `Unsupported` with the code of their page.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tt2gl.analysis.accesses import AccessReader
from tt2gl.analysis.calls import CallReader
from tt2gl.analysis.coverage import creations
from tt2gl.analysis.descriptors import DescriptorReader, asks_for_descriptor
from tt2gl.analysis.dots import DotReader
from tt2gl.analysis.facts import CallChain, ConstFact, DotFact, Fact, LaunchFacts, TensorFact
from tt2gl.analysis.frames import Frame, Value, dims_of, joined, unsupported
from tt2gl.analysis.graph import Definition, FunctionKey, Graph, Kind, Node, Site, Web
from tt2gl.analysis.helpers import HelperReader
from tt2gl.analysis.operations import gluon_dtype
from tt2gl.analysis.statics import Static, independent, position_of, static_text
from tt2gl.analysis.unrolled import becomes_tensor, counted_by, first_answer, in_turn, is_entered, is_unrolled
from tt2gl.trees import functions_in, nodes_in, variables_in


class Builder:
    """Walks the kernel once; helpers are inlined at each call.

    `products`: those of all launches by their place, as one has them that takes up a sum by them, if one does.
    """

    def __init__(
        self, facts: LaunchFacts, trees: Mapping[str, ast.Module], products: Mapping[CallChain, DotFact] | None = None
    ) -> None:
        self.facts, self.graph, self.products = facts, Graph(), products or {}
        self.functions: dict[FunctionKey, ast.FunctionDef] = {}
        self.globals: dict[str, frozenset[str]] = {}
        for path, tree in trees.items():
            self.functions |= {(path, node.lineno): node for node in functions_in(tree)}
            self.globals[path] = variables_in(tree)
        self.calls = CallReader(self)
        self.accesses = AccessReader(self)
        self.helpers = HelperReader(self)
        self.dots = DotReader(self)
        self.descriptors = DescriptorReader(self)

    def build(self) -> Graph:
        """The graph of the whole kernel. Raises `Unsupported`."""
        entry = self.facts.functions[self.facts.entry]
        function = self.functions[entry.path, entry.line]
        frame = Frame((entry.path, entry.line), entry, self.globals[entry.path])
        self.graph.parameters = frozenset(parameter.arg for parameter in _parameters(function))
        for parameter in _parameters(function):
            frame.env[parameter.arg] = Static(parameter.arg, pointer=parameter.arg)
        self.body(function.body, frame)
        return self.graph

    # statements

    def body(self, statements: Sequence[ast.stmt], frame: Frame) -> bool:
        """Walk statements; whether control never falls out of their end."""
        for index, statement in enumerate(statements, 1):
            frame.statement = position_of(statement)
            self.mention(statement, frame)
            if self.statement(statement, frame):
                if any(True for _ in creations(statements[index:])):
                    self.graph.touched.add(frame.key)  # Gluon's frontend goes on there
                return True
        return False

    def mention(self, statement: ast.stmt, frame: Frame) -> None:
        """Note the tensors whose attributes a statement's own expressions ask for."""
        for expression in (part for part in ast.iter_child_nodes(statement) if isinstance(part, ast.expr)):
            for node in nodes_in(expression):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                    bound = frame.env.get(node.value.id)
                    if isinstance(bound, Web):
                        site = Site(frame.key, position_of(node.value), frame.statement, frame.chain)
                        self.graph.mentions.append((site, bound))

    def statement(self, node: ast.stmt, frame: Frame) -> bool:
        """Walk one statement; whether control ends there."""
        match node:
            case ast.Assign(targets=[ast.Tuple(elts=parts)], value=ast.Tuple(elts=values)) if independent(
                parts, values
            ):
                for part, value in zip(parts, values, strict=True):
                    # Each may stand several times without the others: a statement of its own, by its target's place.
                    frame.statement = position_of(part)
                    self.assign(part, self.evaluate(value, frame), frame, clonable=True)
            case ast.Assign(targets=targets, value=value):
                result = self.evaluate(value, frame)
                for target in targets:
                    self.assign(target, result, frame, clonable=len(targets) == 1)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.evaluate(value, frame), frame, clonable=True)
            case ast.AugAssign(target=ast.Name() as target, op=ast.Add(), value=ast.Call() as value) if self.dots.fuses(
                value, target, frame
            ):
                self.assign(target, self.dots.read(value, frame, node, target), frame, True)
            case ast.AugAssign(target=ast.Name() as target, value=value):
                reading = self.read(target, frame)
                self.assign(target, self.combined(node, reading, self.evaluate(value, frame), frame), frame, True)
            case ast.Expr(value=value):
                self.effect(self.evaluate(value, frame))
            case ast.Return():
                if node.value is not None:
                    frame.returns.append(self.evaluate(node.value, frame))
                return True
            case ast.If():
                return self.branch(node, frame)
            case ast.For() if is_entered(node, frame):
                self.effect(*[self.evaluate(argument, frame) for argument in getattr(node.iter, "args", [])])
                if isinstance(node.target, ast.Name):
                    frame.env[node.target.id] = Static()
                self.loop(node, frame)
            case ast.While():
                self.loop(node, frame, node.test)
            case ast.With():
                return self.body(node.body, frame)
            case ast.Assert(test=test):
                self.effect(self.evaluate(test, frame))
        return False

    def assign(self, target: ast.expr, value: Value, frame: Frame, clonable: bool) -> None:
        """Bind a target; a tensor makes a definition."""
        match target, value:
            case ((ast.Tuple(elts=parts) | ast.List(elts=parts)), tuple()) if len(parts) == len(value):
                for part, item in zip(parts, value, strict=True):
                    self.assign(part, item, frame, clonable=False)
            case ast.Name(id=name), Node():
                site = Site(frame.key, position_of(target), frame.statement, frame.chain)
                frame.env[name] = self.define(Definition(name, site, value, frame.depth, clonable), frame)
            case ast.Name(id=name), Static() | tuple():
                frame.env[name] = value
                if isinstance(value, Static) and clonable and (isinstance(value.fact, ConstFact) or value.is_name):
                    self.graph.constants.add((name, Site(frame.key, position_of(target), frame.statement, frame.chain)))
            case _:
                self.effect(value)

    def define(self, definition: Definition, frame: Frame) -> Web:
        """A web of its own for a new definition, noted in program order."""
        web = definition.web = Web(definition.name, frame.key, [definition])
        self.graph.webs.append(web)
        self.graph.steps.append(definition)
        return web

    def effect(self, *values: Value) -> None:
        """Keep values that no name holds: they are computed all the same."""
        for value in values:
            if isinstance(value, Node):
                self.graph.steps.append(value)
            elif isinstance(value, tuple):
                self.effect(*value)

    def branch(self, node: ast.If, frame: Frame) -> bool:
        """Walk what the condition lets through; join the names of both arms, and before, where it lets through either.

        Those are runtime scalars, and what the copies of an unrolled loop answer differently: there the arm that the
        first takes comes first, as the other may read what it has made.
        """
        test, first = frame.facts.expressions.get(position_of(node.test)), first_answer(node.test, frame)
        if isinstance(test, ConstFact) and first is None:
            self.inside_constant(node.test, frame)
            return self.body(node.body if test.value else node.orelse, frame)
        self.effect(self.evaluate(node.test, frame))
        before, loop, frame.loop = dict(frame.env), frame.loop, None
        arms = (node.body, node.orelse) if first is not False else (node.orelse, node.body)
        ended = self.body(arms[0], frame)
        after, frame.env = frame.env, {**(frame.env if first is not None else {}), **before}
        ended_else = self.body(arms[1], frame)
        frame.loop = loop
        other = frame.env
        if not ended:
            frame.env = after if ended_else else joined(after, other)
        for arm in (after, other) if first is None else ():
            joined(arm, before)  # for Triton neither arm may give a name another type
        return ended and ended_else

    def loop(self, node: ast.For | ast.While, frame: Frame, test: ast.expr | None = None) -> None:
        """Walk a body once; names it carries join their values before it."""
        stored = {n.id for part in node.body for n in nodes_in(part) if isinstance(n, ast.Name) and _is_store(n)}
        for name in [each for each in frame.env if each in stored]:
            if not isinstance(frame.env[name], Web) and becomes_tensor(name, node, frame):
                frame.env[name] = Web(name, frame.key)
        before, outer = dict(frame.env), frame.loop
        self.graph.bound[node] = frozenset(before) & self.graph.bound.get(node, before.keys())
        frame.depth += 1
        frame.loop = node if isinstance(node, ast.For) and not is_unrolled(node, frame) else None
        if test is not None:
            self.effect(self.evaluate(test, frame))
        turns, frame.turns = frame.turns, counted_by(node, frame)
        self.body(node.body, frame)
        frame.depth -= 1
        frame.loop, frame.turns = outer, turns
        frame.env = joined(before, frame.env)
        if not is_unrolled(node, frame):
            # What only the body of a loop defines is gone after it, in Triton as in Gluon.
            frame.env = {name: bound for name, bound in frame.env.items() if name in before}

    # expressions

    def evaluate(self, node: ast.expr, frame: Frame) -> Value:
        """The value of an expression; nodes are made only for tensors of rank one and up."""
        fact = frame.facts.expressions.get(position_of(node))
        if isinstance(fact, ConstFact):
            self.inside_constant(node, frame)
            return Static(static_text(node, frame.texts, frame.globals, fact), fact)
        match node:
            case ast.Name():
                return self.read(node, frame)
            case ast.Call():
                return self.calls.read(node, frame, fact)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return tuple(self.evaluate(part, frame) for part in parts)
            case ast.Subscript():
                return self.subscript(node, frame, fact)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                decided = frame.facts.expressions.get(position_of(test))
                if isinstance(decided, ConstFact) and first_answer(test, frame) is None:
                    return self.evaluate(body if decided.value else orelse, frame)
                self.effect(self.evaluate(test, frame))
                return self.elementwise(node, [self.evaluate(body, frame), self.evaluate(orelse, frame)], frame)
            case ast.BinOp(left=left, op=ast.Add(), right=ast.Call() as right) if self.dots.fuses(right, left, frame):
                return self.dots.read(right, frame, node, left)
            case ast.BinOp(left=ast.Call() as left, op=ast.Add(), right=right) if self.dots.fuses(left, right, frame):
                return self.dots.read(left, frame, node, right)
            case ast.BinOp(left=left, right=right):
                return self.combined(node, self.evaluate(left, frame), self.evaluate(right, frame), frame)
            case ast.Compare(left=left, comparators=rest):
                return self.elementwise(node, [self.evaluate(part, frame) for part in (left, *rest)], frame)
            case ast.BoolOp(values=parts):
                return self.elementwise(node, [self.evaluate(part, frame) for part in parts], frame)
            case ast.UnaryOp(operand=operand):
                return self.elementwise(node, [self.evaluate(operand, frame)], frame)
            case ast.Attribute():
                return self.calls.attribute(node, frame, fact)
        return Static(None, fact)

    @staticmethod
    def shape_of(node: ast.expr | None, frame: Frame) -> Fact | None:
        """What the frontend said of an expression."""
        return frame.facts.expressions.get(position_of(node)) if node is not None else None

    def inside_constant(self, node: ast.expr, frame: Frame) -> None:
        """Walk what a compile-time value is made from: a helper that returns nothing may store and make tensors."""
        if asks_for_descriptor(node):
            # Gluon's descriptors are of another type.
            self.graph.touched.add(frame.key)
        if isinstance(node, ast.Call) and position_of(node) in frame.facts.callees:
            self.effect(self.calls.read(node, frame, frame.facts.expressions.get(position_of(node))))
            return
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                continue
            fact = frame.facts.expressions.get(position_of(child))
            calls = any(isinstance(part, ast.Call) for part in nodes_in(child))
            if calls and isinstance(fact, TensorFact) and fact.shape:
                self.effect(self.evaluate(child, frame))
            elif calls:
                self.inside_constant(child, frame)

    def read(self, node: ast.Name, frame: Frame) -> Value:
        """A name: a tensor through its web, anything else as bound."""
        bound = frame.env.get(node.id)
        fact = frame.facts.expressions.get(position_of(node))
        if isinstance(bound, Web):
            known = bound.find().definitions
            if not isinstance(fact, TensorFact):
                fact = TensorFact(known[0].node.shape, f"int{known[0].node.bits}")
            made = next((each.node for each in known if each.node.shape == fact.shape), known[0].node)
            if isinstance(node.ctx, ast.Store):
                # What the frontend says of `x` in `x += y` is its type afterwards.
                fact = TensorFact(made.shape, f"int{made.bits}")
            reading = self.node("read", node, replace(fact, shape=made.shape), [], frame)
            reading.web, reading.dims = bound, made.dims
            reading.cheap = True
            return reading
        if isinstance(bound, tuple):
            return self.passed(node, bound, frame)
        return bound if bound is not None else Static(None, fact)

    def passed(self, node: ast.expr, value: Value, frame: Frame) -> Value:
        """A value made elsewhere, seen at this expression: a helper's result, an element of a named tuple."""
        if isinstance(value, tuple):
            items = tuple(self.passed(node, item, frame) for item in value)
            for item in items:
                if isinstance(item, Node):
                    item.several = True
            return items
        if isinstance(value, Static):
            return value
        site = Site(frame.key, position_of(node), frame.statement, frame.chain)
        seen = Node("call", site, value.shape, value.dims, value.bits)
        seen.value, seen.depth, seen.cheap = value, frame.depth, value.cheap
        self.graph.nodes.append(seen)
        return seen

    def combined(self, node: ast.BinOp | ast.AugAssign, one: Value, other: Value, frame: Frame) -> Value:
        """An operation on two values: two tuples make a longer one, tensors are combined element by element."""
        if isinstance(one, tuple) and isinstance(other, tuple):
            return *one, *other
        return self.elementwise(node, [one, other], frame)

    def elementwise(self, node: ast.expr | ast.AugAssign, operands: Sequence[Value], frame: Frame) -> Value:
        """An operation element by element; a scalar result keeps its operands' effects."""
        fact = frame.facts.expressions.get(position_of(node))
        tensors = [value for value in operands if isinstance(value, Node)]
        if isinstance(fact, TensorFact) and not fact.shape or not tensors:
            self.effect(*tensors)
            base = node.target if isinstance(node, ast.AugAssign) else node
            is_address = isinstance(fact, TensorFact) and fact.is_pointer
            return Static(None, fact, self.accesses.pointer(base, frame) if is_address else None)
        if fact is None or not isinstance(fact, TensorFact):
            shape = max((t.shape for t in tensors), key=lambda s: (len(s), s))
            for tensor in tensors:
                if len(tensor.shape) == len(shape):
                    shape = tuple(map(max, shape, tensor.shape))
            fact = TensorFact(shape, f"int{max(t.bits for t in tensors)}")
        made = self.node("elementwise", node, fact, tensors, frame)
        if fact.is_pointer:
            base = node.target if isinstance(node, ast.AugAssign) else node
            made.pointer, made.address = self.accesses.pointer(base, frame), True
        return made

    def subscript(self, node: ast.Subscript, frame: Frame, fact: Fact | None) -> Value:
        """`x[:, None]` expands, `pair[0]` takes an element."""
        value = self.evaluate(node.value, frame)
        if isinstance(value, tuple):
            index = frame.facts.expressions.get(position_of(node.slice))
            if in_turn(node.slice, value, frame):
                # One text reads them all, so they share a layout.
                return self.elementwise(node, [self.passed(node, item, frame) for item in value], frame)
            if isinstance(index, ConstFact) and isinstance(index.value, int):
                if -len(value) <= index.value < len(value):
                    return self.passed(node, value[index.value], frame)
                # An unrolled loop has made it longer, by what its text says once: those tensors share a layout.
                if not isinstance(fact, TensorFact) or not fact.shape:
                    return Static(None, fact)
                if not value or not isinstance(value[-1], Node) or value[-1].shape != fact.shape:
                    raise unsupported("TTG301", "a list that an unrolled loop makes longer", node, frame)
                return self.passed(node, value[-1], frame)
            return value
        if isinstance(value, Static) and isinstance(fact, TensorFact) and set(fact.shape) == {1}:
            return self.tile_of_one(node, fact, frame)
        if not isinstance(value, Node) or not isinstance(fact, TensorFact):
            return Static(None, fact)
        slices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        for axis, part in enumerate(slices):
            if isinstance(part, ast.Constant) and part.value is None:
                value = self.expanded(node, value, axis, frame)
        return value

    def tile_of_one(self, node: ast.Subscript | ast.Call, fact: TensorFact, frame: Frame) -> Node:
        """`scalar[:, None]`, or what is all that a reduction leaves: a tensor of one element, made with `full`."""
        made = self.node("create", node, fact, [], frame, function="fill")
        made.dims, of_pointer = ("1",) * len(fact.shape), fact.is_pointer and isinstance(node, ast.Subscript)
        dtype = f"{ast.unparse(node.value)}.dtype" if of_pointer else f"gl.{gluon_dtype(fact.dtype)}"  # type: ignore[union-attr]
        made.scalars = ((made.site.position, dtype),)
        return made

    def expanded(self, node: ast.expr, value: Node, axis: int, frame: Frame) -> Node:
        """`expand_dims` of a value."""
        shape = (*value.shape[:axis], 1, *value.shape[axis:])
        made = self.node("expand", node, TensorFact(shape, f"int{value.bits}"), [value], frame, axis=axis)
        made.dims = (*value.dims[:axis], "1", *value.dims[axis:])
        return made

    def node(
        self,
        kind: Kind,
        at: ast.expr | ast.AugAssign,
        fact: TensorFact,
        operands: Sequence[Value],
        frame: Frame,
        axis: int | None = None,
        function: str = "",
    ) -> Node:
        """A new node in program order; its extents are named after its operands'."""
        tensors = tuple(value for value in operands if isinstance(value, Node))
        site = Site(frame.key, position_of(at), frame.statement, frame.chain)
        made = Node(kind, site, fact.shape, dims_of(fact.shape, tensors), fact.bits, tensors, axis)
        made.function, made.depth, made.loop = function, frame.depth, frame.loop
        made.chain = ((frame.key[0], *made.site.position[:2]), *frame.chain)
        made.cheap = all(operand.cheap for operand in tensors)
        self.graph.nodes.append(made)
        return made


def _parameters(function: ast.FunctionDef) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]


def _is_store(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
