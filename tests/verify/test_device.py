"""What of a GPU run can be tested without one: which arguments a launch gets, what is told."""

from __future__ import annotations

import fcntl
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tt2gl.children import Outcome
from tt2gl.launches import DtypeValue, Launch, Options, TensorArg
from tt2gl.results import DeviceResult
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import read_source
from tt2gl.verify import device, timing
from tt2gl.verify.device import (
    DeviceJob,
    DeviceRun,
    FileKernel,
    Participant,
    call_arguments,
    device_diagnostics,
    load_kernel,
    run_on_device,
)
from tt2gl.verify.equality import check_equality
from tt2gl.verify.tensors import DeviceInputs

LAUNCH = Launch(
    file="k.py",
    kernel="k",
    signature={"x": "*fp32", "n": "i32", "BLOCK": "constexpr", "DTYPE": "constexpr"},
    constexprs={"BLOCK": 64, "DTYPE": DtypeValue("fp16")},
    options=Options(num_warps=8, num_stages=2, extra={"maxnreg": 128, "waves_per_eu": 2}),
    grid=(1, 1, 1),
    args={"x": TensorArg("float32", (64,), (1,)), "n": 64},
)
CUDA_OPTIONS = frozenset({"num_warps", "num_stages", "num_ctas", "maxnreg"})


def function(*names: str, gluon: bool = False) -> Any:
    return SimpleNamespace(arg_names=list(names), __globals__={}, is_gluon=lambda: gluon)


def inputs() -> DeviceInputs:
    view: Any = "the tensor"
    return DeviceInputs({"x": SimpleNamespace(view=view)}, {"n": 64}, {})  # type: ignore[dict-item]


def test_a_launch_gets_tensors_scalars_constexprs_and_the_options_its_backend_knows() -> None:
    import triton.language as tl

    assert call_arguments(function("x", "n", "BLOCK", "DTYPE"), LAUNCH, inputs(), CUDA_OPTIONS) == {
        "num_warps": 8,
        "num_stages": 2,
        "num_ctas": 1,
        "maxnreg": 128,
        "x": "the tensor",
        "n": 64,
        "BLOCK": 64,
        "DTYPE": tl.float16,
    }


def test_a_parameter_of_the_port_alone_keeps_its_default() -> None:
    assert "NUM_BUFFERS" not in call_arguments(function("x", "n", "NUM_BUFFERS"), LAUNCH, inputs(), CUDA_OPTIONS)


def test_a_parameter_called_like_an_option_is_no_option() -> None:
    launch = replace(LAUNCH, constexprs={"num_stages": 5})
    arguments = call_arguments(function("x", "n", "num_stages"), launch, inputs(), CUDA_OPTIONS)
    assert arguments["num_stages"] == 5


def test_a_port_is_as_deep_as_the_launch_says_unless_the_author_has_a_number_of_that_name() -> None:
    port = function("x", "n", "NUM_STAGES", gluon=True)
    assert call_arguments(port, LAUNCH, inputs(), CUDA_OPTIONS)["NUM_STAGES"] == 2
    launch = replace(LAUNCH, constexprs={"NUM_STAGES": 5})
    assert call_arguments(port, launch, inputs(), CUDA_OPTIONS)["NUM_STAGES"] == 5


KERNEL = """
import triton


@triton.jit
def k(x):
    pass
"""


def cut(tmp_path: Path) -> Slice:
    path = tmp_path / "k.py"
    path.write_text(KERNEL)
    return slice_kernel(read_source(path), "k")


def test_kernels_load_from_slices_and_from_files(tmp_path: Path) -> None:
    kernel = cut(tmp_path)
    assert load_kernel(kernel, tmp_path / "loaded").arg_names == ["x"]
    assert load_kernel(FileKernel(str(tmp_path / "k.py"), "k"), tmp_path).arg_names == ["x"]


# -------------------------------------------------------------------------------------------------------- timing


# ---------------------------------------------------------------------------------------------- what is told


def run(*, equal: bool) -> DeviceRun:
    return DeviceRun(DeviceResult("GPU", equal, equal, 0.0, 1.0, 1.0), "" if equal else "y: element 3", 0.0, 20, 1)


@pytest.mark.parametrize(
    ("outcome", "code", "words"),
    [
        (Outcome("ok", run(equal=False)), "TTG412", "y: element 3"),
        (Outcome("error", error="UnknownInputsError: the launch has no grid recorded"), "TTG411", "no grid"),
        (Outcome("error", error="RunError: the Gluon kernel failed: X"), "TTG410", "failed: the Gluon kernel failed"),
        (Outcome("crash", error="SIGSEGV"), "TTG410", "SIGSEGV"),
        (Outcome("timeout", error="took longer than 9 s"), "TTG410", "longer than 9 s"),
    ],
)
def test_every_outcome_but_equality_is_a_diagnostic(outcome: Outcome[DeviceRun], code: str, words: str) -> None:
    (diagnostic,) = device_diagnostics(outcome, "k.py", 5)
    assert (diagnostic.code, diagnostic.line) == (code, 5)
    assert words in diagnostic.message
    assert diagnostic.hint


def test_equality_needs_no_diagnostic() -> None:
    assert device_diagnostics(Outcome("ok", run(equal=True)), "k.py") == ()


@pytest.mark.parametrize("unknown", [{"args": None}, {"grid": None}, {"origin": "guessed"}])
def test_what_is_not_known_well_enough_is_not_run(unknown: dict[str, Any], tmp_path: Path) -> None:
    participant = Participant(cut(tmp_path), replace(LAUNCH, **unknown))
    outcome = run_on_device(DeviceJob(participant, participant))
    assert outcome.error.startswith("UnknownInputsError: the launch ")


@pytest.mark.slow
def test_without_a_gpu_the_run_says_so(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    participant = Participant(cut(tmp_path), LAUNCH)
    outcome = run_on_device(DeviceJob(participant, participant))
    assert (outcome.kind, outcome.error) == ("error", "RunError: torch finds no GPU")


# ------------------------------------------------------------- a whole job, with the CPU in place of the GPU


class FakeKernel:
    """Launched like a JITFunction; does its work with torch."""

    arg_names = ("x", "n", "BLOCK", "DTYPE")
    __globals__: dict[str, Any] = {}  # noqa: RUF012 (as functions have it)

    def __init__(self, factor: float) -> None:
        self.factor = factor
        self.launches = 0

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        assert grid == (1, 1, 1)
        return self.launch

    def launch(self, x: Any, n: int, **others: Any) -> None:
        assert (n, others["BLOCK"], others["num_warps"]) == (64, 64, 8)
        self.launches += 1
        x.mul_(self.factor)


class FakeEvent:
    def __init__(self, enable_timing: bool) -> None:
        assert enable_timing

    def record(self) -> None:
        self.time = time.perf_counter()

    def elapsed_time(self, end: FakeEvent) -> float:
        return 1000 * (end.time - self.time)


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, FakeKernel]:
    torch = pytest.importorskip("torch")
    kernels = {"triton": FakeKernel(2.0), "gluon": FakeKernel(2.0)}
    monkeypatch.setattr(device, "_DEVICE", "cpu")
    monkeypatch.setattr(device, "load_kernel", lambda kernel, folder: kernels[kernel.name])
    monkeypatch.setattr(device, "known_options", lambda: CUDA_OPTIONS)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "CPU")
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace(L2_cache_size=1))
    monkeypatch.setattr(torch.cuda, "Event", FakeEvent)
    monkeypatch.setattr(timing, "_FLUSH_BYTES", 1 << 16)
    monkeypatch.setattr(timing, "_TIMING_SECONDS", 0.01)
    return kernels


JOB = DeviceJob(Participant(FileKernel("", "triton"), LAUNCH), Participant(FileKernel("", "gluon"), LAUNCH))


def test_a_job_of_equal_kernels(cpu: dict[str, FakeKernel]) -> None:
    found = device.run_job(JOB)
    assert (found.result.equal, found.result.bitwise, found.result.max_error) == (True, True, 0.0)
    assert found.result.triton_ms > 0
    assert found.result.gluon_ms > 0
    assert found.repeats >= 20
    assert found.bytes == 256
    assert cpu["gluon"].launches > found.repeats


def test_a_job_of_different_kernels(cpu: dict[str, FakeKernel]) -> None:
    cpu["gluon"].factor = 2.1
    found = device.run_job(JOB)
    assert not found.result.equal
    assert found.result.max_error == pytest.approx(0.05, rel=0.01)
    assert found.reason.startswith("x: element")


def test_jobs_compare_beside_each_other_and_whoever_times_is_alone(
    cpu: dict[str, FakeKernel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = tmp_path / "turns"
    seen: list[str] = []

    def others_may_hold(kind: int) -> bool:
        with turns.open("a") as file:
            try:
                fcntl.flock(file, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True

    def note(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            seen.append(f"{name} {others_may_hold(fcntl.LOCK_SH):d} {others_may_hold(fcntl.LOCK_EX):d}")
            return function(*args)

        return noted

    monkeypatch.setattr(device, "check_equality", note("compares", check_equality))
    monkeypatch.setattr(device, "_time", note("times", device._time))
    device.run_job(replace(JOB, turns=turns))
    assert seen == ["compares 1 0", "times 0 0"]
    assert others_may_hold(fcntl.LOCK_EX)


def test_a_kernel_that_fails_is_named(cpu: dict[str, FakeKernel], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered\n")

    monkeypatch.setattr(cpu["gluon"], "launch", fail)
    with pytest.raises(device.RunError, match="the Gluon kernel failed: RuntimeError: CUDA error: an illegal memory"):
        device.run_job(JOB)


def test_a_rival_that_does_not_run_is_told_and_spares_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    torch: Any = ModuleType("torch")
    torch.cuda = SimpleNamespace(synchronize=lambda: None)
    monkeypatch.setitem(sys.modules, "torch", torch)

    def refuse() -> None:
        raise RuntimeError("no kernel\nfor this GPU")

    def works() -> None:
        pass

    run, errors = device.that_run(lambda launch, inputs: {"A": refuse, "B": works}, LAUNCH, inputs())
    assert run == {"B": works}
    assert errors == {"A": "RuntimeError: for this GPU"}


def test_rivals_that_cannot_even_be_made_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))

    def make(launch: Launch, inputs: DeviceInputs) -> dict[str, Callable[[], object]]:
        raise KeyError("a_ptr")

    assert device.that_run(make, LAUNCH, inputs()) == ({}, {"all": "KeyError: 'a_ptr'"})
