"""Launches: what a kernel is called with, as given, found in its file or guessed; which of them are a kernel's.

Their JSON format is in `launch_file`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from tt2gl import descriptor_parts
from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.jit_functions import JitFunction

Origin = Literal["given", "found", "guessed"]


@dataclass(frozen=True)
class DtypeValue:
    """A Triton dtype passed as a constexpr, by Triton's short name (`fp16`, `bf16`, `i32`)."""

    name: str


@dataclass(frozen=True)
class JitValue:
    """A jit function passed as a constexpr: `package.module:name`."""

    reference: str

    @property
    def module(self) -> str:
        """The dotted module that defines the function."""
        return self.reference.partition(":")[0]

    @property
    def name(self) -> str:
        """The function's name in its module."""
        return self.reference.partition(":")[2]


@dataclass(frozen=True)
class TensorArg:
    """A tensor argument, sizes and strides in elements; `range` is (min, max) where its values matter."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    range: tuple[float, float] | None = None


@dataclass(frozen=True)
class DescriptorArg:
    """A host-made tensor descriptor: the tensor it covers and the block it copies."""

    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    block_shape: tuple[int, ...]


@dataclass(frozen=True)
class Options:
    """Compile options of a launch; `extra` holds what a backend knows beyond these (`maxnreg`, ...)."""

    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __hash__(self) -> int:
        return hash((self.num_warps, self.num_stages, self.num_ctas, tuple(sorted(self.extra))))

    def to_dict(self) -> dict[str, Any]:
        """All options by name, as `triton.compile` takes them."""
        return {
            "num_warps": self.num_warps,
            "num_stages": self.num_stages,
            "num_ctas": self.num_ctas,
            **self.extra,
        }


@dataclass(frozen=True)
class Launch:
    """One way a kernel is called: types, constexprs, alignment, options, and where known its grid and arguments.

    `signature` is in the order of the parameters and maps each to Triton's type spelling (`*fp16`, `i32`,
    `constexpr`, `tensordesc<...>`). `origin`: given by the user, found in the file, or guessed. `parted`: the tensor
    descriptors that the kernel takes the parts of instead, with their ranks. `turned`: made of another launch, to see
    what that does not reach.
    """

    file: str
    kernel: str
    signature: Mapping[str, str]
    constexprs: Mapping[str, Any]
    divisible_by_16: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    grid: tuple[int, ...] | None = None
    args: Mapping[str, Any] | None = None
    origin: Origin = "given"
    parted: tuple[tuple[str, int], ...] = ()
    turned: bool = False

    def __hash__(self) -> int:
        return hash((self.file, self.kernel, tuple(self.signature.items()), self.divisible_by_16, self.grid))

    @property
    def passed(self) -> tuple[str, ...]:
        """The jit functions that it passes, as `package.module:name`."""
        return tuple(dict.fromkeys(_passed(self.constexprs.values())))


def _passed(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, JitValue):
            yield value.reference
        elif isinstance(value, tuple):
            yield from _passed(value)


def launches_for(
    launches: Iterable[Launch], source_path: Path | str, kernel: str, root: Path | str | None = None
) -> tuple[Launch, ...]:
    """The launches of one kernel of one file.

    `file` is relative to `root`, or to the working directory where no root is given.
    """
    wanted = _absolute(Path(source_path), Path.cwd())
    base = _absolute(Path(root), Path.cwd()) if root is not None else Path.cwd()
    return tuple(
        launch
        for launch in launches
        if launch.kernel == kernel and _absolute(Path(PurePosixPath(launch.file)), base) == wanted
    )


def _absolute(path: Path, base: Path) -> Path:
    return Path(os.path.realpath(base / path))


def descriptor_ranks(launches: Iterable[Launch]) -> dict[str, int]:
    """The parameters that are tensor descriptors from the host under every launch, with their ranks."""
    each = [{name: len(_block(kind)) for name, kind in one.signature.items() if _block(kind)} for one in launches]
    return {name: rank for name, rank in each[0].items() if all(one.get(name) == rank for one in each)} if each else {}


def passed_to(launch: Launch, parameters: Collection[str]) -> Launch:
    """A launch as a kernel with these parameters takes it: with parts in place of descriptors that it has not."""
    ranks = {name: len(_block(kind)) for name, kind in launch.signature.items() if name not in parameters}
    ranks = {name: rank for name, rank in ranks.items() if rank and descriptor_parts.base(name) in parameters}
    return parted(launch, ranks) if ranks else launch


def parted(launch: Launch, ranks: Mapping[str, int]) -> Launch:
    """A launch with the parts of some tensor descriptors in their place; those start at multiples of 16 bytes."""
    signature: dict[str, str] = {}
    constexprs, args, aligned = dict(launch.constexprs), dict(launch.args or {}), list(launch.divisible_by_16)
    for name, kind in launch.signature.items():
        if name not in ranks:
            signature[name] = kind
            continue
        base, value = descriptor_parts.base(name), args.pop(name, None)
        signature[base] = f"*{kind.removeprefix('tensordesc<').partition('[')[0]}"
        aligned.append(base)
        if isinstance(value, DescriptorArg):
            args[base] = TensorArg(value.dtype, value.shape, value.stride)
        for part, number in _numbers(name, ranks[name], value):
            # As Triton specialises an integer.
            signature[part] = "constexpr" if number == 1 else "i32" if (number or 0) < 2**31 else "i64"
            if number == 1:
                constexprs[part] = 1
            elif number is not None:
                args[part] = number
                aligned += [part] if number % 16 == 0 else []
        for part, extent in zip(descriptor_parts.blocks(name, ranks[name]), _block(kind), strict=True):
            signature[part], constexprs[part] = "constexpr", extent
    return replace(
        launch,
        signature=signature,
        constexprs=constexprs,
        divisible_by_16=tuple(aligned),
        args=args if launch.args is not None else None,
        parted=(*launch.parted, *ranks.items()),
    )


def _numbers(name: str, rank: int, value: object) -> Iterator[tuple[str, int | None]]:
    """The parts of a descriptor that are numbers, None where they are not known."""
    known = (*value.shape, *value.stride[:-1]) if isinstance(value, DescriptorArg) else (None,) * (2 * rank - 1)
    yield from zip([*descriptor_parts.sizes(name, rank), *descriptor_parts.strides(name, rank)], known, strict=True)


def _block(kind: str) -> tuple[int, ...]:
    """The tile of a descriptor's type; empty for another type, and where a layout is said."""
    found = re.fullmatch(r"tensordesc<\w+\[([\d, ]+)\]>", kind)
    return tuple(int(extent) for extent in found[1].split(",")) if found is not None else ()


def check_launch(launch: Launch, fn: JitFunction) -> None:
    """Raise DiagnosticError TTG202 where a launch does not fit the kernel's parameters."""
    names = [parameter.name for parameter in fn.parameters]
    for name in launch.signature:
        if name not in names:
            known = ", ".join(names) or "none"
            raise _misfit(fn, f"The launch names a parameter {name!r} that {fn.name} does not have ({known}).")
    for parameter in fn.parameters:
        if parameter.name not in launch.signature and parameter.default is None:
            raise _misfit(fn, f"The launch has no type for the parameter {parameter.name!r} of {fn.name}.")
        kind = launch.signature.get(parameter.name)
        if parameter.is_constexpr and kind not in (None, "constexpr"):
            raise _misfit(fn, f"The launch gives the constexpr {parameter.name!r} of {fn.name} the type {kind!r}.")


def _misfit(fn: JitFunction, message: str) -> DiagnosticError:
    return DiagnosticError(
        Diagnostic(
            "TTG202",
            Severity.ERROR,
            str(fn.path),
            fn.line,
            fn.column,
            message,
            "Make the launches again, or correct the signature in the launches file.",
        ),
        ExitCode.USAGE,
    )
