from __future__ import annotations

import re
from dataclasses import replace

from tests.report.page.samples import HOSTILE, sides
from tt2gl.report.page.contents import contents
from tt2gl.report.page.markdown import markdown


def test_what_the_page_says() -> None:
    text = markdown(contents("Port of kernels", [sides()]))
    assert re.findall(r"^##? (.*)", text, re.M) == [
        "Port of kernels",
        "What ported",
        "What stayed, and why",
        "Speed",
        "Kernels",
        "Files",
    ]
    assert "| sm90 | 1 | 1 | 0 |" in text
    assert "| TTG301 | 1 | 1 | 1 | 1 | 4 | A \\<cause\\> \\& more. Do \\`this\\` \\| that. |" in text
    assert "| add\\_kernel | sm90 | 1.250 |" in text
    assert "- `layout` = `BlockedLayout(size_per_thread=[1, 4]" in text


def test_source_stands_in_fences() -> None:
    text = markdown(contents("t", [sides()]))
    (kernel,) = [block for block in re.findall(r"^```diff\n(.*?)^```$", text, re.M | re.S) if "add_kernel" in block]
    assert f"     # {HOSTILE}\n" in kernel


def test_a_fence_in_the_source_ends_none() -> None:
    file = sides()
    port = file.port.replace("    layout", "    # ````\n    layout")
    assert "\n`````diff\n" in markdown(contents("t", [replace(file, port=port)]))


def test_tables_have_as_many_cells_in_every_row() -> None:
    text = markdown(contents("t", [sides(name="a|b.py")]))
    for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1
