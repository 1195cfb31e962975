"""Kernels of tests as modules of IR, compiled by the installed Triton's frontend in a child process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tt2gl.compiler import backend_for, build_ir, generic_text
from tt2gl.ir.operations import Module
from tt2gl.ir.parser import parse_module
from tt2gl.isolate import preload, run_isolated
from tt2gl.targets import get_target


def _text(kernel: Any, target: str, signature: Mapping[str, str], constexprs: Mapping[str, Any], num_warps: int) -> str:
    from triton.compiler.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    backend, gpu = backend_for(get_target(target))
    types = {name: signature.get(name, "constexpr") for name in kernel.arg_names}
    source = (GluonASTSource if kernel.is_gluon() else ASTSource)(kernel, types, dict(constexprs), {})
    return generic_text(build_ir(source, backend, gpu, backend.parse_options({"num_warps": num_warps})))


def lowered(kernel: Any, target: str, signature: Mapping[str, str], *, num_warps: int = 4, **constexprs: Any) -> Module:
    """The frontend's IR of a Triton or Gluon kernel; `signature` has the types of what is no constexpr."""
    preload()
    outcome = run_isolated(_text, kernel, target, signature, constexprs, num_warps)
    assert outcome.value is not None, f"{outcome.error}\n{outcome.detail}"
    return parse_module(outcome.value)
