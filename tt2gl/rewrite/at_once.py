"""Rule `bounces` on AMD: an operand leaves shared memory as soon as it is there, so that the next takes its place.

So Triton has it there: a block of small matrices takes 8 KiB of LDS and not 16. And an operand that is converted,
which goes through memory, too, is so before the other is put there; what they are added to is converted before both.
A second one that is turned is converted first, too, for Triton converts it where it is turned, above the product.
What other products read alike leaves it, too: it is read once in the end (`pipelining.equal_reads`).
Not so on NVIDIA: behind a barrier ptxas has all of the first operand in registers while the second is put there. Two
tiles of 64x64 and 64x32 that ordinary instructions multiply spill 1408 registers a thread for 140 on sm90.

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)            # before
    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)
    acc = gl.amd.cdna3.mfma(x_smem.load(lhs_layout), w_smem.load(rhs_layout), acc)

    x_smem = gl.allocate_shared_memory(x.dtype, [BLOCK_M, BLOCK_K], x_shared, x)            # after
    x_lhs = x_smem.load(lhs_layout)
    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)
    acc = gl.amd.cdna3.mfma(x_lhs, w_smem.load(rhs_layout), acc)

    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)            # before
    acc = gl.amd.cdna3.mfma(gl.convert_layout(x, lhs_layout), w_smem.load(rhs_layout), acc)

    x_lhs = gl.convert_layout(x, lhs_layout)                                                # after
    w_smem = gl.allocate_shared_memory(w.dtype, [BLOCK_K, BLOCK_N], w_shared, w)
    acc = gl.amd.cdna3.mfma(x_lhs, w_smem.load(rhs_layout), acc)
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.bounces import bounce_of, with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import first_name, names_in
from tt2gl.rewrite.reads import SIDES, Blocks

_PRODUCTS = ("mfma", "wmma", "dot_fma")
_SUM = "sum"
"""What that to which a product is added is called after, where it has a name of its own."""


def read_at_once(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products by AMD's instructions read what else would wait in memory for another operand."""
    if not any(isinstance(node, cst.Call) and is_amd_product(node) for node in walk(function)):
        return function
    made = function.visit(_AtOnce(names_in(function), _read_alike(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


def _read_alike(function: cst.FunctionDef) -> frozenset[str]:
    """The names of memory that is made once, and nothing is done with but to read it in one layout, several times."""
    made = Counter(found[0] for line in walk(function) if (found := _put(line)) is not None)
    mentioned = Counter(names_in(function))
    reads: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for node in walk(function):
        match node:
            case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="load")), args=[_]):
                reads[name][cst.Module([]).code_for_node(node)] += 1
    alike = {name for name, found in reads.items() if len(found) == 1 and found.total() == mentioned[name] - 1 > 1}
    return frozenset(name for name in alike if made[name] == 1)


def _put(line: cst.CSTNode) -> tuple[str, str] | None:
    return bounce_of(line) if isinstance(line, cst.BaseStatement) else None


class _AtOnce(Blocks):
    """Reads the operands of each block's products; `alike`: the memory that all products read in one layout."""

    def __init__(self, mentioned: list[str], alike: Collection[str]) -> None:
        super().__init__(mentioned)
        self.alike = alike

    def _stays(self, name: str) -> bool:
        """Whether memory is read again later."""
        return self.mentioned.count(name) > 2 and name not in self.alike

    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        body = list(updated_node.body)
        reads: dict[int, cst.BaseStatement] = {}
        for memory, reader, name in _waiting(body):
            line = body[reader]
            assert isinstance(line, cst.SimpleStatementLine)
            found = list(reads_of(line, name))
            if len(found) == 1 and (self.mentioned.count(name) == 2 or name in self.alike):
                side, reading = found[0]
                operand = self.unused(f"{name.removesuffix('_smem')}_{side}")
                body[reader] = with_replaced(line, {reading: cst.Name(operand)})
                reads[memory] = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(operand))], reading)])
        made = [each for at, line in enumerate(body) for each in (line, reads.get(at)) if each is not None]
        return updated_node.with_changes(body=self._converted_first(made))

    def _converted_first(self, body: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """The statements with what products alone read or convert above what stays in memory for others, too."""
        made: list[cst.BaseStatement] = []
        for line in body:
            start = len(made)
            while start and bounce_of(made[start - 1]) is not None:
                start -= 1
            put = {found[0] for each in made[start:] if (found := bounce_of(each)) is not None}
            again = any(map(self._stays, put))
            line, above = self._read_first(line, made, start) if again else (line, [])
            for side, operand in _converted(line, put):
                if side == "rhs" and not again and not _is_turned(operand):
                    continue  # the other is read before it, and gone by then
                assert isinstance(line, cst.SimpleStatementLine)
                name = self.unused(f"{first_name(operand)}_{side}")
                line = with_replaced(line, {operand: cst.Name(name)})
                above.append(cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], operand)]))
            if above:
                leading = getattr(made[start], "leading_lines", ())
                made[start] = made[start].with_changes(leading_lines=[])
                above[0] = above[0].with_changes(leading_lines=leading)
            made[start:start] = above
            made.append(line)
        return made

    def _read_first(
        self, line: cst.BaseStatement, made: list[cst.BaseStatement], start: int
    ) -> tuple[cst.BaseStatement, list[cst.BaseStatement]]:
        """A product's statement with what it alone reads of memory put there and read first, and the lines for that.

        They are taken from those `made` that come after one which stays in memory.
        """
        above: list[cst.BaseStatement] = []
        stays = False
        for put in made[start:]:
            name = (bounce_of(put) or ("",))[0]
            found = list(reads_of(line, name))
            if stays and self.mentioned.count(name) == 2 and len(found) == 1:
                assert isinstance(line, cst.SimpleStatementLine)
                side, reading = found[0]
                operand = self.unused(f"{name.removesuffix('_smem')}_{side}")
                line = with_replaced(line, {reading: cst.Name(operand)})
                made.remove(put)
                above += [put, cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(operand))], reading)])]
            stays = stays or self._stays(name)
        return line, above


def _waiting(body: Sequence[cst.BaseStatement]) -> Iterator[tuple[int, int, str]]:
    """Statements that put an operand into memory with another after it, the statement that reads it, and its name."""
    for at, line in enumerate(body):
        if (bounce := bounce_of(line)) is None:
            continue
        others = 0
        for after in range(at + 1, len(body)):
            if bounce_of(body[after]) is not None:
                others += 1
            elif list(reads_of(body[after], bounce[0])):
                if others:
                    yield at, after, bounce[0]
                break


def _converted(line: cst.BaseStatement, put: Collection[str]) -> list[tuple[str, cst.BaseExpression]]:
    """What a statement's one product converts, its sum first, where an operand is read from memory `put` above."""
    products = [node for node in walk(line) if isinstance(node, cst.Call) and is_amd_product(node)]
    if len(products) != 1 or not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return []
    operands = [arg.value for arg in products[0].args[:3]]
    if not any(set(names_in(operand)) & set(put) for operand in operands):
        return []
    sides = list(zip((*SIDES, _SUM), operands, strict=False))
    return [
        (side, operand)
        for side, operand in (*sides[2:], *sides[:2])
        if not set(names_in(operand)) & set(put) and _is_conversion(operand)
    ]


def _is_conversion(operand: cst.BaseExpression) -> bool:
    """Whether an expression converts a layout, and calls nothing that may do more than compute."""
    called = [node.func for node in walk(operand) if isinstance(node, cst.Call)]
    names = {each.attr.value for each in called if isinstance(each, cst.Attribute)}
    return all(isinstance(each, cst.Attribute) for each in called) and "convert_layout" in names and "load" not in names


def _is_turned(operand: cst.BaseExpression) -> bool:
    """Whether an expression transposes a tensor: where it stands, Triton converts that, which is above the product."""
    names = {node.attr.value for node in walk(operand) if isinstance(node, cst.Attribute)}
    return not names.isdisjoint(("T", "trans", "permute"))


def reads_of(line: cst.BaseStatement, name: str) -> Iterator[tuple[str, cst.Call]]:
    """The operands of a statement's products that are read from some memory, and cast, with the side they are on."""
    if not isinstance(line, cst.SimpleStatementLine):
        return
    for node in walk(line):
        if not isinstance(node, cst.Call) or not is_amd_product(node):
            continue
        for side, arg in zip(SIDES, node.args, strict=False):
            match arg.value:
                case (
                    cst.Call(func=cst.Attribute(value=cst.Name(value=memory), attr=cst.Name(value="load")))
                    | cst.Call(
                        func=cst.Attribute(
                            value=cst.Call(
                                func=cst.Attribute(value=cst.Name(value=memory), attr=cst.Name(value="load"))
                            ),
                            attr=cst.Name(value="to"),
                        )
                    ) as reading
                ) if memory == name:
                    yield side, reading


def is_amd_product(node: cst.Call) -> bool:
    """Whether a call is a product by one of AMD's instructions."""
    match node.func:
        case cst.Attribute(attr=cst.Name(value=called)) | cst.Name(value=called):
            return called.removeprefix(MARK).startswith(_PRODUCTS)
    return False
