"""Encodings that Gluon's layouts print as: each is known by its name and parameters, none is left as text."""

# mypy: disallow-untyped-defs=false, disallow-untyped-decorators=false
from __future__ import annotations

from typing import Any

import pytest
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.blackwell import (
    TensorMemoryLayout,
    TensorMemoryScalesLayout,
    allocate_tensor_memory,
)

from tests.simulate.lowered import lowered
from tt2gl.ir.attributes import DialectAttr
from tt2gl.ir.operations import Module
from tt2gl.ir.types import MemDescType, TensorType

LINEAR = gl.constexpr(gl.DistributedLinearLayout([[1], [2]], [[4], [8], [16], [32], [64]], [[128], [256]], [], [512]))
PADDED = gl.constexpr(gl.PaddedSharedLayout.with_identity_for([[32, 4], [128, 8]], [16, 32], [1, 0]))
SHARED_LINEAR = gl.constexpr(gl.SharedLinearLayout([[0, 1], [0, 2], [1, 0], [2, 0]]))
NVMMA = gl.constexpr(gl.NVMMASharedLayout(64, 16, 2, transposed=True))


@gluon.jit
def registers_kernel(x_ptr):
    """Layouts of tensors: to be found, found by the accesses, by bases, sliced."""
    auto = gl.arange(0, 512, gl.AutoLayout())
    gl.store(x_ptr + gl.set_auto_layout(auto, LINEAR), gl.arange(0, 512, LINEAR))
    gl.store(x_ptr + gl.arange(0, 256, gl.CoalescedLayout()), 1)


@gluon.jit
def shared_kernel():
    """Layouts of shared memory."""
    gl.allocate_shared_memory(gl.float16, [16, 32], PADDED)
    gl.allocate_shared_memory(gl.int32, [4, 4], SHARED_LINEAR)
    gl.allocate_shared_memory(gl.float16, [64, 32], NVMMA)
    gl.allocate_shared_memory(gl.float32, [2, 8, 8], gl.SwizzledSharedLayout(1, 1, 1, [1, 0])).index(1)


@gluon.jit
def tensor_memory_kernel():
    """Layouts of tensor memory."""
    allocate_tensor_memory(gl.float32, [2, 128, 64], TensorMemoryLayout([128, 64], col_stride=1)).index(0)
    allocate_tensor_memory(gl.int8, [128, 4], TensorMemoryScalesLayout())


def encodings(module: Module) -> dict[str, DialectAttr]:
    """All encodings of results, by name."""
    kinds: list[Any] = [value.type for operation in module.operation.walk() for value in operation.results]
    found = [kind.encoding for kind in kinds if isinstance(kind, TensorType | MemDescType)]
    return {encoding.name: encoding for encoding in found if encoding is not None}


def test_registers() -> None:
    found = encodings(lowered(registers_kernel, "sm90", {"x_ptr": "*i32"}))
    assert set(found) == {"gluon.auto_encoding", "gluon.coalesced_encoding", "ttg.linear"}
    assert found["gluon.auto_encoding"].parameters == ()
    bases = {"register": ((1,), (2,)), "lane": ((4,), (8,), (16,), (32,), (64,)), "warp": ((128,), (256,)), "block": ()}
    assert dict(found["ttg.linear"].parameters) == bases


def test_shared_memory() -> None:
    module = lowered(shared_kernel, "sm90", {})
    found = encodings(module)
    padded = found["ttg.padded_shared"]
    assert (padded.get("0"), padded.get("order"), padded.get("shape")) == (((32, 4), (128, 8)), (1, 0), (16, 32))
    assert found["ttg.shared_linear"].get("offset") == ((0, 1), (0, 2), (1, 0), (2, 0))
    assert found["ttg.shared_linear"].get("alignment") == 16
    assert found["ttg.nvmma_shared"].get("swizzlingByteWidth") == 64
    assert found["ttg.nvmma_shared"].get("transposed") is True
    assert found["ttg.swizzled_shared"].get("order") == (1, 0)
    (view,) = [o.results[0].type for o in module.operation.walk() if o.name == "ttg.memdesc_index"]
    assert isinstance(view, MemDescType)
    assert (view.shape, view.alloc_shape, view.mutable) == ((8, 8), (8, 8), True)


def test_tensor_memory() -> None:
    found = encodings(lowered(tensor_memory_kernel, "sm100", {}))
    assert [found["ttng.tensor_memory_encoding"].get(name) for name in ("blockM", "blockN", "colStride")] == [
        128,
        64,
        1,
    ]
    assert found["ttng.tensor_memory_scales_encoding"].parameters == ()


@pytest.mark.parametrize("kernel", [shared_kernel, tensor_memory_kernel], ids=["shared", "tensor memory"])
def test_all_of_them_have_names(kernel: Any) -> None:
    found = encodings(lowered(kernel, "sm100", {}))
    assert [encoding for encoding in found.values() if encoding.get("text")] == []
