"""What MkDocs does beside its configuration: whole folders in `nav`, and diagrams without a CDN."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

DIAGRAMS = "assets/mermaid.js"
"""Where it is not loaded before the theme's own script, that would ask another host for it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the pages of a folder in the place of each entry of `nav` that ends with "/"."""
    config.nav = list(_entries(config.nav or [], Path(config.docs_dir)))
    return config


def _entries(nav: list[Any], docs: Path) -> Iterator[Any]:
    for entry in nav:
        if isinstance(entry, dict):
            yield {
                title: list(_entries(below, docs)) if isinstance(below, list) else below
                for title, below in entry.items()
            }
        elif entry.endswith("/"):
            pages = (path for path in sorted((docs / entry).glob("*.md")))
            yield from (f"{entry}{path.name}" for path in pages if path.name != "index.md")
        else:
            yield entry


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Load the diagrams' script where there is a diagram."""
    if 'class="mermaid"' not in html:
        return html
    return f'<script src="{get_relative_url(DIAGRAMS, page.url)}"></script>\n{html}'
