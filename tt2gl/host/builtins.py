"""Calls of Python's own functions, and of methods of plain data."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tt2gl.host.externals import has_attribute
from tt2gl.host.operations import SIZE, binary, check_size, guarded, listed, modest, unknown
from tt2gl.host.values import (
    Class,
    Constexpr,
    External,
    Function,
    HostRaise,
    ModuleValue,
    Partial,
    Undecided,
    Unknown,
    is_data,
)

if TYPE_CHECKING:
    from tt2gl.host.evaluator import Evaluator


def _isinstance(evaluator: Evaluator, value: Any, kinds: Any) -> bool:
    names = {getattr(kind, "name", None) for kind in (kinds if isinstance(kinds, tuple) else (kinds,))}
    types = {
        "int": int,
        "float": float,
        "str": str,
        "bool": bool,
        "tuple": tuple,
        "list": list,
        "dict": dict,
        "set": set,
    }
    if is_data(value) and names <= types.keys():
        return isinstance(value, tuple(types[name] for name in names if name is not None))
    raise unknown("the type is not known")


def _hasattr(evaluator: Evaluator, value: Any, name: str) -> bool:
    try:
        found = evaluator.attribute(value, name)
    except HostRaise:
        return False
    except Undecided:
        if isinstance(value, ModuleValue):
            return True
        raise
    if isinstance(found, External) and not found.within("triton") and isinstance(value, External):
        return has_attribute(value, name)
    return True


def _getattr(evaluator: Evaluator, value: Any, name: str, *default: Any) -> Any:
    if default:
        try:
            if not _hasattr(evaluator, value, name):
                return evaluator.known(default[0])
        except Undecided:
            pass
    return evaluator.attribute(value, name)


def _print(evaluator: Evaluator, *args: Any, **kwargs: Any) -> None:
    return None


_PURE: Mapping[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        abs, all, any, bool, bytes, chr, dict, divmod, enumerate, filter, float, format, frozenset, hex, int, len,
        list, map, max, min, ord, pow, range, repr, reversed, round, set, slice, sorted, str, sum, tuple, zip,
    )
}  # fmt: skip

_SPECIAL: Mapping[str, Callable[..., Any]] = {
    "isinstance": _isinstance,
    "hasattr": _hasattr,
    "getattr": _getattr,
    "print": _print,
    "callable": lambda evaluator, value: isinstance(value, Function | Class | Partial),
    "_identity": lambda evaluator, value: value,
    "__import__": lambda evaluator, name, *rest: External(name.partition(".")[0], module=True),
}

BUILTINS = frozenset({*_PURE, *_SPECIAL, "type", "object", "globals", "locals", "vars", "open", "super", "property"})
_LAZY = frozenset({"enumerate", "filter", "map", "reversed", "zip"})


def call_builtin(evaluator: Evaluator, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of one of Python's own functions."""
    if name in _SPECIAL:
        return guarded(lambda: _SPECIAL[name](evaluator, *map(evaluator.known, args), **kwargs), name)
    if name not in _PURE:
        raise unknown(f"{name}() cannot be read")
    plain = [evaluator.known(value) for value in args]
    plain = [value.value if isinstance(value, Constexpr) else value for value in plain]
    for value in plain:
        if isinstance(value, range):
            check_size(len(value) <= SIZE)
        if isinstance(value, list | tuple) and name in ("sum", "max", "min", "sorted", "all", "any"):
            for item in value:
                evaluator.known(item)
    if name == "pow":
        return binary(ast.Pow, *plain[:2])
    if name == "bytes" and plain and isinstance(plain[0], int):
        check_size(plain[0] <= SIZE)
    if name == "str" and plain and not is_data(plain[0]):
        raise unknown("the text is not known")
    if name == "float" and plain and isinstance(plain[0], External):
        raise unknown("the number is not known")
    function = _PURE[name]
    plain = [evaluator.as_callable(value) for value in plain]
    named = {key: evaluator.as_callable(evaluator.known(value)) for key, value in kwargs.items()}
    if name in ("bool", "all", "any") and plain:
        items = listed(plain[0]) if name != "bool" and is_data(plain[0]) else plain
        if not all(is_data(item) for item in items):
            raise unknown("the truth is not known")
    if name in ("map", "filter") and len(args) > 1 and not is_data(args[0]):
        callee = evaluator.known(args[0])
        results = [evaluator.call(callee, list(items), {}) for items in zip(*map(listed, plain[1:]), strict=False)]
        if name == "map":
            return results
        return [item for item, keep in zip(listed(plain[1]), results, strict=False) if keep]
    result = guarded(lambda: function(*plain, **named), name)
    return list(result) if name in _LAZY else result


def call_method(evaluator: Evaluator, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a method of plain data."""
    plain: list[Any] = [value if isinstance(value, Unknown) else evaluator.as_callable(value) for value in args]
    named = {key: evaluator.as_callable(evaluator.known(value)) for key, value in kwargs.items()}
    if isinstance(owner, str | bytes):
        plain = [evaluator.known(value) for value in plain]
        check_size(not any(isinstance(value, int) and abs(value) > SIZE for value in plain))
        if name == "replace" and len(plain) > 1:
            check_size((len(owner) + 1) * (len(plain[1]) + 1) <= SIZE * 100)
        if name == "join" and plain:
            check_size((len(owner) + 1) * len(listed(evaluator.known(plain[0]))) <= SIZE * 100)
        if name in ("format", "format_map"):
            check_size(not isinstance(owner, str) or modest(owner))
    if isinstance(owner, list | dict | set):
        check_size(len(owner) <= SIZE)
    if name == "to_bytes":
        raise unknown("a method cannot be read")
    result = guarded(lambda: getattr(owner, name)(*plain, **named), name)
    return (
        list(result) if type(result).__name__ in ("dict_keys", "dict_values", "dict_items") else evaluator.known(result)
    )
