"""Unified diffs: what `patch` makes of them is the second text."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tt2gl.report.diff import unified_diff


def test_equal_texts_have_no_diff() -> None:
    assert unified_diff("a\n", "a\n", "x", "y") == ""


@pytest.mark.skipif(shutil.which("patch") is None, reason="needs patch")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("a\nb\n", "a\nc\n", id="a line"),
        pytest.param("a\nb", "a\nc", id="no newline at the end"),
        pytest.param("a\r\nb\r\n", "a\r\nc\r\n", id="CRLF"),
        pytest.param("a\n\x0cb\u2028c\n", "a\n\x0cb\u2028d\n", id="form feed and line separator"),
        pytest.param("a\n", "a\nb\n", id="grown"),
    ],
)
def test_patch_applies_it(tmp_path: Path, before: str, after: str) -> None:
    path = tmp_path / "k.py"
    path.write_bytes(before.encode())
    diff = unified_diff(before, after, "k.py", "k_gluon.py")
    subprocess.run(["patch", "--binary", "-s", str(path)], input=diff.encode(), check=True)
    assert path.read_bytes() == after.encode()
