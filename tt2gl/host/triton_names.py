"""What names of Triton mean as decorators, by what they end with."""

from __future__ import annotations

import re
from typing import Literal

Dialect = Literal["triton", "gluon"]
DecoratorKind = Literal["jit", "autotune", "heuristics", "other"]

# Suffixes of qualified names: packages re-export Triton (`from vllm.triton_utils import triton`), and what a
# re-export ends with is all that one file can tell.
_GLUON_JIT = re.compile(r"(^|\.)gluon\.(_runtime\.)?jit$")
_TRITON_JIT = re.compile(r"(^|\.)triton\.(runtime\.)?(jit\.)?jit$")
_AUTOTUNE = re.compile(r"(^|\.)triton\.(runtime\.)?(autotuner\.)?autotune$")
_HEURISTICS = re.compile(r"(^|\.)triton\.(runtime\.)?(autotuner\.)?heuristics$")
_CONSTEXPR_FUNCTION = re.compile(
    r"(^|\.)(triton|gluon)\.((runtime\.)?jit\.|_runtime\.|language\.)?(core\.)?constexpr(_function)?$"
)


def decorator_kind(qualified: str) -> tuple[DecoratorKind | Literal["constexpr"], Dialect]:
    """What a qualified name (`triton.runtime.jit.jit`) is as a decorator, and of which dialect."""
    if _GLUON_JIT.search(qualified):
        return "jit", "gluon"
    if _TRITON_JIT.search(qualified):
        return "jit", "triton"
    if _AUTOTUNE.search(qualified):
        return "autotune", "triton"
    if _HEURISTICS.search(qualified):
        return "heuristics", "triton"
    if _CONSTEXPR_FUNCTION.search(qualified):
        return "constexpr", "triton"
    return "other", "triton"
