"""docs/diagnostics.md has a section for every code the package uses, and no other."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "diagnostics.md").read_text("utf-8")
SECTIONS = {
    match[1]: match[0] for match in re.finditer(r"^### (TTG\d{3})\b.*?(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
}


def used_codes() -> set[str]:
    texts = (path.read_text("utf-8") for path in (ROOT / "tt2gl").rglob("*.py"))
    return {code for text in texts for code in re.findall(r"\bTTG\d{3}\b", text)}


def test_every_code_in_use_has_a_section() -> None:
    assert used_codes() - SECTIONS.keys() == set()


def test_every_section_is_of_a_code_in_use() -> None:
    assert SECTIONS.keys() - used_codes() == set()


def test_no_code_has_two_sections() -> None:
    headings = Counter(re.findall(r"^### (TTG\d{3})\b", PAGE, re.MULTILINE))
    assert [code for code, count in headings.items() if count > 1] == []


@pytest.mark.parametrize("code", sorted(SECTIONS))
def test_a_section_tells_cause_remedy_and_example(code: str) -> None:
    assert "**Cause.**" in SECTIONS[code]
    assert "**What to do.**" in SECTIONS[code]
    assert f": {code} " in SECTIONS[code]
