"""Calls that launch a file's kernels, by what is called."""

from __future__ import annotations

from pathlib import Path

import pytest

from tt2gl.launch_calls import LaunchCall
from tt2gl.source import read_source

TEXT = """\
import triton

@triton.jit
def entry(x):
    pass

def host(x):
    {launch}
"""


def launches(launch: str) -> tuple[LaunchCall, ...]:
    return read_source(Path("kernel.py"), TEXT.format(launch=launch)).launches


@pytest.mark.parametrize(
    "launch", ["other[(1,)](x)", "x[0](1)", "entry(x)", "entry[(1,)]"], ids=["other", "index", "call", "no_call"]
)
def test_what_is_no_launch(launch: str) -> None:
    assert launches(launch) == ()


@pytest.mark.parametrize(
    "launch",
    [
        "entry[(1,)](x)",
        "entry[lambda meta: (1,)](x, num_warps=4)",
        "k = entry; k[(1,)](x)",
        "entry.run(x, grid=(1,), warmup=False)",
        "entry.warmup(x, grid=(1,))",
        "self.entry[(1,)](x)",
    ],
)
def test_launches(launch: str) -> None:
    (call,) = launches(launch)
    assert call.kernel == "entry"
    assert call.grid is not None
    assert len(call.positional) == 1


def test_a_launch_has_its_arguments() -> None:
    (call,) = launches("entry[2, 3](x, *rest, num_warps=8)")
    assert list(call.keywords) == ["num_warps"]
    assert call.starred
    assert call.line == 8
