"""Libraries of the browser are those that are pinned, with licences; nothing is fetched."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

UI = Path(__file__).resolve().parents[2] / "plugins" / "rehome" / "ui"
VENDOR = UI / "static" / "vendor"
PINNED: dict[str, str] = json.loads((VENDOR / "package.json").read_text())["dependencies"]


@pytest.mark.parametrize("package", PINNED)
def test_versions_are_exact(package: str) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", PINNED[package])


@pytest.mark.parametrize("script", sorted(VENDOR.glob("*.js")), ids=lambda path: path.stem)
def test_each_library_has_its_licence(script: Path) -> None:
    assert len(script.with_suffix(".LICENSE").read_text()) > 200


@pytest.mark.parametrize(("package", "file"), [("htmx.org", "htmx.js"), ("uplot", "uplot.js")])
def test_what_is_vendored_is_what_is_pinned(package: str, file: str) -> None:
    assert PINNED[package] in (VENDOR / file).read_text()


def test_no_page_names_another_host() -> None:
    own = [*(UI / "templates").glob("*.html"), *(UI / "static").glob("*.*")]
    namespaces = "http://www.w3.org/2000/svg"
    found = {
        path.name: re.findall(r"(?:https?:)?//[a-z][\w.]+\.\w+", text)
        for path in own
        if (text := path.read_text().replace(namespaces, ""))
    }
    assert {name: hosts for name, hosts in found.items() if hosts} == {}
