"""What references share: their types, tolerances, and the register of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

Arguments = Mapping[str, Any]
Expected = dict[str, torch.Tensor]
Reference = Callable[[Arguments, Arguments], Expected]


@dataclass(frozen=True)
class Tolerance:
    """The most that |actual - expected| may be: absolute + relative * |expected|."""

    relative: float
    absolute: float


# By the dtype of the output. A result rounded to its type is off by half a unit in the last place: 2^-11 of its size
# in fp16, 2^-8 in bf16. Kernels round up to three intermediates so (a product, a factor, a sum), which makes
# four such halves the bound; a sum whose terms cancel keeps the error of its terms (a few units in size), whence
# as much again absolutely. In fp32 the error is that of a sum in another order and of approximate exp, rsqrt and
# division: a few units of 2^-24, times the root of the number of terms (10^4).
TOLERANCES: Mapping[torch.dtype, Tolerance] = {
    torch.float32: Tolerance(2e-5, 2e-5),
    torch.float16: Tolerance(2**-9, 2**-9),
    torch.bfloat16: Tolerance(2**-6, 2**-6),
    # only ever read
    torch.float8_e4m3fn: Tolerance(0, 0),
    torch.float8_e5m2: Tolerance(0, 0),
    torch.uint8: Tolerance(0, 0),
    torch.int8: Tolerance(0, 0),
    torch.int32: Tolerance(0, 0),
    torch.int64: Tolerance(0, 0),
}

# Where an output needs more; the reason is told where the reference is.
_LOOSER: dict[tuple[str, str, str], Tolerance] = {}

REFERENCES: dict[tuple[str, str], Reference] = {}


def tolerance(family: str, kernel: str, output: str, dtype: torch.dtype) -> Tolerance:
    """What applies to one output of one kernel; never less than its dtype's."""
    general, special = TOLERANCES[dtype], _LOOSER.get((family, kernel, output), Tolerance(0, 0))
    return Tolerance(max(general.relative, special.relative), max(general.absolute, special.absolute))


def reference(family: str, kernel: str, **looser: Tolerance) -> Callable[[Reference], Reference]:
    """Register a kernel's reference, and the tolerances of outputs that need more than their dtype's."""

    def register(function: Reference) -> Reference:
        REFERENCES[family, kernel] = function
        _LOOSER.update({(family, kernel, output): allowed for output, allowed in looser.items()})
        return function

    return register


def given(args: Arguments, constexprs: Arguments, *names: str) -> list[Any]:
    """Arguments by name, tensors in double precision; what Triton specialised (1, None) is among the constexprs."""
    values = {**constexprs, **args}
    return [exact(values[name]) for name in names]


def exact(value: Any) -> Any:
    """A floating-point tensor in double precision; anything else as it is."""
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
