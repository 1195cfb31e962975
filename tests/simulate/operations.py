"""Single operations, run through their handlers on arrays of one program's elements."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

import tt2gl.simulate.ops  # noqa: F401 (registers the operations)
from tt2gl.ir.operations import Operation, Value
from tt2gl.ir.types import FloatType, IntegerType, TensorType, Type
from tt2gl.simulate.ieee import Ieee
from tt2gl.simulate.programs import Programs
from tt2gl.simulate.registry import HANDLERS
from tt2gl.simulate.values import Array, dtype_of

F8E4M3, F8E5M2 = FloatType("f8E4M3FN"), FloatType("f8E5M2")
F16, BF16, F32, F64 = (FloatType(name) for name in ("f16", "bf16", "f32", "f64"))
I1, I8, I16, I32, I64 = (IntegerType(width) for width in (1, 8, 16, 32, 64))


def apply(
    name: str, *operands: Array, types: Sequence[Type], results: Sequence[Type], arithmetic: Any = None, **how: Any
) -> Any:
    """What an operation makes of one program's elements: operands and result are flat, without the programs' axis."""
    operation = Operation(
        name,
        tuple(Value(str(kind), _shaped(kind, operand)) for kind, operand in zip(types, operands, strict=True)),
        tuple(Value("result", _shaped(kind, operands[0] if operands else None)) for kind in results),
        how,
    )
    run = SimpleNamespace(
        arithmetic=arithmetic if arithmetic is not None else Ieee(),
        programs=Programs(np.zeros(1, np.int64), (1, 1, 1)),
        count=1,
    )
    with np.errstate(all="ignore"):
        found = HANDLERS[name](run, operation, *(operand[None] for operand in operands))
    return tuple(one[0] for one in found) if isinstance(found, tuple) else found[0]


def _shaped(kind: Type, like: Array | None) -> Type:
    return TensorType(like.shape, kind) if like is not None and like.shape else kind


def of(kind: Type, *values: Any) -> Array:
    """Elements of a type."""
    return np.array(values).astype(dtype_of(kind))
