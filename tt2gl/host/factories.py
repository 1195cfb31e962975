"""What a function that makes kernels is given, by the calls of its file, where all give it the same.

def made_for(op):
    @triton.jit
    def kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr): ...
    return kernel

largest = made_for(maximum)        # `op` is `maximum`
"""

from __future__ import annotations

import ast
import functools

from tt2gl.host.scopes import Scope

_CACHES = ("cache", "lru_cache")


def given(scope: Scope, name: str) -> ast.expr | None:
    """What all calls of the function whose body this is give a parameter, to be read in its module; else None.

    Calls that stand in functions may give constants alone.
    """
    owner, module = scope.owner, scope.module
    if not isinstance(owner, ast.FunctionDef) or module.scopes.get(owner) is not module.scope:
        return None
    if len(module.scope.bindings.get(owner.name, ())) != 1 or not all(map(_is_cache, owner.decorator_list)):
        return None
    return _given(module.tree, owner, name)


@functools.lru_cache(maxsize=1 << 12)
def _given(module: ast.Module, owner: ast.FunctionDef, name: str) -> ast.expr | None:
    """The same of a function of a module. Kept, as names are resolved anew wherever they are read."""
    nodes = [*ast.walk(module)]
    calls = [node for node in nodes if isinstance(node, ast.Call) and _is_name(node.func, owner.name)]
    if not calls or len(calls) != sum(_is_name(node, owner.name) for node in nodes):
        return None
    outside = {id(node) for statement in module.body if not _is_definition(statement) for node in ast.walk(statement)}
    values = [_argument(call, owner.args, name) for call in calls]
    known = [value for value in values if value is not None]
    if len(known) < len(values) or len({ast.dump(value) for value in known}) != 1:
        return None
    apart = all(isinstance(v, ast.Constant) or id(call) in outside for v, call in zip(known, calls, strict=True))
    return known[0] if apart else None


def _argument(call: ast.Call, parameters: ast.arguments, name: str) -> ast.expr | None:
    """What a call gives a parameter, by its place, by its name or by default."""
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    places = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
    if name in places[: len(call.args)]:
        return call.args[places.index(name)]
    named = next((each.value for each in call.keywords if each.arg == name), None)
    if named is not None:
        return named
    defaults = dict(zip(reversed(places), reversed(parameters.defaults), strict=False))
    only = {each.arg: value for each, value in zip(parameters.kwonlyargs, parameters.kw_defaults, strict=True)}
    return defaults.get(name, only.get(name))


def _is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_definition(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _is_cache(decorator: ast.expr) -> bool:
    """Whether a decorator only has a function keep what it returned."""
    used = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(used, "attr", getattr(used, "id", "")) in _CACHES
