"""What the tests of lowering share."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tt2gl.lowering.block_pointers import lowered
from tt2gl.lowering.steps import Lowered
from tt2gl.source import read_source

HEADER = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"

Lower = Callable[..., Lowered]


@pytest.fixture
def lower(tmp_path: Path) -> Lower:
    """A kernel's body (after the header) lowered; `signature` has its parameters."""

    def run(
        body: str,
        signature: str = "x_ptr, y_ptr, n, m, s, BLOCK: tl.constexpr, B: tl.constexpr",
        *,
        at_use: bool = False,
    ) -> Lowered:
        text = f"{HEADER}def kernel({signature}):\n{textwrap.indent(textwrap.dedent(body), '    ')}"
        return lowered(read_source(tmp_path / "kernel.py", text), at_use=at_use)

    return run


@pytest.fixture
def body(lower: Lower) -> Callable[..., str]:
    """The lowered body of a kernel, which must lower."""

    def run(text: str, **options: Any) -> str:
        done = lower(text, **options)
        assert done.functions == ("kernel",)
        return textwrap.dedent(done.text.partition("):\n")[2])

    return run
