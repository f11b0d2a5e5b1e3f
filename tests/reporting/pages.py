"""Reports as tests read them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from rehome.reporting.data import ReportData
from rehome.reporting.report import render

VOID = {"meta", "br", "line", "polyline", "polygon"}


class Page(HTMLParser):
    """A parsed page: text, ids, links; fails on tags that do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert not self._open, f"left open: {self._open}"

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            assert not name.startswith("on"), f"script in {name}"
            if name == "id":
                self.ids.append(value or "")
            if name in ("href", "src", "srcset", "action"):
                self.links.append(value or "")
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)


def page(data: ReportData) -> Page:
    return Page(render(data))
