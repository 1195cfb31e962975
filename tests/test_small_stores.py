"""Stores of fewer elements than threads: a product's rows are spread for them where Triton spreads them."""

from __future__ import annotations

from pathlib import Path

from tests.test_descriptors import equal
from tests.test_taken_apart import KERNEL, LAUNCH
from tt2gl.convert import convert

ROWS = "    s = tl.sum(tl.dot(a, b), axis=1)\n    tl.store(c_ptr + rows, s)\n"


def test_rows_of_a_product_are_stored_as_they_lie_in_memory(tmp_path: Path) -> None:
    path, text = tmp_path / "kernel.py", KERNEL[: KERNEL.index("    acc = ")] + ROWS
    path.write_text(text)
    made = convert(path, target="sm80", launches=[LAUNCH], root=path.parent)
    assert [each.code for report in made.kernels for each in report.diagnostics] == []
    equal(path, text, made.text, LAUNCH, "sm80")
    assert "gl.store(c_ptr + rows_tile, gl.convert_layout(s, row_layout))" in made.text
