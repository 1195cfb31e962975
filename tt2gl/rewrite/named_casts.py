"""Rule `named_casts`: what is cast alike again and again, as the offsets of buffer operations are, is cast once.

It is named above the statement that casts it first, for the rest of its block, up to where the name gets another value.
Not where a branch or a loop does so first: it may not be run. What the author casts is left as it is, and so is what a
name is given as it is cast: it has one.

x = gl.amd.cdna3.buffer_load(x_ptr, gl.cast(idx, gl.int32), mask=live)        # before
y = gl.amd.cdna3.buffer_load(y_ptr, gl.cast(idx, gl.int32), mask=live)

idx_int32 = gl.cast(idx, gl.int32)                                            # after
x = gl.amd.cdna3.buffer_load(x_ptr, idx_int32, mask=live)
y = gl.amd.cdna3.buffer_load(y_ptr, idx_int32, mask=live)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence

import libcst as cst

from tt2gl.names import claimed
from tt2gl.pipelining.trees import edited, leading, under
from tt2gl.qualified_names import walk
from tt2gl.rewrite.dots import names_in
from tt2gl.visitors import Editor

_CAST = re.compile(r"\b(\w+)\.cast\((\w+), \1\.(\w+)\)")

Cast = tuple[str, str, str]
"""Gluon's name, what is cast, and the type that it is cast to."""


def with_named_casts(code: str, author: str) -> str:
    """A converted file with repeated casts named; `author` is the file before."""
    found = Counter(match.groups() for match in _CAST.finditer(code))
    own = {name for _, name, _ in (match.groups() for match in _CAST.finditer(author))}
    repeated = {(gl, name, dtype) for (gl, name, dtype), times in found.items() if times > 1 and name not in own}
    return cst.parse_module(code).visit(_Functions(repeated)).code if repeated else code


class _Functions(Editor):
    def __init__(self, casts: Collection[Cast]) -> None:
        super().__init__()
        self.casts = casts

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        return False

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:
        repeated = Counter(cast for node in walk(updated_node) if (cast := _cast(node)) in self.casts)
        taken, made = set(names_in(updated_node)), updated_node
        for cast in (cast for cast, times in repeated.items() if times > 1 and cast is not None):
            made = edited(made, _Blocks(cast, taken))
        return made


class _Blocks(Editor):
    """Names one cast in each block that has it again, before the blocks in it; `taken`: the names of the function."""

    def __init__(self, cast: Cast, taken: set[str]) -> None:
        super().__init__()
        self.cast, self.taken = cast, taken

    def visit_IndentedBlock(self, node: cst.IndentedBlock) -> bool:
        return False

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        lines = self._named([*updated_node.body])
        return updated_node.with_changes(body=[line.visit(self) for line in lines])

    def _named(self, body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
        start = next((at for at, line in enumerate(body) if self._casts([line]) and _is_simple(line)), len(body))
        changed = (at for at in range(start, len(body)) if _gives(body[at], self.cast[1]))
        end = next(changed, len(body))
        if self._casts(body[start:end]) < 2:
            return body
        gl, value, dtype = self.cast
        name = claimed(f"{value}_{dtype}", self.taken)
        above = under(cst.parse_statement(f"{name} = {gl}.cast({value}, {gl}.{dtype})"), leading(body[start]))
        named = [edited(line, _Named(self.cast, name)) for line in body[start:end]]
        return [*body[:start], above, under(named[0], []), *named[1:], *body[end:]]

    def _casts(self, lines: Sequence[cst.CSTNode]) -> int:
        return sum(_cast(node) == self.cast for line in lines for node in walk(line)) - sum(
            isinstance(node, cst.Assign) and _cast(node.value) == self.cast for line in lines for node in walk(line)
        )


class _Named(Editor):
    def __init__(self, cast: Cast, name: str) -> None:
        super().__init__()
        self.cast, self.name = cast, name

    def visit_Assign(self, node: cst.Assign) -> bool:
        return _cast(node.value) != self.cast

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return cst.Name(self.name) if _cast(original_node) == self.cast else updated_node


def _cast(node: cst.CSTNode) -> Cast | None:
    """What a call casts to a type of Gluon's, if it is a name that is."""
    match node:
        case cst.Call(
            func=cst.Attribute(value=cst.Name(value=gl), attr=cst.Name(value="cast")),
            args=[
                cst.Arg(value=cst.Name(value=name), keyword=None),
                cst.Arg(value=cst.Attribute(value=cst.Name(value=module), attr=cst.Name(value=dtype)), keyword=None),
            ],
        ) if gl == module and not node.lpar:
            return gl, name, dtype
    return None


def _is_simple(line: cst.CSTNode) -> bool:
    return isinstance(line, cst.SimpleStatementLine)


def _gives(line: cst.CSTNode, name: str) -> bool:
    """Whether a statement may give a name a value."""
    targets = [
        node.target
        for node in walk(line)
        if isinstance(node, cst.AssignTarget | cst.AnnAssign | cst.AugAssign | cst.For | cst.CompFor | cst.NamedExpr)
    ]
    return any(isinstance(node, cst.Name) and node.value == name for target in targets for node in walk(target))
