"""The JSON format of launches, described in docs/launches.md: one format, made by hand or by a program.

What JSON lacks is tagged (`{"dtype": "fp16"}`, `{"float": "-inf"}`, `{"tuple": [...]}`,
`{"jit": "package.module:name"}`, `{"descriptor": {...}}`) and is decoded to the frozen values of `launches`;
writing what was read gives the same JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.files import write_text
from tt2gl.launches import DescriptorArg, DtypeValue, JitValue, Launch, Options, TensorArg

VERSION = 1

# Options that change what is compiled, with Triton's defaults; further ones are kept in `Options.extra`.
_OPTION_NAMES = ("num_warps", "num_stages", "num_ctas")


class _Malformed(Exception):
    """A value of the file has the wrong shape; `where` is its path inside the document."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.where = where


# ---------------------------------------------------------------------------------------------- tagged values


def decode(value: Any, where: str = "value") -> Any:
    """A JSON value as a launch holds it; tagged objects become values. Raises ValueError on an unknown tag."""
    if isinstance(value, list):
        return [decode(item, f"{where}[{index}]") for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    if len(value) == 1:
        ((tag, content),) = value.items()
        if tag in _DECODERS:
            try:
                return _DECODERS[tag](content, where)
            except (KeyError, TypeError, ValueError) as error:
                raise _Malformed(where, f"bad {tag!r} value ({error})") from None
    if {"dtype", "shape"} <= value.keys():
        try:
            return _tensor(value)
        except (KeyError, TypeError, ValueError) as error:
            raise _Malformed(where, f"bad tensor ({error})") from None
    raise _Malformed(where, f"unknown tag {sorted(map(str, value))}")


def _tensor(value: Mapping[str, Any]) -> TensorArg:
    shape = _ints(value["shape"])
    stride = _ints(value["stride"]) if value.get("stride") is not None else contiguous(shape)
    if len(stride) != len(shape):
        raise ValueError("shape and stride differ in length")
    limits = value.get("range")
    if limits is not None and (len(limits) != 2 or not all(isinstance(limit, (int, float)) for limit in limits)):
        raise ValueError("range is not [min, max]")
    return TensorArg(str(value["dtype"]), shape, stride, None if limits is None else (limits[0], limits[1]))


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor of this shape laid out row by row."""
    strides = [1]
    for size in reversed(shape[1:]):
        strides.append(strides[-1] * size)
    return tuple(reversed(strides))[: len(shape)] if shape else ()


def _ints(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(item, int) and not isinstance(item, bool) for item in value):
        raise ValueError(f"{value!r} is not a list of integers")
    return tuple(value)


def _dtype(content: Any, _: str) -> DtypeValue:
    if not isinstance(content, str):
        raise ValueError("a dtype is a name")
    return DtypeValue(content)


def _float(content: Any, _: str) -> float:
    return float(content)


def _tuple(content: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(content, list):
        raise ValueError("a tuple is a list")
    return tuple(decode(item, f"{where}[{index}]") for index, item in enumerate(content))


def _jit(content: Any, _: str) -> JitValue:
    if not isinstance(content, str) or not re.fullmatch(r"[\w.]+:\w+(\.\w+)*", content):
        raise ValueError("write package.module:name")
    return JitValue(content)


def _descriptor(content: Any, _: str) -> DescriptorArg:
    return DescriptorArg(
        str(content["dtype"]),
        _ints(content["shape"]),
        _ints(content["stride"]),
        _ints(content["block_shape"]),
    )


_DECODERS: Mapping[str, Callable[[Any, str], Any]] = {
    "dtype": _dtype,
    "float": _float,
    "tuple": _tuple,
    "jit": _jit,
    "descriptor": _descriptor,
}


def encode(value: Any) -> Any:
    """A launch's value as JSON; the inverse of `decode`."""
    match value:
        case bool() | int() | str() | None:
            return value
        case float():
            if math.isfinite(value):
                return value
            return {"float": "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"}
        case DtypeValue(name):
            return {"dtype": name}
        case JitValue(reference):
            return {"jit": reference}
        case TensorArg(dtype, shape, stride, limits):
            return {
                "dtype": dtype,
                "shape": list(shape),
                "stride": list(stride),
                "range": None if limits is None else list(limits),
            }
        case DescriptorArg(dtype, shape, stride, block_shape):
            return {
                "descriptor": {
                    "dtype": dtype,
                    "shape": list(shape),
                    "stride": list(stride),
                    "block_shape": list(block_shape),
                }
            }
        case tuple():
            return {"tuple": [encode(item) for item in value]}
        case list():
            return [encode(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no place in a launch")


# ---------------------------------------------------------------------------------------------------- reading


def read_launches(path: Path | str) -> tuple[Launch, ...]:
    """The launches of a file. Raises DiagnosticError TTG201 where it is missing, no JSON, or of another shape."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        code = ExitCode.NO_INPUT if isinstance(error, FileNotFoundError) else ExitCode.USAGE
        raise _bad_file(path, 0, 0, f"The launches cannot be read: {error.strerror or error}.", code) from None
    except UnicodeDecodeError:
        raise _bad_file(path, 0, 0, "The launches file is not UTF-8.") from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        raise _bad_file(path, error.lineno, error.colno - 1, f"The launches are not JSON: {error.msg}.") from None
    except RecursionError:
        raise _bad_file(path, 0, 0, "The launches are nested too deeply.") from None
    if not isinstance(document, dict) or not isinstance(document.get("launches"), list):
        raise _bad_file(path, 1, 0, 'The launches file has no list "launches".')
    if document.get("version") != VERSION:
        message = f"The launches file has version {document.get('version')!r}; this tt2gl reads {VERSION}."
        raise _bad_file(path, _line_of(text, '"version"', 1), 0, message)
    launches = []
    for index, entry in enumerate(document["launches"]):
        try:
            launches.append(launch_from_json(entry))
        except _Malformed as error:
            line = _line_of(text, '"kernel"', index + 1)
            message = f"Launch {index} is malformed at {error.where}: {error}."
            raise _bad_file(path, line, 0, message) from None
    return tuple(launches)


def _line_of(text: str, needle: str, occurrence: int) -> int:
    """The line of the n-th occurrence: json keeps no positions, and a line near the entry is what helps."""
    position = -1
    for _ in range(occurrence):
        found = text.find(needle, position + 1)
        if found < 0:
            break
        position = found
    return text.count("\n", 0, max(position, 0)) + 1


def _bad_file(
    path: Path, line: int, column: int, message: str, exit_code: ExitCode = ExitCode.USAGE
) -> DiagnosticError:
    hint = "Compare with the format in docs/launches.md."
    return DiagnosticError(Diagnostic("TTG201", Severity.ERROR, str(path), line, column, message, hint), exit_code)


def launch_from_json(entry: Any) -> Launch:
    """One entry of "launches". Raises a ValueError's kin with the place of what is wrong."""
    if not isinstance(entry, dict):
        raise _Malformed("the entry", "not an object")
    for key in ("file", "kernel"):
        if not isinstance(entry.get(key), str):
            raise _Malformed(key, "missing, or not a string")
    signature = entry.get("signature")
    if not isinstance(signature, dict) or not all(isinstance(kind, str) for kind in signature.values()):
        raise _Malformed("signature", "missing, or not an object of type names")
    for name, kind in signature.items():
        if not _TYPE.fullmatch(kind):
            raise _Malformed(f"signature.{name}", f"{kind!r} is no Triton type")
    constexprs = entry.get("constexprs", {})
    if not isinstance(constexprs, dict):
        raise _Malformed("constexprs", "not an object")
    divisible = entry.get("divisible_by_16", [])
    if not isinstance(divisible, list) or not all(isinstance(name, str) for name in divisible):
        raise _Malformed("divisible_by_16", "not a list of names")
    for name in [*constexprs, *divisible]:
        if name not in signature:
            raise _Malformed("constexprs" if name in constexprs else "divisible_by_16", f"{name!r} has no type")
    for name, kind in signature.items():
        if kind == "constexpr" and name not in constexprs:
            raise _Malformed(f"constexprs.{name}", "missing")
    grid, args = entry.get("grid"), entry.get("args")
    if args is not None and not isinstance(args, dict):
        raise _Malformed("args", "not an object")
    try:
        decoded_grid = None if grid is None else _ints(grid)
    except ValueError as error:
        raise _Malformed("grid", str(error)) from None
    origin = entry.get("origin", "given")
    if origin not in ("given", "found", "guessed"):
        raise _Malformed("origin", f"{origin!r} is none of given, found, guessed")
    return Launch(
        file=entry["file"],
        kernel=entry["kernel"],
        signature=dict(signature),
        constexprs={name: decode(value, f"constexprs.{name}") for name, value in constexprs.items()},
        divisible_by_16=tuple(divisible),
        options=_options(entry.get("options", {})),
        grid=decoded_grid,
        args=None if args is None else {name: decode(value, f"args.{name}") for name, value in args.items()},
        origin=origin,
    )


_TYPE = re.compile(r"constexpr|\*?k?\*?[a-z]\w*|tensordesc<.+>|nvTmaDesc|\(.*\)|\[.*\]")


def _options(value: Any) -> Options:
    if not isinstance(value, dict):
        raise _Malformed("options", "not an object")
    known = {}
    for name in _OPTION_NAMES:
        if name in value:
            if not isinstance(value[name], int) or isinstance(value[name], bool) or value[name] < 0:
                raise _Malformed(f"options.{name}", f"{value[name]!r} is no count")
            known[name] = value[name]
    extra = {name: decode(item, f"options.{name}") for name, item in value.items() if name not in _OPTION_NAMES}
    return Options(**known, extra=extra)


# ---------------------------------------------------------------------------------------------------- writing


def launch_to_json(launch: Launch) -> dict[str, Any]:
    """One launch as an entry of "launches"."""
    entry: dict[str, Any] = {
        "file": launch.file,
        "kernel": launch.kernel,
        "signature": dict(launch.signature),
        "constexprs": {name: encode(value) for name, value in launch.constexprs.items()},
        "divisible_by_16": list(launch.divisible_by_16),
        "options": {name: encode(value) for name, value in launch.options.to_dict().items()},
        "grid": None if launch.grid is None else list(launch.grid),
        "args": None if launch.args is None else {name: encode(value) for name, value in launch.args.items()},
    }
    if launch.origin != "given":
        entry["origin"] = launch.origin
    return entry


def write_launches(path: Path | str, launches: Iterable[Launch]) -> None:
    """Write launches whole or not at all. Raises DiagnosticError TTG005 where that fails."""
    document = {"version": VERSION, "launches": [launch_to_json(launch) for launch in launches]}
    write_text(Path(path), json.dumps(document, indent=1, allow_nan=False) + "\n")
