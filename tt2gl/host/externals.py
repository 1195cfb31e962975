"""Calls of functions of packages that are not read: those that only compute, or ask about the installation."""

from __future__ import annotations

import ast
import functools
import itertools
import math
import operator
import os
import platform
import re
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tt2gl.host import facts
from tt2gl.host.dtype_limits import finfo, iinfo
from tt2gl.host.operations import BITS, SIZE, check_size, compare, guarded, listed, unknown
from tt2gl.host.signatures import parameters
from tt2gl.host.values import Builtin, Constexpr, External, HostRaise, Made, is_data

if TYPE_CHECKING:
    from tt2gl.host.evaluator import Evaluator


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


def has_attribute(value: External, name: str) -> bool:
    """Whether a package that is not read has a name. Raises Undecided where nobody knows."""
    present = facts.has_name(value.dotted, name)
    if present is not None:
        return present
    dotted = f"{value.dotted}.{name}"
    if dotted in MODULES or re.fullmatch(r"torch\.(b?float\d+(_\w+)?|u?int\d+|bool|half|complex\d+)", dotted):
        return True
    raise unknown(f"whether {dotted} exists is not known")


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


def _signature(evaluator: Evaluator, function: Any) -> SimpleNamespace:
    found = parameters(function.dotted) if isinstance(function, External) else None
    if found is None:
        raise unknown("the function's parameters are not known")
    return SimpleNamespace(parameters={name: External(f"inspect.Parameter.{name}") for name in found})


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


def _nothing(evaluator: Evaluator, *args: Any, **kwargs: Any) -> None:
    return None


_EXTERNAL: Mapping[str, Callable[..., Any]] = {
    "os.getenv": lambda evaluator, name, default=None: environment(name, default),
    "os.environ.get": lambda evaluator, name, default=None: environment(name, default),
    "importlib.util.find_spec": _find_spec,
    "importlib.util.module_from_spec": _module_from_spec,
    "importlib.import_module": _import_module,
    "importlib.metadata.version": _version,
    "inspect.signature": _signature,
    "torch.finfo": finfo,
    "torch.iinfo": iinfo,
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
    "functools.reduce": lambda evaluator, function, *args: functools.reduce(evaluator.as_callable(function), *args),
    "re.match": _regex(re.match),
    "re.search": _regex(re.search),
    "re.fullmatch": _regex(re.fullmatch),
    "re.findall": _regex(re.findall),
    "re.sub": _regex(re.sub),
    "re.split": _regex(re.split),
    "warnings.warn": _nothing,
    "warnings.filterwarnings": _nothing,
    "warnings.simplefilter": _nothing,
}


# Packages have loggers of other kinds than Python's own, such as loguru's.
_LOGGERS = ("log", "logger", "_logger")
_LEVELS = ("trace", "debug", "info", "success", "warning", "warn", "error", "critical", "exception")


def _is_logging(owner: str, name: str) -> bool:
    return owner.rpartition(".")[2].lower() in _LOGGERS and name in _LEVELS


# Packages re-export the class under its own name.
_VERSIONS = ("Version", "LooseVersion", "StrictVersion", "TorchVersion", "parse_version")


def _product(*args: Any, **kwargs: Any) -> list[Any]:
    check_size(math.prod(len(listed(items)) for items in args) ** int(kwargs.get("repeat", 1)) <= SIZE)
    return list(itertools.product(*args, **kwargs))


def call_external(evaluator: Evaluator, dotted: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """A call of a function of a package that is not read."""
    module, _, name = dotted.rpartition(".")
    if dotted in _EXTERNAL:
        strict = _EXTERNAL[dotted] not in (_config, _namedtuple)
        values = [evaluator.known(value) for value in args] if strict else args
        return guarded(lambda: _EXTERNAL[dotted](evaluator, *values, **kwargs), dotted)
    if module in ("math", "operator", "_operator"):
        function = (MATH if module == "math" else _OPERATOR).get(name)
        plain = [evaluator.known(value) for value in args]
        plain = [value.value if isinstance(value, Constexpr) else value for value in plain]
        if callable(function) and all(is_data(value) for value in plain):
            for value in plain:
                check_size(not isinstance(value, int) or value.bit_length() <= BITS)
            if name in ("factorial", "comb", "perm", "pow", "lshift", "mul", "concat", "prod"):
                check_size(
                    all(isinstance(value, float) or (isinstance(value, int) and abs(value) <= 1024) for value in plain)
                )
            if name in ("lt", "le", "gt", "ge"):
                return compare({"lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE}[name], *plain)
            return guarded(lambda: function(*plain), dotted)
    if name in _VERSIONS and len(args) == 1 and isinstance(args[0], str):
        return guarded(lambda: facts.Version(args[0]), dotted)
    if module.startswith("logging") or name == "getLogger" or _is_logging(module, name):
        return None
    raise unknown(f"{dotted}() cannot be read")
