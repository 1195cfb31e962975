from __future__ import annotations

import json
from pathlib import Path

from tests.report.page.samples import sides
from tt2gl.report.page.write import write_report


def test_three_files_that_say_the_same_each_time(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        written = write_report(tmp_path / folder, "t", [sides(), sides("gfx942")])
        assert [path.name for path in written] == ["report.html", "report.md", "report.json"]
    for name in ("report.html", "report.md", "report.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_the_document_is_that_of_the_commands_and_more(tmp_path: Path) -> None:
    write_report(tmp_path, "t", [sides()])
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["summary"] == {"converted": 2, "kept": 1, "failed": 0, "equal": 4, "not_equal": 0}
    assert found["kernels"][0]["device"]["speedup"] == 1.25
    assert "+@gluon.jit" in found["kernels"][0]["diff"].split("\n")
    assert [layout["name"] for layout in found["kernels"][0]["layouts"]] == ["layout", "a_shared"]
    assert ["diff" in entry for entry in found["kernels"]] == [True, False, True]
    assert found["files"] == [
        {
            "file": "ops/k.py",
            "output": "out/ops/k.py",
            "diff": " import triton\n+from triton.experimental import gluon\n \n \n ",
        }
    ]
    assert [(each["code"], each["lines"], len(each["holds"])) for each in found["reasons"]] == [
        ("TTG301", 4, 1),
        ("TTG210", 0, 0),
        ("TTG504", 0, 0),
    ]
