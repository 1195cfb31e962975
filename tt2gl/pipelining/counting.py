"""How a loop counts, and what an iteration ahead is called: bounds, steps, slots of a ring."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

import libcst as cst

from tt2gl.pipelining.flow import Names, writes
from tt2gl.pipelining.rings import Amount, NotPipelinedError
from tt2gl.pipelining.static import called, is_static
from tt2gl.pipelining.texts import operand
from tt2gl.pipelining.trees import code
from tt2gl.trees import nodes_in

_ARITHMETIC = (ast.Name, ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, ast.expr_context)


@dataclass(frozen=True)
class Count:
    """`for variable in range(lower, upper, step)`, as source.

    `step_known`: the step is a compile-time constant. `wide`: the variable has 64 bits, which no slot may have.
    """

    variable: str
    lower: str
    upper: str
    step: str
    step_known: bool
    wide: bool = False

    @property
    def by_slots(self) -> bool:
        """Whether the iteration's number is the variable over a step that the compiler knows."""
        return self.lower == "0" and self.step_known and not self.downwards and not self.wide

    @property
    def downwards(self) -> bool:
        """Whether the step is written as a negative number."""
        return self.step.startswith("-")

    @property
    def sign_open(self) -> bool:
        """Whether the step is a constant by name, which may be negative where the loop does not start at zero."""
        return self.step_known and self.lower != "0" and not self.step.lstrip("-").isdigit() and not self.downwards

    def at(self, number: str) -> str:
        """The variable in an iteration, by its number."""
        lower = f"gl.to_tensor({self.lower}).to({self._dtype})" if self.wide else self.lower
        if lower == "0" and not self.downwards:
            return self._steps(number)
        return f"{lower} {'-' if self.downwards else '+'} {self._steps(number)}"

    @property
    def _dtype(self) -> str:
        """The type of a variable that has 64 bits under some launch: that of what it counts by, together."""
        if self.step_known and self.lower.isdigit():
            return f"gl.to_tensor({self.upper}).dtype"
        step = "" if self.step_known else f" + {operand(self._size)}"
        return f"(gl.to_tensor({self.lower}) + {operand(self.upper)}{step}).dtype"

    def further(self, iterations: Amount) -> str:
        """The variable that many iterations on."""
        if self.step == "1":
            return f"{self.variable} {_signed(iterations)}"
        return self.after(self.variable, iterations.factor)

    def last(self, iterations: Amount) -> str:
        """The variable in the first of that many last iterations, or where there are not as many, in the first."""
        if self.lower == "0" and self.step == "1":
            return f"gl.maximum({operand(self.upper)} - {iterations.factor}, 0)"
        begin, end = (self.upper, self.lower) if self.downwards else (self.lower, self.upper)
        span = operand(end) if begin == "0" else f"{operand(end)} - {operand(begin)}"
        turns = span if self._size == "1" else f"gl.cdiv({span}, {self._size})"
        return self.at(f"gl.maximum({turns} - {iterations.factor}, 0)")

    def after(self, variable: str, number: str) -> str:
        """The variable that many iterations after one where it is `variable`."""
        return f"{variable} {'-' if self.downwards else '+'} {self._steps(number)}"

    def _steps(self, number: str) -> str:
        """That many steps, without their sign."""
        if self._size == "1":
            return number
        if number == "1":
            return self._size if _is_product(self._size) else operand(self._size)
        return f"{number} * {operand(self._size)}"

    @property
    def _size(self) -> str:
        """The step without the sign that it is written with."""
        return self.step[1:].strip() if self.downwards else self.step

    def exists(self, variable: str) -> str:
        """Whether there is an iteration at that value of the variable."""
        return f"{variable} {'>' if self.downwards else '<'} {operand(self.upper)}"

    def is_left(self, last: str, number: str) -> str:
        """Whether there is the last iteration of that number, of those from where the variable is `last` on.

        A loop that counts from zero by one has as many as its bound says, and if those are fewer, they are the first.
        """
        if self.lower == "0" and self.step == "1":
            return self.exists(number)
        return self.exists(self.after(last, number))

    def over(self, variable: str) -> str:
        """Whether that value of the variable is past the last iteration."""
        return f"{variable} {'<=' if self.downwards else '>='} {operand(self.upper)}"

    def continues(self, iterations: Amount) -> str:
        """Whether there is an iteration that many on from this one.

        Written so that all but the comparison can be worked out before the loop.
        """
        sign, distance = "+" if self.downwards else "-", self._steps(iterations.factor)
        return f"{self.variable} {'>' if self.downwards else '<'} {operand(self.upper)} {sign} {distance}"

    def number(self, variable: str) -> str:
        """The number of the iteration at a value of the variable, where it goes by slots."""
        return variable if self.step == "1" else f"{variable} // {operand(self.step)}"


def _is_product(source: str) -> bool:
    match ast.parse(source, mode="eval").body:
        case ast.BinOp(op=ast.Mult()):
            return True
    return False


def _signed(amount: Amount) -> str:
    if not amount.base:
        return f"+ {amount.offset}"
    return f"+ {amount.source}"


@dataclass(frozen=True)
class Header:
    """The parts of a loop's header as the author has them."""

    variable: str
    call: ast.Call
    lower: ast.expr
    upper: ast.expr
    step: ast.expr


def header_of(loop: ast.For) -> Header:
    """Read `for variable in range(...)`. Raises NotPipelinedError for a loop of another kind."""
    if not isinstance(loop.target, ast.Name):
        raise NotPipelinedError("the loop binds more than one name")
    if not isinstance(loop.iter, ast.Call) or called(loop.iter) != "range":
        raise NotPipelinedError("the loop does not count through a range")
    given = list(loop.iter.args)
    names = {each.arg: each.value for each in loop.iter.keywords}
    if len(given) > 3 or any(isinstance(each, ast.Starred) for each in given) or None in names:
        raise NotPipelinedError("the loop's range is not spelled out")
    zero, one = ast.Constant(0), ast.Constant(1)
    step = given[2] if len(given) == 3 else names.get("step", one)
    if "arg1" in names or "arg2" in names or not given:
        raise NotPipelinedError("the loop's bounds are named arguments")
    lower, upper = (given[0], given[1]) if len(given) > 1 else (zero, given[0])
    return Header(loop.target.id, loop.iter, lower, upper, step)


def settled(node: ast.expr, assigned: Names, constexprs: Names, variables: Names, *, static: bool) -> bool:
    """Whether a bound may stand in several places as it is: a name that the loop leaves alone, or a constant.

    `static`: constants of the compilation may, too.
    """
    if is_static(node, constexprs, variables):
        return static and isinstance(node, (ast.Name, ast.Constant, ast.UnaryOp))
    return isinstance(node, ast.Name) and node.id not in assigned


def entered(loop: ast.For | ast.While, ascending: Collection[str], constexprs: Collection[str] = ()) -> str | None:
    """Whether a loop had an iteration, in words that still say so behind it; None where there are none, or no need.

    `ascending`: steps, as source, that are known to be positive. `constexprs`: what the compiler knows.
    """
    try:
        header = header_of(loop) if isinstance(loop, ast.For) else None
    except NotPipelinedError:
        header = None
    if header is None:
        return None
    lower, upper, step = map(ast.unparse, (header.lower, header.upper, header.step))
    if not (lower == "0" and step.isidentifier() or step.isdigit() or step in ascending):
        return None
    bounds = [part for bound in (header.lower, header.upper) for part in nodes_in(bound)]
    names = {part.id for part in bounds if isinstance(part, ast.Name)}
    if names <= {*constexprs} or names & writes(loop) or not all(isinstance(part, _ARITHMETIC) for part in bounds):
        return None
    return f"{operand(upper)} > 0" if lower == "0" else f"{operand(lower)} < {operand(upper)}"


def upwards(tree: ast.AST) -> Names:
    """The steps, as source, that are asserted to be positive."""
    return frozenset(
        ast.unparse(said.left)
        for call in nodes_in(tree)
        if isinstance(call, ast.Call) and called(call) == "static_assert"
        for said in call.args[:1]
        if isinstance(said, ast.Compare) and isinstance(said.ops[0], ast.Gt)
        if ast.unparse(said.comparators[0]) == "0"
    )


def with_bounds(iterable: cst.BaseExpression, count: Count, end: str) -> cst.BaseExpression:
    """A loop's range with its bounds as they are called now, up to `end`."""
    assert isinstance(iterable, cst.Call)
    bounds = [end] if sum(each.keyword is None for each in iterable.args) == 1 else [count.lower, end]
    given = without_option(iterable, "num_stages")
    named = {"step": count.step}
    changed = []
    for index, argument in enumerate(given.args):
        if argument.keyword is None:
            source = [*bounds, count.step][index]
        else:
            source = named.get(argument.keyword.value, code(argument.value))
        same = code(argument.value) == source
        changed.append(argument if same else argument.with_changes(value=cst.parse_expression(source)))
    return given.with_changes(args=changed)


def without_option(call: cst.Call, option: str) -> cst.Call:
    """A call without one of its named arguments."""
    left = [each for each in call.args if each.keyword is None or each.keyword.value != option]
    if len(left) == len(call.args):
        return call
    if left:
        left[-1] = left[-1].with_changes(
            comma=call.args[-1].comma, whitespace_after_arg=call.args[-1].whitespace_after_arg
        )
    return call.with_changes(args=left)
