"""Kernels compile offline, and those that do not say why in one line at the author's place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tt2gl import isolate
from tt2gl.children import Outcome
from tt2gl.launches import DtypeValue, Launch, Options, TensorArg
from tt2gl.results import CompileResult, Metrics
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import read_source
from tt2gl.targets import TARGETS
from tt2gl.verify.compile import (
    CompiledKernel,
    CompileJob,
    compile_kernel,
    compile_many,
    compile_outcomes,
    compile_result,
    tensor_bytes,
)

TRITON = '''
import triton
import triton.language as tl


@triton.jit
def helper(x):
    return tl.dot(x, x[0])


@triton.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr, DTYPE: tl.constexpr = tl.float32, EXTRA: tl.constexpr = None):
    """Doubles."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, (x * factor).to(DTYPE), mask=offsets < n)


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr, STEP: tl.constexpr):
    m = tl.arange(0, BLOCK)
    k = tl.arange(0, STEP)
    a = a_ptr + m[:, None] * K + k[None, :]
    b = b_ptr + k[:, None] * BLOCK + m[None, :]
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(0, K, STEP):
        acc = tl.dot(tl.load(a), tl.load(b), acc)
        a += STEP
        b += STEP * BLOCK
    tl.store(c_ptr + m[:, None] * BLOCK + m[None, :], acc)


@triton.jit
def wrong_name(x_ptr):
    tl.store(x_ptr,
             missing_name)


@triton.jit
def wrong_helper(x_ptr):
    tl.store(x_ptr, helper(tl.arange(0, 16)))
'''

GLUON = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def scale(x_ptr, y_ptr, n, factor, BLOCK: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([8], [32], [4], [0])
    offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout)
    x = gl.load(x_ptr + offsets, mask=offsets < n)
    gl.store(y_ptr + offsets, x * factor, mask=offsets < n)
"""

SCALE = Launch(
    file="kernels.py",
    kernel="scale",
    signature={"x_ptr": "*fp16", "y_ptr": "*fp16", "n": "i32", "factor": "fp32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 2048},
    divisible_by_16=("x_ptr", "y_ptr", "n"),
)
MATMUL = Launch(
    file="kernels.py",
    kernel="matmul",
    signature={"a_ptr": "*fp16", "b_ptr": "*fp16", "c_ptr": "*fp32", "K": "i32"}
    | {"BLOCK": "constexpr", "STEP": "constexpr"},
    constexprs={"BLOCK": 128, "STEP": 64},
    divisible_by_16=("a_ptr", "b_ptr", "c_ptr", "K"),
)


@pytest.fixture
def cut(tmp_path: Path) -> object:
    def slice_of(kernel: str, text: str = TRITON) -> Slice:
        path = tmp_path / "kernels.py"
        path.write_text(text)
        return slice_kernel(read_source(path), kernel)

    return slice_of


def pointer_launch(kernel: str) -> Launch:
    return Launch("kernels.py", kernel, {"x_ptr": "*fp32"}, {})


@pytest.mark.parametrize("target", TARGETS)
def test_a_triton_kernel_compiles_for_every_target(cut, target: str) -> None:  # type: ignore[no-untyped-def]
    result = compile_kernel(cut("scale"), SCALE, target)
    assert result.ok, result.error
    assert result.metrics is not None
    assert max(map(int, result.metrics.global_loads)) == 128


def test_a_gluon_kernel_compiles_alike(cut) -> None:  # type: ignore[no-untyped-def]
    triton, gluon = compile_many(
        [CompileJob(cut("scale"), SCALE, "sm90"), CompileJob(cut("scale", GLUON), SCALE, "sm90")]
    )
    assert triton.metrics is not None
    assert gluon.metrics is not None
    assert gluon.metrics.global_loads == triton.metrics.global_loads


def test_a_dtype_and_defaults_are_constexprs(cut) -> None:  # type: ignore[no-untyped-def]
    launch = Launch(
        "kernels.py",
        "scale",
        {**SCALE.signature, "DTYPE": "constexpr"},
        {"BLOCK": 512, "DTYPE": DtypeValue("bf16")},
    )
    (outcome,) = compile_outcomes([CompileJob(cut("scale"), launch, "sm90", texts=("ttgir", "ptx"))])
    assert outcome.value is not None, outcome
    assert set(outcome.value.asm) == {"ttgir", "ptx"}
    assert "bf16" in outcome.value.asm["ttgir"]
    assert outcome.value.name == "scale"


def test_num_stages_can_be_replaced(cut) -> None:  # type: ignore[no-untyped-def]
    three, one = compile_many(
        [CompileJob(cut("matmul"), MATMUL, "sm90"), CompileJob(cut("matmul"), MATMUL, "sm90", num_stages=1)]
    )
    assert three.metrics is not None
    assert one.metrics is not None
    assert three.metrics.async_copies > 0
    assert one.metrics.async_copies == 0
    assert any(name.startswith("wgmma.m64n128k16") for name in one.metrics.mma)


def test_too_much_shared_memory_is_a_failure(cut) -> None:  # type: ignore[no-untyped-def]
    launch = Launch(**{**vars(MATMUL), "options": Options(num_stages=9)})
    result = compile_kernel(cut("matmul"), launch, "sm80")
    assert not result.ok
    assert result.metrics is not None
    assert result.error == f"needs {result.metrics.shared_bytes} bytes of shared memory a block, and sm80 has 166912"


def test_small_tensors_become_buffer_operations_on_amd(cut) -> None:  # type: ignore[no-untyped-def]
    tensor = TensorArg("float16", (4096,), (1,))
    launch = Launch(**{**vars(SCALE), "args": {"x_ptr": tensor, "y_ptr": tensor, "n": 4096, "factor": 2.0}})
    (outcome,) = compile_outcomes([CompileJob(cut("scale"), launch, "gfx942", texts=("amdgcn",))])
    assert outcome.value is not None, outcome
    assert "buffer_load_dwordx4" in outcome.value.asm["amdgcn"]


def test_an_error_names_the_author_s_line_and_the_cause(cut) -> None:  # type: ignore[no-untyped-def]
    result = compile_kernel(cut("wrong_name"), pointer_launch("wrong_name"), "sm90")
    assert result.error is not None
    line = TRITON.splitlines().index("             missing_name)") + 1
    assert result.error.startswith(f"kernels.py:{line}:13: ")
    assert result.error.endswith(": NameError: missing_name is not defined")
    assert "\n" not in result.error


def test_an_error_in_a_helper_names_the_helper_s_line(cut) -> None:  # type: ignore[no-untyped-def]
    result = compile_kernel(cut("wrong_helper"), pointer_launch("wrong_helper"), "sm90")
    assert result.error is not None
    line = TRITON.splitlines().index("    return tl.dot(x, x[0])") + 1
    assert result.error.startswith(f"kernels.py:{line}:")


@pytest.mark.parametrize("reduced", [False, True], ids=["arange", "reduction"])
def test_layouts_for_other_lanes_are_named(cut, reduced: bool) -> None:  # type: ignore[no-untyped-def]
    # MLIR's verifier fails an assertion of Triton's or the parser, which say nothing; it prints the reason.
    text = GLUON.replace("x * factor", "x - gl.max(x, 0)") if reduced else GLUON
    result = compile_kernel(cut("scale", text), SCALE, "gfx942")
    assert result.error is not None
    line = text.splitlines().index(next(line for line in text.splitlines() if ("max" if reduced else "arange") in line))
    assert result.error.startswith(f"kernels.py:{line + 1}:")
    assert result.error.endswith("Layout has 32 threads per warp, but the module specifies 64 threads per warp")
    assert "\n" not in result.error


def test_a_crash_is_an_error_of_one_line() -> None:
    def abort() -> CompiledKernel:
        os.write(2, b"LLVM ERROR: Cannot select\n")
        os.abort()

    result = compile_result(isolate.run_isolated(abort), "sm90")
    assert result == CompileResult(ok=False, error="SIGABRT: LLVM ERROR: Cannot select")


def test_shared_memory_up_to_the_limit_is_fine() -> None:
    metrics = Metrics(shared_bytes=232448, registers=1, spills=0, code_bytes=1, convert_layouts=0)
    assert compile_result(Outcome("ok", CompiledKernel("k", metrics, {})), "sm90").ok


def test_the_user_s_cache_and_environment_are_left_alone(  # type: ignore[no-untyped-def]
    cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    assert compile_kernel(cut("scale"), SCALE, "sm90").ok
    assert not cache.exists()
    assert os.environ["TRITON_CACHE_DIR"] == str(cache)


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        (TensorArg("float16", (4, 8), (8, 1)), 64),
        (TensorArg("float32", (4, 8), (0, 1)), 32),
        (TensorArg("bool", (3,), (1,)), 3),
        (TensorArg("float8_e4m3fn", (3,), (1,)), 3),
        (TensorArg("bfloat16", (0, 8), (8, 1)), 0),
    ],
)
def test_bytes_of_a_tensor(tensor: TensorArg, size: int) -> None:
    assert tensor_bytes(tensor) == size
