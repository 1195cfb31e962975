"""Gluon itself takes the layouts: a file with every helper and every inline text compiles, on each Triton."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tt2gl.compiler import backend_for, build_ttgir
from tt2gl.isolate import preload, run_isolated
from tt2gl.matrix_layouts import (
    BATCHED_MMA_V2_SOURCE,
    CHAINED_WGMMA_SOURCE,
    MMA_V2_SOURCE,
    WGMMA_SOURCE,
    fma_source,
)
from tt2gl.shared_layouts import SWIZZLED_SOURCE
from tt2gl.targets import get_target
from tt2gl.tensor_memory_layouts import (
    LOADED_FOR_ROWS_SOURCE,
    LOADED_IN_PARTS_SOURCE,
    LOADED_SOURCE,
    TENSOR_MEMORY_SOURCE,
)

IMPORTS = """from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import mma_v2
from triton.experimental.gluon.language.nvidia.blackwell import TensorMemoryLayout, allocate_tensor_memory
from triton.experimental.gluon.language.nvidia.hopper import warpgroup_mma
"""

KERNELS = '''@gluon.jit
def store(x_ptr, value, M: gl.constexpr, N: gl.constexpr, layout: gl.constexpr):
    """Uses the value, which has the layout."""
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))[:, None] * N
    gl.store(x_ptr + rows + gl.arange(0, N, gl.SliceLayout(0, layout))[None, :], value)


@gluon.jit
def ampere_kernel(x_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """`mma_v2` of a tile in swizzled memory."""
    BITS: gl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth
    ACC: gl.constexpr = mma_v2_layout([M, N], gl.num_warps())
    A: gl.constexpr = gl.DotOperandLayout(0, ACC, k_width=32 // x_ptr.dtype.element_ty.primitive_bitwidth)
    RING: gl.constexpr = swizzled_layout([M, K], [1, 0], BITS, k_dim=1, k_width=A.k_width)
    a = gl.allocate_shared_memory(x_ptr.dtype.element_ty, [M, K], RING).load(A)
    b = gl.full([K, N], 1.0, x_ptr.dtype.element_ty, gl.DotOperandLayout(1, ACC, k_width=A.k_width))
    acc = mma_v2(a, b, gl.zeros([M, N], gl.float32, ACC))
    CHAIN: gl.constexpr = gl.NVMMADistributedLayout(
        [2, 0], [gl.num_warps(), 1] if M >= N else [1, gl.num_warps()], [16, 8]
    )
    store(x_ptr, gl.convert_layout(acc, CHAIN), M, N, CHAIN)
    FMA: gl.constexpr = fma_layout([M, N], gl.num_warps())
    store(x_ptr, gl.convert_layout(acc, FMA), M, N, FMA)
    BATCHED: gl.constexpr = batched_mma_v2_layout([4, M, N], gl.num_warps())
    total = gl.sum(gl.zeros([4, M, N], gl.float32, BATCHED), 0)
    store(x_ptr, total, M, N, gl.SliceLayout(0, BATCHED))


@gluon.jit
def hopper_kernel(x_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """`warpgroup_mma` of tiles in memory for tensor cores."""
    ACC: gl.constexpr = wgmma_layout([M, N], gl.num_warps(), 16)
    A: gl.constexpr = gl.NVMMASharedLayout.get_default_for([M, K], gl.float16)
    B: gl.constexpr = gl.NVMMASharedLayout.get_default_for([K, N], x_ptr.dtype.element_ty, transposed=True)
    a = gl.allocate_shared_memory(gl.float16, [M, K], A)
    b = gl.allocate_shared_memory(gl.float16, [K, N], B)
    acc = warpgroup_mma(a, b, gl.zeros([M, N], gl.float32, ACC))
    CHAIN: gl.constexpr = chained_wgmma_layout([M, N], gl.num_warps(), 16)
    store(x_ptr, gl.convert_layout(acc, CHAIN), M, N, CHAIN)
    INLINE: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 16])
    store(x_ptr, gl.convert_layout(acc, INLINE), M, N, INLINE)


@gluon.jit
def blackwell_kernel(x_ptr, M: gl.constexpr, N: gl.constexpr, K: gl.constexpr):
    """Loads of an accumulator in tensor memory."""
    memory = allocate_tensor_memory(gl.float32, [M, N], tensor_memory_layout([M, N]))
    LOADED: gl.constexpr = loaded_layout([M, N], gl.num_warps())
    store(x_ptr, memory.load(LOADED), M, N, LOADED)
    if gl.num_warps() == 8 and M == 128:
        ROWS: gl.constexpr = loaded_for_rows_layout([M, N], gl.num_warps())
        store(x_ptr, memory.load(ROWS), M, N, ROWS)
    PARTS: gl.constexpr = loaded_in_parts_layout([M, N], gl.num_warps(), 2)
    store(x_ptr, memory.load(PARTS), M, N, PARTS)
    if gl.num_warps() == 4 and M > 64:
        INLINE: gl.constexpr = gl.BlockedLayout([1, N], [32, 1], [gl.num_warps(), 1], [0, 1])
        store(x_ptr, memory.load(INLINE), M, N, INLINE)
'''

HELPERS = (
    MMA_V2_SOURCE,
    BATCHED_MMA_V2_SOURCE,
    WGMMA_SOURCE,
    CHAINED_WGMMA_SOURCE,
    fma_source(32),
    SWIZZLED_SOURCE,
    TENSOR_MEMORY_SOURCE,
    LOADED_SOURCE,
    LOADED_FOR_ROWS_SOURCE,
    LOADED_IN_PARTS_SOURCE,
)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The file's module."""
    path = Path(tmp_path_factory.mktemp("helpers")) / "helpers_gluon.py"
    path.write_text("\n\n".join((IMPORTS, *HELPERS, KERNELS)))
    spec = importlib.util.spec_from_file_location("helpers_gluon", path)
    assert spec is not None
    assert spec.loader is not None
    preload()
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(kernel: Any, target: str, constexprs: Mapping[str, int], num_warps: int) -> str:
    """The module after Gluon's passes. For a child process."""
    from triton.experimental.gluon._runtime import GluonASTSource

    backend, gpu = backend_for(get_target(target))
    signature = {name: "*fp16" if name == "x_ptr" else "constexpr" for name in kernel.arg_names}
    source = GluonASTSource(kernel, signature, dict(constexprs), {})
    return str(build_ttgir(source, backend, gpu, backend.parse_options({"num_warps": num_warps})))


@pytest.mark.parametrize(
    ("name", "target", "shape", "warps", "expected"),
    [
        ("ampere", "sm80", (128, 64, 32), 4, "warpsPerCTA = [2, 2], instrShape = [16, 8]"),
        ("ampere", "sm120", (32, 64, 32), 8, "warpsPerCTA = [4, 1, 2], instrShape = [1, 16, 8]"),
        ("hopper", "sm90", (64, 128, 64), 4, "warpsPerCTA = [4, 1], instrShape = [16, 128, 16]"),
        ("hopper", "sm90", (64, 64, 64), 8, "warpsPerCTA = [4, 2], instrShape = [16, 32, 16]"),
        ("blackwell", "sm100", (128, 64, 64), 4, "blockM = 128, blockN = 64"),
        ("blackwell", "sm100", (128, 64, 64), 8, "warp = [[32, 0], [64, 0], [16, 0]]"),
        ("blackwell", "sm100", (64, 128, 64), 8, "threadsPerWarp = [16, 2]"),
        ("blackwell", "sm100", (256, 128, 64), 4, "blockM = 128, blockN = 128"),
    ],
)
def test_gluon_takes_every_layout(
    kernels: Any, name: str, target: str, shape: tuple[int, int, int], warps: int, expected: str
) -> None:
    constexprs = dict(zip("MNK", shape, strict=True))
    outcome = run_isolated(compiled, getattr(kernels, f"{name}_kernel"), target, constexprs, warps)
    assert outcome.value is not None, f"{outcome.error}\n{outcome.detail}"
    assert expected in outcome.value
