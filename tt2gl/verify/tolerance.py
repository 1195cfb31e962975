"""How far results that are not bit-equal may lie apart, on a GPU and in the simulator alike."""

from __future__ import annotations

from collections.abc import Mapping

# Relative to the value or, near zero, to the tensor's root mean square. A port may add in another order: that costs a
# few units in the last place of a narrow type (2^-10 is one in fp16, 2^-7 in bf16, 2^-3 and 2^-2 in the fp8 formats),
# because sums are rounded once at the end, and in fp32 some dozens of the 2^-23 that a sum of thousands of terms
# gathers. Integers have no such excuse.
TOLERANCE: Mapping[str, float] = {
    "float64": 1e-13,
    "float32": 1e-5,
    "float16": 2 * 2.0**-10,
    "bfloat16": 2 * 2.0**-7,
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e4m3b11fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
}
