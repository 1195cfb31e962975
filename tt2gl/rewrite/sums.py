"""Rule `sums`: what a product adds up in is made above what its operands come by, which it alone reads.

So Triton has it: what a product adds up in is made first, then its operands. Where that is another product, made
inside the call, it would come last, and the operands, read or converted by then, wait in registers beside it. A chunk
of 128 rows of retention spills 94 registers a thread for 380 on gfx1201, where Triton's kernel spills 80; one of linear
attention by ordinary instructions spills 2,414 for 460 on sm80, where Triton's spills 496. On NVIDIA what is computed
of values at hand is made first, too, for `mma_v2`: a state of retention spills 22 registers a thread for 30 on sm80.

    x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)                            # before
    s_smem = gl.allocate_shared_memory(s.dtype, [K, N], s_shared, s)
    out = gl.amd.rdna4.wmma(x_smem.load(lhs), v, gl.amd.rdna4.wmma(q, s_smem.load(rhs), acc) * scale)

    s_smem = gl.allocate_shared_memory(s.dtype, [K, N], s_shared, s)                            # after
    out_sum = gl.amd.rdna4.wmma(q, s_smem.load(rhs), acc) * scale
    x_smem = gl.allocate_shared_memory(x.dtype, [M, K], x_shared, x)
    out = gl.amd.rdna4.wmma(x_smem.load(lhs), v, out_sum)

    v_operand = (v * until_end[:, None]).to(k.dtype)                                            # before
    v_smem = gl.allocate_shared_memory(v_operand.dtype, [K, N], v_shared, v_operand)
    state = mma_v2(k, v_smem.load(rhs), decay * state)

    state_sum = decay * state                                                                   # after
    v_operand = (v * until_end[:, None]).to(k.dtype)
    v_smem = gl.allocate_shared_memory(v_operand.dtype, [K, N], v_shared, v_operand)
    state = mma_v2(k, v_smem.load(rhs), state_sum)

    out = mma_v2(x_smem.load(lhs), v_smem.load(rhs), mma_v2(q_smem.load(lhs), s_smem.load(rhs), acc))   # before

    out_sum = mma_v2(q_smem.load(lhs), s_smem.load(rhs), acc)                                           # after
    out = mma_v2(x_smem.load(lhs), v_smem.load(rhs), out_sum)
"""

from __future__ import annotations

import libcst as cst

from tt2gl.qualified_names import walk
from tt2gl.rewrite.at_once import is_amd_product
from tt2gl.rewrite.bounces import bounce_of, is_product, under, with_replaced
from tt2gl.rewrite.build import MARK
from tt2gl.rewrite.dots import names_in
from tt2gl.rewrite.reads import Blocks

_WAYS = {"allocate_shared_memory", "as_operand", "cast", "convert_layout", "permute", "reshape", "to", "trans"}
"""What is called on the way of a value to an operand."""


def summed_first(function: cst.FunctionDef) -> cst.FunctionDef:
    """A function whose products are added to sums that stand above their operands."""
    if not any(_sum_of(line) for line in walk(function) if isinstance(line, cst.SimpleStatementLine)):
        return function
    made = function.visit(_SummedFirst(names_in(function)))
    assert isinstance(made, cst.FunctionDef)
    return made


class _SummedFirst(Blocks):
    def leave_IndentedBlock(self, original_node: cst.IndentedBlock, updated_node: cst.IndentedBlock) -> cst.BaseSuite:
        made: list[cst.BaseStatement] = []
        for line in updated_node.body:
            found = _sum_of(line) if isinstance(line, cst.SimpleStatementLine) else None
            if found is None or not isinstance(line, cst.SimpleStatementLine):
                made.append(line)
            else:
                made += self._apart(line, *found, made)
        return updated_node.with_changes(body=made)

    def _apart(
        self, line: cst.SimpleStatementLine, name: str, summed: cst.BaseExpression, above: list[cst.BaseStatement]
    ) -> list[cst.BaseStatement]:
        """The statements of a product, with those that it takes from what is `above`: its sum's, then its operands'."""
        start, used = len(above), names_in(line)
        while start and self._on_its_way(above[start - 1], used):
            start -= 1
            used = [*used, *names_in(above[start])]
        needed = set(names_in(summed))
        first: list[cst.BaseStatement] = []
        rest: list[cst.BaseStatement] = []
        for each in reversed(above[start:]):
            is_needed = _target(each) in needed
            (first if is_needed else rest).insert(0, each)
            needed |= set(names_in(each)) if is_needed else set()
        products = [node for node in walk(line) if isinstance(node, cst.Call) and is_product(node)]
        # What goes through memory on its way to `mma_v2` does so early, as it is written: it has barriers of its own.
        if len(products) == 2 if rest else not _reads_first(line, summed):
            return [line]
        del above[start:]
        chosen = self.unused(f"{name}_sum")
        assigned = cst.Assign([cst.AssignTarget(cst.Name(chosen))], summed)
        amd = any(is_amd_product(node) for node in walk(line) if isinstance(node, cst.Call))
        lines = [*first, cst.SimpleStatementLine([assigned]), *(_puts_last(rest) if amd else rest)]
        product = with_replaced(line, {summed: cst.Name(chosen)})
        if not rest:
            lines[0] = under(lines[0], line.leading_lines)
            return [*lines, product.with_changes(leading_lines=[])]
        return _commented(lines, rest[0], product)

    def _on_its_way(self, line: cst.BaseStatement, used: list[str]) -> bool:
        """Whether a statement only brings a value to where the statements below, which mention `used`, read it."""
        name = _target(line)
        if not name or used.count(name) + 1 != self.mentioned.count(name):
            return False
        calls = [node.func for node in walk(line) if isinstance(node, cst.Call)]
        return bool(calls) and all(_called(each) in _WAYS for each in calls)


def _puts_last(lines: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """The statements with what goes through memory on its own above what is put there to be read by the product."""
    put = {found[0] for line in lines if (found := bounce_of(line)) is not None}
    later = [line for line in lines if put.intersection(names_in(line))]
    return [*(line for line in lines if line not in later), *later]


def _commented(
    lines: list[cst.BaseStatement], moved: cst.BaseStatement, line: cst.SimpleStatementLine
) -> list[cst.BaseStatement]:
    """The statements, with the comments of what was the first of them on top."""
    at = lines.index(moved)
    comments = getattr(moved, "leading_lines", ())
    lines[at] = moved.with_changes(leading_lines=[])
    lines[0] = lines[0].with_changes(leading_lines=[*comments, *getattr(lines[0], "leading_lines", ())])
    return [*lines, line]


def _sum_of(line: cst.SimpleStatementLine) -> tuple[str, cst.BaseExpression] | None:
    """The variable that a statement gives a product, and the sum that this is added to, which is computed there."""
    name = _target(line)
    calls = [node for node in walk(line) if isinstance(node, cst.Call)]
    amd, plain = [node for node in calls if is_amd_product(node)], [node for node in calls if is_product(node)]
    products = amd or plain
    if not name or not products or len(products) > 2 or len(products[0].args) < 3:
        return None
    summed = products[0].args[2].value
    if amd or len(products) == 2:
        return (name, summed) if any(node in products[1:] for node in walk(summed)) else None
    computed = isinstance(summed, cst.BinaryOperation) and not any(isinstance(node, cst.Call) for node in walk(summed))
    return (name, summed) if computed else None


def _reads_first(line: cst.SimpleStatementLine, summed: cst.BaseExpression) -> bool:
    """Whether a product of NVIDIA's reads or converts an operand in its call, before it makes its sum of another."""
    inside = {id(node) for node in walk(summed)}
    calls = [node for node in walk(line) if isinstance(node, cst.Call)]
    products = [node for node in calls if is_product(node) or _called(node.func) == "dot_fma"]
    own = next((node for node in products if id(node) not in inside), None)
    if own is None or len(products) < 2:
        return False
    return any(isinstance(each.value, cst.Call) for each in own.args[:2])


def _target(line: cst.BaseStatement) -> str:
    """The one variable that a statement binds; "" where it does anything else."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])]):
            return name
    return ""


def _called(function: cst.BaseExpression) -> str:
    match function:
        case cst.Attribute(attr=cst.Name(value=name)) | cst.Name(value=name):
            return name.removeprefix(MARK)
    return ""
