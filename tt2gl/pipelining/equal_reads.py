"""What several products read alike from shared memory is read once, on AMD.

    x = mfma(b_smem.load(lhs_layout), c_rhs, x)                    # before
    y = mfma(b_smem.load(lhs_layout), d_rhs, y)

    b_lhs = b_smem.load(lhs_layout)                                # after
    x = mfma(b_lhs, c_rhs, x)
    y = mfma(b_lhs, d_rhs, y)

As Triton's CSE has it: its memory is there to be read alone, where Gluon's can be written to. Then it is free as soon
as it was read, too: merging the inverses of four triangular tiles of 16x16 takes, on gfx942, 3072 bytes for 6144, and
25 layout conversions for 32.

Not on NVIDIA, where what is held meanwhile takes registers: the same merging takes 255 for 108 on sm90, and 119 us for
88 on an H200 (Triton's own: 239, and 119 us).

Memory that is made once, with what is in it, and that nothing but such reads has a name for, is meant.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.names import claimed
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import called
from tt2gl.trees import blocks, nodes_in

_GIVEN = 4
"""What is said of memory that is made with what is in it."""


def with_equal_reads(text: str, functions: Collection[str]) -> str:
    """The text with what these functions read several times from such memory read once."""
    return in_functions(text, functions, lambda places, function: _Reads(places, function).edits())


class _Reads:
    def __init__(self, places: Places, function: ast.FunctionDef) -> None:
        self.places, self.function = places, function
        nodes = nodes_in(function)
        self.taken = names_of(nodes)
        names = [node for node in nodes if isinstance(node, ast.Name)]
        self.bound = Counter(node.id for node in names if isinstance(node.ctx, ast.Store))
        self.uses: dict[str, list[ast.Name]] = {}
        for node in names:
            if isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
        made = {
            node.targets[0].id
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and _is_filled(node.value)
        }
        reads = [node for node in nodes if isinstance(node, ast.Call) and _memory(node) in made]
        named = Counter(_memory(node) for node in reads)
        fixed = {name for name in made if self.bound[name] == 1 and len(self.uses.get(name, ())) == named[name]}
        sources = Counter(ast.unparse(node) for node in reads if _memory(node) in fixed and self._is_fixed(node))
        self.wholes = {
            id(node.value): name
            for node in nodes
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and (name := _whole(node, node.value))
            and self.bound[name] == 1
        }
        self.several = {source for source, count in sources.items() if count > 1}

    def edits(self) -> Iterator[Edit]:
        """The edits of the function."""
        if self.several:
            yield from self._block(self.function.body, {})

    def _is_fixed(self, read: ast.Call) -> bool:
        """Whether the layout that a read asks for is the same wherever that stands."""
        return all(self.bound[node.id] < 2 for node in nodes_in(read.args[0]) if isinstance(node, ast.Name))

    def _block(self, block: Sequence[ast.stmt], known: dict[str, str]) -> Iterator[Edit]:
        """The edits of a block, with what was read above it, by the name that it has."""
        known = {**known}
        for statement in block:
            inner = list(blocks(statement))
            for part in inner:
                yield from self._block(part, known)
            if not inner and isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Expr):
                yield from self._statement(statement, known)

    def _statement(self, statement: ast.stmt, known: dict[str, str]) -> Iterator[Edit]:
        for call in [node for node in nodes_in(statement) if isinstance(node, ast.Call)]:
            source = ast.unparse(call) if _memory(call) else ""
            if source not in self.several:
                continue
            own = self.wholes.get(id(call), "")
            if own and source in known:
                yield Edit(*self.places.lines(statement), "")
                for use in self.uses.get(own, ()) if own != known[source] else ():
                    yield Edit(*self.places.of(use), known[source])
            elif source in known:
                yield Edit(*self.places.of(call), known[source])
            elif own:
                known[source] = own
            elif not self.places.line(statement.lineno)[: statement.col_offset].strip():
                behind = [other for other in self._behind(self.function.body, call) if ast.unparse(other) == source]
                names = [self.wholes[id(other)] for other in behind if id(other) in self.wholes]
                if behind:
                    name = names[0] if names else self._name(call)
                    line, _ = self.places.lines(statement)
                    yield Edit(line, line, f"{' ' * statement.col_offset}{name} = {ast.unparse(call)}\n")
                    yield Edit(*self.places.of(call), name)
                    known[source] = name

    def _name(self, read: ast.Call) -> str:
        """What is read, by a name that nothing has yet."""
        side = "rhs" if "rhs" in ast.unparse(read.args[0]) else "lhs"
        return claimed(f"{_memory(read).removesuffix('_smem')}_{side}", self.taken)

    def _behind(self, block: Sequence[ast.stmt], call: ast.Call) -> list[ast.Call]:
        """The calls behind one, in its own statement, its block and what is below that."""
        for at, statement in enumerate(block):
            if call not in nodes_in(statement):
                continue
            for part in blocks(statement):
                if any(call in nodes_in(each) for each in part):
                    return self._behind(part, call)
            behind = [node for each in block[at:] for node in nodes_in(each)]
            return [node for node in behind if isinstance(node, ast.Call) and node is not call]
        return []


def _is_filled(value: ast.expr) -> bool:
    """Whether a value is memory that is made with what is in it."""
    return isinstance(value, ast.Call) and called(value) == "allocate_shared_memory" and len(value.args) == _GIVEN


def _memory(call: ast.Call) -> str:
    """The name of the memory that a call reads all of, in one layout; empty where it does not."""
    match call:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="load"), args=[_], keywords=[]):
            return name
    return ""


def _whole(statement: ast.stmt, call: ast.Call) -> str:
    """The name that a statement gives to what a call makes, where it does nothing else."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)], value=value) if value is call:
            return name
    return ""
