"""Launches inferred from the file alone: what autotune configs, launch calls and defaults say, and then a guess.

A guess serves to convert and compile a kernel nobody gave a launch for; every one is named in a note (TTG210).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tt2gl.diagnostics import Diagnostic, Severity
from tt2gl.host.evaluator import open_module
from tt2gl.infer.assertions import held_to
from tt2gl.infer.blocks import guess_block
from tt2gl.infer.constexprs import guess_constexpr
from tt2gl.infer.derived import worked_out
from tt2gl.infer.found import Known, calls, combine, configs
from tt2gl.infer.generated import generated
from tt2gl.infer.kernel import MISSING, Kernel, launch_value
from tt2gl.infer.turns import turning_twice
from tt2gl.infer.types import guess_type, is_divisible
from tt2gl.infer.usage import Usage
from tt2gl.jit_functions import JitFunction, Parameter
from tt2gl.launches import DtypeValue, JitValue, Launch, Options
from tt2gl.source import SourceFile

Choice = str | bool | int | DtypeValue
"""What is guessed of a parameter: its type, or as a constexpr whether, how much or which dtype."""


_Way = tuple[bool, bool]
"""Whether a launch has guessed flags, and descriptors that may be missing."""

_WAYS: tuple[_Way, ...] = ((False, False), (False, True), (True, False))

_FEWEST = 2
"""Elements of a tuple of which nothing tells how many it has."""


class Inferred(NamedTuple):
    """Launches of a kernel, notes on what was guessed, and what that was in the first, by parameter."""

    launches: tuple[Launch, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    choices: Mapping[str, Choice] = {}


def infer_launches(
    source: SourceFile,
    fn: JitFunction,
    *,
    limit: int = 4,
    choices: Mapping[str, Choice] | None = None,
    described: bool = True,
) -> Inferred:
    """At most `limit` launches of a kernel, from its file alone.

    `choices` are for parameters whose type is a guess, and for constexprs that are. `described`: whether descriptors
    that may be missing are given under some.
    """
    read = _read(source, fn)
    if read is None:
        return Inferred()
    kernel, usage, known = read
    launches: list[Launch] = []
    notes: dict[str, None] = {}
    chosen: dict[str, Choice] = {}
    for item, way in _ways(known, described):
        if len(launches) >= limit:
            break
        launch, guessed, flagged = _launch(kernel, usage, item, way, choices or {})
        if any(way) and not flagged:
            continue
        if not launches:
            numbers = {parameter.name for parameter in fn.parameters if parameter.is_constexpr}
            chosen.update(
                (name, choice)
                for name, choice in guessed.items()
                if isinstance(choice, str | DtypeValue) or (isinstance(choice, int) and name in numbers)
            )
        if launch not in launches:
            launches.append(launch)
        notes.update((_note(name, choice, launch), None) for name, choice in guessed.items())
    diagnostics: tuple[Diagnostic, ...] = ()
    if notes:
        aligned = [name for name in launches[0].divisible_by_16 if not launches[0].signature[name].startswith("*")]
        multiples = f"; multiples of 16: {', '.join(aligned)}" if aligned else ""
        message = f"The launch of {fn.name} is partly guessed: {', '.join(notes)}{multiples}."
        hint = "Give real ones with --launches (see docs/launches.md)."
        diagnostics = (Diagnostic("TTG210", Severity.NOTE, str(fn.path), fn.line, fn.column, message, hint),)
    return Inferred(tuple(launches), diagnostics, chosen)


# Other choices are tried for one kernel, a dozen and more: what its file says of it stays.
@functools.lru_cache(maxsize=8)
def _read(source: SourceFile, fn: JitFunction) -> tuple[Kernel, Usage, tuple[Known, ...]] | None:
    """A kernel, how it uses its parameters and what its file says of its launches; None where the file lacks it."""
    evaluator, module = open_module(source.path, source.text, "sm90", None)
    node = next((found for found in module.definitions(fn.name) if found.lineno == fn.line), None)
    if node is None:
        return None
    kernel = Kernel(fn, node, evaluator, module)
    known = combine(list(calls(kernel, source)), list(configs(kernel)), generated(kernel))
    return kernel, Usage(node, kernel.helper), tuple(known)


def _ways(known: Sequence[Known], described: bool) -> Iterator[tuple[Known, _Way]]:
    """What is known, in each way: the first in all of them before any other."""
    ways = [way for way in _WAYS if described or not way[1]]
    for way in ways:
        yield known[0], way
    for way in ways:
        yield from ((item, way) for item in known[1:])


def _launch(
    kernel: Kernel, usage: Usage, known: Known, way: _Way, choices: Mapping[str, Choice]
) -> tuple[Launch, dict[str, Any], bool]:
    """One launch, what of it was guessed, and whether something is so because of the `way`."""
    flags, described = way
    constexprs, guessed, flagged = _constexprs(kernel, usage, known, flags, choices)
    signature: dict[str, str] = {}
    divisible: list[str] = []
    units = {_innermost(name, known) for name, facts in usage.facts.items() if facts.unit}
    for parameter in kernel.fn.parameters:
        name, facts, value = parameter.name, usage.evidence(parameter.name), _value(kernel, known, parameter)
        if value is MISSING and facts.rank and facts.none and not parameter.is_constexpr:
            # A descriptor that may be missing is as a flag is.
            value, flagged = (value, True) if described else (None, flagged)
            guessed |= {} if described else {name: None}
        if value is None and not parameter.is_constexpr and not facts.address:
            constexprs[name] = None
        elif value is MISSING and not parameter.is_constexpr and name in units:
            constexprs[name] = guessed[name] = 1
        elif value is not MISSING and known.types.get(name) == "constexpr":
            constexprs[name] = value
        if name in constexprs:
            signature[name] = "constexpr"
            continue
        block = guess_block(kernel, known, constexprs, name, facts.rank) if facts.rank else ()
        kind, sure = known.types.get(name, ""), name in known.types
        if not sure and facts.address and name in known.integers:
            kind, sure = "i64", True
        elif not sure:
            kind, sure = guess_type(kernel, usage, parameter, known.dtypes.get(name), value, block)
        if not sure:
            # A block is that of the config.
            guessed[name] = kind = kind if facts.rank and not facts.address else str(choices.get(name, kind))
        length = known.lengths.get(name, max(facts.items, _FEWEST) if facts.items else 0)
        if length:
            signature[name] = f"({', '.join([kind] * length)})"
            continue
        signature[name] = kind
        if is_divisible(name, kind, facts, value) if known.aligned is None else name in known.aligned:
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
    return launch, {name: guessed[name] for name in kernel.names if name in guessed}, flagged


def _value(kernel: Kernel, known: Known, parameter: Parameter) -> Any:
    """What a launch passes for a parameter, or its default; MISSING where neither is told."""
    value = launch_value(known.values.get(parameter.name, MISSING))
    if value is MISSING and (parameter.is_constexpr or parameter.default == "None"):
        return kernel.default(parameter)
    return value


def _constexprs(
    kernel: Kernel, usage: Usage, known: Known, flags: bool, choices: Mapping[str, Choice]
) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The constexprs of one launch, those that were guessed, and whether a flag was set because of `flags`."""
    constexprs: dict[str, Any] = {}
    guessed: dict[str, Any] = {}
    flagged = False
    for parameter in kernel.fn.parameters:
        if not parameter.is_constexpr:
            continue
        name, facts, value = parameter.name, usage.evidence(parameter.name), _value(kernel, known, parameter)
        if value is MISSING:
            value, flag = guess_constexpr(kernel, usage, name, flags, known.values)
            if name in choices or name in known.tiles:
                value, flag = choices.get(name, known.tiles.get(name)), False
            if facts.items and isinstance(value, int):
                value = (value,) * max(facts.items, _FEWEST)
            flagged |= flag
            guessed[name] = value
        constexprs[name] = value
    free = [name for name in guessed if name not in choices and name not in known.tiles]
    made = worked_out(kernel, known, constexprs, free)
    made |= turning_twice(kernel, usage, known, constexprs | made, free)
    asked = made | held_to(kernel, usage.required, constexprs | made, free)
    constexprs |= asked
    guessed |= asked
    return constexprs, guessed, flagged


def _innermost(name: str, known: Known) -> str:
    """The stride of the last dimension of the tensor that a stride is of, as a launch call passes them."""
    tensor, _ = known.strides.get(name, ("", 0))
    same = {other: at for other, (of, at) in known.strides.items() if of == tensor}
    return max(same, key=lambda other: same[other]) if same else name


def _note(name: str, choice: Any, launch: Launch) -> str:
    return f"{name}={_shown(choice)}" if name in launch.constexprs else f"{name}: {launch.signature[name]}"


def _shown(value: Any) -> str:
    match value:
        case DtypeValue(name):
            return name
        case JitValue(reference):
            return reference
    return repr(value)
