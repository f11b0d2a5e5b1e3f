"""A headless Chromium, and what a page must never do in it: a plugin for tests of the page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from tests.session.needs import Need, needs

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Request, Response


PATIENCE_MS = 180_000
"""Of everything that is awaited: Playwright would wait for 30 s, or for 5 s what is expected."""
NOTHING_MOVES = """
    const still = new CSSStyleSheet();
    still.replaceSync("*, ::before, ::after { animation: none !important; }");
    document.adoptedStyleSheets.push(still);
"""
"""Airflow has a bar run to and fro over a run's page, for as long as the run goes on: without a
graphics card, 0.14 s of processor time a second.
"""


@dataclass
class Watched:
    """A page, and what it did that it should not have.

    :param faults: errors of scripts, what the console says, answers above 399, and requests to
        other hosts.
    """

    page: Page
    faults: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
@needs(Need.BROWSER)
def browser() -> Iterator[Browser]:
    """Ends with the module: while it runs, nothing else may use asyncio in this thread."""
    from playwright.sync_api import expect, sync_playwright

    path = shutil.which("chromium")
    assert path is not None, "Chromium is missing: run `make browser`"
    with sync_playwright() as playwright:
        expect.set_options(timeout=PATIENCE_MS)
        opened = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox"], timeout=PATIENCE_MS
        )
        yield opened
        opened.close()


@contextmanager
def opened(
    browser: Browser,
    url: str,
    *,
    token: str = "",
    width: int = 1280,
    scheme: str = "light",
    expected: tuple[str, ...] = (),
) -> Iterator[Watched]:
    """A tab of a user's own.

    :param token: what Airflow gave the user at login; "" = no user is logged in.
    :param expected: parts of faults that the test provokes.
    """
    options: dict[str, Any] = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    context = browser.new_context(**options)
    if token:
        context.add_cookies([{"name": "_token", "value": token, "url": url}])
    context.add_init_script(NOTHING_MOVES)
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    watched = Watched(page)
    faults = watched.faults
    # A blob belongs to an origin: a path prefix is no part of its address.
    blobs = f"blob:{urlsplit(url)._replace(path='').geturl()}"
    page.on("console", lambda said: faults.append(f"console {said.type}: {said.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))

    def asks_elsewhere(asked: Request) -> None:
        if not asked.url.startswith((url, blobs, "data:")):
            faults.append(asked.url)

    def is_refused(got: Response) -> None:
        if got.status >= 400:
            faults.append(f"{got.status} of {got.url}")

    page.on("request", asks_elsewhere)
    page.on("response", is_refused)
    try:
        yield watched
        unexpected = [fault for fault in faults if not any(part in fault for part in expected)]
        assert unexpected == []
    finally:
        context.close()


CONTRAST = "color-contrast"
"""The costliest rule of axe-core; it depends on the theme, and on no width."""


def serious(page: Page, *, only: str = "", without: str = "") -> list[str]:
    """What axe-core calls a serious or critical obstacle for people with a disability.

    :param only: the one rule of axe-core's to ask; "" = all.
    :param without: a rule not to ask.
    """
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if only:
        options["runOnly"] = [only]
    if without:
        options["rules"] = {without: {"enabled": False}}
    if page.evaluate("!window.axe"):
        page.evaluate(Axe().axe_script)
    found = page.evaluate("options => axe.run(options).then(all => all.violations)", options)
    return [
        f"{item['id']}: {item['help']}: {[node['html'][:200] for node in item['nodes']]}"
        for item in found
        if item["impact"] in ("serious", "critical")
    ]


def overflow(page: Page) -> int:
    """By how many pixels a page is wider than its window."""
    wide: int = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    return wide


def keep(page: Page, name: str) -> None:
    """A screenshot, where ``REHOME_SCREENSHOTS`` names a directory for them."""
    if place := os.environ.get("REHOME_SCREENSHOTS"):
        page.screenshot(path=f"{place}/{name.replace(' ', '-')}.png", full_page=True)
