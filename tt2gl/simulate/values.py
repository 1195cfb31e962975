"""How values are held while a kernel runs.

All programs of a set run at once. A scalar or tensor of the IR is an array of shape (P, *shape), P being the number of
programs, or (1, *shape) where all programs have the same: handlers broadcast, and never write into an operand.
Its dtype says what the elements are:

- `i1`: bool; `i8` to `i64` and `index`: the signed numpy integer of that width, whatever the sign of the operation;
- pointers: int64, an address (see `memory`);
- floats: the numpy or ml_dtypes type of that format; in field arithmetic, int64 residues.

Views of shared memory, tensor descriptors and tokens are objects. One that differs between programs has a method
`take(rows)` that returns it for some of them; None stands for a token that says nothing.
"""

from __future__ import annotations

import functools
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from tt2gl.ir.types import FloatType, IndexType, IntegerType, PointerType, Type, element_type, shape_of

Array = NDArray[Any]
Rows = NDArray[np.int64]

_INTEGERS: dict[int, Any] = {1: np.bool_, 8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "tf32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
}


class UnknownType(Exception):
    """A type that no array can hold; the message names it."""


def is_float(kind: Type) -> bool:
    """Whether the elements of this type are floating-point."""
    return isinstance(element_type(kind), FloatType)


def dtype_of(kind: Type) -> np.dtype[Any]:
    """The dtype of the elements of a scalar, tensor or view, in IEEE arithmetic. Raises UnknownType."""
    return _scalar_dtype(element_type(kind))


@functools.cache
def _scalar_dtype(element: Type) -> np.dtype[Any]:
    held: Any = None
    if isinstance(element, (PointerType, IndexType)):
        held = np.int64
    elif isinstance(element, IntegerType):
        held = _INTEGERS.get(element.width)
    elif isinstance(element, FloatType):
        held = _FLOATS.get(element.name)
    if held is None:
        raise UnknownType(f"there is no array of {element}")
    dtype: np.dtype[Any] = np.dtype(held)
    return dtype


def byte_size(kind: Type) -> int:
    """Bytes of one element in memory; a boolean takes one, a pointer eight."""
    return dtype_of(kind).itemsize


def whole(value: Array, kind: Type, count: int) -> Array:
    """A value with its full leading axis: shape (count, *shape); a view that must not be written."""
    return np.broadcast_to(value, (count, *shape_of(kind)))


def narrowed(value: Array) -> Array:
    """A view with length 1 along every axis that only repeats: it broadcasts to the same values."""
    if 0 not in value.strides:
        return value
    return value[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in value.strides)]


def take_rows(value: Any, rows: Rows) -> Any:
    """A value of some of the programs: `rows` are positions on the leading axis."""
    if isinstance(value, np.ndarray):
        return value if value.shape[0] == 1 else value[rows]
    return value.take(rows) if hasattr(value, "take") else value


def put_rows(whole: Any, rows: Rows, part: Any, count: int) -> Any:
    """A value of `count` programs with that of those at `rows` put in; `whole` is None for the first.

    Arrays are changed in place. What is made of arrays, and can be taken apart by `take`, is put together of theirs.
    """
    if isinstance(part, np.ndarray):
        whole = np.zeros((count, *part.shape[1:]), part.dtype) if whole is None else whole
        whole[rows] = part
        return whole
    if isinstance(part, tuple):
        return tuple(
            put_rows(one, rows, other, count) for one, other in zip(whole or [None] * len(part), part, strict=True)
        )
    if not (is_dataclass(part) and hasattr(part, "take")):
        return part
    names = [field.name for field in fields(part)]
    made = {name: put_rows(getattr(whole, name, None), rows, getattr(part, name), count) for name in names}
    return replace(cast(Any, part), **made)


def uniform(value: Array) -> Any | None:
    """The one value of a scalar that is the same in all programs, else None."""
    first = value[0]
    return first.item() if value.shape[0] == 1 or bool((value == first).all()) else None
