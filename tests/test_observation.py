"""What is observed of a file's kernels, and that nothing is observed twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tt2gl import observation
from tt2gl.isolate import map_isolated
from tt2gl.lowering.lowered_source import lowered_source
from tt2gl.observation import Asked, observed
from tt2gl.source import read_source
from tt2gl.targets import get_target

pytestmark = pytest.mark.once

COPIES = """\
import triton
import triton.language as tl


@triton.jit
def first_kernel(x_ptr, y_ptr, SCALE: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * SCALE)


@triton.jit
def second_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i))
"""


@pytest.fixture
def asked() -> Asked:
    """What conversions for sm90 are asked for, without launches."""
    return Asked(get_target("sm90"), None, None, 60.0)


@pytest.fixture
def observing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that children have been asked for."""
    told: list[str] = []

    def noted(function: Any, jobs: Any, **options: Any) -> Any:
        told.extend(kernel.kernel for kernel, *_ in jobs)
        return map_isolated(function, jobs, **options)

    monkeypatch.setattr(observation, "map_isolated", noted)
    return told


def test_a_kernel_that_stays_is_not_observed_again(asked: Asked, observing: list[str], tmp_path: Path) -> None:
    path = tmp_path / "copies.py"
    before = observed(lowered_source(read_source(path, COPIES), asked.target), asked)
    assert sorted(set(observing)) == ["first_kernel", "second_kernel"]
    observing.clear()
    changed = COPIES.replace("tl.load(x_ptr + i))", "tl.load(x_ptr + i, mask=i < 3))")
    after = observed(lowered_source(read_source(path, changed), asked.target), asked)
    assert set(observing) == {"second_kernel"}
    assert after[0].facts == before[0].facts
    assert after[1].facts != before[1].facts


def test_constants_that_are_equal_are_not_the_same(asked: Asked, observing: list[str], tmp_path: Path) -> None:
    (kernel, _) = observed(lowered_source(read_source(tmp_path / "copies.py", COPIES), asked.target), asked)
    launches = [
        replace(kernel.launches[0], constexprs={**kernel.launches[0].constexprs, "SCALE": scale})
        for scale in (1, True, 1.0, 1)
    ]
    observing.clear()
    replace(asked, seen={}).observe([(kernel.slice, launch) for launch in launches])
    assert observing == ["first_kernel"] * 3
