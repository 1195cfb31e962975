"""Rule `bounces` on AMD: an operand leaves shared memory as soon as it is there, so that the next takes its place.

So Triton has it there: a block of small matrices takes 8 KiB of LDS and not 16.

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)            # before
    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)
    acc = gl.amd.cdna3.mfma(x_smem.load(lhs_layout), w_smem.load(rhs_layout), acc)

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)            # after
    x_lhs = x_smem.load(lhs_layout)
    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)
    acc = gl.amd.cdna3.mfma(x_lhs, w_smem.load(rhs_layout), acc)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import bounce_of, with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.rewrite.reads import SIDES, Blocks

_PRODUCTS = ("mfma", "wmma")


def read_at_once(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by AMD's instructions read what else would wait in memory for another operand."""
    if not any(isinstance(node, cst.Call) and _is_product(node) for node in walk(function)):
        return function
    made = function.visit(_AtOnce(names_in(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


class _AtOnce(Blocks):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = list(updated_node.body)
        reads: dict[int, cst.BaseStatement] = {}
        for memory, reader, name in _waiting(body):
            line = body[reader]
            assert isinstance(line, cst.SimpleStatementLine)
            found = list(_reads(line, name))
            if len(found) == 1 and self.mentioned.count(name) == 2:
                side, reading = found[0]
                operand = self.unused(f"{name.removesuffix('_smem')}_{side}")
                body[reader] = with_replaced(line, {reading: cst.Name(operand)})
                reads[memory] = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(operand))], reading)])
        made = [each for at, line in enumerate(body) for each in (line, reads.get(at)) if each is not None]
        return updated_node.with_changes(body=made)


def _waiting(body: Sequence[cst.BaseStatement]) -> Iterator[tuple[int, int, str]]:
    """Statements that put an operand into memory with another after it, the statement that reads it, and its name."""
    for at, line in enumerate(body):
        if (bounce := bounce_of(line)) is None:
            continue
        others = 0
        for after in range(at + 1, len(body)):
            if bounce_of(body[after]) is not None:
                others += 1
            elif list(_reads(body[after], bounce[0])):
                if others:
                    yield at, after, bounce[0]
                break


def _reads(line: cst.BaseStatement, name: str) -> Iterator[tuple[str, cst.Call]]:
    """The operands of a statement's products that are read from some memory, with the side that they are on."""
    if not isinstance(line, cst.SimpleStatementLine):
        return
    for node in walk(line):
        if not isinstance(node, cst.Call) or not _is_product(node):
            continue
        for side, arg in zip(SIDES, node.args, strict=False):
            match arg.value:
                case (
                    cst.Call(func=cst.Attribute(value=cst.Name(value=memory), attr=cst.Name(value="load"))) as reading
                ) if memory == name:
                    yield side, reading


def _is_product(node: cst.Call) -> bool:
    match node.func:
        case cst.Attribute(attr=cst.Name(value=called)) | cst.Name(value=called):
            return called.removeprefix(MARK).startswith(_PRODUCTS)
    return False
