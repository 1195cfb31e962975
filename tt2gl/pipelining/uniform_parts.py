"""Offsets that step from tile to tile are scalars and what a tile adds to them, in a prologue of AMD's, as Triton's.

a_offsets = offs_m[:, None] * stride + offs_k[None, :]                          # offs_m = pid_m * BLOCK_M + arange
for k in gl.static_range(NUM_STAGES - 1):
    if k > 0:
        a_offsets += BLOCK_K                                                                            # before

a_offsets_base = pid_m * BLOCK_M * stride
a_offsets_rest = gl.arange(0, BLOCK_M, layout=...)[:, None] * stride + offs_k[None, :]
for k in gl.static_range(NUM_STAGES - 1):
    a_offsets = a_offsets_base + a_offsets_rest                                                         # after
    if k > 0:
        a_offsets = a_offsets_base + (k - 1) * BLOCK_K + (a_offsets_rest + BLOCK_K)

Triton's pass for pointers takes what is the same in all lanes apart from the rest, and of the steps of a prologue all
but the first. Its loads then share the registers of the rest, each with a scalar of its own; and how many registers a
prologue takes, the compiler's scheduler gives to the loop, too: a product of 16 rows on gfx1100 took 187 registers for
Triton's 153, and takes 154.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from tt2gl.names import unused
from tt2gl.pipelining.flow import reads, writes
from tt2gl.pipelining.static import called
from tt2gl.pipelining.texts import operand
from tt2gl.trees import nodes_in, python_tree

_SCALAR_CALLS = ("program_id", "num_programs", "cdiv", "minimum", "maximum")
# Of these and layouts an expression may be made that is evaluated anew.
_LASTING_CALLS = (*_SCALAR_CALLS, "arange", "to", "expand_dims", "multiple_of", "max_contiguous", "full", "zeros")
_WIDE = ("int32", "int64")
_SCALAR_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


@dataclass(frozen=True)
class Parts:
    """What an expression adds up from: a scalar and a tensor, as source; either may be missing."""

    scalar: str = ""
    tensor: str = ""


def with_uniform_parts(text: str, kernels: Collection[str]) -> str:
    """The text with the prologues of some kernels, by name, written so."""
    lines = text.split("\n")
    edits: list[tuple[int, int, list[str]]] = []
    for node in nodes_in(python_tree(text)):
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            edits += Kernel(node, lines).edits()
    for first, last, made in sorted(edits, reverse=True):
        lines[first - 1 : last] = made
    return "\n".join(lines)


class Kernel:
    """A kernel, and what in it is known to be a scalar."""

    def __init__(self, tree: ast.FunctionDef, lines: list[str]) -> None:
        self.tree, self.lines = tree, lines
        arguments = (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)
        self.parameters = {each.arg for each in arguments}
        self.taken = {node.id for node in nodes_in(tree) if isinstance(node, ast.Name)} | self.parameters
        written = [name for node in nodes_in(tree) if isinstance(node, ast.stmt) for name in _own_writes(node)]
        self.once = {name for name in written if written.count(name) == 1} - self.parameters
        self.changed = {*written} - self.once
        # Numbers that launches give have 32 bits or 64.
        wide = {each.arg for each in arguments if each.annotation is None or _type(each.annotation) in _WIDE}
        self.numbers = wide - self.changed
        self.constants = {each.arg for each in arguments if _type(each.annotation) == "constexpr"} - self.changed
        self.lines_written: dict[str, list[int]] = {}
        for statement in (node for node in nodes_in(tree) if isinstance(node, ast.stmt)):
            for name in _own_writes(statement):
                self.lines_written.setdefault(name, []).append(statement.lineno)
        self.values: dict[str, list[ast.expr]] = {}
        for each in (node for node in nodes_in(tree) if isinstance(node, ast.Assign)):
            for name, value in assigned(each):
                self.values.setdefault(name, []).append(value)
        self.added = [_name(node.target) for node in nodes_in(tree) if isinstance(node, ast.AugAssign)]
        calls = [node for node in nodes_in(tree) if isinstance(node, ast.Call) and called(node) == "buffer_load"]
        self.offsets = {_name(call.args[1]) for call in calls if len(call.args) > 1}
        self.known = dict(pair for each in tree.body if isinstance(each, ast.Assign) for pair in assigned(each))

    def edits(self) -> Iterator[tuple[int, int, list[str]]]:
        """What becomes of which lines."""
        for place, loop in enumerate(self.tree.body):
            if not isinstance(loop, ast.For) or called(loop.iter) != "static_range" or not loop.body:
                continue
            steps = loop.body[0]
            number = _number(loop)
            if not isinstance(steps, ast.If) or not number or ast.unparse(steps.test) != f"{_name(loop.target)} > 0":
                continue
            left: list[str] = []
            made: list[str] = []
            defined: list[tuple[int, int, list[str]]] = []
            indent = " " * steps.col_offset
            for step in steps.body:
                found = self._apart(step, place) if isinstance(step, ast.AugAssign) else None
                if found is None or not isinstance(step, ast.AugAssign):
                    left += self._text(step)
                    continue
                definition, parts = found
                name = _name(step.target)
                base, rest = (unused(f"{name}_{part}", self.taken) for part in ("base", "rest"))
                self.taken |= {base, rest}
                outer = " " * definition.col_offset
                both = [f"{outer}{base} = {parts.scalar}", f"{outer}{rest} = {parts.tensor}"]
                defined.append((definition.lineno, definition.end_lineno or definition.lineno, both))
                made.append(f"{indent}{name} = {base} + {rest}")
                by = _factor(step.value)
                further = f"({rest} + {ast.unparse(step.value)})"
                left.append(f"{' ' * step.col_offset}{name} = {base} + ({number} - 1) * {by} + {further}")
            if defined:
                test = self.lines[steps.lineno - 1]
                yield from defined
                yield steps.lineno, steps.end_lineno or steps.lineno, [*made, test, *left]

    def _text(self, node: ast.stmt) -> list[str]:
        return self.lines[node.lineno - 1 : node.end_lineno]

    def _apart(self, step: ast.AugAssign, place: int) -> tuple[ast.Assign, Parts] | None:
        """Where a variable that a prologue steps gets its first value, and that taken apart."""
        name, above = _name(step.target), self.tree.body[:place]
        named = [each for each in above if any(_is(node, name) for node in nodes_in(each))]
        if name not in self.offsets or not isinstance(step.op, ast.Add) or len(named) != 1:
            return None
        if not self.is_scalar(step.value):
            return None
        definition = named[0]
        if (
            not isinstance(definition, ast.Assign)
            or not _is(definition.targets[0], name)
            or len(definition.targets) > 1
        ):
            return None
        later = self.tree.body[place].lineno
        early = [node for node in nodes_in(self.tree) if _is(node, name) and node.lineno < later]  # type: ignore[attr-defined]
        if len(early) != 1 or any("#" in line for each in (definition, step) for line in self._text(each)):
            return None
        parts = self.parts(definition.value, definition.lineno)
        return (definition, parts) if parts.scalar and parts.tensor else None

    def is_scalar(self, node: ast.expr) -> bool:
        """Whether a value is known to be one for all lanes, and the same wherever it is read."""
        match node:
            case ast.Constant(value=value):
                return isinstance(value, int)
            case ast.Name(id=name):
                if name in self.parameters:
                    return name not in self.changed
                return name in self.once and name in self.known and self.is_scalar(self.known[name])
            case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _SCALAR_OPERATORS):
                return self.is_scalar(left) and self.is_scalar(right)
            case ast.Call(args=args, keywords=[]) if called(node) in _SCALAR_CALLS:
                return isinstance(node.func, ast.Attribute) and all(map(self.is_scalar, args))
            case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[dtype], keywords=[]):
                return _type(dtype) in _WIDE and self.is_scalar(inner)
        return False

    def _may_move(self, node: ast.expr) -> bool:
        """Whether a term may be added in another order: sums of fewer than 32 bits would overflow elsewhere."""
        return self._is_constant(node) or self._is_wide(node)

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether a number is a constant of the compilation, which has as many bits as what it meets."""
        names = [each.id for each in nodes_in(node) if isinstance(each, ast.Name)]
        return self.is_scalar(node) and all(
            name in self.constants or name in self.known and self._is_constant(self.known[name]) for name in names
        )

    def _is_wide(self, node: ast.expr, asked: frozenset[str] = frozenset()) -> bool:
        """Whether integers are known to have 32 bits or more; of names that are `asked` already it is supposed."""
        match node:
            case ast.Name(id=name):
                return name in self.numbers or name in asked or self._is_given_wide(name, asked | {name})
            case ast.BinOp(left=left, right=right):
                return self._is_wide(left, asked) or self._is_wide(right, asked)
            case ast.Subscript(value=inner):
                return self._is_wide(inner, asked)
            case ast.Call(func=ast.Attribute(attr="to"), args=[dtype], keywords=[]):
                return _type(dtype) in _WIDE
            case ast.Call(args=[_, dtype], keywords=[]) if called(node) == "cast":
                return _type(dtype) in _WIDE
            case ast.Call():
                return called(node) in ("arange", "program_id", "num_programs")
        return False

    def _is_given_wide(self, name: str, asked: frozenset[str]) -> bool:
        """Whether all that a variable is given has 32 bits or more, what is added to it aside."""
        values = self.values.get(name, [])
        told = len(values) + self.added.count(name) == len(self.lines_written.get(name, ()))
        return (
            bool(values) and told and name not in self.parameters and all(self._is_wide(each, asked) for each in values)
        )

    def lasts(self, node: ast.expr, place: int) -> bool:
        """Whether an expression is the same at a later line: nothing is written in between, or read from memory."""
        inside = nodes_in(node)
        calls = [called(each) for each in inside if isinstance(each, ast.Call)]
        names = {each.id for each in inside if isinstance(each, ast.Name)}
        return all(name in _LASTING_CALLS or name.endswith("Layout") for name in calls) and not any(
            node.lineno < line <= place for name in names for line in self.lines_written.get(name, ())
        )

    def parts(self, node: ast.expr, place: int) -> Parts:
        """What adds up to a value, as it can be written at a line; all of it is a tensor where that is not known."""
        if self.is_scalar(node):
            return Parts(scalar=ast.unparse(node))
        if isinstance(node, ast.BinOp) and not (self._may_move(node.left) and self._may_move(node.right)):
            return Parts(tensor=operand(ast.unparse(node)))
        match node:
            case ast.Name(id=name) if name in self.once and name in self.known and self.lasts(self.known[name], place):
                parts = self.parts(self.known[name], place)
                return parts if parts.scalar and parts.tensor else Parts(tensor=name)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = self.parts(left, place), self.parts(right, place)
                scalars = [part for part in (one.scalar, other.scalar) if part]
                tensors = [part for part in (one.tensor, other.tensor) if part]
                return Parts(" + ".join(scalars), " + ".join(tensors))
            case ast.BinOp(left=left, op=ast.Mult(), right=right):
                for tensor, scalar in ((left, right), (right, left)):
                    if self.is_scalar(scalar):
                        parts, by = self.parts(tensor, place), _factor(scalar)
                        made = [
                            f"{_factor(ast.parse(part, mode='eval').body)} * {by}" if part else ""
                            for part in (parts.scalar, parts.tensor)
                        ]
                        return Parts(*made)
            case ast.Subscript(value=inner, slice=ast.Tuple(elts=places)) if all(map(_adds_dim, places)):
                parts = self.parts(inner, place)
                at = ast.unparse(node.slice).strip("()")
                return Parts(parts.scalar, f"{operand(parts.tensor)}[{at}]" if parts.tensor else "")
        return Parts(tensor=operand(ast.unparse(node)))


def assigned(statement: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """The names that an assignment gives values to, alone or one of a tuple each, and those."""
    if len(statement.targets) != 1:
        return
    match statement.targets[0], statement.value:
        case ast.Name(id=name), value:
            yield name, value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values) if len(targets) == len(values):
            # What reads another of them reads what that was before.
            if not reads(statement.value) & writes(statement.targets[0]):
                for target, value in zip(targets, values, strict=True):
                    if isinstance(target, ast.Name):
                        yield target.id, value


def _type(node: ast.expr | None) -> str:
    """The last part of a dotted name, such as `int32`; empty for anything else."""
    return node.attr if isinstance(node, ast.Attribute) else ""


def _number(loop: ast.For) -> str:
    """The number of a prologue's iteration; empty where it is not counted from zero."""
    name = _name(loop.target)
    match loop.iter:
        case ast.Call(args=[_], keywords=[]):
            return name
        case ast.Call(args=[ast.Constant(value=0), _, step], keywords=[]):
            return f"{name} // {operand(ast.unparse(step))}"
    return ""


def _own_writes(node: ast.stmt) -> Collection[str]:
    """What a statement gives a value to itself, without those in its blocks."""
    if isinstance(node, ast.For):
        return writes(node.target)
    return () if isinstance(node, ast.While | ast.If | ast.With | ast.FunctionDef) else writes(node)


def _factor(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult) else operand(text)


def _adds_dim(place: ast.expr) -> bool:
    whole = isinstance(place, ast.Slice) and place.lower is place.upper is place.step is None
    return whole or isinstance(place, ast.Constant) and place.value is None


def _is(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


__all__ = ["Kernel", "Parts", "assigned", "with_uniform_parts"]
