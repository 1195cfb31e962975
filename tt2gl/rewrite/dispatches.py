"""Rule `dispatches`: a kernel with several bodies has each as a function, and chooses one when it is compiled.

@triton.jit                                              # before
def kernel(x_ptr, BLOCK: tl.constexpr):
    ...

@gluon.jit                                               # after
def kernel_wgmma(x_ptr, BLOCK: gl.constexpr):
    ...


@gluon.jit
def kernel_mma_v2(x_ptr, BLOCK: gl.constexpr):
    ...


@gluon.jit
def kernel(x_ptr, BLOCK: gl.constexpr):
    # wgmma takes whole warpgroups and 64 rows at least
    if gl.num_warps() % 4 == 0 and BLOCK >= 64:
        kernel_wgmma(x_ptr, BLOCK)
    else:
        kernel_mma_v2(x_ptr, BLOCK)
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import libcst as cst

from tt2gl.plan import Choice, Dispatch
from tt2gl.rewrite.build import statement

# Room for a statement, in lines of 120 columns; the chosen calls are indented once or twice.
_WIDTH = 104


def as_body(function: cst.FunctionDef, is_jit: Sequence[bool]) -> cst.FunctionDef:
    """A kernel as one of its bodies: decorators, defaults and docstring stay with the kernel that chooses."""
    decorators = [decorator for decorator, jit in zip(function.decorators, is_jit, strict=True) if jit]
    params = function.params
    required = params.with_changes(
        params=[_required(param) for param in params.params],
        posonly_params=[_required(param) for param in params.posonly_params],
        kwonly_params=[_required(param) for param in params.kwonly_params],
    )
    return function.with_changes(decorators=decorators, params=required, body=_without_docstring(function))


def _required(param: cst.Param) -> cst.Param:
    return param.with_changes(default=None, equal=cst.MaybeSentinel.DEFAULT)


def _without_docstring(function: cst.FunctionDef) -> cst.BaseSuite:
    suite = function.body
    if function.get_docstring() is None or not isinstance(suite, cst.IndentedBlock) or len(suite.body) == 1:
        return suite
    first, *rest = suite.body[1:]
    lines = list(getattr(first, "leading_lines", ()))
    while lines and lines[0].comment is None:
        lines.pop(0)
    return suite.with_changes(body=[first.with_changes(leading_lines=lines), *rest])


def dispatching(function: cst.FunctionDef, dispatch: Dispatch) -> cst.FunctionDef:
    """The kernel with nothing but its docstring and the choice of a body."""
    suite = function.body
    docstring = [suite.body[0]] if isinstance(suite, cst.IndentedBlock) and function.get_docstring() is not None else []
    chosen = statement("\n".join(_lines(dispatch.choice, dispatch, _arguments(function.params))))
    block = suite if isinstance(suite, cst.IndentedBlock) else cst.IndentedBlock([])
    return function.with_changes(body=block.with_changes(body=[*docstring, chosen], footer=[]))


def _arguments(params: cst.Parameters) -> list[str]:
    """A function's parameters as it passes them on."""
    named = [param.name.value for param in (*params.posonly_params, *params.params)]
    if isinstance(params.star_arg, cst.Param):
        named.append(f"*{params.star_arg.name.value}")
    return [*named, *(f"{param.name.value}={param.name.value}" for param in params.kwonly_params)]


def _lines(choice: str | Choice, dispatch: Dispatch, arguments: Sequence[str]) -> list[str]:
    """A choice as source; one that is the other side of another goes on with `elif`."""
    if isinstance(choice, str):
        return _call(choice, [*arguments, *(f"{name}={name}" for name in dispatch.passed.get(choice, ()))])
    lines: list[str] = []
    word, rest = "if", choice
    while True:
        if rest.comment and word == "if":
            lines.append(f"# {rest.comment}")
        lines.extend(_test(word, rest.condition))
        if rest.comment and word == "elif":
            lines.append(f"    # {rest.comment}")
        lines.extend(f"    {line}" for line in _lines(rest.then, dispatch, arguments))
        if isinstance(rest.otherwise, str):
            break
        word, rest = "elif", rest.otherwise
    return [*lines, "else:", *(f"    {line}" for line in _lines(rest.otherwise, dispatch, arguments))]


def _test(word: str, condition: str) -> list[str]:
    if len(condition) <= _WIDTH:
        return [f"{word} {condition}:"]
    first, *others = condition.split(" or ")
    return [f"{word} (", f"    {first}", *(f"    or {other}" for other in others), "):"]


def _call(name: str, arguments: Sequence[str]) -> list[str]:
    whole = ", ".join(arguments)
    if len(name) + len(whole) + 2 <= _WIDTH:
        return [f"{name}({whole})"]
    return [f"{name}(", *(f"    {line}" for line in textwrap.wrap(whole, _WIDTH, break_long_words=False)), ")"]
