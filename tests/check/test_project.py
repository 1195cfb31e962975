"""Which files are looked at, and on which others they depend."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.check.project import Files, find_files, find_home, launches_digest


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_folder_of_the_lock(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert find_home(inner, None) == inner
    write(tmp_path / "tt2gl.lock")
    assert find_home(inner, None) == tmp_path
    assert find_home(inner, tmp_path / "a") == tmp_path / "a"


def test_files_of_environments_and_hidden_folders_are_left_out(tmp_path: Path) -> None:
    for name in ("a.py", "k/b.py", ".hidden/c.py", "env/pyvenv.cfg", "env/d.py", "build/e.py", "k/readme.md"):
        write(tmp_path / name)
    assert [path.relative_to(tmp_path).as_posix() for path in find_files(tmp_path, ())] == ["a.py", "k/b.py"]
    assert list(find_files(tmp_path, ["build/*.py", "**/e.py"])) == [tmp_path / "build" / "e.py"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import triton\n@triton.jit\ndef k(): pass\n", True),
        ("from triton import jit\n@jit\ndef k(): pass\n", True),
        ("from triton.experimental import gluon\n@gluon.jit(noinline=True)\ndef k(): pass\n", True),
        ("import triton\n", False),
        ("import torch\n@torch.jit.script\ndef f(): pass\n", False),
    ],
)
def test_files_with_kernels(tmp_path: Path, text: str, expected: bool) -> None:
    path = write(tmp_path / "a.py", text)
    assert Files(tmp_path, None).has_kernels(path) is expected


def test_what_a_file_imports_of_the_project(tmp_path: Path) -> None:
    write(tmp_path / "pkg" / "__init__.py", "from . import flags\n")
    flags = write(tmp_path / "pkg" / "flags.py")
    deep = write(tmp_path / "pkg" / "sub" / "deep.py", "from ..helpers import aligned\n")
    helpers = write(tmp_path / "pkg" / "helpers.py", "import math, triton, numpy, nowhere\n")
    kernels = write(tmp_path / "pkg" / "kernels.py", "import pkg.rows\ndef f():\n    from pkg.sub import deep\n")
    rows = write(tmp_path / "pkg" / "rows.py")
    write(tmp_path / "pkg" / "other.py")
    found = Files(tmp_path, None).imported(kernels)
    assert found == sorted([tmp_path / "pkg" / "__init__.py", flags, deep, helpers, rows])


def test_only_a_files_own_launches_count() -> None:
    def entries(*files: str, warps: int = 4) -> bytes:
        launches = ",".join(f'{{"file": "{file}", "options": {{"num_warps": {warps}}}}}' for file in files)
        return f'{{"launches": [{launches}]}}'.encode()

    one = launches_digest(entries("k/a.py"), "src/k/a.py")
    assert launches_digest(entries("b.py", "k/a.py"), "src/k/a.py") == one
    assert launches_digest(entries("k/a.py", warps=8), "src/k/a.py") != one
    assert launches_digest(b"{", "a.py") != launches_digest(b"[", "a.py")
