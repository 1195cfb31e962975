"""Golden pairs: NAME.py converts to NAME.TARGET.gluon.py, which compiles for that target.

Launches stand beside as NAME.launches.json, or are inferred. `pytest --update-golden` writes the expected files; a
pair for a new target begins as an empty file.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import triton

from tt2gl.convert import convert
from tt2gl.infer.launches import infer_launches
from tt2gl.launch_file import read_launches
from tt2gl.launches import Launch
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.source import read_source
from tt2gl.verify.compile import CompileJob, compile_many

GOLDEN = Path(__file__).parent / "golden"

VERSIONS = {"matmul.gfx942.gluon.py": "3.7."}
"""The Triton that a pair is of, where loops differ: 3.7 alone loads tiles ahead below the reads of those of now."""

PAIRS = sorted(path.name for path in GOLDEN.glob("*.gluon.py"))


@pytest.fixture(autouse=True)
def in_golden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are named as in their launches, and have the fences that they have from Triton 3.7 on."""
    monkeypatch.chdir(GOLDEN)
    monkeypatch.setattr("tt2gl.file_plan.fences_copies", lambda: True)


def original_of(pair: str) -> tuple[Path, str]:
    """The file that a pair is of, and its target."""
    name, target, *_ = pair.split(".")
    return Path(f"{name}.py"), target


def launches_of(original: Path) -> tuple[Launch, ...] | None:
    """The launches beside a file; None where they are to be inferred."""
    beside = original.with_suffix(".launches.json")
    return read_launches(beside) if beside.exists() else None


@pytest.mark.parametrize("pair", PAIRS)
def test_the_conversion_is_the_expected_one(pair: str, update_golden: bool) -> None:
    if not triton.__version__.startswith(VERSIONS.get(pair, "")):
        pytest.skip("Triton's own loop is another in this version")
    original, target = original_of(pair)
    made = convert(original, target=target, launches=launches_of(original), compile=False).text
    if update_golden:
        Path(pair).write_bytes(made.encode())
    assert made == Path(pair).read_bytes().decode()


@pytest.mark.parametrize("pair", PAIRS)
def test_the_expected_file_compiles(pair: str) -> None:
    original, target = original_of(pair)
    source, port = read_source(original), read_source(pair)
    launches = launches_of(original)
    if launches is None:
        launches = tuple(launch for kernel in source.kernels for launch in infer_launches(source, kernel)[0])
    jobs = [CompileJob(slice_kernel(port, launch.kernel, target=target), launch, target) for launch in launches]
    results = compile_many(jobs)
    assert [result.error for result in results] == [None] * len(jobs)


def test_every_file_has_a_pair() -> None:
    originals = {path.name for path in GOLDEN.glob("*.py") if not path.name.endswith(".gluon.py")}
    assert originals == {str(original_of(pair)[0]) for pair in PAIRS}
