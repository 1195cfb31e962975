"""Planted regressions are caught, at the line to blame; harmless edits go through."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tt2gl.check.api import Settings, check
from tt2gl.diagnostics import ExitCode

pytestmark = pytest.mark.once

FIXTURES = Path(__file__).parent.parent / "fixtures" / "check"


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with its lock."""
    home = tmp_path_factory.mktemp("held")
    shutil.copytree(FIXTURES, home, dirs_exist_ok=True)
    report = check(Settings(home), update=True)
    assert report.exit_code == ExitCode.CLEAN
    assert all(one.now.lowering.compiles for one in report.kernels)
    return home


@pytest.fixture
def project(held: Path, tmp_path: Path) -> Path:
    """A copy to edit, with what is known already."""
    return shutil.copytree(held, tmp_path / "project")


def edit(project: Path, file: str, before: str, after: str) -> None:
    path = project / file
    text = path.read_text("utf-8")
    assert before in text
    path.write_text(text.replace(before, after), "utf-8")


LAUNCHES = "kernels.launches.json"
DOT = "acc = tl.dot(a, b, acc)"
LAYOUT = "gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])"
CONVERTED = "gl.convert_layout(x * 2, gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1]))"
REGRESSIONS = {
    "multiple_of dropped": (
        "kernels.py",
        "tl.multiple_of(tl.program_id(0) * stride, 16)",
        "tl.program_id(0) * stride",
        ("TTG603", "kernels.py", "x = tl.load(x_ptr + offsets)"),
    ),
    "max_contiguous dropped": (
        "kernels.py",
        "tl.max_contiguous(tl.multiple_of(offsets, BLOCK), BLOCK)",
        "tl.multiple_of(offsets, BLOCK)",
        ("TTG603", "kernels.py", "x = tl.load(x_ptr + offsets)"),
    ),
    "a hint dropped in a helper": (
        "helpers.py",
        "tl.multiple_of(row * stride, 16)",
        "row * stride",
        ("TTG603", "kernels.py", "tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) - 1)"),
    ),
    "the wrong order": (
        "kernels.py",
        LAYOUT,
        "gl.BlockedLayout([4, 1], [8, 4], [1, 4], [0, 1])",
        ("TTG603", "kernels.py", "x = gl.load(x_ptr + offsets)"),
    ),
    "lanes along columns": (
        "kernels.py",
        LAYOUT,
        "gl.BlockedLayout([1, 4], [32, 1], [4, 1], [1, 0])",
        ("TTG603", "kernels.py", "x = gl.load(x_ptr + offsets)"),
    ),
    "smaller vectors": (
        "kernels.py",
        LAYOUT,
        "gl.BlockedLayout([1, 2], [4, 8], [4, 1], [1, 0])",
        ("TTG603", "kernels.py", "x = gl.load(x_ptr + offsets)"),
    ),
    "one more conversion": (
        "kernels.py",
        "gl.store(out_ptr + offsets, x * 2)",
        f"y = {CONVERTED}\n    gl.store(out_ptr + offsets, gl.convert_layout(y, layout))",
        ("TTG604", "kernels.py", f"y = {CONVERTED}"),
    ),
    "spills by fewer warps": (
        LAUNCHES,
        '"num_warps": 8',
        '"num_warps": 1',
        ("TTG605", "kernels.py", "def softmax_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):"),
    ),
    "the pipeline removed": (
        "kernels.py",
        "tl.range(0, K, BLOCK_K)",
        "tl.range(0, K, BLOCK_K, num_stages=1)",
        ("TTG606", "kernels.py", "a = tl.load(a_ptrs)"),
    ),
    "a shallower ring": (
        LAUNCHES,
        '"num_stages": 4',
        '"num_stages": 2',
        ("TTG606", "kernels.py", "a = tl.load(a_ptrs)"),
    ),
    "no matrix instruction for such precision": (
        "kernels.py",
        DOT,
        'acc = tl.dot(a, b, acc, input_precision="ieee")',
        ("TTG607", "kernels.py", 'acc = tl.dot(a, b, acc, input_precision="ieee")'),
    ),
    "three matrix instructions for one": (
        "kernels.py",
        DOT,
        'acc = tl.dot(a, b, acc, input_precision="tf32x3")',
        ("TTG607", "kernels.py", 'acc = tl.dot(a, b, acc, input_precision="tf32x3")'),
    ),
    "more shared memory": (
        LAUNCHES,
        '"num_stages": 4',
        '"num_stages": 5',
        ("TTG608", "kernels.py", "def matmul_kernel("),
    ),
    "it compiles no more": (
        "kernels.py",
        "+ 1)",
        "+ one)",
        ("TTG602", "kernels.py", "tl.store(out_ptr + offsets, x + one)"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("planted", REGRESSIONS.values(), ids=REGRESSIONS.keys())
def test_a_planted_regression_is_caught(project: Path, planted: tuple[str, str, str, tuple[str, str, str]]) -> None:
    file, before, after, expected = planted
    edit(project, file, before, after)
    report = check(Settings(project))
    assert report.exit_code == ExitCode.NO
    found = {
        (one.code, one.file, (project / one.file).read_text("utf-8").splitlines()[one.line - 1].strip())
        for one in report.diagnostics
        if one.severity == "error"
    }
    assert expected in found


HARMLESS = {
    "a comment": ("kernels.py", "# every element is scaled alike", "# all alike"),
    "a comment in a helper": ("helpers.py", "# the host pads rows to 16 elements", "# rows are padded"),
    "a docstring": (
        "kernels.py",
        "BLOCK: tl.constexpr):\n    start",
        'BLOCK: tl.constexpr):\n    """Scale."""\n    start',
    ),
    "a variable renamed": ("kernels.py", "numerator", "exponentials"),
    "formatting": ("kernels.py", "x = tl.load(x_ptr + offsets)", "x = tl.load(\n        x_ptr + offsets\n    )"),
    "type hints": (
        "kernels.py",
        "def softmax_kernel(x_ptr, out_ptr, stride,",
        "def softmax_kernel(x_ptr, out_ptr, stride: int,",
    ),
    "functions in another order": ("kernels.py", "", ""),
    "blank lines": ("kernels.py", "\n\n\n", "\n\n\n\n\n"),
    "host code": (
        "kernels.py",
        "from helpers import row_start\n",
        "from helpers import row_start\n\n\ndef rows(x):\n    return x.shape[0]\n",
    ),
    "another name for an import": ("kernels.py", "tl.", "lang."),
    "a kernel renamed": ("", "shift_kernel", "move_kernel"),
    "a parameter renamed": ("", "factor", "scale"),
}


@pytest.mark.parametrize("edited", HARMLESS.values(), ids=HARMLESS.keys())
def test_a_harmless_edit_goes_through(project: Path, edited: tuple[str, str, str]) -> None:
    file, before, after = edited
    text = (project / "kernels.py").read_text("utf-8")
    if before == after:
        head, *functions = text.split("\n\n\n")
        (project / "kernels.py").write_text("\n\n\n".join([head, *reversed(functions)]) + "\n", "utf-8")
    elif before == "tl.":
        renamed = text.replace("tl.", "lang.").replace("triton.language as tl", "triton.language as lang")
        (project / "kernels.py").write_text(renamed, "utf-8")
    else:
        for name in (file,) if file else ("kernels.py", LAUNCHES):
            edit(project, name, before, after)
    report = check(Settings(project))
    assert [str(one) for one in report.diagnostics] == []
    assert report.exit_code == ExitCode.CLEAN
    assert len(report.kernels) == 6
