"""One fence for all that is written before a product, where each part of a conversion has put its own.

async_copy.wait_group(1)                                                           # before
fence_async_shared()
a_smem = gl.allocate_shared_memory(a.dtype, [BM, BK], a_shared, a)
fence_async_shared()
acc = warpgroup_mma(a_smem, b_buf.index(slot), acc)

async_copy.wait_group(1)                                                           # after
a_smem = gl.allocate_shared_memory(a.dtype, [BM, BK], a_shared, a)
fence_async_shared()
acc = warpgroup_mma(a_smem, b_buf.index(slot), acc)

A fence stops every warp until its writes are done: 3% of a matrix product on an H200 with one for each operand.

An operand that a product reads from memory to registers is read above its fence, as Triton has it:

fence_async_shared()                                                               # before
k = k_buf.index(slot)
qk = warpgroup_mma(q_smem.load(lhs_layout), k, zeros)

k = k_buf.index(slot)                                                              # after
q_lhs = q_smem.load(lhs_layout)
fence_async_shared()
qk = warpgroup_mma(q_lhs, k, zeros)

ptxas moves no such read over a fence, and with it below each of the instructions that a product is made of waits for
its own part: attention with Q in registers then took 1.15 times as long on an H200.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from tt2gl.pipelining.trees import code, edited, leading, mentions, statement, under
from tt2gl.visitors import Editor, Reader

FENCE = "fence_async_shared"

_MODULES = {"gl", "async_copy", "tl"}
"""Modules of which nothing reads shared memory through the asynchronous proxy."""

_FUNCTIONS = {"async_load", "float", "int", "max", "min", "range"}


def with_single_fences(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function without the fences that others follow before anything reads what they make visible."""
    if not mentions(function, FENCE):
        return function
    made = function.visit(_Fences())
    assert isinstance(made, cst.FunctionDef)
    return made


def with_reads_above_fences(function: cst.FunctionDef, fresh: Callable[[str], str]) -> cst.FunctionDef:
    """A function whose products by `wgmma` read first operands from memory above the fence; `fresh`: an unused name."""
    if not mentions(function, FENCE):
        return function
    made = function.visit(_Reads(fresh))
    assert isinstance(made, cst.FunctionDef)
    return made


class _Reads(Editor):
    def __init__(self, fresh: Callable[[str], str]) -> None:
        super().__init__()
        self.fresh = fresh

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = list(updated_node.body)
        for at in reversed([at for at, line in enumerate(body) if _is_fence(line)]):
            below = next((place for place in range(at + 1, len(body)) if not _is_harmless(body[place])), len(body))
            found = _memory_operand(body[below]) if below < len(body) else None
            if found is None:
                continue
            memory, read = found
            name = self.fresh(f"{memory.removesuffix('_smem')}_lhs")
            above = under(statement(f"{name} = {code(read)}"), leading(body[below]))
            product = edited(under(body[below], []), _Replaced(read, cst.Name(name)))
            body[at : below + 1] = [*body[at + 1 : below], above, body[at], product]
        return updated_node.with_changes(body=body)


class _Replaced(Editor):
    def __init__(self, old: cst.Call, new: cst.Name) -> None:
        super().__init__()
        self.old, self.new = old, new

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        return self.new if original_node is self.old else updated_node


def _memory_operand(line: cst.BaseStatement) -> tuple[str, cst.Call] | None:
    """The memory by name, and its reading, that a product by `wgmma` has for its first operand; None for others."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    value=cst.Call(
                        func=cst.Name(value="warpgroup_mma"),
                        args=[
                            cst.Arg(
                                value=cst.Call(
                                    func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="load"))
                                ) as read
                            ),
                            *_,
                        ],
                    )
                )
            ]
        ):
            return name, read
    return None


class _Fences(Editor):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = updated_node.body
        kept = [line for at, line in enumerate(body) if not (_is_fence(line) and _fenced_again(body[at + 1 :]))]
        return updated_node if len(kept) == len(body) else updated_node.with_changes(body=kept)


def _is_fence(line: cst.BaseStatement) -> bool:
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=cst.Name(value=name)))]):
            return name == FENCE and not line.leading_lines
    return False


def _fenced_again(later: Sequence[cst.BaseStatement]) -> bool:
    """Whether another fence comes before anything that may need one."""
    for line in later:
        if _is_fence(line) or isinstance(line, cst.If) and _in_each_branch(line):
            return True
        if not _is_harmless(line):
            return False
    return False


def _in_each_branch(line: cst.If) -> bool:
    """Whether a fence comes first whatever the condition says."""
    other = line.orelse
    if not _is_harmless(line.test) or not _fenced_again(_lines(line.body)):
        return False
    if isinstance(other, cst.If):
        return _in_each_branch(other)
    return other is not None and _fenced_again(_lines(other.body))


def _lines(block: cst.BaseSuite) -> Sequence[cst.BaseStatement]:
    return block.body if isinstance(block, cst.IndentedBlock) else ()


def _is_harmless(node: cst.CSTNode) -> bool:
    calls = _Calls()
    node.visit(calls)
    return calls.harmless


class _Calls(Reader):
    """Whether all calls of a statement are known to read no shared memory through the asynchronous proxy."""

    def __init__(self) -> None:
        self.harmless = True

    def visit_Call(self, node: cst.Call) -> None:
        match node.func:
            case cst.Name(value=name):
                self.harmless &= name in _FUNCTIONS
            case cst.Attribute(value=cst.Name(value=module), attr=cst.Name(value=name)) if name not in ("load", "to"):
                # Methods of tensors and of buffers are as harmless; what is of another module is not known here.
                known = module in _MODULES and name != "warp_specialize"
                self.harmless &= known or name in ("index", "permute", "reshape")
