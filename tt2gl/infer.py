"""Launches inferred from the file alone: what autotune configs, launch calls and defaults say, and then a guess.

A guess serves to convert and compile a kernel nobody gave a launch for; every one is named in a note (TTG210).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.host.evaluator import Evaluator, open_module
from tt2gl.host.scopes import Module, Scope
from tt2gl.host.triton_names import decorator_kind
from tt2gl.host.values import Constexpr, External, Frame, Function, HostRaise, Made, Undecided, Unknown, is_data
from tt2gl.jit_functions import JitFunction, Parameter
from tt2gl.launches import DtypeValue, JitValue, Launch, Options
from tt2gl.source import SourceFile
from tt2gl.usage import Facts, Usage

_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg")

_DTYPES: Mapping[str, str] = {
    "float16": "fp16", "half": "fp16", "bfloat16": "bf16", "float32": "fp32", "float": "fp32", "float64": "fp64",
    "double": "fp64", "int8": "i8", "int16": "i16", "int32": "i32", "int": "i32", "int64": "i64", "long": "i64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "i1", "int1": "i1",
    "float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5", "float8e4nv": "fp8e4nv", "float8e5": "fp8e5",
    "float8e4b8": "fp8e4b8", "float8_e4m3fnuz": "fp8e4b8", "pi32_t": "*i32",
}  # fmt: skip

_FLOAT_NAME = re.compile(
    r"(^|_)(eps|epsilon|scale|sm_scale|alpha|beta|gamma|momentum|lr|dropout|p|temperature|softcap|logit_scale|"
    r"smoothing|decay|rate|prob|theta|factor|threshold|limit|sign|lse_square_scale)(_|$)",
    re.I,
)
_SIZE_NAME = re.compile(
    r"(^|_)([MNKTSDHBLCVE]|n|n_?(rows|cols|elements|heads|tokens|groups)|numel|size|dim|len(gth)?|"
    r"(row|col|seq|head|batch|hidden|vocab|num|total)\w*|\w*(size|dim|len|cols|rows|elements))(_|$)"
)
_STRIDE_NAME = re.compile(r"stride", re.I)
_LABEL_NAME = re.compile(r"(target|label|token_ids?|input_ids?|indices|index|idx|ids|positions?|y_ptr$)", re.I)
_OFFSET_NAME = re.compile(
    r"(cu_?seq|seq_?len|seqlens?|offsets?|block_tables?|lens|counts?|slot|table|indptr|order|map(ping)?)", re.I
)
_MASK_NAME = re.compile(r"(^|_)(mask|keep|flag|valid)", re.I)
_FLAG_NAME = re.compile(
    r"^(is|has|use|do|with|apply|causal|compute|store|return|fuse|add|enable|even|inplace|reverse|output)(_|$)|_flag$",
    re.I,
)


@dataclass
class _Known:
    """What one launch call and one config say."""

    values: dict[str, Any] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    grid: tuple[int, ...] | None = None


def infer_launches(
    source: SourceFile, fn: JitFunction, *, limit: int = 4
) -> tuple[tuple[Launch, ...], tuple[Diagnostic, ...]]:
    """At most `limit` launches of a kernel, from its file alone, and notes on what was guessed."""
    evaluator, module = open_module(source.path, source.text, "sm90", None)
    node = next((found for found in module.definitions(fn.name) if found.lineno == fn.line), None)
    if node is None:
        return (), ()
    usage = Usage(node, _helpers(evaluator, module.scopes[node]))
    guess = _Guess(fn, node, usage, evaluator, module)
    known = list(_combine(list(guess.calls(source)), list(guess.configs())))
    launches: list[Launch] = []
    notes: dict[str, None] = {}
    for flags in (False, True):
        for item in known or [_Known()]:
            if len(launches) >= limit:
                break
            launch, guessed, flagged = guess.launch(item, flags)
            if flags and not flagged:
                continue
            if launch not in launches:
                launches.append(launch)
            notes.update(dict.fromkeys(guessed))
    diagnostics: tuple[Diagnostic, ...] = ()
    if notes:
        message = f"The launch of {fn.name} is partly guessed: {', '.join(notes)}."
        hint = "Give real ones with --launches (see docs/launches.md)."
        diagnostics = (Diagnostic("TTG210", Severity.NOTE, str(fn.path), fn.line, fn.column, message, hint),)
    return tuple(launches), diagnostics


def _helpers(evaluator: Evaluator, scope: Scope) -> Any:
    def find(func: ast.expr) -> ast.FunctionDef | None:
        try:
            value = evaluator.evaluate(func, Frame(scope))
        except (Undecided, HostRaise):
            return None
        if isinstance(value, Function) and isinstance(value.node, ast.FunctionDef):
            return value.node
        return None

    return find


def _combine(calls: list[_Known], configs: list[_Known]) -> Iterator[_Known]:
    """Every call with the first config, then the first call with the others: neighbours differ in one thing."""
    for call in calls or [_Known()]:
        yield _merge(call, configs[0] if configs else _Known())
    for config in configs[1:]:
        yield _merge(calls[0] if calls else _Known(), config)


def _merge(call: _Known, config: _Known) -> _Known:
    return _Known(
        {**call.values, **config.values},
        call.dtypes,
        {**call.options, **config.options},
        call.grid if not config.values else None,
    )


_MISSING: Any = object()


@dataclass
class _Guess:
    """All that is known of one kernel, and the launches made of it."""

    fn: JitFunction
    node: ast.FunctionDef
    usage: Usage
    evaluator: Evaluator
    module: Module

    def _try(self, node: ast.expr, scope: Scope) -> Any:
        try:
            return self.evaluator.evaluate(node, Frame(scope))
        except (Undecided, HostRaise):
            return _MISSING

    # ---------------------------------------------------------------------------------------- configs, calls

    def configs(self) -> Iterator[_Known]:
        """The literal configs of `triton.autotune`, and what `triton.heuristics` fixes without arguments."""
        for decorator in self.node.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            callee = self._try(decorator.func, self.module.scope)
            if not isinstance(callee, External) or decorator_kind(callee.dotted)[0] != "autotune":
                continue
            listed = next((word.value for word in decorator.keywords if word.arg == "configs"), None)
            listed = listed or (decorator.args[0] if decorator.args else None)
            value = self._try(listed, self.module.scope) if listed is not None else _MISSING
            for config in value if isinstance(value, list | tuple) else ():
                known = self._config(config)
                if known is not None:
                    yield known

    def _config(self, config: Any) -> _Known | None:
        if not isinstance(config, Made) or config.callee != "triton.Config":
            return None
        kwargs = config.args[0] if config.args else config.kwargs.get("kwargs", {})
        if not isinstance(kwargs, dict):
            return None
        options = {name: config.kwargs[name] for name in _OPTIONS if isinstance(config.kwargs.get(name), int)}
        options |= {
            name: value
            for name, value in zip(("num_warps", "num_stages", "num_ctas"), config.args[1:], strict=False)
            if isinstance(value, int)
        }
        values = {name: value for name, value in kwargs.items() if not isinstance(value, Unknown)}
        names = set(self.usage.names)
        options |= {name: value for name, value in values.items() if name in _OPTIONS and name not in names}
        return _Known({name: value for name, value in values.items() if name in names}, {}, options)

    def calls(self, source: SourceFile) -> Iterator[_Known]:
        """What each launch call of the file says."""
        wanted = {(call.line, call.column) for call in source.launches if call.kernel == self.fn.name}
        lines = self.module.text.split("\n")
        for node in ast.walk(self.module.tree):
            if not isinstance(node, ast.Call):
                continue
            column = len(lines[node.lineno - 1].encode()[: node.col_offset].decode())
            if (node.lineno, column) in wanted:
                yield self._launch_call(node, self._scope_of(node))

    def _scope_of(self, node: ast.expr) -> Scope:
        best: tuple[int, Scope] = (0, self.module.scope)
        for definition, outer in self.module.scopes.items():
            if (
                isinstance(definition, ast.FunctionDef)
                and definition.lineno > best[0]
                and definition.lineno <= node.lineno <= (definition.end_lineno or 0)
            ):
                best = (definition.lineno, Scope(self.module, definition.body, outer, definition))
        return best[1]

    def _launch_call(self, node: ast.Call, scope: Scope) -> _Known:
        known = _Known()
        names = [parameter.name for parameter in self.fn.parameters]
        arguments: list[tuple[str, ast.expr]] = []
        for name, argument in zip(names, node.args, strict=False):
            if isinstance(argument, ast.Starred):
                break
            arguments.append((name, argument))
        arguments += [(word.arg, word.value) for word in node.keywords if word.arg]
        for name, argument in arguments:
            value = self._try(argument, scope)
            if name in _OPTIONS and name not in names:
                if isinstance(value, int) and not isinstance(value, bool):
                    known.options[name] = value
            elif name in names:
                if value is not _MISSING and (value is None or self._passable(value)):
                    known.values[name] = value
                dtype = self._tensor_dtype(argument, scope)
                if dtype is not None:
                    known.dtypes[name] = dtype
        if isinstance(node.func, ast.Subscript):
            grid = self._try(node.func.slice, scope)
            grid = (grid,) if isinstance(grid, int) else grid
            if isinstance(grid, tuple) and all(type(item) is int and item > 0 for item in grid) and len(grid) <= 3:
                known.grid = (*grid, 1, 1)[:3]
        return known

    def _passable(self, value: Any) -> bool:
        if isinstance(value, External):
            return value.dotted.rpartition(".")[2] in _DTYPES
        return isinstance(value, bool | int | float | str | Constexpr | Function)

    def _tensor_dtype(self, argument: ast.expr, scope: Scope) -> str | None:
        """The dtype of a tensor made in the same function: `torch.empty(..., dtype=torch.float32)`."""
        if not isinstance(argument, ast.Name) or argument.id in scope.parameters:
            return None
        for binding in reversed(scope.bindings.get(argument.id, [])):
            match binding.node:
                case ast.Assign(value=ast.Call(keywords=keywords)) if not binding.path:
                    for keyword in keywords:
                        if keyword.arg == "dtype" and isinstance(keyword.value, ast.Attribute):
                            return _DTYPES.get(keyword.value.attr)
        return None

    # --------------------------------------------------------------------------------------------- launches

    def launch(self, known: _Known, flags: bool) -> tuple[Launch, list[str], bool]:
        """One launch, what of it was guessed, and whether a flag was set because of `flags`."""
        signature: dict[str, str] = {}
        constexprs: dict[str, Any] = {}
        divisible: list[str] = []
        guessed: list[str] = []
        flagged = False
        for parameter in self.fn.parameters:
            name, facts = parameter.name, self.usage.facts.get(parameter.name, Facts())
            value = self._host_value(known.values.get(name, _MISSING))
            if (
                value is _MISSING
                and parameter.default is not None
                and (parameter.is_constexpr or parameter.default == "None")
            ):
                value = self._default(parameter)
            if parameter.is_constexpr:
                signature[name] = "constexpr"
                if value is _MISSING:
                    value, flag = self._constexpr(name, facts, flags)
                    flagged |= flag
                    guessed.append(f"{name}={_shown(value)}")
                constexprs[name] = value
                continue
            if value is None and not facts.address:
                signature[name], constexprs[name] = "constexpr", None
                continue
            kind, sure = self._type(parameter, facts, known.dtypes.get(name), value)
            signature[name] = kind
            if not sure:
                guessed.append(f"{name}: {kind}")
            if self._divisible(name, kind, facts, value):
                divisible.append(name)
        options = {
            name: value for name, value in known.options.items() if name in ("num_warps", "num_stages", "num_ctas")
        }
        extra = {name: value for name, value in known.options.items() if name not in options}
        launch = Launch(
            file=str(self.fn.path),
            kernel=self.fn.name,
            signature=signature,
            constexprs=constexprs,
            divisible_by_16=tuple(divisible),
            options=Options(**options, extra=extra),
            grid=known.grid,
            origin="guessed" if guessed else "found",
        )
        return launch, guessed, flagged

    def _default(self, parameter: Parameter) -> Any:
        assert parameter.default is not None
        return self._host_value(
            self._try(ast.parse(parameter.default, mode="eval").body, self.module.scopes[self.node])
        )

    def _host_value(self, value: Any) -> Any:
        """A host value as a launch holds it."""
        match value:
            case Constexpr(inner):
                return self._host_value(inner)
            case External(dotted):
                name = dotted.rpartition(".")[2]
                return DtypeValue(_DTYPES[name]) if name in _DTYPES else _MISSING
            case Function():
                return JitValue(f"{value.path.stem}:{value.name}")
            case tuple() | list() if is_data(value):
                items = tuple(self._host_value(item) for item in value)
                return _MISSING if _MISSING in items else items
            case bool() | int() | float() | str() | None:
                return value
        return _MISSING

    # ---------------------------------------------------------------------------------------------- types

    def _type(self, parameter: Parameter, facts: Facts, dtype: str | None, value: Any) -> tuple[str, bool]:
        """The type of a run-time parameter, and whether it is known rather than guessed."""
        annotated = _annotation_type(parameter.annotation)
        if annotated is not None and (annotated.startswith("*") or not facts.address):
            return annotated, True
        if (
            facts.address
            or facts.rank
            or (annotated is None and parameter.annotation and "Tensor" in parameter.annotation)
        ):
            if dtype is not None:
                return self._pointer(dtype, facts), True
            return self._pointer(self._element(parameter.name, facts), facts), False
        if type(value) is float:
            return "fp32", True
        if type(value) is bool:
            return "i1", True
        if type(value) is int:
            return ("i64" if abs(value) >= 2**31 else "i32"), True
        if parameter.default is not None and isinstance(self._default(parameter), float):
            return "fp32", False
        if not facts.integer and (
            facts.float or (_FLOAT_NAME.search(parameter.name) and not _SIZE_NAME.search(parameter.name))
        ):
            return "fp32", False
        if re.search(r"(_ptr|_pointer)s?$|^ptr", parameter.name, re.I):
            return f"*{self._element(parameter.name, facts)}", False
        return ("i64" if facts.wide else "i32"), False

    def _pointer(self, element: str, facts: Facts) -> str:
        if facts.rank and not facts.address:
            shape = ", ".join(["1"] * (facts.rank - 2) + ["64"] * min(facts.rank, 2))
            return f"tensordesc<{element}[{shape}]>"
        return f"*{element}"

    def _element(self, name: str, facts: Facts) -> str:
        if facts.wide:
            return "i64"
        if facts.bits:
            return _OF_BITS.get(facts.bits, "fp32")
        if facts.index:
            return "i64" if _LABEL_NAME.search(name) and not _OFFSET_NAME.search(name) else "i32"
        if facts.mask and not facts.dot:
            return "i1" if _MASK_NAME.search(name) else "i8"
        if facts.whole and not facts.dot:
            return "i32"
        if _OFFSET_NAME.search(name) and re.search("cu_?seq|seq_?len|block_table|indptr", name, re.I):
            return "i32"
        if (facts.dot or facts.rank) and not self.usage.plain_dot:
            return "bf16" if "bfloat16" in self.usage.casts and "float16" not in self.usage.casts else "fp16"
        return "fp32"

    def _divisible(self, name: str, kind: str, facts: Facts, value: Any) -> bool:
        if kind.startswith("*"):
            return True
        if not re.fullmatch(r"[iu]\d+", kind) or kind == "i1":
            return False
        if type(value) is int:
            return value % 16 == 0
        if _STRIDE_NAME.search(name):
            return facts.stride
        return (facts.stride and not facts.size) or bool(facts.size and _SIZE_NAME.search(name))

    # ---------------------------------------------------------------------------------------- constexprs

    def _constexpr(self, name: str, facts: Facts, flags: bool) -> tuple[Any, bool]:
        """A value for a constexpr that nothing in the file fixes, and whether it is a flag that was set."""
        if facts.strings:
            return facts.strings[0], False
        if facts.dtype:
            return DtypeValue(_named_dtype(name)), False
        upper = name.upper()
        if not facts.integer and not facts.number and not facts.float:
            if facts.truth or _FLAG_NAME.search(name):
                return flags, flags
            if facts.none:
                return None, False
        if facts.called:
            return self._some_helper(), False
        if not facts.integer and (facts.float or _FLOAT_NAME.search(name)):
            return (1e-6 if "EPS" in upper else 1.0), False
        for pattern, value in _BY_NAME:
            if re.search(pattern, upper):
                return value, False
        if facts.tile or "BLOCK" in upper or upper.endswith(("_SIZE", "TILE")):
            return self._tile(name), False
        if facts.integers and not facts.integer and not facts.number:
            return facts.integers[0], False
        if facts.offset or facts.size or facts.stride or facts.number:
            return 64 if _SIZE_NAME.search(name) else 16, False
        return (flags, flags) if facts.none or not facts.integers else (facts.integers[0], False)

    def _tile(self, name: str) -> int:
        tiles = [
            parameter.name
            for parameter in self.fn.parameters
            if parameter.is_constexpr
            and (self.usage.facts[parameter.name].tile or "BLOCK" in parameter.name.upper())
            and not any(re.search(pattern, parameter.name.upper()) for pattern, _ in _BY_NAME)
        ]
        others = [
            p.name for p in self.fn.parameters if p.is_constexpr and re.search(r"HEAD_?DIM|DMODEL", p.name.upper())
        ]
        if any(facts.rank for facts in self.usage.facts.values()):
            return 64  # the block of a guessed descriptor
        if self.usage.rank > 2:
            return 16  # three dimensions and more: the product must stay a tile
        if len(tiles) <= 1 and not others:
            return 1024 if self.usage.rank == 1 else 64
        return 32 if re.search(r"_?B?K$", name.upper()) or len(tiles) > 2 else 64

    def _some_helper(self) -> Any:
        """A jit function of the file that takes one argument, for a constexpr that is called."""
        for name, node in ((node.name, node) for node in self.module.scopes if isinstance(node, ast.FunctionDef)):
            if node is not self.node and len(node.args.args) == 1 and node.decorator_list:
                value = self._try(ast.Name(name, ast.Load(), lineno=1, col_offset=0), self.module.scope)
                if isinstance(value, Function):
                    return self._host_value(value)
        return None


_BY_NAME: tuple[tuple[str, Any], ...] = (
    (r"HEAD_?DIM|DMODEL|D_?HEAD|HEAD_SIZE", 64),
    (r"GROUP_SIZE_?M|GROUP_M$", 8),
    (r"GROUP_?SIZE", 64),
    (r"NUM_?STAGES", 2),
    (r"NUM_?WARPS", 4),
    (r"NUM_?CTAS|SPLIT_?K|NUM_?SPLITS|KV_?SPLITS", 1),
    (r"NUM_?SMS|NUM_?PROGRAMS", 132),
    (r"(NUM|N)_?\w*HEADS?", 8),
)


# The dtype of what is loaded and then reinterpreted as an integer of so many bits.
_OF_BITS: Mapping[int, str] = {8: "fp8e4nv", 16: "bf16", 32: "fp32", 64: "fp64"}


_DTYPE_NAMES: tuple[tuple[str, str], ...] = (
    (r"FP8|F8|E4M3", "fp8e4nv"),
    (r"BF16", "bf16"),
    (r"FP16|F16|HALF", "fp16"),
    (r"INT8|I8", "i8"),
    (r"INT64|I64", "i64"),
    (r"INT|I32|IDX|INDEX", "i32"),
)


def _named_dtype(name: str) -> str:
    """The dtype that the name of a constexpr asks for (`FP8_DTYPE`)."""
    for pattern, dtype in _DTYPE_NAMES:
        if re.search(pattern, name.upper()):
            return dtype
    return "fp32"


def _shown(value: Any) -> str:
    match value:
        case DtypeValue(name):
            return name
        case JitValue(reference):
            return reference
    return repr(value)


def _annotation_type(annotation: str | None) -> str | None:
    """Triton's type for an annotation such as `"*fp16"`, `tl.int32` or `tl.pointer_type(tl.float32)`."""
    if annotation is None:
        return None
    text = annotation.strip().strip("\"'")
    pointer = re.fullmatch(r"(?:\w+\.)*(?:pointer_type|PointerType)\((.*?)\)", text)
    if pointer:
        inner = _annotation_type(pointer.group(1))
        return None if inner is None else f"*{inner}"
    if text.startswith("*"):
        inner = _annotation_type(text[1:].removeprefix("k"))
        return None if inner is None else f"*{inner}"
    name = text.rpartition(".")[2]
    if re.fullmatch(r"(fp|bf|[iu])\d+(e\d\w*)?", name):
        return name
    return _DTYPES.get(name)


def relative(launches: Iterable[Launch], file: str) -> tuple[Launch, ...]:
    """The same launches with `file` as a launches file spells it."""
    return tuple(replace(launch, file=file) for launch in launches)
