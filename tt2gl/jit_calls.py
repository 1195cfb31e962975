"""Functions that a file makes kernels by a call, as if it had decorated them.

    def add(x_ptr, BLOCK: tl.constexpr):          # before
        ...

    add = triton.jit(add)

    @triton.jit                                   # after
    def add(x_ptr, BLOCK: tl.constexpr):
        ...

What else such a call is part of stays: `tuned = triton.autotune(configs, key)(triton.jit(add))` then is
`tuned = triton.autotune(configs, key)(add)`. A function that the file uses in other ways as well, or only under a
condition, and one that has decorators, are left as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst
from libcst.metadata import CodeSpan

from tt2gl.edits import Edit
from tt2gl.jit_functions import Resolver
from tt2gl.qualified_names import children, walk

Spans = Mapping[cst.CSTNode, CodeSpan]


@dataclass(frozen=True)
class JitCall:
    """A call that makes a kernel of the function `name`; `decorator` is the call without it."""

    node: cst.Call
    name: cst.Name
    decorator: cst.BaseExpression


@dataclass(frozen=True)
class _Function:
    """A function, with the statements beside it."""

    node: cst.FunctionDef
    beside: tuple[cst.CSTNode, ...]


def jit_calls(module: cst.Module, resolver: Resolver) -> list[JitCall]:
    """The calls of a file that make kernels of functions."""
    return [call for node in walk(module) if (call := _jit_call(node, resolver)) is not None]


def decorations(
    calls: Sequence[JitCall], module: cst.Module, resolver: Resolver, text: str, spans: Spans
) -> Iterator[Edit]:
    """The edits of a file's text that decorate its functions in place of these calls."""
    functions = [*_functions(module)]
    by_function: dict[str, list[JitCall]] = {}
    for call in calls:
        meanings = resolver.names.of(call.name)
        if len(meanings) == 1:
            by_function.setdefault(next(iter(meanings)), []).append(call)
    for name, made in by_function.items():
        named = [function for own, function in functions if own == name]
        if len(named) != 1 or len({_code(call.decorator) for call in made}) != 1:
            continue
        rebound = any(_rebinds(statement, made) for statement in named[0].beside)
        if not named[0].node.decorators and (rebound or not _is_used_else(name, made, module, resolver)):
            yield from _edits(named[0], made, text.encode(), spans)


def _jit_call(node: cst.CSTNode, resolver: Resolver) -> JitCall | None:
    """`triton.jit(name)`, `triton.jit(name, debug=True)` or `triton.jit(debug=True)(name)`."""
    match node:
        case cst.Call(func=cst.Name() | cst.Attribute() as func, args=[cst.Arg(value=cst.Name() as name), *options]):
            decorator: cst.BaseExpression = node.with_changes(args=options) if options else func
        case cst.Call(func=cst.Call(args=options) as decorator, args=[cst.Arg(value=cst.Name() as name)]):
            pass
        case _:
            return None
    if node.args[0].keyword is not None or resolver.kind(decorator) != ("jit", "triton"):
        return None
    return JitCall(node, name, decorator) if all(_is_plain(option) for option in options) else None


def _is_plain(option: cst.Arg) -> bool:
    """Whether an option of the compiler can be said anywhere in the file."""
    inside = walk(option.value)
    return option.keyword is not None and all(
        node.value in ("True", "False", "None") for node in inside if isinstance(node, cst.Name)
    )


def _functions(node: cst.CSTNode, prefix: str = "") -> Iterator[tuple[str, _Function]]:
    """The file's functions by qualified name."""
    for child in (beside := [*children(node)]):
        if isinstance(child, cst.FunctionDef):
            yield f"{prefix}{child.name.value}", _Function(child, tuple(beside))
        if isinstance(child, (cst.FunctionDef, cst.ClassDef)):
            inner = "<locals>." if isinstance(child, cst.FunctionDef) else ""
            yield from _functions(child.body, f"{prefix}{child.name.value}.{inner}")
        elif not isinstance(child, cst.BaseExpression):
            yield from _functions(child, prefix)


def _rebinds(statement: cst.CSTNode, made: list[JitCall]) -> bool:
    """Whether a statement gives the function's own name to what a call makes of it, whatever holds."""
    match statement:
        case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)]):
            below = [*walk(value)]
            is_made = any(call.name.value == name and node is call.node for call in made for node in below)
            return is_made and not any(isinstance(node, (cst.IfExp, cst.BooleanOperation)) for node in below)
    return False


def _is_used_else(name: str, made: list[JitCall], module: cst.Module, resolver: Resolver) -> bool:
    handed = {id(call.name) for call in made}
    uses = (node for node in walk(module) if isinstance(node, cst.Name) and id(node) not in handed)
    return any(name in resolver.names.of(node) for node in uses)


def _edits(function: _Function, made: list[JitCall], raw: bytes, spans: Spans) -> Iterator[Edit]:
    """Decorate the function, and take its name for each call; a statement that then says nothing goes."""
    start = spans[function.node].start
    indent = raw[raw.rfind(b"\n", 0, start) + 1 : start].decode()
    yield Edit(start, start, f"@{_code(made[0].decorator)}\n{indent}")
    idle = [statement for statement in function.beside if _is_only(statement, made)]
    for statement in idle:
        # With the empty lines before it, as those after it stay.
        at = spans[statement]
        end = raw.find(b"\n", at.start + at.length) + 1 or len(raw)
        yield Edit(len(raw[: at.start].rstrip()) + 1, end, "")
    gone = {id(node) for statement in idle for node in walk(statement)}
    for call in made:
        if id(call.node) not in gone:
            at = spans[call.node]
            yield Edit(at.start, at.start + at.length, call.name.value)


def _is_only(statement: cst.CSTNode, made: list[JitCall]) -> bool:
    """Whether a statement is `name = triton.jit(name)`."""
    match statement:
        case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(name))], value)]):
            return any(call.node is value and call.name.value == name for call in made)
    return False


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)
