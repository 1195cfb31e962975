"""Whether two simulated kernels left the same in memory: what each wrote, bit for bit first, else by how much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tt2gl.ir.types import FloatType
from tt2gl.launches import TensorArg
from tt2gl.simulate.api import TensorOutput
from tt2gl.verify.inputs import Array, is_floating, numpy_dtype
from tt2gl.verify.tolerance import TOLERANCE

# Elements compared at a time: bounds the float64 copies.
_CHUNK = 1 << 22


@dataclass(frozen=True)
class Agreement:
    """What a comparison found: `max_ulps` in units in the last place, `reason` what differs first.

    The distance of a number from NaN, and of two tensors of which not the same was written, is infinite. `undefined`:
    some of what the original wrote hangs on elements that its masks leave undefined, and was compared with zeros there.
    `ordered`: some of it hangs on which program comes first, and was compared with one after the other.
    """

    equal: bool
    bitwise: bool
    max_ulps: float
    reason: str = ""
    undefined: bool = False
    ordered: bool = False


AGREED = Agreement(True, True, 0.0)


def combine(parts: Iterable[Agreement]) -> Agreement:
    """Equal if all parts are; the worst error; the first reason."""
    found = list(parts)
    return Agreement(
        equal=all(part.equal for part in found),
        bitwise=all(part.bitwise for part in found),
        max_ulps=max((part.max_ulps for part in found), default=0.0),
        reason=next((part.reason for part in found if part.reason), ""),
        undefined=any(part.undefined for part in found),
        ordered=any(part.ordered for part in found),
    )


def compare_exactly(arg: TensorArg, expected: TensorOutput, found: TensorOutput) -> Agreement:
    """Compare one tensor of two runs in field arithmetic: residues are equal or they are not."""
    misplaced = _misplaced(arg, expected, found)
    if misplaced is not None:
        return misplaced
    different = np.flatnonzero((expected.elements != found.elements) & expected.written)
    if not different.size:
        return AGREED
    more = f", with {different.size - 1} others" if different.size > 1 else ""
    reason = f"{expected.name}{_element(arg, int(different[0]))} differs{more}"
    return Agreement(False, False, math.inf, reason)


def compare(arg: TensorArg, expected: TensorOutput, found: TensorOutput, factor: float = 1.0) -> Agreement:
    """Compare one tensor of two runs in IEEE arithmetic, where either wrote to it.

    NaN equals NaN and an infinity itself; else errors are relative to the larger of the expected value and the root
    mean square of what was written, and bounded by `TOLERANCE` times `factor`.
    """
    misplaced = _misplaced(arg, expected, found)
    if misplaced is not None:
        return misplaced
    dtype = numpy_dtype(arg.dtype)
    wanted, got = expected.elements.view(dtype), found.elements.view(dtype)
    places = np.flatnonzero((_bits(wanted) != _bits(got)) & expected.written)
    if not places.size:
        return AGREED
    scale = _root_mean_square(wanted, expected.written) if is_floating(dtype) else 0.0
    worst, where, ulps = 0.0, int(places[0]), 0.0
    for start in range(0, places.size, _CHUNK):
        part = places[start : start + _CHUNK]
        errors = _errors(wanted[part], got[part], scale)
        ulps = max(ulps, float(distances(wanted[part], got[part]).max()))
        position = int(errors.argmax())
        if errors[position] > worst:
            worst, where = float(errors[position]), int(part[position])
    bound = TOLERANCE.get(arg.dtype, 0.0) * factor
    if worst <= bound:
        return Agreement(True, False, ulps)
    value = f"{expected.name}{_element(arg, where)} is {got[where]} and should be {wanted[where]}"
    return Agreement(False, False, ulps, f"{value} (error {worst:.3g}, allowed {bound:.3g})")


def where_defined(
    expected: Sequence[TensorOutput], filled: Sequence[TensorOutput], found: Sequence[TensorOutput]
) -> tuple[TensorOutput, ...] | None:
    """`expected` with the elements of `found` wherever it differs from `filled`; None where it differs nowhere.

    `expected` and `filled` are two runs of a kernel that differ in what masked loads give where nothing says it.
    """
    others = {tensor.name: tensor for tensor in found}
    tensors = []
    any_open = False
    for one, two in zip(expected, filled, strict=True):
        undefined = (_bits(one.elements) != _bits(two.elements)) & one.written & two.written
        if undefined.any() and one.name in others:
            any_open = True
            one = replace(one, elements=np.where(undefined, others[one.name].elements, one.elements))
        tensors.append(one)
    return tuple(tensors) if any_open else None


def holds_nan(tensors: Sequence[TensorOutput]) -> bool:
    """Whether some of what was written is NaN, where elements are floats and not residues."""
    written = (each.elements[each.written] for each in tensors if isinstance(each.kind, FloatType))
    return any(part.dtype.kind != "i" and bool(np.isnan(part.astype(np.float64)).any()) for part in written)


def _misplaced(arg: TensorArg, expected: TensorOutput, found: TensorOutput) -> Agreement | None:
    """What only one of the runs wrote; None where both wrote the same places."""
    for one, other, who in ((expected, found, "the Triton kernel alone"), (found, expected, "the Gluon kernel alone")):
        alone = np.flatnonzero(one.written & ~other.written)
        if alone.size:
            where = f"{expected.name}{_element(arg, int(alone[0]))}"
            more = f", with {alone.size - 1} others" if alone.size > 1 else ""
            return Agreement(False, False, math.inf, f"{where} is written by {who}{more}")
    return None


def _element(arg: TensorArg, offset: int) -> str:
    """The index of the element that lies `offset` elements behind the first: `[3, 17]`."""
    index = [0] * len(arg.shape)
    rest = offset
    for dimension in sorted(range(len(index)), key=lambda each: -arg.stride[each]):
        stride = arg.stride[dimension]
        if stride and arg.shape[dimension] > 1:
            index[dimension] = min(rest // stride, arg.shape[dimension] - 1)
            rest -= index[dimension] * stride
    if rest:
        return f" (element {offset} in memory, between those of the tensor)"
    return f"[{', '.join(map(str, index))}]"


def _bits(values: Array) -> Array:
    return values.view(f"i{values.dtype.itemsize}")


def _root_mean_square(values: Array, written: Array) -> float:
    """Of the finite values written; tiny, never zero."""
    total, count = 0.0, 0
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK][written[start : start + _CHUNK]].astype(np.float64)
        part = part[np.isfinite(part)]
        total += float(np.square(part).sum())
        count += part.size
    return max(math.sqrt(total / count) if count else 0.0, 1e-30)


def _errors(wanted: Array, got: Array, scale: float) -> Array:
    """Relative errors of values whose bits differ; infinite where only one is a number."""
    if not is_floating(wanted.dtype):
        return np.full(wanted.shape, np.inf)
    with np.errstate(all="ignore"):
        one, two = wanted.astype(np.float64), got.astype(np.float64)
        error = np.abs(one - two) / np.maximum(np.abs(one), scale)
        same = (one == two) | (np.isnan(one) & np.isnan(two))
    return np.where(same, 0.0, np.where(np.isfinite(error), error, np.inf))


def distances(one: Array, two: Array) -> Array:
    """Units in the last place between values: how many numbers of their type lie between them, and one.

    Integers: their difference. 0 between two NaN, and between the zeros; infinite between a number and NaN.
    """
    if not is_floating(one.dtype):
        return np.abs(one.astype(np.float64) - two.astype(np.float64))
    nan_one, nan_two = np.isnan(one.astype(np.float64)), np.isnan(two.astype(np.float64))
    between = np.abs(_rank(one).astype(np.float64) - _rank(two).astype(np.float64))
    return np.where(nan_one & nan_two, 0.0, np.where(nan_one | nan_two, np.inf, between))


def _rank(values: Array) -> Array:
    """The position of a float among those of its type, counted from zero: formats are ordered as their bits are."""
    bits = _bits(values).astype(np.int64)
    low = np.int64((1 << (8 * values.dtype.itemsize - 1)) - 1)
    return np.where(bits < 0, -(bits & low), bits)
