"""What the tests of analysis share: a kernel's text and launches in, its analysis or its port out."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tt2gl.analysis.analysed import KernelAnalysis
from tt2gl.analysis.facts import LaunchFacts
from tt2gl.analysis.kernel import analyse, observe_job
from tt2gl.convert import convert
from tt2gl.isolate import preload, run_isolated
from tt2gl.launches import Launch, Options
from tt2gl.results import Conversion
from tt2gl.slicing.slicer import slice_kernel
from tt2gl.slicing.slices import Slice
from tt2gl.source import read_source
from tt2gl.targets import get_target

HEADER = "import triton\nimport triton.language as tl\n\n\n"


def make_launch(types: str, num_warps: int = 4, aligned: bool = True, **values: Any) -> Launch:
    """A launch of `kernel`: `types` as `x=*fp16 n=i32`; divisible by 16, all or none; `values` are constexprs."""
    runtime = dict(part.split("=") for part in types.split())
    signature = {**runtime, **dict.fromkeys(values, "constexpr")}
    divisible = tuple(name for name, kind in runtime.items() if kind[0] in "*iu") if aligned else ()
    return Launch("kernel.py", "kernel", signature, values, divisible, Options(num_warps=num_warps))


@pytest.fixture(scope="session")
def launch() -> Callable[..., Launch]:
    """`make_launch`."""
    return make_launch


@pytest.fixture(scope="session")
def sliced(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Slice]:
    """The slice of the function `kernel` of a text."""

    def apply(text: str) -> Slice:
        path = Path(tmp_path_factory.mktemp("analysis")) / "kernel.py"
        path.write_text(HEADER + textwrap.dedent(text).lstrip("\n"))
        return slice_kernel(read_source(path), "kernel")

    return apply


@pytest.fixture(scope="session")
def observed(sliced: Callable[[str], Slice]) -> Callable[..., tuple[Slice, list[LaunchFacts]]]:
    """A kernel's slice and its facts under each launch."""

    def apply(text: str, *launches: Launch, target: str = "sm90") -> tuple[Slice, list[LaunchFacts]]:
        preload()
        kernel = sliced(text)
        outcomes = [run_isolated(observe_job, kernel, launch, target, True) for launch in launches]
        assert [outcome.error for outcome in outcomes] == [""] * len(launches)
        return kernel, [outcome.value for outcome in outcomes if outcome.value is not None]

    return apply


@pytest.fixture(scope="session")
def analysed(observed: Callable[..., tuple[Slice, list[LaunchFacts]]]) -> Callable[..., KernelAnalysis]:
    """A kernel's analysis under its launches."""

    def apply(text: str, *launches: Launch, target: str = "sm90") -> KernelAnalysis:
        kernel, facts = observed(text, *launches, target=target)
        return analyse(kernel, "kernel", launches, facts, get_target(target))

    return apply


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A text with `kernel` converted, which must compile under every launch: its functions, without the helpers."""
    monkeypatch.chdir(tmp_path)

    def apply(text: str, *launches: Launch, **options: Any) -> str:
        made = converted(text, *launches, **options)
        for report in made.kernels:
            assert report.status == "converted", report.diagnostics
            assert report.gluon is not None
            assert report.gluon.ok, report.gluon.error
        author = next(line for line in text.splitlines() if line.strip().startswith("def "))
        first = made.text.index(author.strip().partition("(")[0] + "(")
        return made.text[first:]

    return apply


@pytest.fixture
def conversion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Conversion]:
    """A text with `kernel` converted or kept."""
    monkeypatch.chdir(tmp_path)
    return converted


def converted(text: str, *launches: Launch, target: str = "sm90", **options: Any) -> Conversion:
    """Convert a text as `kernel.py` in the working directory."""
    path = Path("kernel.py")
    path.write_text(HEADER + textwrap.dedent(text).lstrip("\n"))
    return convert(path, target=target, launches=launches, **options)
