"""Puts what a benchmark has found into a document, between its marks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"
END = "<!-- end -->"


def put(document: Path, target: str, lines: Sequence[str]) -> None:
    """Replace the text between the marks of a make target.

    :param target: the marks are ``<!-- made by make TARGET -->`` and ``<!-- end -->``.
    """
    begin = f"<!-- made by make {target} -->"
    before, rest = document.read_text().split(begin, 1)
    after = rest.split(END, 1)[1]
    document.write_text(before + "\n".join([begin, *lines, END]) + after)


def table(columns: Mapping[str, str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Markdown: heading → key of a row."""
    lines = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    for row in rows:
        lines.append(f"| {' | '.join(cell(row.get(key)) for key in columns.values())} |")
    return lines


def cell(value: Any) -> str:
    """One value; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int | float) else str(value)
