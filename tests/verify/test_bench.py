"""The benchmark's host half for real, with conversion and GPU replaced: what is chosen, compiled, written, printed."""

from __future__ import annotations

import importlib.util
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tt2gl.children import Outcome
from tt2gl.launch_file import write_launches
from tt2gl.launches import Launch, TensorArg
from tt2gl.results import Conversion, DeviceResult, KernelReport
from tt2gl.verify.device import DeviceJob, DeviceRun, FileKernel

BENCH = Path(__file__).parents[2] / "bench" / "run.py"

SOURCE = """
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x * 2, mask=offsets < n)


@triton.jit
def kept(x_ptr, n, BLOCK: tl.constexpr):
    tl.store(x_ptr, n)
"""


def launch(kernel: str, count: int) -> Launch:
    return Launch(
        file="k.py",
        kernel=kernel,
        signature={"x_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 512},
        divisible_by_16=("x_ptr", "n"),
        grid=(1, 1, 1),
        args={"x_ptr": TensorArg("float32", (count,), (1,)), "n": count},
    )


def fake_convert(path: Path, **_: Any) -> Conversion:
    reports = (
        KernelReport("k.py", "double", "sm90", 0, "converted"),
        KernelReport("k.py", "double", "sm90", 1, "converted"),
        KernelReport("k.py", "kept", "sm90", 0, "kept"),
    )
    return Conversion(str(path), SOURCE, SOURCE, reports)


def fake_run(job: DeviceJob, timeout: float) -> Outcome[DeviceRun]:
    if isinstance(job.port.kernel, FileKernel):
        return Outcome("crash", error="SIGABRT")
    result = DeviceResult("GPU", True, False, 1e-7, 0.2, 0.1)
    return Outcome("ok", DeviceRun(result, "", 0.01, 50, 4096, {"slow": 0.3, "quick": 0.15}, {"broken": "no"}))


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    stub: Any = ModuleType("tt2gl.convert")
    stub.convert = fake_convert
    monkeypatch.setitem(sys.modules, "tt2gl.convert", stub)
    spec = importlib.util.spec_from_file_location("bench_run", BENCH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_run", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "gpu_present", lambda commit: {"gpu": "GPU", "commit": commit})
    monkeypatch.setattr(module, "run_on_device", fake_run)
    return module


def test_a_run_writes_the_document_and_prints_the_table(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    launches = tmp_path / "l.json"
    write_launches(launches, [launch("double", 64), launch("double", 4096), launch("kept", 64)])
    out = tmp_path / "out"
    options = ["--launches", str(launches), "--root", str(tmp_path), "--target", "sm90", "--commit", "abc"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(out), *options])
    assert bench.main() == 0
    document = json.loads((out / "sm90.json").read_text())
    assert document["environment"] == {"gpu": "GPU", "commit": "abc"}
    double, kept = document["kernels"]
    assert (double["kernel"], double["launch"], kept["kernel"]) == ("double", 1, "kept")
    assert double["compile"]["triton"]["metrics"]["global_loads"] == {"128": 1}
    assert double["device"]["speedup"] == 2.0
    assert double["device"]["shape"] == "4096 float32"
    assert double["device"]["rivals"] == {"slow": 0.3, "quick": 0.15}
    assert double["device"]["rival_errors"] == {"broken": "no"}
    assert double["device"]["straw_man"]["error"].startswith("does not run: SIGABRT")
    assert "device" not in kept
    printed = capsys.readouterr().out
    assert "k:double" in printed
    assert "1.50 quick" in printed
    assert "k:kept" in printed
    assert printed.rstrip().endswith("1 of 2 equal; Triton's time over Gluon's: geometric mean 2.000, least 2.000")
    assert (out / "translated" / "k_double.py").read_text().count("def double") == 1


def test_the_translator_may_be_left_out_and_no_launch_is_lost_without_a_word(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    write_launches(tmp_path / "l.json", [launch("double", 64), launch("missing", 64)])
    out = tmp_path / "out"
    options = ["--launches", str(tmp_path / "l.json"), "--root", str(tmp_path), "--target", "sm90", "--no-translator"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(out), *options])
    assert bench.main() == 0
    (double,) = json.loads((out / "sm90.json").read_text())["kernels"]
    assert double["device"]["straw_man"] == {"runs": False, "error": "does not translate: not asked for"}
    assert "k.py gave no missing to measure" in capsys.readouterr().err


def test_the_translator_gets_a_sixth_of_the_time_as_some_translations_are_never_compiled(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    write_launches(tmp_path / "l.json", [launch("double", 64)])
    limits: list[float] = []

    def noting(job: DeviceJob, timeout: float) -> Outcome[DeviceRun]:
        limits.append(timeout)
        return fake_run(job, timeout)

    monkeypatch.setattr(bench, "run_on_device", noting)
    options = ["--launches", str(tmp_path / "l.json"), "--root", str(tmp_path), "--target", "sm90", "--timeout", "60"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path), "--at-once", "2", *options])
    assert bench.main() == 0
    assert limits == [120.0, 20.0]


def test_what_fails_beside_others_is_tried_again_by_itself_and_comes_last(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "k.py").write_text(SOURCE)
    write_launches(tmp_path / "l.json", [launch("double", 64), launch("double", 4096)])
    tried: list[tuple[int, ...]] = []

    def lacks_memory_once(job: DeviceJob, timeout: float) -> Outcome[DeviceRun]:
        (tensor,) = (each for each in (job.port.launch.args or {}).values() if isinstance(each, TensorArg))
        tried.append(tensor.shape)
        return Outcome("error", error="out of memory") if tried == [(64,)] else fake_run(job, timeout)

    monkeypatch.setattr(bench, "run_on_device", lacks_memory_once)
    options = ["--launches", str(tmp_path / "l.json"), "--root", str(tmp_path), "--target", "sm90", "--no-translator"]
    monkeypatch.setattr(sys, "argv", ["run.py", "--out", str(tmp_path), "--all", *options])
    # In order, so that it is the first that fails.
    monkeypatch.setattr(bench, "ThreadPoolExecutor", lambda count: ThreadPoolExecutor(1))
    assert bench.main() == 0
    assert tried == [(64,), (4096,), (64,)]
    shapes = [kernel["device"]["shape"] for kernel in json.loads((tmp_path / "sm90.json").read_text())["kernels"]]
    assert shapes == ["4096 float32", "64 float32"]
