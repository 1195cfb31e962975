"""Whether two kernels do the same: run on the same random inputs, all of memory compared, bit for bit first."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tt2gl.verify.tensors import GUARD_VALUE, Buffer, DeviceInputs
from tt2gl.verify.tolerance import TOLERANCE

Run = Callable[[DeviceInputs], None]

# Where the original does not repeat itself (atomics in any order), a port may differ by this many times as much.
NOISE_FACTOR = 4.0

# Yet noise excuses no more than this many times the tolerance: past it the original itself is in doubt.
_NOISE_LIMIT = 64.0

# Elements compared at a time: bounds the float64 copies to half a gigabyte each.
_CHUNK = 1 << 26


@dataclass(frozen=True)
class Equality:
    """What a comparison found; `max_error` is relative, `reason` says what differs first."""

    equal: bool
    bitwise: bool
    max_error: float
    reason: str = ""


def combine(parts: Iterable[Equality]) -> Equality:
    """Equal if all parts are; the worst error; the first reason."""
    found = list(parts)
    return Equality(
        equal=all(part.equal for part in found),
        bitwise=all(part.bitwise for part in found),
        max_error=max((part.max_error for part in found), default=0.0),
        reason=next((part.reason for part in found if part.reason), ""),
    )


def check_equality(original: Run, port: Run, make: Callable[[int], DeviceInputs], seeds: Sequence[int]) -> Equality:
    """Run both kernels on the inputs of every seed, and once more with outputs poisoned.

    Every tensor starts as random content, equal for both, so a store that is missing, misplaced or unmasked shows. The
    last trial fills the outputs with NaN where the original does not care what they held: a port that reads what it
    should write then spreads NaN.
    """
    results: list[Equality] = []
    for number, seed in enumerate(seeds):
        before = make(seed)
        first, second = _after(original, before), _after(original, before)
        results.append(compare_inputs(first, second, _after(port, before)))
        if number == len(seeds) - 1:
            results.append(_poisoned_trial(original, port, before, first, second))
    return combine(results)


def _after(run: Run, before: DeviceInputs) -> DeviceInputs:
    inputs = before.clone()
    run(inputs)
    return inputs


def _poisoned_trial(
    original: Run, port: Run, before: DeviceInputs, first: DeviceInputs, second: DeviceInputs
) -> Equality:
    repeatable = all(_same_bytes(first.buffers[name], second.buffers[name]) for name in first.buffers)
    if not repeatable:
        # Without equal runs of the original, nothing tells whether it read the poison.
        return combine([])
    outputs = tuple(
        name
        for name in written(before, first)
        if before.buffers[name].view.dtype.is_floating_point and _ignores_content(original, before, first, name)
    )
    if not outputs:
        return combine([])
    poisoned = before.poisoned(outputs)
    expected = _after(original, poisoned)
    found = compare_inputs(expected, _after(original, poisoned), _after(port, poisoned))
    if found.equal:
        return found
    return Equality(False, found.bitwise, found.max_error, f"with outputs that held NaN before: {found.reason}")


def written(before: DeviceInputs, after: DeviceInputs) -> tuple[str, ...]:
    """The tensors in which a run changed anything."""
    return tuple(name for name in before.buffers if not _same_bytes(before.buffers[name], after.buffers[name]))


def _same_bytes(one: Buffer, other: Buffer) -> bool:
    import torch

    return bool(torch.equal(one.storage, other.storage))


def _ignores_content(original: Run, before: DeviceInputs, expected: DeviceInputs, name: str) -> bool:
    """Whether the original writes the same, everywhere that it writes, with poison in the tensor `name`."""
    start = before.poisoned((name,))
    found = _after(original, start)
    for other, buffer in found.buffers.items():
        if other != name and not _same_bytes(buffer, expected.buffers[other]):
            return False
    changed = expected.buffers[name].storage != before.buffers[name].storage
    differs = found.buffers[name].storage != expected.buffers[name].storage
    return not bool((changed & differs).any())


def compare_inputs(expected: DeviceInputs, again: DeviceInputs, found: DeviceInputs) -> Equality:
    """Compare all tensors after a run of the port with those after two runs of the original."""
    return combine(
        compare_buffers(name, expected.buffers[name], again.buffers[name], found.buffers[name])
        for name in expected.buffers
    )


def compare_buffers(name: str, expected: Buffer, again: Buffer, found: Buffer) -> Equality:
    """Compare one tensor and the guards around it.

    NaN equals NaN and an infinity itself; else errors are relative to the larger of the expected value and the
    tensor's root mean square, and bounded by `TOLERANCE`, or by what the original's own two runs differ.
    """
    import torch

    if _same_bytes(expected, found):
        return Equality(True, True, 0.0)
    for part in (slice(0, expected.first), slice(expected.last, None)):
        if not torch.equal(expected.storage[part], found.storage[part]):
            reason = f"{name}: written outside the tensor"
            if bool((expected.storage[part] != GUARD_VALUE).any()):
                reason += "; the original itself writes there: does the launch give each tensor its shape?"
            return Equality(False, False, math.inf, reason)
    kind = expected.arg.dtype
    noise = max((error for error, _ in _errors(expected, again)), default=0.0)
    tolerance = TOLERANCE.get(kind, 0.0)
    bound = max(tolerance, min(NOISE_FACTOR * noise, _NOISE_LIMIT * tolerance))
    worst, where = 0.0, 0
    for error, position in _errors(expected, found):
        if error > worst:
            worst, where = error, position
    if worst <= bound:
        return Equality(True, False, worst)
    wanted, got = expected.elements()[where].item(), found.elements()[where].item()
    reason = f"{name}: element {where} is {got} and should be {wanted} (error {worst:.3g}, allowed {bound:.3g})"
    if noise > bound:
        reason += f"; the original itself differs by {noise:.3g} from run to run"
    return Equality(False, False, worst, reason)


def _errors(expected: Buffer, found: Buffer) -> Iterator[tuple[float, int]]:
    """The largest relative error of each chunk and its position; infinite where only one is a number."""
    import torch

    wanted, got = expected.elements(), found.elements()
    scale = _root_mean_square(wanted)
    floating = wanted.dtype.is_floating_point
    for start in range(0, wanted.numel(), _CHUNK):
        part = slice(start, start + _CHUNK)
        one, two = wanted[part].to(torch.float64), got[part].to(torch.float64)
        if floating:
            same = (one == two) | (one.isnan() & two.isnan())
        else:
            # float64 cannot tell large integers apart, and torch compares few of the unsigned types.
            bits = getattr(torch, f"int{8 * wanted.dtype.itemsize}")
            same = wanted[part].view(bits) == got[part].view(bits)
        error = (one - two).abs() / one.abs().clamp_(min=scale)
        error = torch.where(error.isfinite(), error, math.inf).clamp_(min=torch.finfo(torch.float64).tiny)
        error = torch.where(same, 0.0, error)
        position = int(error.argmax())
        yield float(error[position]), start + position


def _root_mean_square(values: Any) -> float:
    """Of the finite values; tiny, never zero."""
    import torch

    total, count = 0.0, 0
    for start in range(0, values.numel(), _CHUNK):
        chunk = values[start : start + _CHUNK].to(torch.float64)
        chunk = chunk[chunk.isfinite()]
        total += float(chunk.square().sum())
        count += chunk.numel()
    return max(math.sqrt(total / count) if count else 0.0, 1e-30)
