"""The handbook as a site: it builds, its links hold, and a browser needs no other host for it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort
from playwright.sync_api import expect

from handbook.screenshots import IMAGES, LARGEST_BYTES, SHOWN
from tests.session.browser import opened

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[2]
CONFIG = str(ROOT / "mkdocs.yml")
WITH_DIAGRAMS = ("", "how/planner/", "planning/")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """The test says what goes wrong."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    place = tmp_path_factory.mktemp("site")
    build(load_config(CONFIG, site_dir=str(place), strict=True))
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(place)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_pages_need_no_other_host_and_diagrams_are_drawn(browser: Browser, site: str) -> None:
    with opened(browser, site) as tab:
        for path in WITH_DIAGRAMS:
            tab.page.goto(site + path)
            drawn = tab.page.locator("div.mermaid")
            expect(drawn.first).to_be_visible()
            expect(tab.page.locator("pre.mermaid")).to_have_count(0)
        tab.page.goto(site)
        # What is typed before the index is there is lost.
        tab.page.locator(".md-search__input").click()
        ready = "Type to start searching"
        expect(tab.page.locator(".md-search-result__meta")).to_have_text(ready)
        tab.page.locator(".md-search__input").press_sequentially("stalled")
        expect(tab.page.locator(".md-search-result__link").first).to_be_visible()


@pytest.mark.slow
@pytest.mark.parametrize("link", ["no-page.md", "other.md#no-such-anchor", "../no-such-file.py"])
def test_a_broken_link_ends_the_build(link: str, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(f"# Start\n\n[there]({link})\n")
    (docs / "other.md").write_text("# Other\n")
    config = load_config(
        CONFIG,
        docs_dir=str(docs),
        site_dir=str(tmp_path / "site"),
        nav=["index.md", "other.md"],
        strict=True,
    )
    with pytest.raises(Abort):
        build(config)


@pytest.mark.slow
def test_a_file_outside_the_handbook_is_named_without_a_link(tmp_path: Path) -> None:
    docs, site_dir = tmp_path / "docs", tmp_path / "site"
    docs.mkdir()
    (tmp_path / "code.py").write_text("")
    (docs / "index.md").write_text("# Start\n\n[code.py](../code.py)\n")
    build(
        load_config(
            CONFIG, docs_dir=str(docs), site_dir=str(site_dir), nav=["index.md"], strict=True
        )
    )
    assert "<code>code.py</code>" in (site_dir / "index.html").read_text()


@pytest.mark.slow
def test_a_page_that_no_menu_leads_to_ends_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("index", "forgotten"):
        (docs / f"{name}.md").write_text(f"# {name}\n")
    site_dir = str(tmp_path / "site")
    config = load_config(
        CONFIG, docs_dir=str(docs), site_dir=site_dir, nav=["index.md"], strict=True
    )
    with pytest.raises(Abort):
        build(config)


def test_pictures_are_small_and_each_is_shown() -> None:
    texts = [path.read_text() for path in (ROOT / "docs").rglob("*.md")]
    found = {path.stem: path.stat().st_size for path in IMAGES.glob("*.png")}
    assert set(found) == set(SHOWN.values())
    assert [name for name, size in found.items() if size > LARGEST_BYTES] == []
    assert [name for name in found if not any(f"images/{name}.png" in text for text in texts)] == []


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 150
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text)
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []
