"""What an arithmetic offers to the operations: IEEE formats (`ieee`) or a prime field (`field`).

Arrays are as `values` says; types are the IR's, scalar or tensor (only the element counts). Results are new arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

import numpy as np

from tt2gl.ir.types import Type
from tt2gl.simulate.values import Array

Rounding = Literal["rtne", "rtz"]


# What a predicate of `compare` says of two numbers, without its "o" or "u".
COMPARISONS: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


class Arithmetic(Protocol):
    """Floating-point arithmetic; integers are the operations' own affair.

    `kind` is always the type of the operands and, where none other is given, of the result.
    """

    name: str

    def dtype(self, kind: Type) -> np.dtype[Any]:
        """Of arrays of this type, integers and pointers included."""

    def from_bits(self, values: Array, kind: Type) -> Array:
        """Values in numpy's own format of `kind` (constants, inputs) as this arithmetic holds them."""

    def to_bits(self, values: Array, kind: Type) -> Array:
        """The reverse, for comparison and printing; a field gives its residues."""

    def poison(self, kind: Type) -> Any:
        """What uninitialised memory holds: NaN, all bits set, or a fixed residue."""

    def binary(self, name: str, a: Array, b: Array, kind: Type) -> Array:
        """`name` is one of: add sub mul div (rounded to nearest even) rem pow atan2 minnum maxnum (a number beats NaN)
        minimum maximum (NaN beats all; -0 < +0) copysign nextafter.
        """

    def unary(self, name: str, a: Array, kind: Type) -> Array:
        """`name` is an operation of the `math` dialect without its prefix (exp2, rsqrt, erf, ...), or neg."""

    def fma(self, a: Array, b: Array, c: Array, kind: Type) -> Array:
        """The product a * b plus c, rounded once."""

    def accumulate(self, elements: Array, index: Array, given: Array) -> None:
        """Add to elements in place, one addend after another: a place may occur several times in `index`."""

    def compare(self, predicate: str, a: Array, b: Array, kind: Type) -> Array:
        """Booleans; `predicate` as MLIR spells it: oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno."""

    def convert(self, a: Array, source: Type, target: Type, rounding: Rounding = "rtne") -> Array:
        """From one float type to another; what overflows saturates or not as the hardware's conversion does."""

    def from_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """Integers to floats, to nearest even."""

    def to_integer(self, a: Array, signed: bool, source: Type, target: Type) -> Array:
        """Floats to integers, towards zero; NaN and what does not fit as the hardware does (saturated, NaN is 0)."""

    def bitcast(self, a: Array, source: Type, target: Type) -> Array:
        """The same bits as another type, at least one of them a float."""

    def matmul(self, a: Array, b: Array, c: Array | None, kinds: tuple[Type, Type, Type], precision: str) -> Array:
        """(P, ..., M, K) x (P, ..., K, N) + (P, ..., M, N), accumulated in the type of c (`kinds`: of a, b, result).

        Integers too. `precision` is "tf32", "tf32x3", "ieee", ... of fp32 operands. The order of sums depends on the
        shape alone: two kernels with equal tiles get equal bits.
        """
