"""`tt2gl port` of a small package, for real: what is written imports, and is what it was, launch for launch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def {name}(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, {value}, mask=offsets < n)
"""
SORT = KERNEL.replace(
    "x = tl.load(x_ptr + offsets, mask=offsets < n)", "x = tl.standard.sort_impl(tl.load(x_ptr + offsets))"
)
LAUNCHES = [
    {
        "file": f"ops/{file}.py",
        "kernel": kernel,
        "signature": {"x_ptr": "*fp32", "out_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        "constexprs": {"BLOCK": 128},
        "divisible_by_16": ["x_ptr", "out_ptr"],
        "grid": [2, 1, 1],
        "args": {**{name: {"dtype": "float32", "shape": [200]} for name in ("x_ptr", "out_ptr")}, "n": 200},
    }
    for file, kernel in (("double", "double_kernel"), ("inner/square", "square_kernel"), ("ranking", "merge_kernel"))
]


def tt2gl(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tt2gl", *arguments]
    place = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=place)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("port")
    package = folder / "ops"
    (package / "inner").mkdir(parents=True)
    (package / "__init__.py").write_text("from .double import double_kernel\nfrom .inner import square_kernel\n")
    (package / "inner" / "__init__.py").write_text("from .square import square_kernel\n")
    (package / "double.py").write_text(KERNEL.format(name="double_kernel", value="x * 2"))
    (package / "inner" / "square.py").write_text(KERNEL.format(name="square_kernel", value="x * x"))
    (package / "ranking.py").write_text(SORT.format(name="merge_kernel", value="x"))
    (folder / "L.json").write_text(json.dumps({"version": 1, "launches": LAUNCHES}))
    return folder


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, object]:
    options = ["--launches", "L.json", "--run", "simulate", "--seeds", "1", "--jobs", "2", "--json"]
    done = tt2gl(folder, "port", "ops", "--out", "out/ops", "--target", "sm90", *options)
    assert done.returncode == 2, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


@pytest.mark.slow
def test_what_became_of_each_kernel(document: dict[str, object]) -> None:
    assert document["summary"] == {"converted": 2, "kept": 1, "failed": 0, "equal": 2, "not_equal": 0}


def test_the_port_imports_and_shares_its_layout(folder: Path, document: dict[str, object]) -> None:
    texts = {path.name: path.read_text() for path in (folder / "out" / "ops").rglob("*.py")}
    assert [name for name in sorted(texts) if "def coalesced" in texts[name]] == ["gluon_layouts.py"]
    script = "import ops; print(ops.double_kernel.is_gluon(), ops.square_kernel.is_gluon())"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder / "out",
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": "."},
    )
    assert done.stdout == "True True\n"


@pytest.mark.slow
def test_resumed_it_says_the_same(folder: Path, document: dict[str, object]) -> None:
    options = ["--launches", "L.json", "--run", "simulate", "--seeds", "1", "--resume"]
    done = tt2gl(folder, "port", "ops", "--out", "out/ops", "--target", "sm90", *options)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "ops/double.py: sm90: 1 converted",
        "ops/inner/square.py: sm90: 1 converted",
        "ops/ranking.py:8:8: TTG301 It uses `tl.standard.sort_impl`. The kernel stays Triton; "
        "see the page of this code.",
        "ops/ranking.py: sm90: 1 kept as Triton",
        "wrote out/ops; sm90: 2 converted, 1 kept as Triton; 2 launches equal, 0 not; 2 files copied",
    ]
