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
its own part: attention with Q in registers then took 1.15 times as long on an H200. A sum that is converted for its
product, or loaded, is made above as well (attention with a bias took 1.03 times as long on an H100):

fence_async_shared()                                                               # before
qk = warpgroup_mma(q_smem, k, gl.convert_layout(bias, qk_layout) / scale)

qk_before = gl.convert_layout(bias, qk_layout) / scale                             # after
fence_async_shared()
qk = warpgroup_mma(q_smem, k, qk_before)
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
    """A function whose products by `wgmma` have all that is read for their registers above the fence.

    `fresh` makes an unused name of one.
    """
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
            made = self._made_above(body[below]) if below < len(body) else []
            if not made:
                continue
            above: list[cst.BaseStatement] = [statement(f"{name} = {code(read)}") for read, name in made]
            above[0] = under(above[0], leading(body[below]))
            product = under(body[below], [])
            for read, name in made:
                product = edited(product, _Replaced(read, cst.Name(name)))
            body[at : below + 1] = [*body[at + 1 : below], *above, body[at], product]
        return updated_node.with_changes(body=body)

    def _made_above(self, line: cst.BaseStatement) -> list[tuple[cst.BaseExpression, str]]:
        """What a product reads from memory for its registers, each with a name for it."""
        match line:
            case cst.SimpleStatementLine(
                body=[
                    cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Name(value=name))],
                        value=cst.Call(func=cst.Name(value="warpgroup_mma"), args=args),
                    )
                ]
            ):
                memory = _read_memory(args[0].value)
                made = [(args[0].value, self.fresh(f"{memory.removesuffix('_smem')}_lhs"))] if memory else []
                if len(args) > 2 and args[2].keyword is None and _takes_memory(args[2].value):
                    made.append((args[2].value, self.fresh(f"{name}_before")))
                return made
        return []


class _Replaced(Editor):
    def __init__(self, old: cst.BaseExpression, new: cst.Name) -> None:
        super().__init__()
        self.old, self.new = old, new

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        return updated_node.with_changes(value=self.new) if original_node.value is self.old else updated_node


def _read_memory(operand: cst.BaseExpression) -> str | None:
    """The memory by name that an operand is read from to registers; None for others."""
    match operand:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="load"))):
            return name
    return None


def _takes_memory(added: cst.BaseExpression) -> bool:
    """Whether what a product adds to is loaded, or converted by way of shared memory, where it is said."""
    return mentions(added, "load") or mentions(added, "convert_layout")


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
