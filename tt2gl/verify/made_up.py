"""Arguments made up for a launch that a file alone shows, to compare both kernels on where nobody gave real ones.

Tensors are far larger than a few tiles, sizes end amid a tile, strides are those of rows and planes larger than that,
and integers that may be indices are small. Of a kernel that reads elsewhere with these, too little is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tt2gl.compiler import with_tuples
from tt2gl.infer.names import STRIDE_NAME
from tt2gl.launches import DescriptorArg, Launch, TensorArg

_ELEMENTS = 1 << 21
_STRIDES = (1 << 8, 1 << 16, 1 << 17, 1 << 18, 1 << 19)
_INDICES = (0.0, 3.0)

_TENSOR_DTYPES = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
    "fp64": "float64",
    "fp8e4nv": "float8_e4m3fn",
    "fp8e5": "float8_e5m2",
    "fp8e4b8": "float8_e4m3fnuz",
    "fp8e5b16": "float8_e5m2fnuz",
    "i1": "bool",
} | {f"{sign}{bits}": f"{'u' * (sign == 'u')}int{bits}" for sign in "iu" for bits in (8, 16, 32, 64)}

_OF_A_TENSOR = re.compile(r"(.*?stride.*?)_?(?:[a-z0-9]|dim\d|batch|head|row|col|seq|token)?", re.I)
"""The name of a stride without what says of which dimension it is."""
_FEW = re.compile(r"head|batch|group|expert|^[HBGZ]$", re.I)
"""A number of which there are few."""


def is_shown(launch: Launch) -> bool:
    """Whether a launch is one that its file shows, and not all that it takes to run it is known."""
    return launch.origin == "guessed" or (launch.origin == "found" and (launch.args is None or launch.grid is None))


def made_up(launch: Launch, axes: int, programs: int) -> Launch:
    """The launch with a grid of `programs` along each of its axes, and with arguments."""
    strides = _strides(launch)
    args = {
        name: strides[name] if name in strides else _argument(name, with_tuples(kind), launch)
        for name, kind in launch.signature.items()
        if kind != "constexpr"
    }
    return replace(launch, grid=(programs,) * max(axes, 1), args=args)


def told(launch: Launch) -> str:
    """What was made up, in words."""
    grid = "x".join(map(str, launch.grid or ()))
    numbers = {name: value for name, value in (launch.args or {}).items() if isinstance(value, int | float)}
    return ", ".join([f"a grid of {grid}", *(f"{name}={value}" for name, value in numbers.items())])


def _strides(launch: Launch) -> Mapping[str, int]:
    """The strides among the integers: those of one tensor each some times the next one, innermost last."""
    tensors: dict[str, list[str]] = {}
    for name, kind in launch.signature.items():
        if re.fullmatch(r"[iu]\d+", kind) and STRIDE_NAME.search(name) and (found := _OF_A_TENSOR.fullmatch(name)):
            tensors.setdefault(found[1], []).append(name)
    return {
        name: _STRIDES[min(place, len(_STRIDES) - 1)]
        for names in tensors.values()
        for place, name in enumerate(reversed(names))
    }


def _argument(name: str, kind: Any, launch: Launch) -> Any:
    """An argument of a type; None of one of which nothing can be made, as of pointers to pointers."""
    if isinstance(kind, tuple):
        return tuple(_argument(name, element, launch) for element in kind)
    if found := re.fullmatch(r"\*k?(\w+)", kind):
        return _tensor(_TENSOR_DTYPES.get(found[1]))
    if found := re.fullmatch(r"tensordesc<(\w+)\[([\d, ]+)\].*>", kind):
        return _descriptor(_TENSOR_DTYPES.get(found[1]), tuple(map(int, found[2].split(","))))
    if kind.startswith("*"):
        return None
    if kind == "i1":
        return True
    if kind.startswith(("fp", "bf")):
        return 0.5
    aligned = name in launch.divisible_by_16
    if _FEW.search(name):
        return 16 if aligned else 2
    return 176 if aligned else 101


def _tensor(dtype: str | None) -> TensorArg | None:
    if dtype is None:
        return None
    may_index = "int" in dtype and not dtype.endswith("int8")
    return TensorArg(dtype, (_ELEMENTS,), (1,), _INDICES if may_index else None)


def _descriptor(dtype: str | None, block: tuple[int, ...]) -> DescriptorArg | None:
    if dtype is None:
        return None
    shape = tuple(max(2 * extent, 16) for extent in block)
    strides = tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
    return DescriptorArg(dtype, shape, strides, block)
