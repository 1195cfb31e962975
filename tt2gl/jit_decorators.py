"""Decorators of a file's own that hand the function that they take to Triton's, as if those stood in their place.

    def _jit(fn):                                 # before
        return triton.jit(fn) if HAS_TRITON else fn

    tuned = triton.autotune(CONFIGS, key=["n"]) if HAS_TRITON else _plain

    @tuned
    @_jit
    def add(x_ptr, n, BLOCK: tl.constexpr):
        ...

    @triton.autotune(CONFIGS, key=["n"])          # after
    @triton.jit
    def add(x_ptr, n, BLOCK: tl.constexpr):
        ...

Not those that do more than that, or are given more than the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst
from libcst.metadata import CodeSpan

from tt2gl.edits import Edit
from tt2gl.jit_functions import Resolver
from tt2gl.qualified_names import children, walk


def in_place(module: cst.Module, resolver: Resolver, text: str, span: Callable[[cst.CSTNode], CodeSpan]) -> list[Edit]:
    """The edits of a file's text that put Triton's decorators in place of such."""
    own, raw, made = _own(module, resolver), text.encode(), list[Edit]()
    for node in walk(module) if own else ():
        if isinstance(node, cst.Decorator) and isinstance(node.decorator, cst.Name):
            decorators = own.get(node.decorator.value, ())
            if decorators and resolver.names.of(node.decorator) == {node.decorator.value}:
                at = span(node.decorator)
                margin = raw[raw.rfind(b"\n", 0, at.start) + 1 : at.start].decode()
                code = f"\n{margin}".join(module.code_for_node(each) for each in decorators)
                made.append(Edit(at.start, at.start + at.length, code))
    return made


def _own(module: cst.Module, resolver: Resolver) -> dict[str, Sequence[cst.BaseExpression]]:
    """The names by which a file decorates by Triton's decorators, and these, the outermost first."""
    found: dict[str, Sequence[cst.BaseExpression]] = {}
    for node in _statements(module):
        match node:
            case cst.FunctionDef(name=cst.Name(value=name)):
                made = _handed_to(node)
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=cst.IfExp(body=body)):
                made = [body]
            case _:
                continue
        if made and all(resolver.kind(each)[0] not in ("other", "constexpr") for each in made) and name not in found:
            found[name] = made
    return found


def _statements(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements of a module, in `if` and `try` too."""
    for child in children(node):
        yield child
        if not isinstance(child, cst.FunctionDef | cst.ClassDef | cst.BaseExpression):
            yield from _statements(child)


def _handed_to(function: cst.FunctionDef) -> Sequence[cst.BaseExpression]:
    """What a function hands its only parameter to, if it does nothing but return that, or the parameter as it is."""
    given = function.params
    own = given.params[0].name.value if len(given.params) == 1 else None
    others = given.kwonly_params or given.posonly_params or given.star_kwarg or isinstance(given.star_arg, cst.Param)
    if own is None or others or function.decorators or not _only_returns(function.body):
        return ()
    returned = [node.value for node in walk(function.body) if isinstance(node, cst.Return)]
    values = [each for value in returned for each in _alternatives(value)]
    made = [_chain(each, own) for each in values if not (isinstance(each, cst.Name) and each.value == own)]
    return made[0] if len(made) == 1 else ()


def _only_returns(body: cst.BaseSuite) -> bool:
    """Whether a function's statements return something, or ask whether to."""
    for statement in body.body:
        match statement:
            case cst.SimpleStatementLine(body=[cst.Return()] | [cst.Expr(value=cst.SimpleString())]):
                continue
            case cst.If(body=inner, orelse=orelse):
                last = orelse is None or (_only_returns(orelse.body) if isinstance(orelse, cst.Else) else False)
                if not last or not _only_returns(inner):
                    return False
            case _:
                return False
    return True


def _alternatives(value: cst.BaseExpression | None) -> Iterator[cst.BaseExpression | None]:
    if isinstance(value, cst.IfExp):
        yield from _alternatives(value.body)
        yield from _alternatives(value.orelse)
    else:
        yield value


def _chain(value: cst.BaseExpression | None, name: str) -> list[cst.BaseExpression]:
    """The decorators by which a name became a value; none where it did not so, or they are made of it, too."""
    match value:
        case cst.Call(func=called, args=[cst.Arg(value=inner, keyword=None), *options]):
            made = value.with_changes(args=options) if options else called
            below = [] if isinstance(inner, cst.Name) and inner.value == name else _chain(inner, name)
            known = below or isinstance(inner, cst.Name) and inner.value == name
            reads = any(isinstance(node, cst.Name) and node.value == name for node in walk(made))
            return [made, *below] if known and not reads else []
    return []
