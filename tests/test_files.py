"""tt2gl.files: outputs are written whole or not at all, and never over an input."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import pytest

from tt2gl.diagnostics import DiagnosticError, ExitCode
from tt2gl.files import output_paths, read_if_there, refuse_unwritable, remove_unfinished, write_text


def names(folder: Path | str = ".") -> list[str]:
    """What lies in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


@pytest.mark.parametrize(
    ("sources", "out"),
    [
        pytest.param(["k.py"], "k.py", id="output is the input"),
        pytest.param(["a/../k.py"], "./k.py", id="output is the input by another name"),
        pytest.param(["k.py", "k_gluon.py"], None, id="default output is another input"),
        pytest.param(["a/k.py", "b/k.py"], "out", id="two inputs, one output"),
    ],
)
def test_refuses_outputs_that_clash(sources: list[str], out: str | None) -> None:
    with pytest.raises(DiagnosticError) as caught:
        output_paths(sources, out)
    assert caught.value.diagnostic.code == "TTG006"
    assert caught.value.exit_code == ExitCode.USAGE


def test_refuses_a_link_to_the_input(tmp_path: Path) -> None:
    source = tmp_path / "k.py"
    source.write_text("x = 1\n")
    (tmp_path / "link.py").symlink_to(source)
    with pytest.raises(DiagnosticError):
        output_paths([str(source)], str(tmp_path / "link.py"))


@pytest.mark.parametrize(
    ("sources", "out", "expected"),
    [
        pytest.param(["a/k.py"], None, ["a/k_gluon.py"], id="beside"),
        pytest.param(["a/k.py"], "new.py", ["new.py"], id="a file"),
        pytest.param(["a/k.py"], "out/", ["out/k_gluon.py"], id="a folder by its slash"),
        pytest.param(["a/k.py", "b/m.py"], "out", ["out/k_gluon.py", "out/m_gluon.py"], id="several share a folder"),
    ],
)
def test_output_paths(sources: list[str], out: str | None, expected: list[str]) -> None:
    assert [str(path) for path in output_paths(sources, out)] == expected


def test_an_existing_folder_is_one(tmp_path: Path) -> None:
    assert output_paths(["k.py"], str(tmp_path)) == [tmp_path / "k_gluon.py"]


def test_writes_bytes_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "new" / "k.py"
    write_text(path, "a\r\nb\n# \u00e9")
    assert path.read_bytes() == b"a\r\nb\n# \xc3\xa9"
    assert read_if_there(path) == "a\r\nb\n# \u00e9"
    assert names(path.parent) == ["k.py"]


def test_new_files_follow_the_umask_and_old_ones_keep_their_mode(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_text(tmp_path / "new.py", "x")
        (tmp_path / "run.py").write_text("x")
        (tmp_path / "run.py").chmod(0o755)
        write_text(tmp_path / "run.py", "y")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "new.py").stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "run.py").stat().st_mode) == 0o755


def test_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("old")
    (tmp_path / "link.py").symlink_to(tmp_path / "real.py")
    write_text(tmp_path / "link.py", "new")
    assert (tmp_path / "link.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "new"


def test_a_full_disk_leaves_the_old_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "k.py"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(DiagnosticError) as caught:
            write_text(path, "x" * 5000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert caught.value.diagnostic.code == "TTG005"
    assert caught.value.exit_code == ExitCode.CANNOT_WRITE
    assert path.read_text() == "old"
    assert names(tmp_path) == ["k.py"]


def test_an_interrupt_leaves_the_old_file_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "k.py"
    path.write_text("old")

    def interrupted(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["k.py"]


@pytest.mark.parametrize("name", ["file/k.py", ".", "x" * 300], ids=["under a file", "a folder", "too long a name"])
def test_unwritable_places(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiagnosticError) as caught:
        write_text(tmp_path / name, "x")
    assert caught.value.diagnostic.code == "TTG005"
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["k.py", "new/folder/k.py", "file"], ids=["a new file", "new folders", "a file"])
def test_places_to_write_to_are_not_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    refuse_unwritable(tmp_path / name)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("file/k.py", "its folder is a file"), (".", "Is a directory"), ("closed/new/k.py", "Permission denied")],
    ids=["under a file", "a folder", "a folder that is closed"],
)
def test_unwritable_places_are_known_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, reason: str
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "closed").mkdir()
    # To the superuser no folder is closed.
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "closed")
    with pytest.raises(DiagnosticError) as caught:
        refuse_unwritable(tmp_path / name)
    assert caught.value.diagnostic.code == "TTG005"
    assert reason in caught.value.diagnostic.message
    assert names(tmp_path) == ["closed", "file"]


def test_unfinished_files_are_removed_by_the_name_of_what_they_were_for(tmp_path: Path) -> None:
    names = [".a.py.0123abcd.tmp", ".b.py.0123abcd.tmp", "a.py.0123abcd.tmp", ".a.py.0123abcg.tmp", ".a.py.tmp"]
    for name in names:
        (tmp_path / name).touch()
    remove_unfinished({tmp_path / "a.py", tmp_path / "none" / "a.py"})
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names[1:])
