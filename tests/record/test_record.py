"""`tt2gl record` on commands that launch kernels on a machine without a GPU, or as if it had none."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

from tt2gl.cli import main
from tt2gl.diagnostics import DiagnosticError
from tt2gl.launch_file import launch_to_json, read_launches
from tt2gl.launches import DescriptorArg, DtypeValue, JitValue, Launch, TensorArg
from tt2gl.record import api
from tt2gl.record.api import Recording, record

REPOSITORY = Path(__file__).parent.parent.parent
FIXTURES = REPOSITORY / "tests" / "fixtures" / "record"
KERNELS = FIXTURES / "kernels.py"


@pytest.fixture(autouse=True, scope="module")
def no_gpu() -> Any:
    """Skip kernels wherever the tests run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "present_architecture", lambda: None)
        yield


@pytest.fixture(scope="module")
def recorded(no_gpu: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[Recording, Path]:
    out = tmp_path_factory.mktemp("recorded") / "L.json"
    recording = record([sys.executable, str(KERNELS)], out, root=FIXTURES, target="sm90")
    return recording, out


def of(recording: Recording, kernel: str) -> list[Launch]:
    return [launch for launch in recording.launches if launch.kernel == kernel]


@pytest.mark.slow
def test_the_file_is_what_was_recorded(recorded: tuple[Recording, Path]) -> None:
    recording, out = recorded
    assert read_launches(out) == recording.launches
    assert {launch.file for launch in recording.launches} == {"kernels.py"}
    assert list(out.parent.iterdir()) == [out]


def test_the_exit_code_is_the_commands(recorded: tuple[Recording, Path]) -> None:
    assert recorded[0].exit_code == 7


def test_every_config_of_an_autotuner_once_with_what_heuristics_say(recorded: tuple[Recording, Path]) -> None:
    launches = of(recorded[0], "gather_kernel")
    assert [launch.constexprs for launch in launches] == [{"BLOCK": 64, "EVEN": False}, {"BLOCK": 128, "EVEN": False}]
    assert [(launch.options.num_warps, launch.options.num_stages) for launch in launches] == [(2, 3), (4, 5)]
    assert [launch.grid for launch in launches] == [(16, 1, 1), (8, 1, 1)]


def test_alignment_and_the_range_of_integers(recorded: tuple[Recording, Path]) -> None:
    launch = of(recorded[0], "gather_kernel")[0]
    assert launch.divisible_by_16 == ("index_ptr",)
    assert launch.args == {
        "x_ptr": TensorArg("float32", (1000,), (1,)),
        "index_ptr": TensorArg("int64", (1000,), (1,), (3, 999)),
        "n": 1000,
    }


def test_values_that_json_lacks(recorded: tuple[Recording, Path]) -> None:
    (launch,) = of(recorded[0], "values_kernel")
    assert list(launch.signature.values())[:5] == ["(*fp16, i32)", "constexpr", "constexpr", "fp32", "u1"]
    assert launch.constexprs == {
        "nothing": None,
        "one": 1,
        "TYPE": DtypeValue("bf16"),
        "FUNCTION": JitValue("kernels:identity"),
        "LIMITS": (1, float("-inf")),
    }
    assert launch.args == {"pair": (TensorArg("float16", (8,), (1,)), 3), "scale": 0.5, "flag": True}


def test_descriptors_and_options_of_the_backend(recorded: tuple[Recording, Path]) -> None:
    launch = of(recorded[0], "tiles_kernel")[0]
    assert launch.args == {"tile": DescriptorArg("float16", (64, 64), (64, 1), (32, 64))}
    assert launch.options.extra == {"maxnreg": 128}
    assert launch.grid == (2, 3, 1)


def test_a_request_to_compile_has_no_arguments(recorded: tuple[Recording, Path]) -> None:
    launch = of(recorded[0], "tiles_kernel")[1]
    assert (launch.constexprs, launch.grid, launch.args) == ({"BLOCK": 16}, None, None)


def test_what_no_file_can_hold_is_told(recorded: tuple[Recording, Path]) -> None:
    (told,) = recorded[0].diagnostics
    assert (told.code, told.file) == ("TTG230", str(KERNELS))
    assert "values_kernel" in told.message
    assert "Mode" in told.message


def run(folder: Path, script: str, *, environment: dict[str, str] | None = None) -> subprocess.Popen[str]:
    """`tt2gl record` of a script beside which the kernels lie, in a process group of its own."""
    (folder / "kernels.py").write_text(KERNELS.read_text())
    (folder / "script.py").write_text(textwrap.dedent(script))
    without_gpu = (
        "from tt2gl.record import api; from tt2gl.cli import main; api.present_architecture = lambda: None; main"
    )
    command = [sys.executable, "-c", f"import sys; {without_gpu}; sys.exit(main(sys.argv[1:]))"]
    arguments = ["record", "-o", "L.json", "--", sys.executable, "script.py"]
    return subprocess.Popen(
        command + arguments,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def kernels_of(folder: Path) -> list[tuple[str, str]]:
    return sorted({(launch.file, launch.kernel) for launch in read_launches(folder / "L.json")})


@pytest.mark.slow
def test_a_crash_keeps_what_was_launched(tmp_path: Path) -> None:
    process = run(tmp_path, "import os, kernels\nkernels.gather()\nos.kill(os.getpid(), 11)\n")
    _, told = process.communicate()
    assert process.returncode == 128 + 11
    assert kernels_of(tmp_path) == [("kernels.py", "gather_kernel")]
    assert "L.json: 2 launches of 1 kernel in 1 file; there is no GPU" in told


@pytest.mark.slow
def test_ctrl_c_is_the_commands_and_keeps_what_was_launched(tmp_path: Path) -> None:
    script = "import kernels, time\nkernels.gather()\nopen('ready', 'w').close()\ntime.sleep(60)\n"
    process = run(tmp_path, script)
    while not (tmp_path / "ready").exists():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate()
    assert "KeyboardInterrupt" in told
    assert process.returncode == 130
    assert kernels_of(tmp_path) == [("kernels.py", "gather_kernel")]


@pytest.mark.slow
def test_processes_that_the_command_starts_and_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("import kernels\n\ndef test_it():\n    kernels.gather(32)\n")
    script = """\
        import subprocess, sys
        subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"], check=True)
        subprocess.run([sys.executable, "-c", "import kernels; kernels.gather(33)"], check=True)
        """
    process = run(tmp_path, script)
    process.communicate()
    assert process.returncode == 0
    sizes = {launch.args["n"] for launch in read_launches(tmp_path / "L.json") if launch.args is not None}
    assert sizes == {32, 33}


@pytest.mark.slow
def test_the_commands_own_sitecustomize_runs_too(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins\nbuiltins.CUSTOM = 5\n")
    paths = os.pathsep.join([str(tmp_path / "site"), str(REPOSITORY)])
    process = run(tmp_path, "import kernels\nkernels.gather(CUSTOM)\n", environment={"PYTHONPATH": paths})
    process.communicate()
    assert process.returncode == 0
    assert kernels_of(tmp_path) == [("kernels.py", "gather_kernel")]


def test_host_code_finds_the_target(tmp_path: Path) -> None:
    script = """\
        import triton
        driver = triton.runtime.driver.active
        target = driver.get_current_target()
        print(target.backend, target.arch, target.warp_size, driver.get_device_capability())
        print(driver.utils.get_device_properties(0)["multiprocessor_count"])
        print(triton.testing.do_bench(lambda: None), triton.testing.do_bench(lambda: None, quantiles=[0.5, 0.2]))
        """
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    with (tmp_path / "printed").open("w") as printed:
        command = [sys.executable, str(tmp_path / "script.py")]
        record(command, tmp_path / "L.json", target="gfx942", stdout=printed)
    assert (tmp_path / "printed").read_text().split("\n") == ["hip gfx942 64 (9, 4)", "304", "1.0 [1.0, 1.0]", ""]


@pytest.mark.slow
def test_files_outside_the_root_are_left_out_and_told(tmp_path: Path) -> None:
    script = f"import sys; sys.path.insert(0, {str(FIXTURES)!r}); import kernels; kernels.gather()"
    out = tmp_path / "L.json"
    recording = record([sys.executable, "-c", script], out, root=tmp_path, target="sm90")
    assert [(each.code, each.file) for each in recording.diagnostics] == [
        ("TTG231", str(KERNELS)),
        ("TTG232", str(out)),
    ]
    assert recording.diagnostics[0].message.startswith("2 launches of this file left out")
    assert not out.exists()


@pytest.mark.parametrize(
    ("script", "words"),
    [
        pytest.param("", "did not import Triton", id="no Triton"),
        pytest.param("import triton", "launched no kernel", id="no launch"),
    ],
)
def test_nothing_launched_is_told_and_writes_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], script: str, words: str
) -> None:
    out = tmp_path / "L.json"
    assert main(["record", "-o", str(out), "--", sys.executable, "-c", script]) == 2
    told = capfd.readouterr().err
    assert f"{out}: TTG232 No launch was recorded" in told
    assert words in told
    assert list(tmp_path.iterdir()) == []


def test_the_exit_code_of_a_command_that_launched_nothing(tmp_path: Path) -> None:
    assert main(["record", "-o", str(tmp_path / "L.json"), "--", "sh", "-c", "exit 9"]) == 9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["python", "x.py"], "behind `--`", id="no dashes"),
        pytest.param(["--"], "behind `--`", id="no command"),
        pytest.param(["--target", "sm99", "--", "true"], "TTG010", id="unknown target"),
        pytest.param(["--", "no-such-program"], "no-such-program: TTG013 ", id="no such program"),
    ],
)
def test_wrong_usage_is_64(tmp_path: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    try:
        code = main(["record", "-o", str(tmp_path / "L.json"), *arguments])
    except SystemExit as error:  # how argparse ends
        code = int(error.code or 0)
    assert code == 64
    assert words in capfd.readouterr().err


def test_an_output_that_cannot_be_written_is_told_before_the_command_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiagnosticError) as caught:
        record(["touch", str(tmp_path / "ran")], tmp_path / "file" / "L.json", target="sm90")
    assert caught.value.diagnostic.code == "TTG005"
    assert not (tmp_path / "ran").exists()


@pytest.mark.slow
def test_json_is_all_of_stdout(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    script = f"import sys; sys.path.insert(0, {str(FIXTURES)!r}); import kernels; kernels.gather(); print('said')"
    out = tmp_path / "L.json"
    command = ["record", "-o", str(out), "--root", str(FIXTURES), "--json", "--", sys.executable, "-c", script]
    assert main(command) == 0
    captured = capfd.readouterr()
    document = json.loads(captured.out)
    assert document["kernels"] == [{"file": "kernels.py", "kernel": "gather_kernel", "launches": 2}]
    assert (document["output"], document["exit_code"], document["skipped"]) == (str(out), 0, True)
    assert "said\n" in captured.err


def test_launches_differ_by_more_than_their_ranges(tmp_path: Path) -> None:
    """Two processes that see other numbers in tensors of one shape have made one launch."""
    index = {"dtype": "int64", "shape": [8], "stride": [1]}
    entry = {
        "file": str(tmp_path / "k.py"),
        "kernel": "k",
        "signature": {"x": "*i64"},
        "options": {},
        "grid": [1, 1, 1],
    }
    lines = [{"launch": {**entry, "args": {"x": {**index, "range": [0, most]}}}} for most in (3, 9)]
    launches, _ = api._gathered(lines, tmp_path)
    assert [launch_to_json(launch)["args"]["x"]["range"] for launch in launches] == [[0, 3]]
