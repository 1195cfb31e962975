"""Rule `named_sums`: a product that a helper returned gets the name of the sum that it is for.

So it adds to the name that it gets: a sum that a loop carries, whose products may run on. The name between them has to
be read there alone.

    if IEEE:                                                                    # before
        result = warpgroup_mma(a_tf32, b, acc)
    else:
        result = warpgroup_mma(a, b, acc)
    acc = result

    if IEEE:                                                                    # after
        acc = warpgroup_mma(a_tf32, b, acc)
    else:
        acc = warpgroup_mma(a, b, acc)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.rewrite.idle_statements import comments_of
from tt2gl.visitors import Editor
from tt2gl.words import TCGEN05_MARK

_PRODUCTS = ("mma_v2", "warpgroup_mma", "mfma", "wmma", "dot_fma", TCGEN05_MARK)


def with_named_sums(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products are given to the names that they are given to next."""
    if not any(isinstance(node, cst.Call) and is_any_product(node) for node in walk(function)):
        return function
    made = function.visit(_NamedSums(Counter(names_in(function))))
    assert isinstance(made, cst.FunctionDef)
    return made


def is_any_product(node: cst.Call) -> bool:
    """Whether a call is a product by one of the instructions of any target."""
    match node.func:
        case cst.Attribute(attr=cst.Name(value=called)) | cst.Name(value=called):
            return called.removeprefix(MARK).startswith(_PRODUCTS)
    return False


class _NamedSums(Editor):
    """`mentioned`: how often the function mentions each name."""

    def __init__(self, mentioned: Counter[str]) -> None:
        super().__init__()
        self.mentioned = mentioned

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        made: list[cst.BaseStatement] = []
        for line in updated_node.body:
            given = _given(line)
            before = made[-1] if made else None
            if given is None or not isinstance(before, cst.SimpleStatementLine | cst.If):
                made.append(line)
                continue
            name, source = given
            bindings = _bindings(before, source)
            if bindings and self.mentioned[source] == bindings + 1:
                renamed = before.visit(_Renamed(source, name))
                assert isinstance(renamed, cst.SimpleStatementLine | cst.If)
                leading = [*renamed.leading_lines, *comments_of(line)]
                made[-1] = renamed.with_changes(leading_lines=leading)
            else:
                made.append(line)
        return updated_node.with_changes(body=made) if len(made) < len(updated_node.body) else updated_node


def _given(line: cst.BaseStatement) -> tuple[str, str] | None:
    """The name that a statement gives another's value to, and that one."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Name(value=source))]
        ) if name != source:
            return name, source
    return None


def _bindings(statement: cst.BaseStatement, name: str) -> int:
    """In how many arms a statement ends by giving a name a product; 0 where it has one in which it does not."""
    match statement:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=target))], value=cst.Call() as call)]
        ):
            return int(target == name and is_any_product(call))
        case cst.If(body=cst.IndentedBlock(body=body), orelse=cst.Else(body=cst.IndentedBlock(body=other))):
            return _of_both(_last(body, name), _last(other, name))
        case cst.If(body=cst.IndentedBlock(body=body), orelse=cst.If() as other):
            return _of_both(_last(body, name), _bindings(other, name))
    return 0


def _of_both(first: int, second: int) -> int:
    return first + second if first and second else 0


def _last(body: Sequence[cst.BaseStatement], name: str) -> int:
    return _bindings(body[-1], name) if body else 0


class _Renamed(Editor):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self.old, self.new = old, new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        return updated_node.with_changes(value=self.new) if updated_node.value == self.old else updated_node
