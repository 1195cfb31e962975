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
    ("before", "launch"),
    [
        ("", "entry[(1,)](x)"),
        ("", "entry[lambda meta: (1,)](x, num_warps=4)"),
        ("k = entry; ", "k[(1,)](x)"),
        ("", "entry.run(x, grid=(1,), warmup=False)"),
        ("", "entry.warmup(x, grid=(1,))"),
        ("", "self.entry[(1,)](x)"),
    ],
)
def test_launches(before: str, launch: str) -> None:
    (call,) = launches(before + launch)
    assert call == LaunchCall("entry", 8, 4 + len(before))


def test_launches_come_in_the_order_of_the_text() -> None:
    found = launches('x = "é", entry[2](entry[3](x)); entry[1,](x)')
    assert [call.column for call in found] == sorted(call.column for call in found)
    assert found[0].column == 4 + len('x = "é", '.encode())
    assert len(found) == 3


def test_a_later_alias_is_not_known_yet() -> None:
    assert launches("k[1,](x); k = entry") == ()
