"""Modules that the architecture's tables name are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `((?:[a-z_]+\.)+[a-z_]+)` \|", re.MULTILINE)
ROOTS = (ROOT, ROOT / "include", ROOT / "plugins")


def missing(text: str) -> list[str]:
    paths = {name: name.replace(".", "/") for name in ROW.findall(text)}
    return [
        name
        for name, path in paths.items()
        if not any((root / f"{path}.py").exists() or (root / path).is_dir() for root in ROOTS)
    ]


def test_every_module_in_the_tables_of_the_architecture_exists() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    assert len(ROW.findall(text)) > 50
    assert missing(text) == []


def test_a_module_that_is_not_there_is_found() -> None:
    assert missing("| `execution.decide` | x |\n| `execution.gone` | x |\n") == ["execution.gone"]
