"""Rule `signatures`: a converted function is `@gluon.jit`, takes the layouts it needs, and names its own on top.

@triton.jit                                       # before
def kernel(x_ptr, BLOCK: tl.constexpr):

@gluon.jit                                        # after
def kernel(x_ptr, BLOCK: gl.constexpr):
    # coalesced access to x_ptr
    layout: gl.constexpr = coalesced([BLOCK], [0], x_ptr.dtype.element_ty.primitive_bitwidth, gl.num_warps())
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

import libcst as cst
from libcst import ensure_type

from tt2gl.plan import ENTRY, Conversion, FunctionPlan
from tt2gl.rewrite.build import expression, statement
from tt2gl.rewrite.conversions import conversion_lines
from tt2gl.stages import Declaration, Stages

# Room for a statement in a function's body, in lines of 120 columns.
_WIDTH = 116


def gluon_decorator(decorator: cst.Decorator) -> cst.Decorator:
    """`@gluon.jit` for `@triton.jit`, with the same arguments."""
    jit = expression("gluon.jit")
    if isinstance(decorator.decorator, cst.Call):
        return decorator.with_changes(decorator=decorator.decorator.with_changes(func=jit))
    return decorator.with_changes(decorator=jit)


def with_parameters(function: cst.FunctionDef, names: Sequence[str], value: int | None = None) -> cst.FunctionDef:
    """The function with constexpr parameters at its end; `value` is their default."""
    for name in names:
        params = function.params
        optional = any(param.default is not None for param in params.params)
        default = cst.Integer(str(value)) if value is not None else cst.Name("None") if optional else None
        added = cst.Param(cst.Name(name), cst.Annotation(expression("gl.constexpr")), default=default)
        made = _appended(params.params, added, function.whitespace_before_params)
        function = function.with_changes(params=params.with_changes(params=made))
    return function


def _with_pairs(function: cst.FunctionDef, pairs: Mapping[str, tuple[str, str]]) -> cst.FunctionDef:
    """The function with what stands for parameters in their places, and what comes beside that at its end."""
    for name, (stays, beside) in pairs.items():
        params = function.params
        named = [
            param.with_changes(name=cst.Name(stays)) if param.name.value == name else param for param in params.params
        ]
        added = cst.Param(cst.Name(beside))
        if any(param.default is not None for param in named):
            equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
            added = added.with_changes(default=cst.Name("None"), equal=equal)
        made = _appended(named, added, function.whitespace_before_params)
        function = function.with_changes(params=params.with_changes(params=made))
    return function


def _appended(
    params: Sequence[cst.Param], added: cst.Param, opening: cst.BaseParenthesizableWhitespace
) -> list[cst.Param]:
    """Parameters and one more, on a line of its own where the author's are on several."""
    if not params:
        return [added]
    last, plain = params[-1], cst.SimpleWhitespace("")
    spaces = [param.comma.whitespace_after for param in params[:-1] if isinstance(param.comma, cst.Comma)]
    lines = [space for space in [opening, *spaces] if isinstance(space, cst.ParenthesizedWhitespace)]
    if not lines:
        space: cst.BaseParenthesizableWhitespace = spaces[0] if spaces else cst.SimpleWhitespace(" ")
        comma = cst.Comma(whitespace_after=space)
        return [*params[:-1], last.with_changes(comma=comma), added.with_changes(comma=last.comma)]
    line = lines[-1].with_changes(first_line=cst.TrailingWhitespace(), empty_lines=[])
    closing = last.comma.whitespace_after if isinstance(last.comma, cst.Comma) else last.whitespace_after_param
    if isinstance(closing, cst.ParenthesizedWhitespace):
        # A comment behind the last of the author's stays there.
        line = line.with_changes(first_line=closing.first_line)
        closing = closing.with_changes(first_line=cst.TrailingWhitespace())
    if isinstance(last.comma, cst.Comma):
        added = added.with_changes(comma=last.comma.with_changes(whitespace_after=closing))
    else:
        added = added.with_changes(whitespace_after_param=closing)
    before = last.with_changes(comma=cst.Comma(whitespace_after=line), whitespace_after_param=plain)
    return [*params[:-1], before, added]


def with_declarations(
    function: cst.FunctionDef,
    declarations: Sequence[Declaration],
    conversions: Sequence[Conversion] = (),
    notes: Sequence[str] = (),
) -> cst.FunctionDef:
    """The function with its layouts named after its docstring, and its arguments in other layouts after those.

    `notes` stand above all of it.
    """
    if not declarations and not conversions:
        return _noted(function, notes)
    suite = function.body
    if isinstance(suite, cst.SimpleStatementSuite):
        suite = cst.IndentedBlock([cst.SimpleStatementLine(suite.body)])
    body = list(suite.body)
    start = 1 if function.get_docstring() is not None else 0
    lines: list[cst.BaseStatement] = []
    for place, declaration in enumerate(declarations):
        text = f"{declaration.name}: gl.constexpr = {declaration.source}"
        line = ensure_type(statement(text), cst.SimpleStatementLine)
        leading = [cst.EmptyLine(indent=False)] if start and place == 0 else []
        if declaration.comment:
            leading += _comments(declaration.comment)
        lines.append(line.with_changes(leading_lines=leading))
    lines.extend(line for step in conversions for line in conversion_lines(step))
    rest = body[start:]
    if rest and not _starts_blank(rest[0]):
        known = getattr(rest[0], "leading_lines", ())
        rest[0] = rest[0].with_changes(leading_lines=[cst.EmptyLine(indent=False), *known])
    return _noted(function.with_changes(body=suite.with_changes(body=[*body[:start], *lines, *rest])), notes)


def _noted(function: cst.FunctionDef, notes: Sequence[str]) -> cst.FunctionDef:
    """The function with comments above its first statement after the docstring."""
    start = 1 if function.get_docstring() is not None else 0
    suite = function.body
    if not notes or not isinstance(suite, cst.IndentedBlock) or len(suite.body) <= start:
        return function
    first = suite.body[start]
    known = list(getattr(first, "leading_lines", ()))
    blank = 1 if known and known[0].comment is None else 0
    told = [line for note in notes for line in _comments(note)]
    apart = [cst.EmptyLine(indent=False)] if known[blank:] else []
    noted = first.with_changes(leading_lines=[*known[:blank], *told, *apart, *known[blank:]])
    return function.with_changes(body=suite.with_changes(body=[*suite.body[:start], noted, *suite.body[start + 1 :]]))


def _comments(text: str) -> list[cst.EmptyLine]:
    """A text as comments in the body of a function, of as many lines as it takes."""
    return [cst.EmptyLine(comment=cst.Comment(f"# {line}")) for line in textwrap.wrap(text, _WIDTH - 2)]


def _starts_blank(statement: cst.CSTNode) -> bool:
    lines = getattr(statement, "leading_lines", None)
    return lines is None or bool(lines) and lines[0].comment is None


def with_signature(function: cst.FunctionDef, plan: FunctionPlan, is_jit: Sequence[bool]) -> cst.FunctionDef:
    """Decorator, parameters and declarations of one converted function; `is_jit`: which decorators are Triton's."""
    decorators = [
        gluon_decorator(decorator) if jit else decorator
        for decorator, jit in zip(function.decorators, is_jit, strict=True)
    ]
    stages = plan.stages if plan.stages is not None and plan.stages.parameter else None
    if stages is not None and stages.asked:
        place = is_jit.index(True)
        decorators.insert(place, _stages_of_launch(function.decorators[place], stages))
    function = _with_pairs(function.with_changes(decorators=decorators), plan.pairs)
    function = with_parameters(function, plan.parameters)
    if stages is not None:
        function = with_parameters(function, [stages.source], stages.default)
    return with_declarations(_asserted(function, plan), plan.declarations, plan.conversions.get(ENTRY, ()), plan.notes)


def _asserted(function: cst.FunctionDef, plan: FunctionPlan) -> cst.FunctionDef:
    """The function with what must hold of its own constants where instructions were chosen by them, told on its top."""
    parameters = [*function.params.params, *function.params.kwonly_params]
    annotated = [(each.name.value, each.annotation) for each in parameters if each.annotation is not None]
    constants = {
        name for name, said in annotated if cst.Module([]).code_for_node(said.annotation).endswith("constexpr")
    }
    every = (plan.edits, *(copy for copies in plan.copies.values() for copy in copies))
    asked = dict.fromkeys(dot.asked for edits in every for dot in edits.dots.values() if dot.asked is not None)
    tests = [test for test in asked if re.findall(r"\w+", test.removeprefix("not "))[0] in constants]
    suite = function.body
    if not tests or not isinstance(suite, cst.IndentedBlock):
        return function
    start = 1 if function.get_docstring() is not None else 0
    made = [statement(f'gl.static_assert({test}, "products are of this precision")') for test in tests]
    return function.with_changes(body=suite.with_changes(body=[*suite.body[:start], *made, *suite.body[start:]]))


def with_flags(
    function: cst.FunctionDef, flags: Mapping[str, Sequence[str]], is_jit: Sequence[bool]
) -> tuple[cst.FunctionDef, list[bool]]:
    """The kernel with flags that each launch gives it: whether arguments are multiples of 16."""
    if not flags:
        return function, list(is_jit)
    decorators, place = list(function.decorators), list(is_jit).index(True)
    entries = [_aligned(flag, arguments) for flag, arguments in flags.items()]
    source = f"{{{entries[0]}}}"
    if len(entries) > 1 or "\n" in source or len(source) > _WIDTH - 18:
        source = "\n    ".join(("{", *(f"{entry}," for entry in entries))) + "\n}"
    # One decorator for all: each takes the host its time at every launch.
    given = cst.Decorator(expression(f"{_triton_of(decorators[place])}.heuristics({source})"))
    decorators.insert(-len(is_jit[place:]), given)
    function = with_parameters(function.with_changes(decorators=decorators), list(flags))
    return function, [*is_jit[:place], False, *is_jit[place:]]


def _aligned(flag: str, arguments: Sequence[str]) -> str:
    """The entry of a dictionary that says whether arguments are multiples of 16."""
    if len(arguments) == 1:
        return f'"{flag}": lambda args: args["{arguments[0]}"] % 16 == 0'
    names = ", ".join(f'"{name}"' for name in arguments)
    asked = f"args[name] % 16 == 0 for name in ({names})"
    source = f'"{flag}": lambda args: all({asked})'
    return source if len(source) <= _WIDTH else f'"{flag}": lambda args: all(\n        {asked}\n    )'


def _triton_of(jit: cst.Decorator) -> str:
    """What the author calls Triton."""
    chosen = jit.decorator.func if isinstance(jit.decorator, cst.Call) else jit.decorator
    return cst.Module([]).code_for_node(chosen.value) if isinstance(chosen, cst.Attribute) else "triton"


def _stages_of_launch(jit: cst.Decorator, stages: Stages) -> cst.Decorator:
    """What gives a kernel its launch's `num_stages`, an option that Gluon's compiler does not look at."""
    triton = _triton_of(jit)
    name, default = stages.source, stages.default
    given = f'args.get("{name}", args.get("num_stages", {default}))'
    return cst.Decorator(expression(f'{triton}.heuristics({{"{name}": lambda args: {given}}})'))
