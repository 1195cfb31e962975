"""Helpers as converted files carry them, run with layouts that are values, to be held against formulas."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from tt2gl.amd_matrix_layouts import Mfma, Wmma
from tt2gl.layouts import Blocked
from tt2gl.matrix_layouts import Mma, Operand
from tt2gl.shared_layouts import NvmmaShared, Swizzled, nvmma_shared
from tt2gl.tensor_memory_layouts import Linear, TensorMemory


def frozen(value: Any) -> Any:
    """Lists as tuples, all the way down: what Gluon's layouts hold as lists, values hold as tuples."""
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def _made(kind: Any) -> Any:
    return lambda *parts, **named: kind(*map(frozen, parts), **{name: frozen(part) for name, part in named.items()})


def _default(shape: list[int], bits: int, transposed: bool = False) -> NvmmaShared:
    return nvmma_shared(shape, bits, transposed)


def _wmma(*parts: Any, **named: Any) -> Wmma:
    return Wmma(*map(frozen, parts), **named)


# What converted files ask Gluon's layout for its fields by: this is as Triton 3.7 has it.
_wmma.__dataclass_fields__ = Wmma.__dataclass_fields__  # type: ignore[attr-defined]


def names(num_warps: int, helpers: tuple[str, ...], **constexprs: Any) -> dict[str, Any]:
    """The names of a converted file: Gluon's layouts, the helpers, a kernel's constexprs. Dtypes are their widths."""
    gl = SimpleNamespace(
        BlockedLayout=_made(Blocked),
        DistributedLinearLayout=_made(Linear),
        DotOperandLayout=_made(Operand),
        NVMMADistributedLayout=_made(Mma),
        NVMMASharedLayout=SimpleNamespace(get_default_for=_default),
        SwizzledSharedLayout=_made(Swizzled),
        amd=SimpleNamespace(AMDMFMALayout=_made(Mfma), AMDWMMALayout=_wmma),
        num_warps=lambda: num_warps,
        float16=16,
    )
    made = {"gl": gl, "gluon": SimpleNamespace(constexpr_function=lambda function: function)}
    made |= {"TensorMemoryLayout": _made(TensorMemory), **constexprs}
    for helper in helpers:
        exec(helper, made)
    return made


def evaluated(source: str, helpers: tuple[str, ...], num_warps: int, **constexprs: Any) -> Any:
    """What a text of a converted file gives in a kernel of so many warps and these constexprs."""
    return eval(source, names(num_warps, helpers, **constexprs))
