"""Inputs on a GPU: each tensor in a storage of its own, between guards that no kernel may touch.

Only this module, `equality` and `device` know torch, and import it when called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tt2gl.launches import TensorArg
from tt2gl.verify.inputs import Inputs, TensorData, UnknownInputsError

# Bytes before and after every tensor; they are compared like the tensor itself.
GUARD_BYTES = 4096
_GUARD_VALUE = 0xA5


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
        """A copy of the same shape full of bytes 0xFF: NaN in every floating-point format but the fnuz ones."""
        copy = self.clone()
        copy.storage[self.first : self.last].fill_(0xFF)
        return copy


@dataclass(frozen=True)
class DeviceInputs:
    """As `Inputs`, with torch's tensors."""

    buffers: Mapping[str, Buffer]
    scalars: Mapping[str, Any]
    blocks: Mapping[str, tuple[int, ...]]

    def clone(self) -> DeviceInputs:
        """Inputs with tensors of their own, equal to these."""
        return replace(self, buffers={name: buffer.clone() for name, buffer in self.buffers.items()})

    def poisoned(self, names: tuple[str, ...]) -> DeviceInputs:
        """A copy in which the tensors `names` hold nothing but poison."""
        return replace(
            self,
            buffers={
                name: buffer.poisoned() if name in names else buffer.clone() for name, buffer in self.buffers.items()
            },
        )


def to_device(inputs: Inputs, device: str) -> DeviceInputs:
    """Inputs as torch's tensors on a device. Raises UnknownInputsError for a type that torch has not."""
    buffers = {name: to_buffer(tensor, device) for name, tensor in inputs.tensors.items()}
    return DeviceInputs(buffers, inputs.scalars, inputs.blocks)


def to_buffer(tensor: TensorData, device: str) -> Buffer:
    """One tensor on a device, as far from an aligned address as it should be."""
    import torch

    if not isinstance(getattr(torch, tensor.arg.dtype, None), torch.dtype):
        raise UnknownInputsError(f"torch has no type {tensor.arg.dtype}")
    first = GUARD_BYTES + tensor.misalignment
    last = first + tensor.elements.nbytes
    storage = torch.full((-(-last // 16) * 16 + GUARD_BYTES,), _GUARD_VALUE, dtype=torch.uint8, device=device)
    storage[first:last].copy_(torch.from_numpy(tensor.elements.view(np.uint8)))
    return _over(tensor.arg, storage, first, last)


def _over(arg: TensorArg, storage: Any, first: int, last: int) -> Buffer:
    import torch

    typed = storage[first:last].view(getattr(torch, arg.dtype))
    return Buffer(arg, storage, first, last, typed.as_strided(arg.shape, arg.stride))
