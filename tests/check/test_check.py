"""`check` as a whole: the lock, what is new and gone, stale ports, and what is kept between runs."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tt2gl.check.api import Settings, check
from tt2gl.check.cache import FOLDER
from tt2gl.check.lock import Lock, lock_text, read_lock, write_lock
from tt2gl.check.output import document, lines
from tt2gl.check.ports import note_port, with_ports
from tt2gl.diagnostics import DiagnosticError, ExitCode

ADD = """\
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)
"""
LAUNCH = {
    "file": "add.py",
    "kernel": "add_kernel",
    "signature": {"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    "constexprs": {"BLOCK": 1024},
    "divisible_by_16": ["x_ptr", "y_ptr", "n"],
}
NARROW = ADD.replace("tl.arange", "2 * tl.arange")
COPY = ADD.replace("add_kernel", "copy_kernel").replace(" + 1, mask", ", mask")


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with two files and its lock."""
    home = tmp_path_factory.mktemp("held")
    (home / "add.py").write_text(ADD)
    (home / "add.launches.json").write_text(json.dumps({"version": 1, "launches": [LAUNCH]}))
    (home / "copies.py").write_text(COPY)
    assert check(Settings(home)).exit_code == ExitCode.UNKNOWN
    assert check(Settings(home), update=True).updated
    return home


@pytest.fixture
def project(held: Path, tmp_path: Path) -> Path:
    """A copy to edit, with what is known already."""
    return shutil.copytree(held, tmp_path / "project")


def codes(home: Path, *paths: str) -> tuple[int, list[str]]:
    report = check(Settings(home), [home / path for path in paths])
    return report.exit_code, [one.code for one in report.diagnostics]


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever compiles fails."""

    def refuse(*_arguments: object, **_options: object) -> None:
        raise AssertionError("something was compiled")

    monkeypatch.setattr("tt2gl.check.measure.measure", refuse)


@pytest.mark.usefixtures("no_compiler")
def test_nothing_changed_compiles_nothing(project: Path) -> None:
    assert codes(project) == (ExitCode.CLEAN, [])
    report = check(Settings(project), update=True)
    assert not report.updated
    assert list(lines(report)) == ["2 kernels, 2 lowerings: as in the lock"]


def test_nothing_changed_imports_neither_triton_nor_libcst(project: Path, repository: Path) -> None:
    seen = "import sys; from tt2gl.cli import main; main(['check', '--target', 'sm90'])"
    seen += "; print([name for name in ('triton', 'libcst', 'numpy', 'rich') if name in sys.modules])"
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(repository)!r}); {seen}"]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 kernels, 2 lowerings: as in the lock", "[]"]


def test_a_lock_of_another_triton_says_nothing(project: Path) -> None:
    text = (project / "tt2gl.lock").read_text()
    version = text.partition("triton-")[2].partition(" ")[0]
    (project / "tt2gl.lock").write_text(text.replace(f"triton-{version} ", "triton-0.1 "))
    assert codes(project) == (ExitCode.UNKNOWN, ["TTG600"])
    assert check(Settings(project), update=True).updated
    held = read_lock(project / "tt2gl.lock")
    assert held is not None
    assert {key.triton for key in held.kernels} == {"0.1", version}


def test_new_and_gone_kernels_are_noted(project: Path) -> None:
    (project / "copies.py").unlink()
    (project / "more.py").write_text(COPY.replace("copy_kernel", "other_kernel").replace("offsets < n", "offsets <= n"))
    assert codes(project) == (ExitCode.CLEAN, ["TTG612", "TTG613"])
    assert codes(project, "add.py") == (ExitCode.CLEAN, [])
    check(Settings(project), update=True)
    held = read_lock(project / "tt2gl.lock")
    assert held is not None
    assert {key.file for key in held.kernels} == {"add.py", "more.py"}
    assert codes(project) == (ExitCode.CLEAN, [])


@pytest.mark.usefixtures("no_compiler")
def test_a_folder_is_its_files_with_kernels(project: Path) -> None:
    (project / "deep").mkdir()
    (project / "copies.py").rename(project / "deep" / "copies.py")
    (project / "deep" / "host.py").write_text("import triton\n")
    cache = next((project / FOLDER).glob("*.json"))
    cache.write_text(cache.read_text().replace('"copies.py"', '"deep/copies.py"'))
    report = check(Settings(project), [project / "deep"])
    assert [one.now.file for one in report.kernels] == ["deep/copies.py"]


def test_better_is_noted_and_held_on_demand(project: Path) -> None:
    held = read_lock(project / "tt2gl.lock")
    assert held is not None
    worse = {key: lowering.__class__(True, registers=255) for key, lowering in held.kernels.items()}
    write_lock(project / "tt2gl.lock", Lock(worse))
    exit_code, found = codes(project)
    assert (exit_code, set(found)) == (ExitCode.CLEAN, {"TTG611"})
    check(Settings(project), update=True)
    assert (project / "tt2gl.lock").read_text() == lock_text(held)


def test_a_kernel_compiled_before_still_has_its_line_to_blame(project: Path) -> None:
    (project / "add.py").write_text(NARROW)
    assert codes(project)[0] == ExitCode.NO
    # The same kernel three lines further down: known, but not where it is now.
    (project / "add.py").write_text("# one\n# two\n# three\n" + NARROW)
    report = check(Settings(project))
    (line,) = {one.line for one in report.diagnostics if one.code == "TTG603"}
    assert (project / "add.py").read_text().splitlines()[line - 1].strip().startswith("tl.store(")


def test_a_compiler_that_takes_too_long_is_no_regression(project: Path) -> None:
    (project / "add.py").write_text(ADD.replace(" + 1", " + 2"))
    report = check(Settings(project, timeout=0.001))
    assert report.exit_code == ExitCode.UNKNOWN
    assert [one.code for one in report.diagnostics] == ["TTG401"]
    assert codes(project) == (ExitCode.CLEAN, [])


def test_a_file_that_cannot_be_read_is_told_every_time(project: Path) -> None:
    (project / "add.py").write_text(ADD + "def (:\n")
    for _ in range(2):
        assert codes(project) == (ExitCode.UNKNOWN, ["TTG003"])


def test_launches_that_do_not_fit_are_told(project: Path) -> None:
    wrong = {**LAUNCH, "signature": {"z_ptr": "*fp32"}, "constexprs": {}, "divisible_by_16": []}
    (project / "add.launches.json").write_text(json.dumps({"version": 1, "launches": [wrong]}))
    assert codes(project) == (ExitCode.UNKNOWN, ["TTG202"])
    (project / "add.launches.json").write_text("{")
    assert codes(project) == (ExitCode.UNKNOWN, ["TTG201"])


def test_a_damaged_lock_ends_the_run_and_a_damaged_cache_does_not(project: Path) -> None:
    for cache in (project / FOLDER).glob("*.json"):
        cache.write_text('{"tt2gl": "0.1.0", "records": [{}]}')
    assert codes(project) == (ExitCode.CLEAN, [])
    (project / "tt2gl.lock").write_text("<<<<<<< ours\n")
    with pytest.raises(DiagnosticError, match="TTG601"):
        check(Settings(project))


def test_the_document(project: Path) -> None:
    (project / "add.py").write_text(NARROW)
    told = document(check(Settings(project)), 1.0)
    assert told["summary"] == {"same": 1, "better": 0, "worse": 1, "new": 0}
    add, copy = (entry["check"] for entry in told["kernels"])
    assert (add["verdict"], copy["verdict"]) == ("worse", "same")
    assert add["before"]["loads"] != add["now"]["loads"]
    assert copy["before"] == copy["now"]


# ------------------------------------------------------------------------------------------------------- ports


def port(project: Path) -> Path:
    """A Gluon file beside add.py, as far as `check` looks at it."""
    path = project / "add_gluon.py"
    path.write_text("# made of add.py\n")
    return path


def test_a_port_is_stale_once_its_original_has_changed(project: Path) -> None:
    note_port(port(project), project / "add.py", "sm90", project)
    assert codes(project) == (ExitCode.CLEAN, [])
    (project / "add.py").write_text(ADD.replace(" + 1", " + 2"))
    assert codes(project, "add.py", "add_gluon.py") == (ExitCode.NO, ["TTG610"])
    # Converted again, or written anew by a person: the port has changed, too.
    port(project).write_text("# made of add.py again\n")
    assert codes(project, "add.py", "add_gluon.py") == (ExitCode.CLEAN, [])
    check(Settings(project), [project / "add_gluon.py"], update=True)
    held = read_lock(project / "tt2gl.lock")
    assert held is not None
    assert held.ports["add_gluon.py"].target == "sm90"


def test_an_update_accepts_a_stale_port(project: Path) -> None:
    note_port(port(project), project / "add.py", "sm90", project)
    (project / "add.py").write_text(ADD + "\n# the end\n")
    check(Settings(project), [project / "add_gluon.py"], update=True)
    assert codes(project, "add_gluon.py") == (ExitCode.CLEAN, [])


def test_ports_are_noted_only_where_there_is_a_lock(tmp_path: Path) -> None:
    (tmp_path / "add.py").write_text(ADD)
    note_port(port(tmp_path), tmp_path / "add.py", "sm90", tmp_path)
    assert not (tmp_path / "tt2gl.lock").exists()


def test_files_with_ports(project: Path) -> None:
    original, beside, elsewhere = project / "add.py", port(project), project / "out.py"
    assert with_ports([original], project) == [(original, beside)]
    assert with_ports([beside, original, project / "copies.py"], project) == [(original, beside)]
    elsewhere.write_text("# made of copies.py\n")
    note_port(elsewhere, project / "copies.py", "sm90", project)
    assert with_ports([project / "copies.py"], project) == [(project / "copies.py", elsewhere)]
    assert with_ports([elsewhere], project) == [(project / "copies.py", elsewhere)]
