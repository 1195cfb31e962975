"""The page in a browser: Chromium, without a window."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.report.page.samples import sides
from tt2gl.report.page.contents import contents
from tt2gl.report.page.html import html

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [pytest.mark.once, pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")]


def browse(page: str, folder: Path, *options: str) -> tuple[str, list[str]]:
    """What the browser made of a page, and what it said on its console; names lead nowhere."""
    path = folder / "page.html"
    path.write_text(page, "utf-8")
    command = [
        CHROMIUM or "",
        *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
        *("--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"),
        *(f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=1000", *options, path.as_uri()),
    ]
    place = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=place)
    return done.stdout, re.findall(r"CONSOLE.*", done.stderr)


@pytest.fixture(scope="module")
def page() -> str:
    return html(contents("Port of kernels", [sides(), sides("gfx942")]))


def test_what_goes_wrong_is_seen(page: str, tmp_path: Path) -> None:
    broken = page.replace("</body>", '<img src="http://example.com/x.png"><script>missing()</script></body>')
    _, said = browse(broken, tmp_path, "--dump-dom")
    assert any("Content Security Policy" in line for line in said)
    assert any("missing is not defined" in line for line in said)


def test_the_page_is_read_without_a_word(page: str, tmp_path: Path) -> None:
    dom, said = browse(page, tmp_path, "--dump-dom")
    assert said == []
    # The script has run, and counts.
    assert "4 of 4</span>" in dom
    assert dom.count("<article") == page.count("<article") == 6


def test_the_list_is_filtered_and_sorted(page: str, tmp_path: Path) -> None:
    steps = """<script>
    const filter = document.getElementById("filter");
    filter.value = "SORT sm90";
    filter.dispatchEvent(new Event("input"));
    const status = document.querySelectorAll("#list th")[3];
    status.click(); status.click();
    const rows = [...document.querySelectorAll("#list tbody tr")];
    document.title = rows.map((row) => `${row.cells[0].textContent} ${row.cells[2].textContent} ${row.hidden}`).join();
    </script>"""
    dom, said = browse(page.replace("</body>", f"{steps}</body>"), tmp_path, "--dump-dom")
    assert said == []
    rows = ("sort_kernel sm90 false", "sort_kernel gfx942 true", "add_kernel sm90 true", "add_kernel gfx942 true")
    assert f"<title>{','.join(rows)}</title>" in dom
    assert "1 of 4</span>" in dom


def test_a_link_opens_what_it_leads_to(page: str, tmp_path: Path) -> None:
    jump = "<script>location.hash = '#p0';</script>"
    closed, _ = browse(page, tmp_path, "--dump-dom")
    dom, said = browse(page.replace("</body>", f"{jump}</body>"), tmp_path, "--dump-dom")
    assert said == []
    assert len(re.findall(r"<details open[^>]*><summary>Layouts", closed)) == 0
    assert len(re.findall(r"<details open[^>]*><summary>Layouts", dom)) == 1


def test_all_is_there_without_the_script(page: str, tmp_path: Path) -> None:
    plain = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
    dom, said = browse(plain, tmp_path, "--dump-dom")
    assert said == []
    assert dom.count("<article") == 6
    assert '<p class="tools" hidden' in dom


def test_the_page_is_drawn(page: str, tmp_path: Path) -> None:
    picture = tmp_path / "page.png"
    browse(page, tmp_path, f"--screenshot={picture}", "--window-size=1200,1600")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 50_000
