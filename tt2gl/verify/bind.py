"""A launch's arguments as the parameters of the function in the kernel's IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tt2gl.descriptor_parts import owner
from tt2gl.ir.operations import Module
from tt2gl.ir.types import DescriptorType, PointerType, Type
from tt2gl.launches import Launch, passed_to
from tt2gl.simulate.api import Argument, DescriptorInput, TensorInput
from tt2gl.simulate.values import dtype_of
from tt2gl.verify.inputs import Inputs, TensorData, UnknownInputsError


def bind(names: Sequence[str], launch: Launch, inputs: Inputs, module: Module) -> list[Argument]:
    """The arguments of a kernel's IR, in its order; `names` are the parameters of the Python function.

    Every Triton from 3.6 on drops the constexprs, and spreads a descriptor into itself, its shape and its strides,
    and a tuple into its elements. A kernel may take the parts of a descriptor in its place.
    Raises UnknownInputsError where the IR wants something else than the launch has.
    """
    parameters = module.kernel.regions[0].entry.arguments
    remaining = iter([parameter.type for parameter in parameters])
    arguments: list[Argument] = []
    launch = passed_to(launch, names)
    for name in names:
        if launch.signature.get(name, "constexpr") != "constexpr":
            for passed in inputs.passed(name):
                arguments += _spread(passed, inputs, remaining)
    if len(arguments) != len(parameters):
        message = f"the kernel takes {len(parameters)} arguments and the launch has {len(arguments)}"
        raise UnknownInputsError(message)
    return arguments


def _spread(name: str, inputs: Inputs, remaining: Iterator[Type]) -> list[Argument]:
    """One parameter of the Python function as parameters of the IR, whose types it takes from `remaining`."""
    kind = next(remaining, None)
    if name in inputs.blocks:
        data = inputs.tensors[name]
        if not isinstance(kind, DescriptorType):
            raise UnknownInputsError(f"{name} is a descriptor and the kernel takes {kind}")
        tensor = _tensor(name, data, kind.block.element)
        spread = (*data.arg.shape, *data.arg.stride)
        for _ in spread:
            next(remaining, None)
        return [DescriptorInput(tensor, data.arg.shape, data.arg.stride, inputs.blocks[name]), *spread]
    tensor_name = owner(name, inputs.blocks) or name
    if tensor_name in inputs.tensors:
        if not isinstance(kind, PointerType) or kind.pointee is None:
            raise UnknownInputsError(f"{name} is a tensor and the kernel takes {kind}")
        return [_tensor(tensor_name, inputs.tensors[tensor_name], kind.pointee)]
    if name not in inputs.scalars:
        raise UnknownInputsError(f"the launch does not say what {name} was")
    value = inputs.scalars[name]
    if not isinstance(value, (bool, int, float)) or isinstance(kind, (PointerType, DescriptorType)):
        raise UnknownInputsError(f"{name} is {value!r} and the kernel takes {kind}")
    return [value]


def _tensor(name: str, data: TensorData, kind: Type) -> TensorInput:
    dtype = dtype_of(kind)
    if dtype.itemsize != data.elements.itemsize:
        raise UnknownInputsError(f"the elements of {name} are {data.arg.dtype} and the kernel takes {kind}")
    return TensorInput(name, kind, data.elements.view(dtype), data.misalignment)
