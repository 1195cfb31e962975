"""Quotients of constants that loops count to, written out: as constants, which `tl.cdiv` makes scalars of in 3.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lowering.conftest import HEADER
from tests.lowering.test_single_turns import LAUNCH, TEXT, port
from tests.test_descriptors import equal
from tt2gl.lowering.constant_quotients import with_constant_quotients
from tt2gl.source import read_source

COUNTED = "    for d in range(BOUND):\n        tl.store(x_ptr + d, d)\n"
KERNEL = f"{HEADER}def kernel(x_ptr, n, D: tl.constexpr, B: tl.constexpr):\n{COUNTED}"


@pytest.mark.parametrize(
    ("bound", "written"),
    [
        ("tl.cdiv(D, B)", "(D + B - 1) // B"),
        ("0, tl.cdiv(D // 2, B + 1)", "0, ((D // 2) + (B + 1) - 1) // (B + 1)"),
    ],
)
def test_they_are_written_out(tmp_path: Path, bound: str, written: str) -> None:
    path, text = tmp_path / "kernel.py", KERNEL.replace("BOUND", bound)
    path.write_text(text)
    place = text.splitlines().index(f"    for d in range({bound}):") + 1, f"    for d in range({bound}".index("tl.cdiv")
    assert with_constant_quotients(read_source(path), {place}).text == text.replace(bound, written)
    assert with_constant_quotients(read_source(path), set()).functions == ()


@pytest.mark.slow
def test_a_loop_that_counts_to_one_of_one_has_one_turn(tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", TEXT.replace("(0, D, B)", "(tl.cdiv(D, B))").replace("= d +", "= d * B +")
    made = port(path, text, LAUNCH)
    assert "for d in" not in made
    assert made.index("k_buf = ") < made.index("for i in range(")
    equal(path, text, made, LAUNCH)
