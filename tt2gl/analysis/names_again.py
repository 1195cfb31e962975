"""Names of what a loop loads in kernels with products, and of something else before it that the loop never reads.

do = tl.load(do_ptrs)
...                             # `do` is one thing up to here
for j in range(i, N):
    do = tl.load(do_ptrs)       # and another in each turn
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tt2gl.analysis.facts import LaunchFacts
from tt2gl.lowering.names_again import NameAgain
from tt2gl.pipelining.flow import NONE, Liveness, Names, inside, reads, writes
from tt2gl.pipelining.static import is_unrolled, parameters
from tt2gl.trees import blocks, nodes_in


def names_again(facts: Collection[LaunchFacts], trees: Mapping[str, ast.Module], path: Path) -> set[NameAgain]:
    """Those loops of a file, with the names."""
    own = str(path.absolute())
    accesses = (chain[0] for seen in facts if seen.lowered.dots for chain in seen.accesses)
    loaded = {(line, column) for file, line, column in accesses if file == own}
    found = set[NameAgain]()
    for function in nodes_in(trees[own]) if loaded and own in trees else ():
        if isinstance(function, ast.FunctionDef):
            found.update(_in_function(function, loaded))
    return found


def _in_function(function: ast.FunctionDef, loaded: Collection[tuple[int, int]]) -> Iterator[NameAgain]:
    live, done = Liveness(), set[ast.stmt]()
    live.before(function.body, NONE)
    # Loops inside others first: what has its name there needs none further out.
    for loop, above in reversed([*_loops(function.body, parameters(function))]):
        carried = Liveness().before(loop.body, NONE) | _head(loop) | live.after[loop]
        for statement in inside(loop.body):
            match statement:
                case ast.Assign(targets=[ast.Name(id=name)]) if statement not in done and _is_loaded(statement, loaded):
                    if name in above - carried:
                        done.add(statement)
                        yield loop.lineno, loop.col_offset, name


def _loops(statements: Sequence[ast.stmt], above: Names) -> Iterator[tuple[ast.For | ast.While, Names]]:
    """The loops of a block that turn in the kernel's run, each with the names that have a value before it."""
    for each in statements:
        if isinstance(each, ast.For | ast.While) and not is_unrolled(each):
            yield each, above
        for block in blocks(each):
            yield from _loops(block, above)
        above |= _left(each)


def _left(statement: ast.stmt) -> Names:
    """The names that have a value behind a statement: what a loop alone gives one is gone behind it."""
    if isinstance(statement, ast.For | ast.While) and not is_unrolled(statement):
        return NONE
    inner = [_left(each) for block in blocks(statement) for each in block]
    return NONE.union(*inner) if inner else writes(statement)


def _head(loop: ast.For | ast.While) -> Names:
    """The names that a loop's own line has to do with."""
    return reads(loop.iter) | writes(loop.target) if isinstance(loop, ast.For) else reads(loop.test)


def _is_loaded(statement: ast.stmt, loaded: Collection[tuple[int, int]]) -> bool:
    calls = (each for each in nodes_in(statement) if isinstance(each, ast.Call))
    return any((call.lineno, call.col_offset) in loaded for call in calls)
