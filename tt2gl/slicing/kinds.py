"""What a definition is to Triton, by what its decorators and bases resolve to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Literal

from tt2gl.host.evaluator import Evaluator
from tt2gl.host.triton_names import Dialect, decorator_kind
from tt2gl.host.values import Class, External, Function, HostRaise, Undecided
from tt2gl.slicing.free_names import attribute_chain
from tt2gl.slicing.parts import Part, indent_of
from tt2gl.slicing.spelling import spell

Kind = Literal["jit", "constexpr", "host"]
"""A jit function, a function that Triton runs while it compiles, or host code."""

JIT = {"triton": "triton.jit", "gluon": "triton.experimental.gluon.jit"}
"""The decorator of each dialect."""

WRAPPERS = {**JIT, "constexpr": "triton.constexpr_function"}
"""What a call makes a function of Triton's with."""

_COMPILED = {"aggregate", "_aggregate", "NamedTuple", "IntEnum", "Enum", "StrEnum", "IntFlag", "dataclass"}
_JIT_KEYWORDS = ("noinline", "do_not_specialize", "do_not_specialize_on_alignment", "debug")


def function_kind(evaluator: Evaluator, function: Function) -> tuple[Kind, Dialect, ast.expr | None]:
    """The kind of a function, its dialect, and the decorator that says so, None where none does."""
    if isinstance(function.node, ast.Lambda):
        return "host", "triton", None
    for decorator in function.node.decorator_list:
        for name in _decorator_names(evaluator, decorator, function):
            kind, dialect = decorator_kind(name)
            if kind == "jit":
                return "jit", dialect, decorator
            if kind == "constexpr":
                return "constexpr", dialect, decorator
    if function.wrapped == "constexpr":
        return "constexpr", "triton", None
    if function.wrapped is not None:
        return "jit", function.wrapped, None
    return "host", "triton", None


def _decorator_names(evaluator: Evaluator, decorator: ast.expr, function: Function) -> Iterator[str]:
    target = _called(decorator)
    try:
        value = evaluator.evaluate(target, function.frame)
    except (Undecided, HostRaise):
        value = None
    match value:
        case External(dotted):
            yield dotted
            if dotted == "functools.partial" and isinstance(decorator, ast.Call) and decorator.args:
                yield from _decorator_names(evaluator, decorator.args[0], function)
                return
        case _ if hasattr(value, "callee") and isinstance(value.callee, External):
            yield value.callee.dotted
    # Where the import leads nowhere (a package that is not at hand, a test that nothing decides), the spelling is left.
    chain = attribute_chain(target)
    if chain is not None and not isinstance(value, Function):
        yield ".".join((chain[0], *chain[1]))
        for binding in function.frame.scope.module.scope.bindings.get(chain[0], ()):
            if isinstance(binding.node, ast.ImportFrom) and binding.alias is not None:
                yield ".".join((binding.node.module or "", binding.alias.name, *chain[1]))


def bare_decorator(
    evaluator: Evaluator, part: Part, kind: Kind, dialect: Dialect, decorator: ast.expr, function: Function
) -> str:
    """The line that replaces the author's decorator, with the keyword arguments that are literal."""
    indent = indent_of(part.module, function.node.lineno)
    if kind == "constexpr":
        plain = (attribute_chain(_called(decorator)) or ("", ()))[1][-1:] == ("constexpr",)
        name = "_tt2gl_constexpr" if plain else "_tt2gl_constexpr_function"
        part.found[name] = "triton.language.constexpr" if plain else "triton.constexpr_function"
        return f"{indent}@{name}"
    name = f"_tt2gl_{dialect}_jit"
    part.found[name] = JIT[dialect]
    keywords = []
    for keyword in decorator.keywords if isinstance(decorator, ast.Call) else ():
        if keyword.arg in _JIT_KEYWORDS:
            try:
                text = spell(evaluator.evaluate(keyword.value, function.frame))
            except (Undecided, HostRaise):
                text = None
            if text is not None:
                keywords.append(f"{keyword.arg}={text}")
    return f"{indent}@{name}({', '.join(keywords)})" if keywords else f"{indent}@{name}"


def is_compiled(value: Class) -> bool:
    """Whether Triton compiles with a class: an aggregate, a named tuple, an enum."""
    chains = [attribute_chain(_called(found)) for found in [*value.node.decorator_list, *value.node.bases]]
    return any((chain[0], *chain[1])[-1] in _COMPILED for chain in chains if chain is not None)


def _called(decorator: ast.expr) -> ast.expr:
    return decorator.func if isinstance(decorator, ast.Call) else decorator
