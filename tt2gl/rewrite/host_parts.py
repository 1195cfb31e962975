"""A kernel that takes the parts of the host's tensor descriptors, under the decorator that takes those apart.

@triton.jit                                       # before
def kernel(a_desc):

@with_parts_of(a_desc=2)                          # after
@gluon.jit
def kernel(a_desc_base, a_desc_size_0, a_desc_size_1, a_desc_stride_0,
           a_desc_block_0: gl.constexpr, a_desc_block_1: gl.constexpr):

The host passes descriptors as before. The decorator stands within the author's, which know the kernel by the author's
parameters, and around those of a port, which ask for the kernel's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from tt2gl.rewrite.build import expression
from tt2gl.words import HOST_PARTS

HOST_PARTS_SOURCE = f'''def {HOST_PARTS}(**ranks):
    """What gives a kernel, for each tensor descriptor of its host, the base, sizes, strides and tile of that."""

    def parts(name, rank):
        strides = [f"{{name}}_stride_{{dim}}" for dim in range(rank - 1)]
        return [
            f"{{name}}_base", *(f"{{name}}_size_{{dim}}" for dim in range(rank)), *strides,
            *(f"{{name}}_block_{{dim}}" for dim in range(rank)),
        ]

    def taken_apart(name, value):
        assert getattr(value, "padding", "zero") == "zero", "the kernel has zeros outside"
        assert not getattr(value, "round_f32_to_tf32", False), "the kernel does not round what it loads"
        values = [value.base, *value.shape, *value.strides[:-1], *value.block_shape]
        return dict(zip(parts(name, ranks[name]), values, strict=True))

    class Kernel(KernelInterface):
        def __init__(self, kernel):
            known = {{part: name for name, rank in ranks.items() for part in parts(name, rank)}}
            self.fn = kernel
            self.arg_names = list(dict.fromkeys(known.get(name, name) for name in kernel.arg_names))

        def run(self, *args, **kwargs):
            given = {{**dict(zip(self.arg_names, args)), **kwargs}}
            for name in ranks:
                given |= taken_apart(name, given.pop(name))
            return self.fn.run(**given)

    return Kernel
'''


def with_parts(function: cst.FunctionDef, ranks: Sequence[tuple[str, int]], place: int) -> cst.FunctionDef:
    """A kernel under its decorator, with that at a place among the others."""
    told = ", ".join(f"{name}={rank}" for name, rank in ranks)
    given = cst.Decorator(expression(f"{HOST_PARTS}({told})"))
    return function.with_changes(decorators=[*function.decorators[:place], given, *function.decorators[place:]])
