"""Launches inferred from the file alone: what autotune configs, launch calls and defaults say, and then a guess.

A guess serves to convert and compile a kernel nobody gave a launch for; every one is named in a note (TTG210).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.host.evaluator import open_module
from tt2gl.infer.constexprs import guess_constexpr
from tt2gl.infer.found import Known, calls, combine, configs
from tt2gl.infer.kernel import MISSING, Kernel, launch_value
from tt2gl.infer.types import guess_type, is_divisible
from tt2gl.infer.usage import Usage
from tt2gl.jit_functions import JitFunction
from tt2gl.launches import DtypeValue, JitValue, Launch, Options
from tt2gl.source import SourceFile


class Inferred(NamedTuple):
    """Launches of a kernel, notes on what was guessed, and the types and flags among that, by parameter."""

    launches: tuple[Launch, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    types: Mapping[str, str | bool] = {}


def infer_launches(
    source: SourceFile, fn: JitFunction, *, limit: int = 4, types: Mapping[str, str | bool] | None = None
) -> Inferred:
    """At most `limit` launches of a kernel, from its file alone.

    `types` are for parameters whose type is a guess, and for flags that are.
    """
    evaluator, module = open_module(source.path, source.text, "sm90", None)
    node = next((found for found in module.definitions(fn.name) if found.lineno == fn.line), None)
    if node is None:
        return Inferred()
    kernel = Kernel(fn, node, evaluator, module)
    usage = Usage(node, kernel.helper)
    known = list(combine(list(calls(kernel, source)), list(configs(kernel))))
    launches: list[Launch] = []
    notes: dict[str, None] = {}
    guessed_types: dict[str, str | bool] = {}
    for flags in (False, True):
        for item in known:
            if len(launches) >= limit:
                break
            launch, guessed, flagged = _launch(kernel, usage, item, flags, types or {})
            if flags and not flagged:
                continue
            if not launches:
                flagged_as = {name: value for name, value in launch.constexprs.items() if type(value) is bool}
                guessed_types.update(
                    (name, value) for name, value in flagged_as.items() if f"{name}={value}" in guessed
                )
            if launch not in launches:
                launches.append(launch)
            notes.update(dict.fromkeys(guessed))
            guessed_types.update(
                (name, kind) for name, kind in launch.signature.items() if f"{name}: {kind}" in guessed
            )
    diagnostics: tuple[Diagnostic, ...] = ()
    if notes:
        message = f"The launch of {fn.name} is partly guessed: {', '.join(notes)}."
        hint = "Give real ones with --launches (see docs/launches.md)."
        diagnostics = (Diagnostic("TTG210", Severity.NOTE, str(fn.path), fn.line, fn.column, message, hint),)
    return Inferred(tuple(launches), diagnostics, guessed_types)


def _launch(
    kernel: Kernel, usage: Usage, known: Known, flags: bool, types: Mapping[str, str | bool]
) -> tuple[Launch, list[str], bool]:
    """One launch, what of it was guessed, and whether a flag was set because of `flags`."""
    signature: dict[str, str] = {}
    constexprs: dict[str, Any] = {}
    divisible: list[str] = []
    guessed: list[str] = []
    flagged = False
    for parameter in kernel.fn.parameters:
        name, facts = parameter.name, usage.evidence(parameter.name)
        value = launch_value(known.values.get(name, MISSING))
        if value is MISSING and (parameter.is_constexpr or parameter.default == "None"):
            value = kernel.default(parameter)
        if parameter.is_constexpr:
            signature[name] = "constexpr"
            if value is MISSING:
                value, flag = guess_constexpr(kernel, usage, name, flags)
                if type(value) is bool and name in types:
                    value, flag = types[name], False
                flagged |= flag
                guessed.append(f"{name}={_shown(value)}")
            constexprs[name] = value
            continue
        if value is None and not facts.address:
            signature[name], constexprs[name] = "constexpr", None
            continue
        kind, sure = guess_type(kernel, usage, parameter, known.dtypes.get(name), value)
        if not sure:
            kind = str(types.get(name, kind))
            guessed.append(f"{name}: {kind}")
        signature[name] = kind
        if is_divisible(name, kind, facts, value):
            divisible.append(name)
    options = {name: value for name, value in known.options.items() if name in ("num_warps", "num_stages", "num_ctas")}
    extra = {name: value for name, value in known.options.items() if name not in options}
    launch = Launch(
        file=str(kernel.fn.path),
        kernel=kernel.fn.name,
        signature=signature,
        constexprs=constexprs,
        divisible_by_16=tuple(divisible),
        options=Options(**options, extra=extra),
        grid=known.grid,
        origin="guessed" if guessed else "found",
    )
    return launch, guessed, flagged


def _shown(value: Any) -> str:
    match value:
        case DtypeValue(name):
            return name
        case JitValue(reference):
            return reference
    return repr(value)
