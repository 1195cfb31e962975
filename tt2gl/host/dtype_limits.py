"""The limits of torch's dtypes: `torch.finfo` and `torch.iinfo`."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tt2gl.host.operations import unknown
from tt2gl.host.values import External

if TYPE_CHECKING:
    from tt2gl.host.evaluator import Evaluator


# Bits of exponent and of mantissa; `tiny` and `eps` follow from them as IEEE 754 has it.
_FLOATS: Mapping[str, tuple[int, int, float]] = {
    "float16": (5, 10, 65504.0),
    "bfloat16": (8, 7, (2 - 2**-7) * 2.0**127),
    "float32": (8, 23, (2 - 2**-23) * 2.0**127),
    "float64": (11, 52, sys.float_info.max),
    "float8_e4m3fn": (4, 3, 448.0),
    "float8_e4m3fnuz": (4, 3, 240.0),
    "float8_e5m2": (5, 2, 57344.0),
    "float8_e5m2fnuz": (5, 2, 57344.0),
}
_SYNONYMS = {"half": "float16", "float": "float32", "double": "float64", "short": "int16", "int": "int32",
             "long": "int64"}  # fmt: skip

_OF_TRITON = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32", "fp64": "float64"}


def _torch_dtype(dtype: Any) -> str:
    if not isinstance(dtype, External) or not dtype.within("torch"):
        raise unknown("the dtype is not known")
    name = dtype.dotted.rpartition(".")[2]
    return _SYNONYMS.get(name, name)


def _of_floats(name: str) -> SimpleNamespace:
    exponent, mantissa, largest = _FLOATS[name]
    bias = 2 ** (exponent - 1) - (0 if name.endswith("fnuz") else 1)
    tiny = 2.0 ** (1 - bias)
    return SimpleNamespace(
        bits=1 + exponent + mantissa, max=largest, min=-largest, eps=2.0**-mantissa, tiny=tiny, smallest_normal=tiny
    )


def _of_integers(bits: int, unsigned: bool) -> SimpleNamespace:
    if unsigned:
        return SimpleNamespace(bits=bits, min=0, max=2**bits - 1)
    return SimpleNamespace(bits=bits, min=-(2 ** (bits - 1)), max=2 ** (bits - 1) - 1)


def finfo(evaluator: Evaluator, *dtype: Any) -> SimpleNamespace:
    """`torch.finfo`."""
    name = _torch_dtype(dtype[0]) if dtype else "float32"
    if name not in _FLOATS:
        raise unknown(f"the limits of {name} are not known")
    return _of_floats(name)


def iinfo(evaluator: Evaluator, dtype: Any) -> SimpleNamespace:
    """`torch.iinfo`."""
    match = re.fullmatch(r"(u?)int(8|16|32|64)", _torch_dtype(dtype))
    if match is None:
        raise unknown("the limits of the dtype are not known")
    return _of_integers(int(match.group(2)), bool(match.group(1)))


def limits(dotted: str) -> dict[str, dict[str, float]] | None:
    """What `torch.finfo` or `torch.iinfo` say of each dtype, by its names in torch and Triton; None for another."""
    if dotted not in ("torch.finfo", "torch.iinfo"):
        return None
    known = {name: _of_floats(name) for name in _FLOATS}
    if dotted == "torch.iinfo":
        known = {f"{u}int{bits}": _of_integers(bits, bool(u)) for u in ("", "u") for bits in (8, 16, 32, 64)}
    known |= {name: known[meant] for name, meant in {**_SYNONYMS, **_OF_TRITON}.items() if meant in known}
    return {name: vars(said) for name, said in known.items()}
