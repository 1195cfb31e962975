"""Rule `hoist`: tiles that are the same on every turn of a loop are loaded, and put into shared memory, before it.

    for m in range(0, M, BLOCK_M):                                                            # before
        k = gl.load(k_ptrs, mask=inside, other=0.0)
        k_operand = tl.trans(k)
        k_smem = gl.allocate_shared_memory(k_operand.dtype, [BLOCK_D, BLOCK_N], k_shared, k_operand)
        qk = mma_v2(q, k_smem.load(k_layout), zeros)

    k = gl.load(k_ptrs, mask=(M > 0) & inside, other=0.0)                                     # after
    k_operand = tl.trans(k)
    k_smem = gl.allocate_shared_memory(k_operand.dtype, [BLOCK_D, BLOCK_N], k_shared, k_operand)
    for m in range(0, M, BLOCK_M):
        qk = mma_v2(q, k_smem.load(k_layout), zeros)

As Triton's LICM pass does it: loads leave loops that write no memory, masked by whether there is a turn, and so do
buffer loads of AMD; Gluon runs no such pass, and LLVM moves nothing over barriers. What a tile is computed of moves
with it, and what thereby serves nothing any more goes, and what AMD's products read of it (`invariant_reads`).

Not here: tiles of which a branch decides, reads of shared memory into registers for others (Triton leaves those to the
loop, too), and what divides by a variable, which may be zero where a loop has no turn.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.counting import entered, upwards
from tt2gl.pipelining.effects import Effects, own_names
from tt2gl.pipelining.flow import Liveness, Names, inside, reads, writes
from tt2gl.pipelining.invariant_reads import Again, Read, again, reads_of
from tt2gl.pipelining.naming import names_of
from tt2gl.pipelining.static import called, constants, is_unrolled
from tt2gl.trees import nodes_in, python_tree

_READERS = {"load", "permute", "reshape"}
"""What is done to shared memory that leaves it as it is, as methods."""
_PRODUCTS = {"warpgroup_mma", "tcgen05_mma"}
"""What reads its operands from shared memory."""

_WRITES = ("atomic", "to_global", "warp_specialize")
"""What Gluon's own names of functions that write have in them."""


def without_invariant_tiles(text: str, functions: Collection[str]) -> str:
    """The text with the invariant tiles of the loops of these functions before them."""
    return loop_by_loop(text, functions, _edits)


def loop_by_loop(
    text: str, functions: Collection[str], edits: Callable[[ast.FunctionDef, Effects, Places], Sequence[Edit]]
) -> str:
    """The text of these functions edited anew as long as there are edits: those are of one loop at a time."""
    while (made := _with_one_loop_done(text, functions, edits)) != text:
        text = made
    return text


def _with_one_loop_done(
    text: str, functions: Collection[str], edits: Callable[[ast.FunctionDef, Effects, Places], Sequence[Edit]]
) -> str:
    tree = python_tree(text)
    helpers = {node.name: node for node in nodes_in(tree) if isinstance(node, ast.FunctionDef)}
    effects = Effects(helpers, own_names(tree))
    return in_functions(text, functions, lambda places, function: edits(function, effects, places))


def _edits(function: ast.FunctionDef, effects: Effects, places: Places) -> list[Edit]:
    """The edits of the first loop of a function that has such tiles, from the inside out."""
    live = Liveness()
    live.before(function.body, frozenset())
    loops = [each for each in inside(function.body) if isinstance(each, ast.For | ast.While)]
    for loop in reversed(loops):
        question = Loop(function, loop, turns_of(function, loop), effects, live.after[loop])
        if is_unrolled(loop) or not (moved := question.moved()):
            continue
        gone = [question.lines(each, places) for each in question.gone(moved)]
        other = question.again(moved, places)
        if other is not None:
            question.turns = f"({question.turns}) | ({other.turns})"
            gone += [places.lines(each) for each in other.lines]
        tiles = frozenset(name for each in moved if _fills(each) for name in writes(each))
        known = other.reads if other is not None else []
        read = reads_of(tiles, loop, question.changed - tiles, known, names_of(nodes_in(function)))
        left = [each for each in known if each.source not in {here.source for here in read}]
        taken = (Edit(*places.of(call), each.name) for each in read for call in each.calls)
        return [question.before(moved, [*read, *left], places), *taken, *_without(gone, places)]
    return []


def turns_of(function: ast.FunctionDef, loop: ast.For | ast.While) -> str | None:
    """Source that says whether a loop of a function has a turn."""
    return entered(loop, upwards(function), constants(function))


@dataclass
class Loop:
    """One loop. `turns`: source that says whether it has one; `after`: names that are read after it."""

    function: ast.FunctionDef
    loop: ast.For | ast.While
    turns: str | None
    effects: Effects
    after: Names
    known: dict[ast.stmt, frozenset[ast.stmt] | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        body = self.loop.body
        self.changed = writes(self.loop)
        self.bindings = [name for each in inside(body) for name in _bound(each)]
        head = self.loop.iter if isinstance(self.loop, ast.For) else self.loop.test
        self.carried = Liveness().before(body, frozenset()) | reads(head) | self.after
        calls = [node for node in nodes_in(self.loop) if isinstance(node, ast.Call)]
        self.reads_alone = not any(self._writes(call) for call in calls)
        # What buffer operations load serves loops of AMD, which fill the slots of their rings by stores.
        self.only_fills = not any(self._writes(call) for call in calls if not _fills_slot(call))

    def _writes(self, call: ast.Call) -> bool:
        """Whether a call may write to global memory, or make others' writes seen."""
        said = any(each in called(call) for each in _WRITES)
        return said or any(self.effects.written(call)) or self.effects.orders(call)

    def moved(self) -> list[ast.stmt]:
        """The statements that are to stand before the loop, in order: the tiles, and what they are computed of."""
        tiles = [each for each in self.loop.body if self._is_tile(each)]
        wanted = {part for each in tiles for part in self.needed(each) or ()}
        return [each for each in self.loop.body if each in wanted]

    def _is_tile(self, statement: ast.stmt) -> bool:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                tile = _is_load(statement) or _fills(statement) and self._is_kept(name)
                return tile and self.bindings.count(name) == 1 and self.needed(statement) is not None
        return False

    def _is_kept(self, name: str) -> bool:
        """Whether nothing but its first value is put into memory of that name, which may be another's elsewhere."""
        uses = sum(_is_read(node, name) for node in nodes_in(self.function))
        return uses == sum(_reads_memory(node, name) for node in nodes_in(self.function))

    def needed(self, statement: ast.stmt) -> frozenset[ast.stmt] | None:
        """The statements of the body that one needs before the loop, and itself; None where it must stay."""
        if statement not in self.known:
            self.known[statement] = None
            self.known[statement] = self._found(statement)
        return self.known[statement]

    def _found(self, statement: ast.stmt) -> frozenset[ast.stmt] | None:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name):
            return None
        if any(each is not statement and each.lineno == statement.end_lineno for each in self.loop.body):
            return None
        if writes(statement) & self.carried or len(statement.targets) > 1 or not self._may_move(statement.value):
            return None
        needed: frozenset[ast.stmt] = frozenset({statement})
        before = self.loop.body[: self.loop.body.index(statement)]
        for name in sorted(reads(statement) & self.changed):
            made = next((each for each in reversed(before) if name in writes(each)), None)
            parts = self.needed(made) if made is not None else None
            if parts is None:
                return None
            needed |= parts
        return needed

    def _may_move(self, value: ast.expr) -> bool:
        """Whether a value only computes or loads, and may do so where the loop has no turn."""
        for node in nodes_in(value):
            match node:
                case ast.BinOp(op=ast.FloorDiv() | ast.Mod()):
                    return False
                case ast.Call() if called(node) == "load":
                    whole = node is _uncast(value) and ast.unparse(node.func) == "gl.load"
                    if not whole or not self.reads_alone or self.turns is None or _is_volatile(node):
                        return False
                case ast.Call() if called(node) == "buffer_load":
                    if not self.only_fills or self.turns is None:
                        return False
                case ast.Call() if self.effects.trouble(node):
                    return False
        return True

    def gone(self, moved: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
        """The statements of the loop that nobody needs then: what moved, and what steps on variables of that alone."""
        for name in dict.fromkeys(name for each in moved for name in sorted(writes(each))):
            writers = [each for each in inside(self.loop.body) if name in _bound(each)]
            readers = [each for each in inside(self.loop.body) if name in _read(each) and each not in writers]
            steps = all(each in moved or each in self.loop.body and _steps(each) for each in writers)
            if len(writers) == 1 or steps and all(each in moved for each in readers):
                yield from writers

    def again(self, moved: Sequence[ast.stmt], places: Places) -> Again | None:
        """The statements where they stand again behind the loop, before one that does the same."""

        def said(statement: ast.stmt, turns: str) -> str:
            return replace(self, turns=turns).said(statement, places)

        return again(self.function, self.loop, moved, lambda loop: turns_of(self.function, loop), said)

    def before(self, moved: Sequence[ast.stmt], read: Sequence[Read], places: Places) -> Edit:
        """The statements, and what is read of the tiles, above the loop and its own comments."""
        indent = places.line(self.loop.lineno)[: self.loop.col_offset].decode()
        said = "".join(textwrap.indent(self.said(each, places), indent) for each in moved)
        said += "".join(f"{indent}{each.name} = {each.source}\n" for each in read)
        start, _ = places.lines(self.loop, comments=True)
        return Edit(start, start, said)

    def lines(self, statement: ast.stmt, places: Places) -> tuple[int, int]:
        """The bytes of a statement's lines, with its comments; those above a way to a product are the product's."""
        return places.lines(statement, comments=not self._is_way(statement))

    def _is_way(self, statement: ast.stmt) -> bool:
        """Whether a statement puts an operand into shared memory, or names what is put there alone."""
        readers = [each for each in self.loop.body if writes(statement) & reads(each)]
        return _fills(statement) or not _is_load(statement) and bool(readers) and all(map(_fills, readers))

    def said(self, statement: ast.stmt, places: Places) -> str:
        """A statement with its comments, at the margin; a load asks whether there is a turn, too."""
        start, end = self.lines(statement, places)
        text = places.raw[start:end].decode()
        assert isinstance(statement, ast.Assign)
        for load in reversed(_loads(statement)):
            text = self._masked(text, load, places, start)
        return textwrap.dedent(text)

    def _masked(self, text: str, load: ast.Call, places: Places, start: int) -> str:
        """The text of a load with the loop's condition in its mask."""
        mask = next((each.value for each in load.keywords if each.arg == "mask"), None)
        # A buffer operation takes offsets besides.
        others = 1 + (called(load) == "buffer_load")
        mask = load.args[others] if mask is None and len(load.args) > others else mask
        raw = text.encode()
        if mask is None:
            end = places.of(load.args[others - 1])[1] - start
            return (raw[:end] + f", mask={self.turns}".encode() + raw[end:]).decode()
        first, last = (place - start for place in places.of(mask))
        said = raw[first:last] if isinstance(mask, ast.Name | ast.Call) else b"(" + raw[first:last] + b")"
        return (raw[:first] + f"({self.turns}) & ".encode() + said + raw[last:]).decode()


def _is_load(statement: ast.stmt) -> bool:
    """Whether a statement gives a name what it loads, as it is or in another type."""
    return isinstance(statement, ast.Assign) and _uncast(statement.value) in _loads(statement)


def _uncast(value: ast.expr) -> ast.expr:
    """What is given another type where it is made, or the value itself."""
    match value:
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[_], keywords=[]):
            return _uncast(inner)
    return value


def _loads(statement: ast.stmt) -> list[ast.Call]:
    """The loads of a statement, in the order of the text."""
    calls = (node for node in nodes_in(statement) if isinstance(node, ast.Call))
    found = [each for each in calls if ast.unparse(each.func) == "gl.load" or called(each) == "buffer_load"]
    return sorted(found, key=lambda each: (each.lineno, each.col_offset))


def _fills(statement: ast.stmt) -> bool:
    """Whether a statement puts a value into shared memory of its own."""
    value = statement.value if isinstance(statement, ast.Assign) else None
    return isinstance(value, ast.Call) and called(value) == "allocate_shared_memory" and len(value.args) == 4


def _fills_slot(call: ast.Call) -> bool:
    """Whether a call stores to shared memory, which is a method of that: it takes a value alone."""
    return called(call) == "store" and len(call.args) == 1 and not call.keywords


def _is_read(node: ast.AST, name: str) -> bool:
    """Whether a node is a name that is read."""
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _reads_memory(node: ast.AST, name: str) -> bool:
    """Whether a node reads the shared memory of that name, and no more."""
    match node:
        case ast.Attribute(value=ast.Name(id=read), attr=method):
            return read == name and method in _READERS
        case ast.Call(args=args) if called(node) in _PRODUCTS:
            return any(isinstance(each, ast.Name) and each.id == name for each in args[:2])
    return False


def _is_volatile(load: ast.Call) -> bool:
    return any(each.arg == "volatile" for each in load.keywords)


def _bound(statement: ast.stmt) -> list[str]:
    """The names that a statement itself binds."""
    if isinstance(statement, ast.For):
        return [*writes(statement.target)]
    return [] if isinstance(statement, ast.While | ast.If) else [*writes(statement)]


def _read(statement: ast.stmt) -> Names:
    """The names that a statement itself reads."""
    match statement:
        case ast.For(iter=head) | ast.While(test=head) | ast.If(test=head):
            return reads(head)
    return reads(statement)


def _steps(statement: ast.stmt) -> bool:
    """Whether a statement does nothing but step a variable."""
    return isinstance(statement, ast.AugAssign) and not any(isinstance(each, ast.Call) for each in nodes_in(statement))


def _without(gone: Sequence[tuple[int, int]], places: Places) -> Iterator[Edit]:
    """The edits that take lines away, by their bytes, and one of the empty lines that would meet."""
    numbers = {start: number for number, start in enumerate([*places.starts, len(places.raw)], 1)}
    left = dict(sorted(gone))
    while left:
        start = end = next(iter(left))
        while end in left:
            end = left.pop(end)
        is_first = not places.line(numbers[start] - 1).strip()
        if is_first and end < len(places.raw) and not places.line(numbers[end]).strip():
            end += len(places.line(numbers[end]))
        yield Edit(start, end, "")
