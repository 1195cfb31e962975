"""A report as one HTML file: styles, script and drawings are in it, and it asks for nothing else.

It reads without its script, which sorts and filters the list of kernels. A policy in the page forbids all requests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tt2gl.report.document import header
from tt2gl.report.page import tables
from tt2gl.report.page.chart import speed_chart
from tt2gl.report.page.contents import Contents, KernelPage
from tt2gl.report.page.differences import Difference
from tt2gl.report.page.pictures import Picture, pictures
from tt2gl.results import NamedLayout
from tt2gl.targets import get_target

_SIGNS = {"-": "del", "+": "ins"}
_FOLDER = Path(__file__).parent


def html(contents: Contents) -> str:
    """The page."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    gallery = _Gallery()
    environment.filters |= {"rows": _rows, "drawn": gallery.drawn}
    return environment.get_template("page.html").render(
        contents=contents,
        versions=header(),
        tables=tables,
        chart=Markup(speed_chart(contents.kernels)),
        style=Markup((_FOLDER / "page.css").read_text("utf-8")),
        script=Markup((_FOLDER / "page.js").read_text("utf-8")),
    )


class _Gallery:
    """Draws each picture once: what comes again refers to it."""

    def __init__(self) -> None:
        self._anchors: dict[str, str] = {}
        self._known: dict[tuple[object, ...], list[Picture]] = {}

    def drawn(self, page: KernelPage) -> Iterator[tuple[NamedLayout, list[tuple[Markup, str]]]]:
        """A kernel's layouts with their pictures and captions."""
        target = get_target(page.target)
        for layout in page.layouts:
            key = (target.name, layout.text, layout.shape, layout.bits)
            if key not in self._known:
                self._known[key] = pictures(layout, target.warp_size, target.shared_memory_banks)
            yield layout, [(self._picture(picture, page.target), picture.caption) for picture in self._known[key]]

    def _picture(self, picture: Picture, target: str) -> Markup:
        key = f"{target} {picture.key}"
        if key in self._anchors:
            anchor = self._anchors[key]
            return Markup('<p class="again">drawn <a href="#{}">above</a></p>').format(anchor)
        self._anchors[key] = anchor = f"p{len(self._anchors)}"
        return Markup('<div class="picture" id="{}">{}</div>').format(anchor, Markup(picture.svg))


def _rows(difference: Difference) -> Markup:
    """A difference as lines of a `pre`: the numbers are the style's, so that copied text is source."""
    lines = []
    for row in difference.rows:
        if row.sign == "@":
            lines.append("<i>⋯</i>")
            continue
        numbers = f' data-n="{row.before or "":>5} {row.after or "":>5} {row.sign}"'
        name = _SIGNS.get(row.sign, "span")
        lines.append(f"<{name}{numbers}>{escape(row.text)}</{name}>")
    return Markup("\n".join(lines))
