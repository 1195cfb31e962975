"""What Triton's passes make of a matmul, up to TTGIR: buffer operations, copies to shared memory, tcgen05."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

from tt2gl import compiler
from tt2gl.ir.operations import Module
from tt2gl.ir.parser import parse_module
from tt2gl.ir.types import FloatType
from tt2gl.isolate import preload, run_isolated
from tt2gl.simulate.api import TensorInput, simulate
from tt2gl.targets import fences_copies, get_target

F16 = FloatType("f16")
M, N, K = 128, 128, 144


def _text(target: str, num_warps: int, blocks: dict[str, int]) -> str:
    from triton.compiler.compiler import ASTSource

    kernel: Any = import_module("tests.simulate.kernels.small_pipelines").matmul_kernel
    backend, gpu = compiler.backend_for(get_target(target))
    types = {name: "*fp16" if name.endswith("_ptr") else "i32" for name in kernel.arg_names}
    range_known = [["tt.pointer_range", 32]] if gpu.backend == "hip" else []
    aligned = [["tt.divisibility", 16]]
    attributes = {(index,): aligned + (range_known if index < 3 else []) for index in range(6)}
    source = ASTSource(kernel, types | dict.fromkeys(blocks, "constexpr"), blocks, attributes)
    options = backend.parse_options({"num_warps": num_warps, "num_stages": 3})
    return compiler.generic_text(compiler.build_ttgir(source, backend, gpu, options))


def optimised(target: str, num_warps: int, **blocks: int) -> Module:
    preload()
    outcome = run_isolated(_text, target, num_warps, blocks)
    assert outcome.value is not None, f"{outcome.error}\n{outcome.detail}"
    return parse_module(outcome.value)


@pytest.mark.parametrize("schedule", ["late", "early"])
@pytest.mark.parametrize(
    ("target", "num_warps", "blocks"),
    [
        ("gfx942", 4, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
        ("gfx950", 4, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
        ("gfx950", 8, {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 64}),
        ("gfx1250", 4, {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32}),
        ("sm100", 4, {"BLOCK_M": 128, "BLOCK_N": 64, "BLOCK_K": 32}),
    ],
    ids=["gfx942", "gfx950", "gfx950-halves", "gfx1250", "sm100"],
)
def test_an_optimised_matmul(target: str, num_warps: int, blocks: dict[str, int], schedule: Any) -> None:
    random = np.random.default_rng(0)
    a, b = random.standard_normal((M, K)).astype(np.float16), random.standard_normal((K, N)).astype(np.float16)
    tensors = [TensorInput(name, F16, values.ravel()) for name, values in (("a", a), ("b", b))]
    module = optimised(target, num_warps, **blocks)
    names = {operation.name for operation in module.operation.walk()}
    out = TensorInput("c", F16, np.zeros(M * N, np.float16))
    grid = (M // blocks["BLOCK_M"], N // blocks["BLOCK_N"], 1)
    done = simulate(module, [*tensors, out, M, N, K], grid, schedule=schedule)
    # Triton's passes put no fence between cp.async and the product that reads what it brought; later ones of 3.7 do.
    unfenced = "ttng.tc_gen5_mma" in names and "ttng.fence_async_shared" not in names and fences_copies()
    assert {finding.kind for finding in done.findings} == ({"missing-fence"} if unfenced else set())
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(done.tensors[2].elements.reshape(M, N), wanted, rtol=2e-3, atol=2e-2)
