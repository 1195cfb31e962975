"""Rule `meanwhile`: what is loaded right above a product on Blackwell that is waited for is loaded while it runs.

for k in range(0, steps):                                                                           # before
    scale = gl.load(scale_ptrs + k)
    tcgen05_mma(a, b, acc_tmem, use_acc=False)
    tcgen05_commit(mma_bar)
    mbarrier.wait(mma_bar, mma_phase)

for k in range(0, steps):                                                                           # after
    tcgen05_mma(a, b, acc_tmem, use_acc=False)
    tcgen05_commit(mma_bar)
    scale = gl.load(scale_ptrs + k)
    mbarrier.wait(mma_bar, mma_phase)

Triton has what is done with a product in its pipeline's next stage, and with it what only that needs. (A product of
float8 blocks, whose scales are loaded so, spills two registers a thread else.)
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.pipelining.trees import code, indented, mentions
from tt2gl.pipelining.walking import Lines

_PRODUCTS = ("tcgen05_mma", "tcgen05_mma_scaled")


def with_loads_meanwhile(lines: Sequence[cst.BaseStatement], *, repeated: bool = False) -> Lines:
    """A block with the loads above products of its loops moved; `repeated`: it is a loop's own."""
    made: Lines = []
    for index, line in enumerate(lines):
        made.append(_inside(line))
        below = lines[index + 1 : index + 2]
        if repeated and _calls(line, "tcgen05_commit") and any(_calls(each, "mbarrier.wait") for each in below):
            made = _moved(made)
    return made


def _moved(lines: Lines) -> Lines:
    """Lines up to a commit, with the loads right above its products behind it."""
    products = end = len(lines) - 1
    while products and _calls(lines[products - 1], *_PRODUCTS):
        products -= 1
    first = products
    while first and (name := _loaded(lines[first - 1])) and not any(mentions(each, name) for each in lines[first:end]):
        first -= 1
    return [*lines[:first], *lines[products:], *lines[first:products]]


def _inside(line: cst.BaseStatement) -> cst.BaseStatement:
    """A statement with the loads in its own blocks moved."""
    match line:
        case cst.For() | cst.While():
            return line.with_changes(body=_block(line.body, repeated=True))
        case cst.If(orelse=cst.If() as other):
            return line.with_changes(body=_block(line.body), orelse=_inside(other))
        case cst.If(orelse=cst.Else() as other):
            return line.with_changes(body=_block(line.body), orelse=other.with_changes(body=_block(other.body)))
        case cst.If():
            return line.with_changes(body=_block(line.body))
    return line


def _block(suite: cst.BaseSuite, *, repeated: bool = False) -> cst.IndentedBlock:
    block = indented(suite)
    body = [each for each in block.body if isinstance(each, cst.BaseStatement)]
    return block.with_changes(body=with_loads_meanwhile(body, repeated=repeated))


def _loaded(line: cst.BaseStatement) -> str:
    """The name that a line loads from global memory; empty for other lines."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.Call(func=function))]
        ) if code(function) == "gl.load":
            return name
    return ""


def _calls(line: cst.BaseStatement, *names: str) -> bool:
    """Whether a line is a call of one of these."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call(func=function))]):
            return code(function) in names
    return False
