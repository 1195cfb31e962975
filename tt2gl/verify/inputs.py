"""Argument tensors for a launch: random content of the recorded shape, stride, type and alignment, between guards.

Only this module, `equality` and `device` know torch, and import it when called.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from tt2gl.launches import DescriptorArg, Launch, TensorArg

# Bytes before and after every tensor that no kernel may touch; they are compared like the tensor itself.
GUARD_BYTES = 4096
_GUARD_VALUE = 0xA5


class UnknownInputsError(Exception):
    """The launch does not say enough of its arguments to run it; the message says of which."""


@dataclass(frozen=True)
class Buffer:
    """One tensor argument: `view` is what the kernel gets, `storage` its bytes and the guards around them.

    `first` and `last` bound the tensor's own bytes within `storage`.
    """

    arg: TensorArg
    storage: Any
    first: int
    last: int
    view: Any

    def clone(self) -> Buffer:
        """A copy with a storage of its own, as aligned as the original."""
        return _over(self.arg, self.storage.clone(), self.first, self.last)

    def restore(self, other: Buffer) -> None:
        """Take over the bytes of another buffer of this shape."""
        self.storage.copy_(other.storage)

    def elements(self) -> Any:
        """The tensor's bytes from its first element to its last, as a flat tensor of its type."""
        return self.storage[self.first : self.last].view(self.view.dtype)

    def poisoned(self) -> Buffer:
        """A copy of the same shape full of bytes 0xFF: NaN in every floating-point format."""
        copy = self.clone()
        copy.storage[self.first : self.last].fill_(0xFF)
        return copy


@dataclass(frozen=True)
class Inputs:
    """All that one call of a kernel gets but its constexprs: buffers of the tensors, and the other arguments."""

    buffers: Mapping[str, Buffer]
    scalars: Mapping[str, Any]
    blocks: Mapping[str, tuple[int, ...]]

    def clone(self) -> Inputs:
        """Inputs with tensors of their own, equal to these."""
        return replace(self, buffers={name: buffer.clone() for name, buffer in self.buffers.items()})

    def poisoned(self, names: tuple[str, ...]) -> Inputs:
        """A copy in which the tensors `names` hold nothing but poison."""
        return replace(
            self,
            buffers={
                name: buffer.poisoned() if name in names else buffer.clone() for name, buffer in self.buffers.items()
            },
        )


def make_inputs(launch: Launch, seed: int, device: str) -> Inputs:
    """Random arguments for a launch. The same seed makes the same values.

    Floating-point tensors are normal for even seeds and positive, up to 1, for odd ones, so that a logarithm or a
    square root is reached by numbers too. Integers respect `range`; without one, bytes and booleans are random and
    wider integers, which may be indices, are zero. Raises UnknownInputsError where `args` lacks something.
    """
    import torch

    if launch.args is None:
        raise UnknownInputsError("the launch has no arguments recorded")
    generator = torch.Generator(device=device)
    generator.manual_seed(seed)
    buffers: dict[str, Buffer] = {}
    scalars: dict[str, Any] = {}
    blocks: dict[str, tuple[int, ...]] = {}
    for name, kind in launch.signature.items():
        value = launch.args.get(name)
        if isinstance(value, DescriptorArg):
            blocks[name] = value.block_shape
            value = TensorArg(value.dtype, value.shape, value.stride)
        if isinstance(value, TensorArg):
            aligned = name in launch.divisible_by_16 or not kind.startswith("*")
            buffers[name] = make_buffer(value, generator, positive=bool(seed % 2), aligned=aligned)
        elif kind != "constexpr":
            if value is None:
                raise UnknownInputsError(f"the launch does not say what {name} was")
            scalars[name] = value
    return Inputs(buffers, scalars, blocks)


def make_buffer(arg: TensorArg, generator: Any, *, positive: bool, aligned: bool) -> Buffer:
    """One random tensor. A tensor that was not 16-byte aligned starts one element off, so Triton specializes alike."""
    import torch

    dtype = getattr(torch, arg.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise UnknownInputsError(f"torch has no type {arg.dtype}")
    if any(stride < 0 for stride in arg.stride):
        raise UnknownInputsError("a tensor has a negative stride")
    count = 1 + sum((size - 1) * stride for size, stride in zip(arg.shape, arg.stride, strict=True))
    count = count if math.prod(arg.shape) else 0
    first = GUARD_BYTES + (0 if aligned else dtype.itemsize)
    last = first + count * dtype.itemsize
    storage = torch.full((-(-last // 16) * 16 + GUARD_BYTES,), _GUARD_VALUE, dtype=torch.uint8, device=generator.device)
    buffer = _over(arg, storage, first, last)
    buffer.elements().copy_(_random(arg, dtype, count, generator, positive))
    return buffer


def _over(arg: TensorArg, storage: Any, first: int, last: int) -> Buffer:
    import torch

    typed = storage[first:last].view(getattr(torch, arg.dtype))
    return Buffer(arg, storage, first, last, typed.as_strided(arg.shape, arg.stride))


def _random(arg: TensorArg, dtype: Any, count: int, generator: Any, positive: bool) -> Any:
    import torch

    place = {"generator": generator, "device": generator.device}
    if dtype.is_floating_point:
        # torch makes random numbers of no 8-bit type.
        made = dtype if dtype.itemsize > 1 else torch.float32
        if positive:
            return torch.rand(count, dtype=made, **place).clamp_(min=2**-6).to(dtype)
        return torch.randn(count, dtype=made, **place).to(dtype)
    if dtype.is_complex:
        raise UnknownInputsError(f"Triton has no type for {arg.dtype}")
    if dtype == torch.bool:
        return torch.randint(0, 2, (count,), dtype=torch.uint8, **place).to(dtype)
    if arg.range is not None:
        low, high = arg.range
    elif dtype.itemsize == 1:
        limits = torch.iinfo(dtype)
        low, high = limits.min, limits.max
    else:
        low, high = 0, 0
    return torch.randint(low, min(high, 2**63 - 2) + 1, (count,), dtype=torch.int64, **place).to(dtype)
