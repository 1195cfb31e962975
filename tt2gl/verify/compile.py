"""Compiles kernels to machine code for any target, without a GPU, each in a child process of its own."""

from __future__ import annotations

import functools
import math
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tt2gl import compiler
from tt2gl.children import Outcome
from tt2gl.failures import CompileError, explain
from tt2gl.isolate import map_isolated, preload, printed_so_far, private_triton
from tt2gl.launches import Launch, TensorArg, passed_to
from tt2gl.results import CompileResult, Metrics
from tt2gl.slicing.slices import Slice, load_slice, names_of
from tt2gl.targets import Target, get_target
from tt2gl.verify.mca import step_cycles
from tt2gl.verify.metrics import read_metrics

# The TTGIR is what both kernels are compared in; further texts are sent back only where asked for.
DEFAULT_TEXTS = ("ttgir",)


@dataclass(frozen=True)
class CompileJob:
    """One kernel under one launch for one target.

    `num_stages` replaces the launch's (1 shows Triton's layouts before software pipelining); `texts` are the stages
    to return, by Triton's names: ttir, ttgir, llir, ptx, cubin, amdgcn, hsaco. `estimate`: say, of AMD's kernels, how
    many cycles a step of their loops is estimated to take.
    """

    slice: Slice
    launch: Launch
    target: str
    num_stages: int | None = None
    texts: tuple[str, ...] = DEFAULT_TEXTS
    estimate: bool = False


@dataclass(frozen=True)
class CompiledKernel:
    """What came of a job: its metrics, the texts asked for (binaries as bytes) and Triton's name of the kernel."""

    name: str
    metrics: Metrics
    asm: Mapping[str, Any]


def compile_kernel(
    kernel: Slice, launch: Launch, target: str, *, num_stages: int | None = None, timeout: float = 60.0
) -> CompileResult:
    """Compile one kernel in a child process: its metrics, or one line on why there are none."""
    return compile_many([CompileJob(kernel, launch, target, num_stages)], timeout=timeout)[0]


def compile_many(
    jobs: Sequence[CompileJob],
    *,
    workers: int | None = None,
    timeout: float = 60.0,
    on_done: Callable[[int], None] | None = None,
) -> list[CompileResult]:
    """Compile many kernels at once, `workers` at a time; results in the order of the jobs."""
    outcomes = compile_outcomes(jobs, workers=workers, timeout=timeout, on_done=on_done)
    return [compile_result(outcome, job.target) for outcome, job in zip(outcomes, jobs, strict=True)]


def compile_outcomes(
    jobs: Sequence[CompileJob],
    *,
    workers: int | None = None,
    timeout: float = 60.0,
    on_done: Callable[[int], None] | None = None,
) -> list[Outcome[CompiledKernel]]:
    """As `compile_many`, with the texts of each kernel and all that was printed on a failure."""
    preload()
    note = None if on_done is None else functools.partial(_note, on_done)
    arguments = [(job,) for job in jobs]
    return map_isolated(
        compile_job, arguments, workers=workers, timeout=timeout, on_done=note, family=lambda job: job.target
    )


def _note(on_done: Callable[[int], None], index: int, _outcome: Outcome[CompiledKernel]) -> None:
    on_done(index)


def compile_result(outcome: Outcome[CompiledKernel], target: str) -> CompileResult:
    """An outcome as the report has it; a kernel that asks for more shared memory than there is has failed too."""
    if outcome.value is None:
        return CompileResult(ok=False, error=outcome.error.removeprefix("CompileError: "))
    metrics = outcome.value.metrics
    limit = get_target(target).shared_memory_bytes
    if metrics.shared_bytes > limit:
        # Triton finds this at the first launch, and the compiler never.
        error = f"needs {metrics.shared_bytes} bytes of shared memory a block, and {target} has {limit}"
        return CompileResult(ok=False, metrics=metrics, error=error)
    return CompileResult(ok=True, metrics=metrics)


def compile_job(job: CompileJob) -> CompiledKernel:
    """Compile one job in this process, which must be a child: it edits the environment, and may abort.

    Raises CompileError with one line that names the author's file where Triton says where.
    """
    private_triton()
    target = get_target(job.target)
    folder = Path(tempfile.mkdtemp(prefix="slice-"))
    function = load_slice(job.slice, folder)
    try:
        backend, gpu = compiler.backend_for(target)
        source = compiler.source_for(function, job.launch)
        source.attrs = launch_attributes(source, job.launch, target)
        changes = {} if job.num_stages is None else {"num_stages": job.num_stages}
        options = compiler.options_for(backend, job.launch, **changes)
        asm, noted = compiler.build_machine_code(source, backend, gpu, options)
    except Exception as error:
        raise CompileError(explain(error, job.slice, printed_so_far())) from error
    sources = {name: str(path) for name, path in names_of(job.slice).items()}
    metrics = read_metrics(asm, noted["shared"], sources)
    if job.estimate and "amdgcn" in asm:
        metrics = replace(metrics, step_cycles=step_cycles(asm["amdgcn"], str(target.arch)))
    return CompiledKernel(noted["name"], metrics, {text: asm[text] for text in job.texts if text in asm})


def launch_attributes(source: Any, launch: Launch, target: Target) -> dict[tuple[int, ...], list[list[Any]]]:
    """The specialization attributes of a source's arguments, as Triton's launcher would find them.

    On AMD it also notes tensors under 2 GiB, which is what makes buffer operations legal.
    """
    attributes = {path: list(values) for path, values in source.attrs.items()}
    launch = passed_to(launch, source.fn.arg_names)
    if target.backend == "hip" and launch.args:
        for index, name in enumerate(source.fn.arg_names):
            tensor = launch.args.get(name)
            if isinstance(tensor, TensorArg) and tensor_bytes(tensor) < 2**31:
                attributes.setdefault((index,), []).append(["tt.pointer_range", 32])
    return attributes


def tensor_bytes(tensor: TensorArg) -> int:
    """Bytes from a tensor's first element to its last: what its storage holds at least."""
    bits = re.search(r"\d+", tensor.dtype)
    last = sum((size - 1) * abs(stride) for size, stride in zip(tensor.shape, tensor.stride, strict=True))
    elements = last + 1 if math.prod(tensor.shape) else 0
    return elements * max(int(bits[0]) if bits else 8, 8) // 8
