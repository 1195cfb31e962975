"""Products of 32-bit floats by several of fewer bits, Triton to Triton: Gluon's products know one precision each.

    acc = tl.dot(a, b, acc, input_precision="tf32x3")

becomes `acc = dot_tf32x3(a, b, acc)`, with a function that does what Triton's pass F32DotTC does: operands are taken
apart into what the smaller type holds and what is left, the products of the smaller pieces are added up first, and
what of those is not a number (infinities less themselves) counts as nothing.

    acc += tl.dot(a, b, input_precision=PRECISION)

becomes `acc += dot_in_precision(a, b, input_precision=PRECISION)`, which chooses among these, where it is known that
`PRECISION` may be one of them. A call that says more than that stays as it is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence

import libcst as cst

from tt2gl.edits import Edit
from tt2gl.jit_functions import JitFunction
from tt2gl.lowering.emission import Spans
from tt2gl.lowering.expressions import expression
from tt2gl.lowering.naming import Names
from tt2gl.lowering.steps import Lowered, each_function
from tt2gl.source import SourceFile
from tt2gl.visitors import Reader

PRECISIONS = ("tf32x3", "bf16x3", "bf16x6")
"""The precisions that are several products."""

OF_BACKENDS = {"cuda": PRECISIONS, "hip": PRECISIONS[1:]}
"""Those that a backend of Triton's knows."""

DOT = re.compile(r"(^|\.)(language|tl)(\.core)?\.dot$")
"""What Triton's product is called, by a qualified name."""

_PARAMETERS = ("input", "other", "acc", "input_precision")
_NAMED = "a name"
_PIECES = ("big", "mid", "low")
# Which pieces of the operands are multiplied, in this order: 0 is the largest.
_TWO_PIECES = ((1, 0), (0, 1), (0, 0))
_ORDERS = {
    "tf32x3": _TWO_PIECES,
    "bf16x3": _TWO_PIECES,
    "bf16x6": ((1, 1), (2, 0), (0, 2), *_TWO_PIECES),
}


def precise_dots(source: SourceFile, named: Collection[str] = (), precisions: Sequence[str] = PRECISIONS) -> Lowered:
    """Write the products of every Triton function of a file that are several as calls of a function that makes them.

    `named`: expressions that a precision of several products comes by. `precisions`: those that the target knows.
    """
    names: dict[str, str] = {}
    free = Names.of(source.text)
    spelled = [precision for precision in precisions if precision in source.text] or precisions

    def edits(function: JitFunction, spans: Spans) -> Iterator[Edit]:
        calls = _Calls(source, named, precisions)
        jit = _jit(function, source.module)
        if jit is not None:
            function.node.body.visit(calls)
        for call, precision, language in calls.found:
            start = _start(function, spans)
            for each in spelled if precision == _NAMED else [precision]:
                if each not in names:
                    names[each] = free.fresh(f"dot_{each}")
                    text = _source(names[each], each, language)
                    yield Edit(start, start, _above(f"@{jit}\n{text}\n\n", start, spans))
            if precision not in names:
                names[precision] = free.fresh("dot_in_precision")
                text = _choosing(names[precision], {each: names[each] for each in spelled}, language)
                yield Edit(start, start, _above(f"@{jit}\n{text}\n\n", start, spans))
            if precision == _NAMED:
                yield Edit(*spans.of(call.func), names[precision])
            else:
                yield _edit(call, names[precision], source.module, spans)

    return each_function(source, (*precisions, *named), edits)


def _choosing(name: str, functions: Mapping[str, str], language: str) -> str:
    """The function that makes a product of the precision that it is told, one of those with `functions` or another."""
    lines = [
        f"def {name}(input, other, acc=None, input_precision: {language}.constexpr = None):",
        '    """A product in a precision that may be several."""',
    ]
    for place, (precision, function) in enumerate(functions.items()):
        lines.append(f'    {"elif" if place else "if"} input_precision == "{precision}":')
        lines.append(f"        product = {function}(input, other, acc)")
    lines += ["    else:", f"        product = {language}.dot(input, other, acc, input_precision=input_precision)"]
    return "\n".join([*lines, "    return product\n"])


def _source(name: str, precision: str, language: str) -> str:
    """The function that makes a product of a precision; other types than 32-bit floats know only one."""
    order, kind = _ORDERS[precision], precision[:4]
    count = 1 + max(max(pair) for pair in order)
    lines: list[str] = []
    for side in "ab":
        if kind == "tf32":
            # What is left needs no rounding: matrix units read of it what they can.
            lines += [f"{side}_big = {_rounded(side, kind, language)}", f"{side}_mid = {side} - {side}_big"]
            continue
        rest = side
        for piece in _PIECES[:count]:
            lines.append(f"{side}_{piece} = {_rounded(rest, kind, language)}")
            if piece != _PIECES[count - 1]:
                lines.append(f"{side}_rest = {rest} - {side}_{piece}.to({language}.float32)")
                rest = f"{side}_rest"
    said = ', input_precision="tf32"' if kind == "tf32" else ""
    total = ""
    for i, j in order[:-1]:
        lines.append(f"total = {language}.dot(a_{_PIECES[i]}, b_{_PIECES[j]}{total}{said})")
        total = ", total"
    lines.append(f"total = {language}.where(total == total, total, 0.0)")
    lines.append(f"product = {language}.dot(a_big, b_big, total{said}) + (0.0 if acc is None else acc)")
    return "\n".join(
        [
            f"def {name}(a, b, acc):",
            f'    """a b + acc; for 32-bit floats by {len(order)} products of {kind} ones, the small ones first."""',
            f"    if a.dtype == {language}.float32:",
            *(f"        {line}" for line in lines),
            "    else:",
            f"        product = {language}.dot(a, b, acc)",
            "    return product\n",
        ]
    )


def _rounded(value: str, kind: str, language: str) -> str:
    """A float as the largest piece of it that a smaller type holds."""
    if kind == "bf16":
        return f"{value}.to({language}.bfloat16)"
    convert = '"cvt.rna.tf32.f32 $0, $1;", "=r,r"'
    return f"{language}.inline_asm_elementwise({convert}, [{value}], dtype={language}.float32, is_pure=True, pack=1)"


def _jit(function: JitFunction, module: cst.Module) -> str | None:
    """How the author calls Triton's `jit`."""
    for decorator in function.decorators:
        if decorator.kind == "jit":
            node = decorator.node.decorator
            return module.code_for_node(node.func if isinstance(node, cst.Call) else node)
    return None


def _start(function: JitFunction, spans: Spans) -> int:
    """Where the first decorator of a function stands."""
    at = spans.of(function.node.decorators[0].decorator)[0]
    return spans.raw.rfind(b"@", 0, at)


def _above(text: str, start: int, spans: Spans) -> str:
    """A function's text as it stands above another that begins there: as far in as that is."""
    indent = spans.raw[spans.raw.rfind(b"\n", 0, start) + 1 : start].decode()
    return textwrap.indent(text, indent).removeprefix(indent) + indent


class _Calls(Reader):
    """The products that are several, with their precision and what stands for `tl`."""

    def __init__(self, source: SourceFile, named: Collection[str], precisions: Collection[str]) -> None:
        self.named, self.precisions = named, precisions
        self.names = source.names
        self.module = source.module
        self.found: list[tuple[cst.Call, str, str]] = []

    def visit_Call(self, node: cst.Call) -> bool:
        if not isinstance(node.func, cst.Attribute) or not any(map(DOT.search, self.names.of(node.func))):
            return True
        said = _arguments(node.args).get("input_precision")
        precision = said.evaluated_value if isinstance(said, cst.SimpleString) else None
        if isinstance(precision, str) and precision in self.precisions:
            self.found.append((node, precision, self.module.code_for_node(node.func.value)))
            return False
        if said is not None and self.module.code_for_node(said) in self.named:
            self.found.append((node, _NAMED, self.module.code_for_node(node.func.value)))
        return True


def _arguments(args: Sequence[cst.Arg]) -> dict[str, cst.BaseExpression]:
    """The arguments of a call by name; none where some are of another kind."""
    given: dict[str, cst.BaseExpression] = {}
    for index, arg in enumerate(args):
        if arg.star or arg.keyword is None and index >= len(_PARAMETERS):
            return {}
        given[arg.keyword.value if arg.keyword is not None else _PARAMETERS[index]] = arg.value
    # The type of the result that 32-bit floats have anyway.
    if "out_dtype" in given and _last_name(given["out_dtype"]) == "float32":
        del given["out_dtype"]
    return given if {"input", "other"} <= given.keys() <= set(_PARAMETERS) else {}


def _last_name(node: cst.BaseExpression) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")


def _edit(call: cst.Call, name: str, module: cst.Module, spans: Spans) -> Edit:
    given = _arguments(call.args)
    acc = given.get("acc")
    none = acc is None or isinstance(acc, cst.Name) and acc.value == "None"
    parts = [expression(given[key], module).text for key in ("input", "other")]
    parts.append("None" if none or acc is None else expression(acc, module).text)
    return Edit(*spans.of(call), f"{name}({', '.join(parts)})")
