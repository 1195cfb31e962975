"""Rule `hoist`: what every turn of a loop computes alike is computed once, before the loop.

    for k in range(0, K, BLOCK_K):                                                            # before
        a = gl.load(a_ptr + offs_m[:, None] * stride_am + (k + offs_k)[None, :], mask=offs_m[:, None] < M)

    a_base = a_ptr + offs_m[:, None] * stride_am                                              # after
    offs_m_mask = offs_m[:, None] < M
    for k in range(0, K, BLOCK_K):
        a = gl.load(a_base + (k + offs_k)[None, :], mask=offs_m_mask)

Triton's LICM pass moves such tiles, divisions and functions out of loops; Gluon runs none. LLVM moves most of them
later, not all (no division), and leaves ptxas another schedule: rows of a batched product were addressed through
uniform registers, which took a third more instructions a turn, and a division in the loop of a norm had half of the
next loads wait for it; a loop over splits that LLVM unrolls took 31 registers for Triton's 24 with a division by how
many there are, and one of a softmax 76 for 48 with the logarithm of a row. Names of columns say tiles as their
expansions do: a norm's gradient took 191 registers for 168 (sm80). They do not on AMD: such stays where its compiler
has it, another gradient took 82 for 74. Scalars and rows but for divisions and functions are left to LLVM, and so is
what stands before the loop in the same words, as in a prologue: the compiler finds that by itself.

A row that is converted to be read along a tile's dimension is converted before the loop, too, as Triton does it where
the expanded row has left the loop: each turn would have it pass shared memory between two barriers.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from tt2gl.edits import Edit, Places, in_functions
from tt2gl.pipelining.flow import Names, inside, reads, writes
from tt2gl.pipelining.naming import Fresh, names_of
from tt2gl.pipelining.static import bound, called, constants, is_static, is_unrolled
from tt2gl.trees import nodes_in

_TOTAL = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.BitAnd, ast.BitOr, ast.BitXor)
"""Operators that may be carried out where a loop has no turn at all."""
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_CEILING = "cdiv"
_CONVERSION = "convert_layout"
_FUNCTIONS = {"cos", "div_rn", "erf", "exp", "exp2", "fdiv", "log", "log2", "rsqrt", "sin", "sqrt", "sqrt_rn"}
_OF_MODULES = {_CEILING, _CONVERSION, *_FUNCTIONS}
_FOLDS = {"sum", "max", "min", "reduce"}
_MASKS = (ast.BitAnd, ast.BitOr, ast.BitXor)


def without_invariants(text: str, functions: Collection[str], *, columns: bool = True) -> str:
    """The text with the invariants of the loops of these functions before them; `columns`: with what names such."""
    return in_functions(text, functions, lambda places, function: _Function(places, function, columns).edits())


@dataclass(frozen=True)
class _Around:
    """A loop, and the source of the expressions that are computed before it."""

    loop: ast.For | ast.While
    known: frozenset[str]


@dataclass
class _Function:
    """One function; `made`: by loop, names of what is computed before it, by their source and the branches it is in."""

    places: Places
    function: ast.FunctionDef
    by_columns: bool
    made: dict[ast.stmt, dict[tuple[str, str], str]] = field(default_factory=dict)
    uses: list[Edit] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fresh = Fresh(names_of(nodes_in(self.function)))
        self.constexprs, self.variables = constants(self.function), bound(self.function)
        self.columns = _columns(self.function) if self.by_columns else frozenset()

    def edits(self) -> list[Edit]:
        """The replaced expressions, and the statements before the loops."""
        self._block(self.function.body, (), frozenset(), "")
        return [*self.uses, *(self._before(loop, steps) for loop, steps in self.made.items())]

    def _block(
        self, block: Sequence[ast.stmt], around: tuple[_Around, ...], known: frozenset[str], branch: str
    ) -> None:
        """Go through a block, before which the expressions of `known` are computed, and which is in this `branch`."""
        for statement in block:
            match statement:
                case ast.For() | ast.While() if not is_unrolled(statement):
                    # In a branch, what is before the loop is not before those around it.
                    outer = () if branch else around
                    self._block(statement.body, (*outer, _Around(statement, known)), known, "")
                    continue
                case ast.If(test=test, body=body, orelse=orelse):
                    # A branch that is not taken may name what is None: nothing of it moves past the branch, but for
                    # rows, which are as well under a branch before the loop.
                    kept = around if self._is_static(test) else ()
                    said, both = ast.unparse(test), f"{branch} and " if branch else ""
                    self._block(body, kept, known, f"{both}{_factor(test, said)}")
                    self._block(orelse, kept, known, f"{both}not {_factor(test, said)}")
                    continue
                case ast.Assign(value=value) | ast.AugAssign(value=value) | ast.Expr(value=value):
                    self._expression(value, around, branch)
            known |= {ast.unparse(node) for node in nodes_in(statement) if isinstance(node, ast.expr)}

    def _expression(self, node: ast.expr, around: tuple[_Around, ...], branch: str) -> None:
        """Replace the largest parts of an expression that a loop has no part in."""
        outermost = next((each for each in around if not reads(node) & writes(each.loop)), None)
        moves = outermost is not None and self._is_worth_it(node) and (not branch or _is_converted_row(node))
        if outermost is not None and moves and ast.unparse(node) not in outermost.known:
            start, end = self.places.of(node)
            raw = self.places.raw
            if re.search(rb"(^|[^\w)\]])\($", raw[:start][-2:]) and raw[end : end + 1] == b")":
                # A name needs no parentheses of its own.
                start, end = start - 1, end + 1
            self.uses.append(Edit(start, end, self._name(outermost.loop, node, branch)))
            return
        for child in _evaluated(node):
            self._expression(child, around, branch)

    def _is_worth_it(self, node: ast.expr) -> bool:
        """Whether an expression is arithmetic of tiles, or costly, and is no constant of the compilation."""
        operates = isinstance(node, ast.BinOp | ast.Compare | ast.UnaryOp) or called(node) in {_CEILING, *_FUNCTIONS}
        if _is_converted_row(node):
            return _is_arithmetic(node, self._is_static)
        if not operates or not _is_arithmetic(node, self._is_static):
            return False
        inner = [each for each in nodes_in(node) if isinstance(each, ast.expr)]
        columns = (isinstance(each, ast.Name) and each.id in self.columns for each in inner)
        costly = any(columns) or any(isinstance(each, ast.Subscript) or _is_costly(each) for each in inner)
        operations = [each for each in inner if isinstance(each, ast.BinOp | ast.Compare) or _is_costly(each)]
        return costly and any(not all(map(self._is_static, _operands(each))) for each in operations)

    def _is_static(self, node: ast.expr) -> bool:
        return is_static(node, self.constexprs, self.variables)

    def _name(self, loop: ast.stmt, node: ast.expr, branch: str) -> str:
        """The name of what is computed before a loop, one for each that differs."""
        steps = self.made.setdefault(loop, {})
        segment = self.places.raw[slice(*self.places.of(node))].decode()
        source = ast.unparse(node) if "\n" in segment else segment
        if (source, branch) not in steps:
            steps[source, branch] = self.fresh(_label(node))
        return steps[source, branch]

    def _before(self, loop: ast.stmt, steps: dict[tuple[str, str], str]) -> Edit:
        """The statements, above the loop and its own comments."""
        indent = self.places.line(loop.lineno)[: loop.col_offset].decode()
        said, within = "", ""
        for (source, branch), name in steps.items():
            said += f"{indent}if {branch}:\n" if branch and branch != within else ""
            said += f"{indent}{'    ' if branch else ''}{name} = {source}\n"
            within = branch
        start, _ = self.places.lines(loop, comments=True)
        return Edit(start, start, said)


def _columns(function: ast.FunctionDef) -> Names:
    """The names that are given what has a dimension added to it, or is computed of such or loaded where those say."""
    given = [each for each in inside(function.body) if isinstance(each, ast.Assign)]
    found: Names = frozenset()
    while True:
        made = (
            each for each in given if any(_is_expanded(node) for node in nodes_in(each.value)) or _is_of(each, found)
        )
        if (names := frozenset().union(*map(writes, made))) == found:
            return found
        found = names


def _is_of(statement: ast.Assign, columns: Names) -> bool:
    """Whether a statement computes element by element of columns, or loads."""
    folds = any(called(node) in _FOLDS for node in nodes_in(statement.value) if isinstance(node, ast.Call))
    return not folds and bool(reads(statement.value) & columns)


def _factor(test: ast.expr, said: str) -> str:
    """A condition as part of another one."""
    return f"({said})" if isinstance(test, ast.BoolOp | ast.IfExp | ast.NamedExpr) else said


def _evaluated(node: ast.expr) -> Iterator[ast.expr]:
    """The parts of an expression that are computed whenever it is."""
    if isinstance(node, ast.IfExp | ast.Lambda | ast.ListComp | ast.GeneratorExp):
        return
    if isinstance(node, ast.BoolOp):
        # Of tensors all are computed, of other values the first one is.
        first, *others = node.values
        yield first
        yield from others if any(_is_expanded(each) for each in nodes_in(first)) else ()
        return
    if isinstance(node, ast.Call):
        yield from (node.func, *node.args, *(keyword.value for keyword in node.keywords))
        return
    yield from (child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))


def _is_arithmetic(node: ast.expr, fixed: Callable[[ast.expr], bool]) -> bool:
    """Whether an expression only computes, and can do so where nobody needs the result.

    `fixed`: whether one is a constant of the compilation, by which whole numbers may be divided there.
    """

    def computes(*parts: ast.expr) -> bool:
        return all(_is_arithmetic(part, fixed) for part in parts)

    match node:
        case ast.Name() | ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(op=ast.USub() | ast.Invert(), operand=inner):
            return computes(inner)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _TOTAL):
            return computes(left, right)
        case ast.BinOp(left=left, op=ast.FloorDiv() | ast.Mod(), right=right):
            return fixed(right) and computes(left, right)
        case ast.Call(args=[left, right], keywords=[]) if called(node) == _CEILING:
            return fixed(right) and computes(left, right)
        case ast.Call(args=[inner, _]) if _is_converted_row(node):
            return computes(inner)
        case ast.Call(args=[_, *_] as inputs, keywords=[]) if called(node) in _FUNCTIONS:
            return computes(*inputs)
        case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(
            op, ast.Is | ast.IsNot | ast.In | ast.NotIn
        ):
            return computes(left, right)
        case ast.Subscript(value=inner, slice=ast.Tuple(elts=places)) if all(map(_is_expansion, places)):
            return computes(inner)
        case ast.Call(func=ast.Attribute(value=inner, attr="to"), args=[ast.Attribute(value=ast.Name())], keywords=[]):
            return computes(inner)
    return False


def _is_converted_row(node: ast.expr) -> bool:
    """Whether an expression is a row in the layout that it has in a tile."""
    match node:
        case ast.Call(args=[_, ast.Call() as layout], keywords=[]):
            return called(node) == _CONVERSION and called(layout) == "SliceLayout"
    return False


def _divides(node: ast.expr) -> bool:
    """Whether an expression is a quotient, or what a division leaves."""
    return called(node) == _CEILING or isinstance(node, ast.BinOp) and isinstance(node.op, _DIVISIONS)


def _is_costly(node: ast.expr) -> bool:
    """Whether an expression divides, or is a function that takes as long."""
    return _divides(node) or called(node) in _FUNCTIONS


def _operands(node: ast.expr) -> Sequence[ast.expr]:
    """What an expression is a constant of the compilation by: what a function is of, else itself."""
    return node.args if isinstance(node, ast.Call) and called(node) in _FUNCTIONS else [node]


def _is_expanded(node: ast.AST) -> bool:
    """Whether a node is a tensor that dimensions are added to."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.slice, ast.Tuple)
        and all(map(_is_expansion, node.slice.elts))
    )


def _is_expansion(node: ast.expr) -> bool:
    """`None` or `:` of a subscript."""
    match node:
        case ast.Constant(value=None) | ast.Slice(lower=None, upper=None, step=None):
            return True
    return False


def _label(node: ast.expr) -> str:
    """What an expression is called: after its first name, and what it is."""
    inner = [*nodes_in(node)]
    calls = [each.func for each in inner if isinstance(each, ast.Call) and called(each) in _OF_MODULES]
    functions = [part for each in calls for part in nodes_in(each)]
    first = min((each for each in inner if isinstance(each, ast.Name) and each not in functions), key=_position).id
    if _is_converted_row(node):
        return f"{first}_row"
    if called(node) in _FUNCTIONS:
        return f"{first}_{called(node)}"
    if isinstance(node, ast.Compare) or isinstance(node, ast.BinOp) and isinstance(node.op, _MASKS):
        return f"{first}_mask"
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return f"{first.removesuffix('_ptr')}_base"
    tiles = any(isinstance(each, ast.Subscript) for each in nodes_in(node))
    if not tiles and (called(node) == _CEILING or isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv)):
        return f"{first}_quotient"
    return f"{first}_scaled" if tiles else f"{first}_factor"


def _position(name: ast.Name) -> tuple[int, int]:
    return name.lineno, name.col_offset
