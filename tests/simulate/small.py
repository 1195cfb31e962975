"""Runs the kernels of `kernels/small_triton.py` on arrays."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tests.simulate.lowered import lowered
from tt2gl.ir.types import FloatType, IntegerType, PointerType, Type
from tt2gl.simulate.api import Argument, Simulation, TensorInput, simulate
from tt2gl.simulate.values import Array

kernels: Any = import_module("tests.simulate.kernels.small_triton")

_NAMES = {"float16": "fp16", "float32": "fp32", "bfloat16": "bf16", "uint8": "u8", "uint32": "u32"}
_KINDS: dict[str, Type] = {"float16": FloatType("f16"), "float32": FloatType("f32"), "bfloat16": FloatType("bf16")}


def simulated(kernel: str, *arguments: Array | int, grid: tuple[int, ...] = (1,), **options: Any) -> Simulation:
    """Run a kernel: tensors and numbers in the order of its parameters; `options` are constexprs, and of `simulate`."""
    function = getattr(kernels, kernel)
    how = {name: options.pop(name) for name in ("arithmetic", "schedule", "limit") if name in options}
    names = [name for name in function.arg_names if name not in options]
    signature, values = {}, list[Argument]()
    for name, argument in zip(names, arguments, strict=True):
        if isinstance(argument, np.ndarray):
            dtype = str(argument.dtype)
            signature[name] = f"*{_NAMES.get(dtype, dtype.replace('int', 'i'))}"
            kind = _KINDS.get(dtype, IntegerType(8 * argument.itemsize))
            values.append(TensorInput(name, kind, argument.ravel()))
        else:
            signature[name] = "i32"
            values.append(argument)
    module = lowered(function, "sm90", signature, **options)
    assert all(isinstance(p.type, PointerType | IntegerType) for p in module.kernel.regions[0].entry.arguments)
    x, y, z = (*grid, 1, 1)[:3]
    return simulate(module, values, (x, y, z), **how)


def results(kernel: str, *arguments: Array | int, **options: Any) -> dict[str, Array]:
    """The tensors after a run that found no fault, by name, in the shapes given."""
    done = simulated(kernel, *arguments, **options)
    assert done.findings == ()
    shapes = [argument.shape for argument in arguments if isinstance(argument, np.ndarray)]
    return {tensor.name: tensor.elements.reshape(shape) for tensor, shape in zip(done.tensors, shapes, strict=True)}
