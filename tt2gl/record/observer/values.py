"""Arguments of a launch as the launches file spells them (docs/launches.md)."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

# Types of a `triton.reinterpret`ed tensor are Triton's; the file has torch's names.
_TORCH_NAMES = {
    "int1": "bool",
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e5": "float8_e5m2",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5b16": "float8_e5m2fnuz",
    "fp8e4b8": "float8_e4m3fnuz",
}
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_INTEGERS_OF_TORCH = ("int8", "int16", "int32", "int64", "uint8")


class NoPlaceError(Exception):
    """A value that a launches file cannot hold."""


def is_tensor(value: Any) -> bool:
    """Whether Triton takes a value for a pointer to a tensor."""
    return hasattr(value, "data_ptr") and hasattr(value, "dtype") and hasattr(value, "shape")


def is_descriptor(value: Any) -> bool:
    """Whether a value is a tensor descriptor made by the host."""
    return hasattr(value, "block_shape") and hasattr(value, "base") and hasattr(value, "strides")


def glimpse(value: Any) -> Any:
    """All of a value that a launch is told by, as it comes; it need not have a hash."""
    if is_tensor(value):
        stride = value.stride
        layout = tuple(stride() if callable(stride) else stride)
        return (value.dtype, tuple(value.shape), layout, value.data_ptr() % 16)
    if is_descriptor(value):
        return (glimpse(value.base), tuple(value.shape), tuple(value.strides), tuple(value.block_shape))
    if isinstance(value, tuple):
        return tuple(map(glimpse, value))
    # One, one point nothing and true are equal, and three launches.
    return (type(value), value)


def argument(value: Any, *, with_range: bool) -> Any:
    """An argument as the file's `args` have it. Raises NoPlaceError."""
    if is_descriptor(value):
        return {
            "descriptor": {
                "dtype": dtype_name(value.base.dtype),
                "shape": _ints(value.shape),
                "stride": _ints(value.strides),
                "block_shape": _ints(value.block_shape),
            }
        }
    if is_tensor(value):
        limits = value_range(value) if with_range else None
        return {
            "dtype": dtype_name(value.dtype),
            "shape": _ints(value.shape),
            "stride": _strides(value),
            "range": limits,
        }
    if isinstance(value, tuple):
        return {"tuple": [argument(item, with_range=with_range) for item in value]}
    return constant(value)


def constant(value: Any) -> Any:
    """A constexpr or an option as the file has it. Raises NoPlaceError."""
    if value is None or isinstance(value, (bool, str)):
        # An enumeration's member may be a string and would be written as one.
        return value if value is None or type(value) in (bool, str) else _refuse(value)
    if type(value) is int:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"float": str(float(value))}
    if isinstance(value, tuple):
        return {"tuple": [constant(item) for item in value]}
    if isinstance(value, list):
        return [constant(item) for item in value]
    kind = type(value).__name__
    if kind == "constexpr":
        return constant(value.value)
    if kind == "dtype" and type(value).__module__.startswith("triton."):
        return {"dtype": str(value)}
    if hasattr(value, "fn") and hasattr(value, "arg_names"):
        return {"jit": reference(value)}
    if hasattr(value, "__index__") and not isinstance(value, int):
        return int(value)
    return _refuse(value)


def reference(function: Any) -> str:
    """A jit function as `package.module:name`; of a script, the module's name is the file's."""
    inner = function.fn
    while hasattr(inner, "fn"):
        inner = inner.fn
    module = str(inner.__module__)
    if module == "__main__":
        module = Path(inner.__code__.co_filename).stem
    return f"{module}:{inner.__name__}"


def dtype_name(dtype: Any) -> str:
    """What torch calls an element type."""
    name = str(dtype).rpartition(".")[2]
    return _TORCH_NAMES.get(name, name)


def value_range(tensor: Any) -> list[int] | None:
    """The least and the greatest of an integer tensor; None for others, empty ones, and where asking is forbidden."""
    name = dtype_name(tensor.dtype)
    if name not in _INTEGERS or 0 in tuple(tensor.shape) or _capturing():
        return None
    try:
        if name not in _INTEGERS_OF_TORCH:
            tensor = tensor.to(_torch().int64)
        return [int(tensor.min()), int(tensor.max())]
    except Exception:  # noqa: BLE001 - what has no order, or no values, as fake tensors, has no range
        return None


def _capturing() -> bool:
    """Whether a CUDA graph is being captured: to wait for a value would end that."""
    torch = sys.modules.get("torch")
    try:
        return torch is not None and bool(torch.cuda.is_current_stream_capturing())
    except Exception:  # noqa: BLE001 - no GPU of that kind
        return False


def _torch() -> ModuleType:
    return sys.modules["torch"]


def _ints(values: Any) -> list[int]:
    return [int(value) for value in values]


def _strides(tensor: Any) -> list[int]:
    stride = tensor.stride
    return _ints(stride() if callable(stride) else stride)


def _refuse(value: Any) -> Any:
    raise NoPlaceError(f"a value of type {type(value).__name__} has no place in a launches file")
