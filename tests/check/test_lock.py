"""The text of the lock: what is written reads back, merges, and says where it is damaged."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tt2gl.check.lock import Key, Lock, Port, lock_text, read_lock, write_lock
from tt2gl.check.lowering import Access, Lowering
from tt2gl.diagnostics import DiagnosticError

LAUNCH = "*fp16:16, i32, 64, null; num_warps=4, num_stages=3, num_ctas=1"
RICH = Lowering(
    True,
    loads=(Access(24, 128, True, (16, 256), 1), Access(2, 32, False, (128,), 0), Access(2, 32)),
    stores=(Access(16, 64),),
    mma={"wgmma.m64n128k16.f32.f16.f16": 4},
    rings={"128x64xf16": 3},
    products=1,
    step_products=4,
    conversions=1,
    shared=49152,
    registers=168,
    spills=2,
)


def key(kernel: str, file: str = "kernels/matmul.py") -> Key:
    return Key(file, kernel, "sm90", "3.7.1", LAUNCH)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    port = Port("a b/[x] 100%.py", "0" * 16, "1" * 16, "sm90")
    lock = Lock(
        {key("a_kernel"): RICH, key("b_kernel"): Lowering(False), key("c_kernel", "a b/[x] 100%.py"): Lowering(True)},
        {"a b/[x] 100%_gluon.py": port, "plain_gluon.py": Port("plain.py", "2" * 16, "3" * 16)},
    )
    write_lock(tmp_path / "tt2gl.lock", lock)
    assert read_lock(tmp_path / "tt2gl.lock") == lock


def test_it_is_sorted_whatever_the_order() -> None:
    one = {key("a_kernel"): RICH, key("b_kernel"): RICH}
    assert lock_text(Lock(one)) == lock_text(Lock(dict(reversed(one.items()))))


def test_no_lock_is_none(tmp_path: Path) -> None:
    assert read_lock(tmp_path / "tt2gl.lock") is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        pytest.param("version: 2\n", 1, "version 2", id="another version"),
        pytest.param("", 1, "not as tt2gl writes it", id="no version"),
        pytest.param("version: 1\n<<<<<<< ours\n", 2, "merged", id="a conflict"),
        pytest.param("version: 1\n\n[a.py k sm90 triton-3.7.1]\n", 3, "not as tt2gl writes it", id="a short head"),
        pytest.param("version: 1\n\n[a.py k sm90 triton-3 0]\nlaunch: x\nloads: 1y2\n", 3, "not as", id="no access"),
        pytest.param("version: 1\nhello\n", 2, "no name and value", id="no value"),
    ],
)
def test_a_damaged_lock_says_where(tmp_path: Path, text: str, line: int, words: str) -> None:
    (tmp_path / "tt2gl.lock").write_text(text)
    with pytest.raises(DiagnosticError) as caught:
        read_lock(tmp_path / "tt2gl.lock")
    assert caught.value.diagnostic.code == "TTG601"
    assert caught.value.diagnostic.line == line
    assert words in caught.value.diagnostic.message


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_changes_to_neighbouring_kernels_merge(tmp_path: Path) -> None:
    base = {key("a_kernel"): RICH, key("b_kernel"): RICH, key("d_kernel"): RICH}
    worse = Lowering(True, registers=255)
    ours = {**base, key("a_kernel"): worse}
    theirs = {**base, key("b_kernel"): worse, key("c_kernel"): RICH}
    for name, kernels in (("ours", ours), ("base", base), ("theirs", theirs)):
        (tmp_path / name).write_text(lock_text(Lock(kernels)))
    command = ["git", "merge-file", "-p", "ours", "base", "theirs"]
    merged = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert merged.returncode == 0
    assert merged.stdout == lock_text(Lock({**theirs, key("a_kernel"): worse}))
