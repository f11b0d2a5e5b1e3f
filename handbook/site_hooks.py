"""Hooks of MkDocs: whole folders in `nav`, no links to files outside docs/, and diagrams that need
no other host.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

DIAGRAMS = "assets/mermaid.js"
"""Where it is not loaded before the theme's own script, that would ask another host for it."""

_LINK_UP = re.compile(r"\[`?(?P<text>[^\]`]+)`?\]\((?P<path>\.\./[^)#]+)\)")


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


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Name files outside docs/ without a link: a git host has them, the site has not.

    A link to a file that does not exist stays, so that the build ends with it.
    """
    docs = Path(config.docs_dir).resolve()
    folder = (docs / page.file.src_uri).parent

    def named(found: re.Match[str]) -> str:
        target = (folder / found["path"]).resolve()
        outside = target.exists() and not target.is_relative_to(docs)
        return f"`{found['text']}`" if outside else found[0]

    return _LINK_UP.sub(named, markdown)


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Load the diagrams' script where there is a diagram."""
    if 'class="mermaid"' not in html:
        return html
    return f'<script src="{get_relative_url(DIAGRAMS, page.url)}"></script>\n{html}'
