"""The documents are true: a section for every code in use and no other, examples that read, links that lead on."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from tt2gl.launch_file import decode, encode, launch_from_json

pytestmark = pytest.mark.once

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


LAUNCHES = (ROOT / "docs" / "launches.md").read_text("utf-8")
DOCUMENTS = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])


def json_blocks(text: str) -> list[str]:
    return re.findall(r"^```json\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("path", [ROOT / "README.md", ROOT / "docs" / "launches.md"], ids=lambda path: path.name)
def test_the_launches_shown_are_launches(path: Path) -> None:
    document = json.loads(json_blocks(path.read_text("utf-8"))[0])
    assert [launch_from_json(entry).kernel for entry in document["launches"]] == ["softmax_kernel"]


@pytest.mark.parametrize("text", re.findall(r'`(\{"\w+": .+?\})`', LAUNCHES) + json_blocks(LAUNCHES)[1:])
def test_a_tagged_value_shown_reads(text: str) -> None:
    value = json.loads(text)
    assert encode(decode(value)) == value


def anchors(page: str) -> set[str]:
    """As GitHub makes them from headings."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", path.read_text("utf-8")):
        file, _, anchor = link.partition("#")
        page = path.parent / file if file else path
        assert page.exists(), link
        assert not anchor or anchor in anchors(page.read_text("utf-8")), link
