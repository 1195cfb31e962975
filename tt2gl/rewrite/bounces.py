"""Rule `bounces`: a value goes to an instruction's operand through shared memory once, and as soon as it is there.

Nothing after Gluon's frontend joins two such allocations, as they can be written to. The way through shared memory goes
with the value, as in Triton's `reorder-instructions` pass, where a tile of a ring is read between the two: ptxas moves
no such read down over the barrier of that way, and holds its registers across. Two products of 128x128 tiles spill 60
registers a thread for 284 on sm120. That pass is NVIDIA's, and so only what `mma_v2` reads moves. An operand that is
converted in the product's call gets a line and a name of its own there, `x_lhs`. What is read into a variable, as its
product has it from a ring on the other side of a branch, is read below all other ways of its block, on NVIDIA. A way
that a branch has, too, goes above the branch, and serves both; one that stands above it serves the branch.

    gate = gate_ring.load(rhs_layout)                                           # before
    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)
    gate_acc = mma_v2(x_smem.load(lhs_layout), gate, gate_acc)
    x_smem_2 = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)
    up_acc = mma_v2(x_smem_2.load(lhs_layout), up, up_acc)

    # after: below the line that loads x
    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)
    gate = gate_ring.load(rhs_layout)
    gate_acc = mma_v2(x_smem.load(lhs_layout), gate, gate_acc)
    up_acc = mma_v2(x_smem.load(lhs_layout), up, up_acc)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from tt2gl.names import claimed
from tt2gl.qualified_names import walk
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.visitors import Editor, Reader
from tt2gl.words import RING_MARK

_ALLOCATE = ("gl", "allocate_shared_memory")
_PRODUCT = "mma_v2"


def settled(function: cst.FunctionDef, *, read_at_once: bool = False) -> cst.FunctionDef:
    """A function in which no value goes through shared memory twice for operands of one kind.

    `read_at_once`: what is read into variables stays where it is, as Triton's compiler for AMD has it.
    """
    named = {node.value.removeprefix(MARK) for node in walk(function) if isinstance(node, cst.Name)}
    if not named & {_ALLOCATE[1], _PRODUCT}:
        return function
    blocks = _Blocks(set(names_in(function)), read_below=not read_at_once)
    made = function.visit(blocks)
    assert isinstance(made, cst.FunctionDef)
    made = made.visit(_Renamed(blocks.renamed)) if blocks.renamed else made
    assert isinstance(made, cst.FunctionDef)
    return made


class _Blocks(Editor):
    """Joins and moves the bounces of each block; `renamed`: the names of those joined, each with the other's.

    `taken`: the function's variables, which grow by those added. `above`: the names of those that stand above a branch
    that shares them.
    """

    def __init__(self, taken: set[str], *, read_below: bool) -> None:
        super().__init__()
        self.taken = taken
        self.read_below = read_below
        self.renamed: dict[str, str] = {}
        self.above: set[str] = set()

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = list(updated_node.body)
        made: list[cst.BaseStatement] = []
        known: dict[str, str] = {}
        comments: Sequence[cst.EmptyLine] = ()
        for at, line in enumerate(body):
            if comments:
                line, comments = under(line, comments), ()
            if isinstance(line, cst.If):
                line = self._shared(self._inheriting(line, known), made, body[at + 1 :], known)
            bounce = bounce_of(line)
            if bounce is None:
                made.append(self._with_earlier_conversions(line, made, known))
                changed = names_bound(line)
                known = {source: name for source, name in known.items() if not changed & names_mentioned(source)}
                continue
            name, source = bounce
            earlier = known.setdefault(source, name)
            if earlier != name or name in self.above:
                self.renamed |= {name: earlier} if earlier != name else {}
                comments = comments_above(line)
                continue
            place = _earliest(made, source) if _for_registers(name, body[at + 1 :]) else len(made)
            if place < len(made):
                comments = comments_above(line)
                line = line.with_changes(leading_lines=())
            made.insert(place, line)
        return updated_node.with_changes(body=_read_below(made) if self.read_below else made)

    def _inheriting(self, line: cst.If, known: Mapping[str, str]) -> cst.If:
        """A branch without the ways that stand above it already."""
        ways = _Ways()
        line.visit(ways)
        changed = names_bound(line)
        still = {source: name for source, name in known.items() if not changed & names_mentioned(source)}
        again = {inner: name for source, name in still.items() for inner in ways.found.get(source, [])}
        if not again:
            return line
        self.renamed |= again
        return cst.ensure_type(line.visit(_Without(frozenset(again))), cst.If)

    def _shared(
        self,
        line: cst.If,
        above: list[cst.BaseStatement],
        below: Sequence[cst.BaseStatement],
        known: dict[str, str],
    ) -> cst.If:
        """A branch without the ways that stand below it, too: those go `above` it, where both find them."""
        ways = _Ways()
        line.visit(ways)
        changed = names_bound(line)
        for at, each in enumerate(below):
            name, source = bounce_of(each) or ("", "")
            inner = ways.found.get(source, [])
            if inner and source not in known and not changed & names_mentioned(source):
                rest = cst.ensure_type(line.visit(_Without(frozenset(inner))), cst.If)
                if _for_registers(name, below[at + 1 :]) and all(_for_registers(own, [rest]) for own in inner):
                    line, known[source] = rest, name
                    above.append(each.with_changes(leading_lines=()))
                    self.above.add(name)
                    self.renamed |= dict.fromkeys(inner, name)
            changed |= names_bound(each)
        return line

    def _with_earlier_conversions(
        self, line: cst.BaseStatement, above: list[cst.BaseStatement], known: dict[str, str]
    ) -> cst.BaseStatement:
        """A product whose operands are converted further up, where tiles are read between; those lines go there."""
        if not isinstance(line, cst.SimpleStatementLine):
            return line
        found = _Conversions()
        line.visit(found)
        names: dict[cst.CSTNode, cst.BaseExpression] = {}
        for side, variable, conversion in found.conversions:
            source = cst.Module([]).code_for_node(conversion)
            if source not in known:
                place = _earliest(above, source)
                if place == len(above):
                    continue
                known[source] = claimed(f"{variable}_{side}", self.taken)
                assigned = cst.Assign([cst.AssignTarget(cst.Name(known[source]))], conversion)
                above.insert(place, cst.SimpleStatementLine([assigned]))
            names[conversion] = cst.Name(known[source])
        return with_replaced(line, names) if names else line


class _Ways(Reader):
    """The names of the shared memory that blocks make of variables, by the source."""

    def __init__(self) -> None:
        self.found: dict[str, list[str]] = {}

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        if (bounce := bounce_of(node)) is not None:
            self.found.setdefault(bounce[1], []).append(bounce[0])


class _Without(Editor):
    """Blocks without what makes some shared memory."""

    def __init__(self, names: frozenset[str]) -> None:
        super().__init__()
        self.names = names

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        ways = [(each, bounce_of(each)) for each in updated_node.body]
        kept = [each for each, bounce in ways if bounce is None or bounce[0] not in self.names]
        return updated_node.with_changes(body=kept)


class _Replaced(Editor):
    def __init__(self, made: Mapping[cst.CSTNode, cst.BaseExpression]) -> None:
        super().__init__()
        self.made = made

    def on_leave(self, original_node: cst.CSTNode, updated_node: cst.CSTNode) -> cst.CSTNode:  # type: ignore[override]
        left: cst.CSTNode = super().on_leave(original_node, updated_node)
        return self.made.get(original_node, left)


def with_replaced(
    line: cst.SimpleStatementLine, made: Mapping[cst.CSTNode, cst.BaseExpression]
) -> cst.SimpleStatementLine:
    """A statement with other expressions for some; all at once, as what is above an edit is new."""
    changed = line.visit(_Replaced(made))
    assert isinstance(changed, cst.SimpleStatementLine)
    return changed


class _Renamed(Editor):
    def __init__(self, names: dict[str, str]) -> None:
        super().__init__()
        self.names = names

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        name = updated_node.value
        while name in self.names:
            name = self.names[name]
        return updated_node.with_changes(value=name)


def bounce_of(line: cst.BaseStatement) -> tuple[str, str] | None:
    """The name and the source of shared memory that a statement makes of a variable; None where it does not."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(
                        func=cst.Attribute(value=cst.Name(value=module), attr=cst.Name(value=called)),
                        args=[_, _, _, cst.Arg(value=cst.Name() | cst.Call(args=[cst.Arg(value=cst.Name())]))],
                    ) as made,
                )
            ]
        ) if (module.removeprefix(MARK), called) == _ALLOCATE:
            return name, cst.Module([]).code_for_node(made)
    return None


def _earliest(above: Sequence[cst.BaseStatement], source: str) -> int:
    """Where a value can go on its way in a block: where it is, or above tiles read after its last binding."""
    read = names_mentioned(source)
    bound = [at for at, line in enumerate(above) if names_bound(line) & read]
    place = bound[-1] + 1 if bound else len(above)
    while place < len(above) and bounce_of(above[place]):
        place += 1
    return place if any(ring_read(line) for line in above[place:]) else len(above)


def _read_below(body: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """A block whose values on their way are read below those that follow, and below tiles of rings, as Triton's are."""
    for at in reversed(range(len(body))):
        if (name := _memory_read(body[at])) is None:
            continue
        place, made = at, names_bound(body[at])
        for below in range(at + 1, len(body)):
            bounce = bounce_of(body[below])
            if made & set(names_in(body[below])) or bounce is not None and bounce[0] == name:
                break
            if bounce is not None or ring_read(body[below]) is not None:
                place = below
        if any((bounce := bounce_of(line)) is not None and bounce[0] == name for line in body[:at]):
            body.insert(place, body.pop(at))
    return body


def _memory_read(line: cst.BaseStatement) -> str | None:
    """The shared memory that a statement reads into a variable; None for other statements."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name())],
                    value=cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="load"))),
                )
            ],
            leading_lines=[],
        ):
            return name
    return None


@dataclass(frozen=True)
class RingRead:
    """A statement that gives a tile of a ring a `name` in registers: `reading` is `tile.load(layout)`."""

    name: str
    reading: cst.Call
    tile: cst.Call


def ring_read(line: cst.BaseStatement) -> RingRead | None:
    """What a statement reads of a ring into registers; None for other statements."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    targets=[cst.AssignTarget(target=cst.Name(value=name))],
                    value=cst.Call(
                        func=cst.Attribute(
                            value=cst.Call(func=cst.Name(value=ring)) as tile, attr=cst.Name(value="load")
                        )
                    ) as reading,
                )
            ]
        ) if ring.startswith(f"{MARK}{RING_MARK}"):
            return RingRead(name, reading, tile)
    return None


class _Conversions(Reader):
    """The operands of products by `mma_v2` that are variables in another layout: side, variable and conversion."""

    def __init__(self) -> None:
        self.conversions: list[tuple[str, str, cst.Call]] = []

    def visit_Call(self, node: cst.Call) -> None:
        if not is_product(node):
            return
        for side, arg in zip(("lhs", "rhs"), node.args, strict=False):
            match arg.value:
                case (
                    cst.Call(
                        func=cst.Attribute(value=cst.Name(value=module), attr=cst.Name(value="convert_layout")),
                        args=[cst.Arg(value=cst.Name(value=variable)), _],
                    ) as conversion
                ) if module.removeprefix(MARK) == "gl":
                    self.conversions.append((side, variable, conversion))


def is_product(node: cst.Call) -> bool:
    """Whether a call is a product of operands in registers."""
    return isinstance(node.func, cst.Name) and node.func.value.removeprefix(MARK) == _PRODUCT


def _for_registers(name: str, below: Sequence[cst.BaseStatement]) -> bool:
    """Whether all that reads shared memory are products by `mma_v2`, from registers."""
    uses = _Uses(name)
    for line in below:
        line.visit(uses)
    return uses.mentions == uses.loads > 0


class _Uses(Reader):
    """How often a name is mentioned, and how often as the memory that an operand is loaded from."""

    def __init__(self, name: str) -> None:
        self.name, self.mentions, self.loads = name, 0, 0

    def visit_Name(self, node: cst.Name) -> None:
        self.mentions += node.value == self.name

    def visit_Call(self, node: cst.Call) -> None:
        if is_product(node):
            for arg in node.args:
                match arg.value:
                    case cst.Call(func=cst.Attribute(value=cst.Name(value=self.name), attr=cst.Name(value="load"))):
                        self.loads += 1


def names_mentioned(source: str) -> set[str]:
    """The variables that an expression mentions."""
    return set(names_in(cst.parse_expression(source)))


def names_bound(line: cst.BaseStatement) -> set[str]:
    """The names that a statement binds, itself or in its blocks."""
    targets = _Targets()
    line.visit(targets)
    return targets.names


class _Targets(Reader):
    def __init__(self) -> None:
        self.names: set[str] = set()

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.names |= set(names_in(node.target))

    def visit_AugAssign(self, node: cst.AugAssign) -> None:
        self.names |= set(names_in(node.target))

    def visit_AnnAssign(self, node: cst.AnnAssign) -> None:
        self.names |= set(names_in(node.target))

    def visit_NamedExpr(self, node: cst.NamedExpr) -> None:
        self.names |= set(names_in(node.target))

    def visit_For(self, node: cst.For) -> None:
        self.names |= set(names_in(node.target))


def comments_above(line: cst.BaseStatement) -> Sequence[cst.EmptyLine]:
    """The lines above a plain statement that belong to it."""
    return line.leading_lines if isinstance(line, cst.SimpleStatementLine) else ()


def under(line: cst.BaseStatement, comments: Sequence[cst.EmptyLine]) -> cst.BaseStatement:
    """A statement with lines above those that it has."""
    return line.with_changes(leading_lines=[*comments, *getattr(line, "leading_lines", ())])
