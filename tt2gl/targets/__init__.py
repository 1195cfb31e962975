"""The architectures tt2gl knows, one file each: look one up, find the one present, ask Triton about it."""

from __future__ import annotations

import functools
import inspect
from typing import Literal

from tt2gl.diagnostics import Diagnostic, DiagnosticError, ExitCode, Severity
from tt2gl.isolate import map_isolated, preload
from tt2gl.targets import gfx942, gfx950, gfx1100, gfx1201, gfx1250, sm80, sm90, sm100, sm120
from tt2gl.targets.base import Target
from tt2gl.targets.gpu import present_architecture

__all__ = ["TARGETS", "Mover", "Target", "adds_tiles", "default_target", "get_target", "mover", "probe", "supported"]

Mover = Literal["", "tma", "tdm"]
"""What copies tiles through tensor descriptors, as Gluon's module is called; empty where they become pointers."""


TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET
    for module in (sm80, sm90, sm100, sm120, gfx942, gfx950, gfx1250, gfx1100, gfx1201)
}

# What architectures without a target of their own run: code for the one named is legal there.
_STAND_INS = {
    "sm86": "sm80",
    "sm87": "sm80",
    "sm89": "sm80",
    "sm103": "sm100",
    "sm121": "sm120",
    "gfx1101": "gfx1100",
    "gfx1102": "gfx1100",
    "gfx1103": "gfx1100",
    "gfx1200": "gfx1201",
}

_EMPTY_KERNEL = "module { tt.func public @probe(%x: !tt.ptr<f32>) { tt.return } }"


def get_target(name: str) -> Target:
    """The target called `name`; raises TTG010 (usage) where there is none."""
    if name not in TARGETS:
        raise DiagnosticError(
            Diagnostic(
                code="TTG010",
                severity=Severity.ERROR,
                file="",
                line=0,
                column=0,
                message=f"There is no target {name!r}.",
                hint=f"Choose one of {', '.join(TARGETS)}.",
            ),
            ExitCode.USAGE,
        )
    return TARGETS[name]


@functools.cache
def default_target() -> Target:
    """The target of the GPU present, else sm90. Costs next to nothing where there is no GPU."""
    present = present_architecture()
    name = _STAND_INS.get(present or "", present or "")
    return TARGETS.get(name, sm90.TARGET)


@functools.cache
def mover(target: Target) -> Mover:
    """What the installed Triton has copy tiles through tensor descriptors.

    It uses AMD's data mover well since it lays tiles out in LDS itself: before, it made pointers of descriptors (3.6),
    or failed to pipeline loops that load through them (3.7).
    """
    if target.has_tma:
        return "tma"
    if not target.has_tdm:
        return ""
    from triton._C.libtriton import amd

    return "tdm" if hasattr(amd.passes.ttgpuir, "add_optimize_descriptor_encoding") else ""


@functools.cache
def adds_tiles() -> bool:
    """Whether the installed Triton's Gluon has the atomics of TMA: before 3.9, Triton alone had."""
    from triton.experimental.gluon.language.nvidia.hopper import tma

    return hasattr(tma, "async_atomic_add")


@functools.cache
def buffers_spread() -> bool:
    """Whether the installed Triton's buffer stores spread a value over their offsets: before 3.7, it must have all."""
    from triton.experimental.gluon.language.amd.cdna3 import buffer_store

    return "broadcast_tensors(offsets, stored_value" in inspect.getsource(buffer_store)


@functools.cache
def fences_copies() -> bool:
    """Whether the installed Triton's compiler puts a fence between cp.async and wgmma, in its own kernels too.

    Since 3.7, where one in the source costs nothing more. Before, kernels have none (as CUTLASS's with such copies have
    none); one costs 3 to 7% of a matrix product on an H100.
    """
    return _installed() >= (3, 7)


@functools.cache
def softmax_keeps_dims() -> bool:
    """Whether the installed Triton's softmax keeps the dimension of what it subtracts unasked: since 3.9."""
    from triton.language import softmax

    return inspect.signature(softmax.fn).parameters["keep_dims"].default is None


@functools.cache
def precision_of_sums(target: Target) -> Literal["ieee", "tf32"]:
    """The precision of products that Triton makes of sums (its Combine pass): to 3.7, TF32 where there is that."""
    has_tf32 = target.backend == "cuda" or target.name == "gfx942"
    return "tf32" if has_tf32 and _installed() < (3, 8) else "ieee"


def _installed() -> tuple[int, ...]:
    """The installed Triton's version, of two numbers."""
    import triton

    return tuple(map(int, triton.__version__.split(".")[:2]))


def supported(target: Target) -> bool:
    """Whether the installed Triton compiles for `target`; found by compiling an empty kernel, once a process."""
    return probe((target,))[target.name]


def probe(targets: tuple[Target, ...]) -> dict[str, bool]:
    """Which of `targets` the installed Triton compiles for, by name; unknown ones are tried in parallel."""
    unknown = [target for target in targets if target.name not in _PROBED]
    if unknown:
        preload()
        outcomes = map_isolated(_compile_empty_kernel, [(target,) for target in unknown])
        _PROBED.update({target.name: outcome.ok for target, outcome in zip(unknown, outcomes, strict=True)})
    return {target.name: _PROBED[target.name] for target in targets}


_PROBED: dict[str, bool] = {}


def _compile_empty_kernel(target: Target) -> None:
    import tempfile
    from pathlib import Path

    import triton
    from triton.backends.compiler import GPUTarget

    from tt2gl.isolate import private_triton

    private_triton()
    path = Path(tempfile.mkdtemp(), "probe.ttir")
    path.write_text(_EMPTY_KERNEL)
    triton.compile(str(path), target=GPUTarget(target.backend, target.arch, target.warp_size), options={})
