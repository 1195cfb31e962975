"""The page as a parser reads it."""

from __future__ import annotations

import re
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.report.page.samples import HOSTILE, sides, told
from tt2gl.report.page.contents import contents
from tt2gl.report.page.html import html

VOID = {"meta", "link", "input"}


class Page(HTMLParser):
    """What stands in a page, once it is seen that its tags are in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attributes]
        self.ids.update(value or "" for name, value in attributes if name == "id")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        for tag in {*self.open}:
            self.texts.setdefault(tag, []).append(data)

    def text(self, tag: str) -> str:
        return "".join(self.texts.get(tag, []))


@pytest.fixture(scope="module")
def text() -> str:
    return html(contents("Port of <kernels> & more", [sides(), sides("gfx950")]))


@pytest.fixture(scope="module")
def page(text: str) -> Page:
    return Page(text)


def test_source_is_text(page: Page) -> None:
    assert page.tags["script"] == 1
    assert HOSTILE in page.text("pre")
    assert "mask = n < 4 & 3" in page.text("pre")
    assert page.texts["title"][0] == page.texts["h1"][0] == "Port of <kernels> & more"
    assert "A <cause> & more." in page.text("td")


def test_names_of_files_and_kernels_are_text() -> None:
    name = 'a"><script>x</script>.py'
    file = sides(name=name)
    kernels = tuple(replace(each, kernel=f"<b>{each.kernel}") for each in file.kernels)
    found = Page(html(contents("t", [replace(file, kernels=kernels)])))
    assert (found.tags["script"], name in found.text("h3"), "<b>add_kernel" in found.text("svg")) == (1, True, True)


def test_nothing_is_asked_for(text: str, page: Page) -> None:
    assert {tag for tag, name, _ in page.attributes if name == "src"} == set()
    linked = {value for _, name, value in page.attributes if name in ("href", "xlink:href", "action", "data")}
    assert {value for value in linked if not value.startswith("#")} == {"data:,"}
    assert not re.search(r"https?://|@import|url\(", text)
    (policy,) = [value for tag, name, value in page.attributes if (tag, name) == ("meta", "content") and "src" in value]
    assert policy.startswith("default-src 'none';")


def test_every_link_leads_somewhere_and_every_place_is_one(page: Page) -> None:
    assert set(page.ids.values()) == {1}
    links = {value[1:] for _, name, value in page.attributes if name == "href" and value.startswith("#")}
    assert links <= page.ids.keys()
    assert {"k0-add_kernel", "k1-sort_kernel", "stayed", "speed"} <= links


def test_what_is_not_there_has_no_section() -> None:
    file = sides(ran=False)
    clean = replace(file, kernels=(replace(file.kernels[0], simulate=None),), layouts=())
    found = Page(html(contents("t", [clean])))
    assert {"speed", "stayed"} & found.ids.keys() == set()
    assert (found.tags["svg"], "equal where they ran" in found.text("div")) == (0, False)


def test_equal_pictures_are_drawn_once_a_target(page: Page) -> None:
    # Threads, warps and banks for each target, whose warps or banks differ, and one chart.
    assert page.tags["svg"] == 2 * 3 + 1
    found = Page(html(contents("t", [sides(), sides(name="ops/other.py")])))
    assert found.tags["svg"] == 3 + 1
    assert "drawn above" in "".join(found.texts["p"])


def test_lowering_stands_side_by_side(page: Page) -> None:
    assert "20 | 22" in page.text("td")
    assert ("td", "class", "differs") in page.attributes


def test_the_same_port_gives_the_same_bytes(text: str) -> None:
    assert html(contents("Port of <kernels> & more", [sides(), sides("gfx950")])) == text


def test_a_hundred_kernels_take_less_than_two_seconds() -> None:
    body = "".join(f"    x{line} = gl.load(x_ptr + {line})\n" for line in range(60))
    files = []
    for index in range(50):
        file = sides(name=f"ops/k{index}.py")
        layouts = tuple(replace(each, text=f"{each.text} {index}") for each in file.layouts)
        diagnostics = tuple(told(f"TTG3{code:02}") for code in range(10))
        kernels = tuple(replace(each, diagnostics=diagnostics) for each in file.kernels)
        text = file.port.replace("    mask", f"{body}    mask")
        files.append(replace(file, port=text, layouts=layouts, kernels=kernels))
    start = time.process_time()
    found = contents("t", files)
    page = html(found)
    assert time.process_time() - start < 2.0
    assert (len(found.kernels), page.count("<article")) == (100, 150)
