"""Inputs on a GPU: each tensor in a storage of its own, between guards that no kernel may touch.

Only this module, `equality` and `device` know torch, and import it when called.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tt2gl.descriptor_parts import owner
from tt2gl.launches import TensorArg
from tt2gl.verify.inputs import Element, Inputs, TensorData, UnknownInputsError

# Bytes before and after every tensor, and what each of them holds; they are compared like the tensor itself.
GUARD_BYTES = 4096
GUARD_VALUE = 0xA5


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
    tuples: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def has(self, name: str) -> bool:
        """Whether they have a value for a parameter."""
        given = (self.buffers, self.scalars, self.tuples)
        return any(name in known for known in given) or bool(owner(name, self.blocks))

    def argument(self, name: str, function: Any) -> Any:
        """What a kernel is called with for a parameter that there is a value for."""
        if name in self.blocks:
            return _descriptor(function, self.buffers[name].view, self.blocks[name])
        if (covered := owner(name, self.blocks) or name) in self.buffers:
            return self.buffers[covered].view
        return self._elements(self.tuples[name], function) if name in self.tuples else self.scalars[name]

    def _elements(self, value: Any, function: Any) -> Any:
        if isinstance(value, Element):
            return self.argument(value.name, function)
        return tuple(self._elements(each, function) for each in value) if isinstance(value, tuple) else value

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
    return DeviceInputs(buffers, inputs.scalars, inputs.blocks, inputs.tuples)


def to_buffer(tensor: TensorData, device: str) -> Buffer:
    """One tensor on a device, as far from an aligned address as it should be."""
    import torch

    if not isinstance(getattr(torch, tensor.arg.dtype, None), torch.dtype):
        raise UnknownInputsError(f"torch has no type {tensor.arg.dtype}")
    first = GUARD_BYTES + tensor.misalignment
    last = first + tensor.elements.nbytes
    storage = torch.full((-(-last // 16) * 16 + GUARD_BYTES,), GUARD_VALUE, dtype=torch.uint8, device=device)
    storage[first:last].copy_(torch.from_numpy(tensor.elements.view(np.uint8)))
    return _over(tensor.arg, storage, first, last)


def _over(arg: TensorArg, storage: Any, first: int, last: int) -> Buffer:
    import torch

    typed = storage[first:last].view(getattr(torch, arg.dtype))
    return Buffer(arg, storage, first, last, typed.as_strided(arg.shape, arg.stride))


def _descriptor(function: Any, tensor: Any, block: tuple[int, ...]) -> Any:
    """A tensor descriptor made by the host, in Triton's class or in Gluon's, which wants a layout."""
    shape, strides = list(tensor.shape), list(tensor.stride())
    if not function.is_gluon():
        from triton.tools.tensor_descriptor import TensorDescriptor

        return TensorDescriptor(tensor, shape, strides, list(block))
    import triton.language as tl
    from triton._utils import type_canonicalisation_dict
    from triton.experimental.gluon import language as gl
    from triton.experimental.gluon.nvidia.hopper import TensorDescriptor as GluonDescriptor

    element = tl.dtype(type_canonicalisation_dict[str(tensor.dtype).rpartition(".")[2]])
    layout = gl.NVMMASharedLayout.get_default_for(list(block), element)
    return GluonDescriptor(tensor, shape, strides, list(block), layout)
