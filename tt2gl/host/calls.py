"""Calls that reading may answer: Python's own functions and those of pure modules, on plain data, with bounds.

Sizes are bounded because the code is anybody's: `"a" * 10**10` must not fill the memory of the one who reads it.
"""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import os
import platform
import re
import string
import sys
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tt2gl.host import facts
from tt2gl.host.values import (
    Builtin,
    Cause,
    Class,
    Constexpr,
    External,
    Function,
    HostRaise,
    Made,
    Method,
    ModuleValue,
    Partial,
    Undecided,
    Unknown,
    is_data,
)

if TYPE_CHECKING:
    from tt2gl.host.evaluator import Evaluator

_SIZE = 100_000
_BITS = 4096

MATH: Mapping[str, Any] = {name: getattr(math, name) for name in dir(math) if not name.startswith("_")}
_OPERATOR = {name: getattr(operator, name) for name in dir(operator) if not name.startswith("_")}

# Modules of the standard library that only compute: a compile-time function may import them for real.
PURE_MODULES = frozenset(
    {"math", "operator", "functools", "itertools", "typing", "enum", "dataclasses", "collections", "numbers", "copy"}
)

# Externals that are modules although only an attribute access names them.
MODULES = frozenset(
    {
        "torch.cuda", "torch.version", "torch.backends", "torch.backends.cuda", "torch.backends.mps", "torch.xpu",
        "torch.nn", "torch.nn.functional", "torch.distributed", "torch.autograd", "torch.utils", "torch.library",
        "importlib.util", "importlib.metadata", "os.path", "packaging.version", "collections.abc",
    }
)  # fmt: skip


def unknown(text: str) -> Undecided:
    """Undecided, without a place: whoever evaluates adds it."""
    return Undecided(Cause("", 0, 0, text))


def guarded(action: Callable[[], Any], what: str) -> Any:
    """Run one operation of Python's on plain data; its exceptions are the host's."""
    try:
        return action()
    except (HostRaise, Undecided):
        raise
    except RecursionError:
        raise unknown(f"{what} is nested too deeply") from None
    except Exception as error:  # noqa: BLE001 - whatever Python raises on the data is what the host code raises
        raise HostRaise(type(error).__name__, str(error)) from None


_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}

_COMPARE: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}

_SIZED = (str, bytes, list, tuple, dict, set, frozenset)


def _check(fits: bool) -> None:
    if not fits:
        raise unknown("the result is too large to be worked out")


def binary(op: type[ast.operator], left: Any, right: Any) -> Any:
    """`left op right` on plain data."""
    if op is ast.Mult:
        for one, other in ((left, right), (right, left)):
            if isinstance(one, _SIZED) and isinstance(other, int):
                _check(len(one) * other <= _SIZE)
    if isinstance(left, int) and isinstance(right, int):
        if op is ast.Mult:
            _check(left.bit_length() + right.bit_length() <= _BITS)
        elif op is ast.Pow:
            _check(left.bit_length() * abs(right) <= _BITS)
        elif op is ast.LShift:
            _check(left.bit_length() + right <= _BITS)
    if op is ast.Add and isinstance(left, _SIZED) and isinstance(right, _SIZED):
        _check(len(left) + len(right) <= _SIZE)
    if op is ast.Mod and isinstance(left, str):
        _check(re.search(r"\d{5}|\*", left) is None)
    function = _BINARY.get(op)
    if function is None:
        raise unknown("an operator cannot be read")
    return guarded(lambda: function(left, right), "the operation")


def compare(op: type[ast.cmpop], left: Any, right: Any) -> Any:
    """An ordering of plain data; a version compares with its text too."""
    if isinstance(left, facts.Version) and isinstance(right, str):
        right = guarded(lambda: facts.Version(right), "the version")
    elif isinstance(right, facts.Version) and isinstance(left, str):
        left = guarded(lambda: facts.Version(left), "the version")
    return guarded(lambda: _COMPARE[op](left, right), "the comparison")


def formatted(value: Any, specification: str) -> str:
    """`format(value, specification)`."""
    _check(re.search(r"\d{5}", specification) is None)
    return str(guarded(lambda: format(value, specification), "the text"))


def _modest(template: str) -> bool:
    """Whether the fields of a format string ask for no width beyond four digits."""
    fields = guarded(lambda: list(string.Formatter().parse(template)), "the text")
    return all(re.search(r"\d{5}|\{", specification or "") is None for _, _, specification, _ in fields)


def listed(value: Any) -> list[Any]:
    """The items of plain data."""
    if hasattr(value, "__len__"):
        _check(len(value) <= _SIZE)
    return list(guarded(lambda: list(value), "the items"))


def environment(name: Any, default: Any) -> Any:
    """An environment variable: the user's own settings apply to the conversion as they would to the import."""
    if not isinstance(name, str):
        raise unknown("the variable's name is not known")
    value = os.environ.get(name)
    if value is not None:
        return value
    if default is None or is_data(default):
        return default
    raise HostRaise("KeyError", name)


def _plain(value: Any) -> Any:
    if isinstance(value, Unknown):
        raise Undecided(value.cause)
    return value


def _callable(evaluator: Evaluator, value: Any) -> Any:
    """A function value as Python's own functions call it."""
    if isinstance(value, Function | Partial | External | Method):
        return lambda *args: evaluator.call(value, list(args), {})
    return value


# ------------------------------------------------------------------------------------------------- built-ins


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
        return _external_has(value, name)
    return True


def _external_has(value: External, name: str) -> bool:
    present = facts.has_name(value.dotted, name)
    if present is not None:
        return present
    dotted = f"{value.dotted}.{name}"
    if dotted in MODULES or re.fullmatch(r"torch\.(b?float\d+(_\w+)?|u?int\d+|bool|half|complex\d+)", dotted):
        return True
    raise unknown(f"whether {dotted} exists is not known")


def _getattr(evaluator: Evaluator, value: Any, name: str, *default: Any) -> Any:
    if default:
        try:
            if not _hasattr(evaluator, value, name):
                return _plain(default[0])
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
        return guarded(lambda: _SPECIAL[name](evaluator, *map(_plain, args), **kwargs), name)
    if name not in _PURE:
        raise unknown(f"{name}() cannot be read")
    plain = [_plain(value) for value in args]
    plain = [value.value if isinstance(value, Constexpr) else value for value in plain]
    for value in plain:
        if isinstance(value, range):
            _check(len(value) <= _SIZE)
        if isinstance(value, list | tuple) and name in ("sum", "max", "min", "sorted", "all", "any"):
            for item in value:
                _plain(item)
    if name == "pow":
        return binary(ast.Pow, *plain[:2])
    if name == "bytes" and plain and isinstance(plain[0], int):
        _check(plain[0] <= _SIZE)
    if name == "str" and plain and not is_data(plain[0]):
        raise unknown("the text is not known")
    if name == "float" and plain and isinstance(plain[0], External):
        raise unknown("the number is not known")
    function = _PURE[name]
    plain = [_callable(evaluator, value) for value in plain]
    named = {key: _callable(evaluator, _plain(value)) for key, value in kwargs.items()}
    if name in ("bool", "all", "any") and plain:
        items = listed(plain[0]) if name != "bool" and is_data(plain[0]) else plain
        if not all(is_data(item) for item in items):
            raise unknown("the truth is not known")
    if name in ("map", "filter") and len(args) > 1 and not is_data(args[0]):
        callee = _plain(args[0])
        results = [evaluator.call(callee, list(items), {}) for items in zip(*map(listed, plain[1:]), strict=False)]
        if name == "map":
            return results
        return [item for item, keep in zip(listed(plain[1]), results, strict=False) if keep]
    result = guarded(lambda: function(*plain, **named), name)
    return list(result) if name in _LAZY else result


# --------------------------------------------------------------------------------------------------- methods


def call_method(evaluator: Evaluator, owner: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a method of plain data."""
    plain: list[Any] = [value if isinstance(value, Unknown) else _callable(evaluator, value) for value in args]
    named = {key: _callable(evaluator, _plain(value)) for key, value in kwargs.items()}
    if isinstance(owner, str | bytes):
        plain = [_plain(value) for value in plain]
        _check(not any(isinstance(value, int) and abs(value) > _SIZE for value in plain))
        if name == "replace" and len(plain) > 1:
            _check((len(owner) + 1) * (len(plain[1]) + 1) <= _SIZE * 100)
        if name == "join" and plain:
            _check((len(owner) + 1) * len(listed(_plain(plain[0]))) <= _SIZE * 100)
        if name in ("format", "format_map"):
            _check(not isinstance(owner, str) or _modest(owner))
    if isinstance(owner, list | dict | set):
        _check(len(owner) <= _SIZE)
    if name == "to_bytes":
        raise unknown("a method cannot be read")
    result = guarded(lambda: getattr(owner, name)(*plain, **named), name)
    return list(result) if type(result).__name__ in ("dict_keys", "dict_values", "dict_items") else _plain(result)


# ------------------------------------------------------------------------------------------ external functions


def next_power_of_2(value: int) -> int:
    """`triton.next_power_of_2`."""
    return 1 << max(value - 1, 0).bit_length() if value > 0 else 0


def _find_spec(evaluator: Evaluator, name: Any, *rest: Any) -> Any:
    if not isinstance(name, str):
        raise unknown("the module's name is not known")
    if not facts.importable(name):
        return None
    # What loads it: `module_from_spec` and the loader's `exec_module` amount to an import.
    return SimpleNamespace(name=name, origin=None, loader=SimpleNamespace(exec_module=Builtin("print")))


def _module_from_spec(evaluator: Evaluator, spec: Any) -> External:
    if not isinstance(spec, SimpleNamespace) or not hasattr(spec, "loader"):
        raise unknown("the module is not known")
    return External(spec.name, module=True)


# Bits of exponent and of mantissa; `tiny` and `eps` follow from them as IEEE 754 has it.
_FLOATS: Mapping[str, tuple[int, int, float]] = {
    "float16": (5, 10, 65504.0),
    "bfloat16": (8, 7, (2 - 2**-7) * 2.0**127),
    "float32": (8, 23, (2 - 2**-23) * 2.0**127),
    "float64": (11, 52, sys.float_info.max),
    "float8_e4m3fn": (4, 3, 448.0),
    "float8_e4m3fnuz": (4, 3, 240.0),
    "float8_e5m2": (5, 2, 57344.0),
    "float8_e5m2fnuz": (5, 2, 57344.0),
}
_SYNONYMS = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32",
             "long": "int64"}  # fmt: skip


def _torch_dtype(dtype: Any) -> str:
    if not isinstance(dtype, External) or not dtype.within("torch"):
        raise unknown("the dtype is not known")
    name = dtype.dotted.rpartition(".")[2]
    return _SYNONYMS.get(name, name)


def _finfo(evaluator: Evaluator, *dtype: Any) -> SimpleNamespace:
    """`torch.finfo`."""
    name = _torch_dtype(dtype[0]) if dtype else "float32"
    if name not in _FLOATS:
        raise unknown(f"the limits of {name} are not known")
    exponent, mantissa, largest = _FLOATS[name]
    bias = 2 ** (exponent - 1) - (0 if name.endswith("fnuz") else 1)
    tiny = 2.0 ** (1 - bias)
    return SimpleNamespace(
        bits=1 + exponent + mantissa, max=largest, min=-largest, eps=2.0**-mantissa, tiny=tiny, smallest_normal=tiny
    )


def _iinfo(evaluator: Evaluator, dtype: Any) -> SimpleNamespace:
    """`torch.iinfo`."""
    match = re.fullmatch(r"(u?)int(8|16|32|64)", _torch_dtype(dtype))
    if match is None:
        raise unknown("the limits of the dtype are not known")
    bits = int(match.group(2))
    if match.group(1):
        return SimpleNamespace(bits=bits, min=0, max=2**bits - 1)
    return SimpleNamespace(bits=bits, min=-(2 ** (bits - 1)), max=2 ** (bits - 1) - 1)


def _import_module(evaluator: Evaluator, name: Any, *rest: Any) -> Any:
    if not isinstance(name, str) or name.startswith("."):
        raise unknown("the module's name is not known")
    if not facts.importable(name):
        raise HostRaise("ModuleNotFoundError", name)
    return External(name, module=True)


def _version(evaluator: Evaluator, name: Any) -> str:
    found = facts.installed_version(str(name))
    if found is None:
        raise HostRaise("PackageNotFoundError", str(name))
    return found


def _make_version(evaluator: Evaluator, text: Any) -> facts.Version:
    return facts.Version(str(text))


def _regex(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(evaluator: Evaluator, pattern: Any, *args: Any) -> Any:
        # A group that repeats can take exponential time.
        if not isinstance(pattern, str) or re.search(r"\)[*+{?]", pattern) or not all(is_data(arg) for arg in args):
            raise unknown("a regular expression cannot be tried")
        result = function(pattern, *args)
        if isinstance(result, re.Match):
            return SimpleNamespace(group=External(""), groups=External(""), match=result)
        return result

    return run


def _namedtuple(evaluator: Evaluator, *args: Any, **kwargs: Any) -> Made:
    return Made("collections.namedtuple", args, kwargs)


def _config(evaluator: Evaluator, *args: Any, **kwargs: Any) -> Made:
    return Made("triton.Config", args, kwargs)


_EXTERNAL: Mapping[str, Callable[..., Any]] = {
    "os.getenv": lambda evaluator, name, default=None: environment(name, default),
    "os.environ.get": lambda evaluator, name, default=None: environment(name, default),
    "importlib.util.find_spec": _find_spec,
    "importlib.util.module_from_spec": _module_from_spec,
    "importlib.import_module": _import_module,
    "importlib.metadata.version": _version,
    "torch.finfo": _finfo,
    "torch.iinfo": _iinfo,
    "packaging.version.parse": _make_version,
    "packaging.version.Version": _make_version,
    "pkg_resources.parse_version": _make_version,
    "distutils.version.LooseVersion": _make_version,
    "setuptools._distutils.version.LooseVersion": _make_version,
    "torch.torch_version.TorchVersion": _make_version,
    "platform.system": lambda evaluator: platform.system(),
    "platform.machine": lambda evaluator: platform.machine(),
    "platform.python_version": lambda evaluator: platform.python_version(),
    "triton.cdiv": lambda evaluator, x, y: -(-x // y),
    "triton.next_power_of_2": lambda evaluator, n: next_power_of_2(n),
    "triton.language.cdiv": lambda evaluator, x, y: -(-x // y),
    "triton.Config": _config,
    "triton.runtime.Config": _config,
    "triton.runtime.autotuner.Config": _config,
    "collections.namedtuple": _namedtuple,
    "copy.deepcopy": lambda evaluator, value: value,
    "copy.copy": lambda evaluator, value: value,
    "itertools.product": lambda evaluator, *args, **kwargs: _product(*args, **kwargs),
    "itertools.chain": lambda evaluator, *args: [item for items in args for item in listed(items)],
    "functools.reduce": lambda evaluator, function, *args: functools.reduce(_callable(evaluator, function), *args),
    "re.match": _regex(re.match),
    "re.search": _regex(re.search),
    "re.fullmatch": _regex(re.fullmatch),
    "re.findall": _regex(re.findall),
    "re.sub": _regex(re.sub),
    "re.split": _regex(re.split),
    "warnings.warn": _print,
    "warnings.filterwarnings": _print,
    "warnings.simplefilter": _print,
}


# Packages re-export the class under its own name.
_VERSIONS = ("Version", "LooseVersion", "StrictVersion", "TorchVersion", "parse_version")


def _product(*args: Any, **kwargs: Any) -> list[Any]:
    _check(math.prod(len(listed(items)) for items in args) ** int(kwargs.get("repeat", 1)) <= _SIZE)
    return list(itertools.product(*args, **kwargs))


def call_external(evaluator: Evaluator, dotted: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a function of a package that is not read."""
    module, _, name = dotted.rpartition(".")
    if dotted in _EXTERNAL:
        strict = _EXTERNAL[dotted] not in (_config, _namedtuple)
        values = [_plain(value) for value in args] if strict else args
        return guarded(lambda: _EXTERNAL[dotted](evaluator, *values, **kwargs), dotted)
    if module in ("math", "operator", "_operator"):
        function = (MATH if module == "math" else _OPERATOR).get(name)
        plain = [_plain(value) for value in args]
        plain = [value.value if isinstance(value, Constexpr) else value for value in plain]
        if callable(function) and all(is_data(value) for value in plain):
            for value in plain:
                _check(not isinstance(value, int) or value.bit_length() <= _BITS)
            if name in ("factorial", "comb", "perm", "pow", "lshift", "mul", "concat", "prod"):
                _check(
                    all(isinstance(value, float) or (isinstance(value, int) and abs(value) <= 1024) for value in plain)
                )
            if name in ("lt", "le", "gt", "ge"):
                return compare({"lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}[name], *plain)
            return guarded(lambda: function(*plain), dotted)
    if name in _VERSIONS and len(args) == 1 and isinstance(args[0], str):
        return guarded(lambda: facts.Version(args[0]), dotted)
    if module.startswith("logging") or name in ("getLogger",):
        return None
    raise unknown(f"{dotted}() cannot be read")
