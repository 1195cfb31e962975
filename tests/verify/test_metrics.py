"""Metrics of whole kernels, on real compilers."""

from __future__ import annotations

from typing import Any

import pytest

from tt2gl.isolate import preload, private_triton, run_isolated
from tt2gl.results import Metrics
from tt2gl.targets import TARGETS, get_target
from tt2gl.verify.metrics import read_metrics

COPY = """
module {
  tt.func public @copy(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
    %a = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %p = tt.addptr %a, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    %v = tt.load %p : tensor<512x!tt.ptr<f32>>
    %b = tt.splat %y : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
    %q = tt.addptr %b, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
    tt.store %q, %v : tensor<512x!tt.ptr<f32>>
    tt.return
  }
}
"""


def _compile_copy(name: str) -> Metrics:
    import tempfile
    from pathlib import Path

    import triton
    from triton.backends.compiler import GPUTarget

    private_triton()
    target = get_target(name)
    path = Path(tempfile.mkdtemp(), "copy.ttir")
    path.write_text(COPY)
    gpu: Any = GPUTarget(target.backend, target.arch, target.warp_size)
    kernel = triton.compile(str(path), target=gpu, options={"num_warps": 4})
    return read_metrics(kernel.asm, kernel.metadata.shared)


@pytest.mark.parametrize("name", TARGETS)
def test_metrics_of_a_copy(name: str) -> None:
    preload()
    outcome = run_isolated(_compile_copy, name)
    metrics = outcome.value
    assert metrics is not None, outcome
    width = "64" if get_target(name).warp_size == 64 else "128"
    assert (metrics.global_loads, metrics.global_stores) == ({width: 1}, {width: 1})
    assert metrics.registers is not None
    assert 2 < metrics.registers < 40
    assert (metrics.spills, metrics.shared_bytes, metrics.convert_layouts, metrics.mma) == (0, 0, 0, {})
    assert 32 < metrics.code_bytes < 2048
