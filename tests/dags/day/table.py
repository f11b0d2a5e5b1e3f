"""The day as a table in docs/on-call.md: ``python -m tests.dags.day.table``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rehome.domain.text import count_text
from tests.dags.day.happened import RESULT, Change, Happened, Started, loaded

DOCUMENT = Path(__file__).parents[3] / "docs" / "on-call.md"
BEGIN, END = "<!-- made by make bench-day -->", "<!-- end -->"


def lines(rows: Sequence[Happened], about: Mapping[str, Any]) -> list[str]:
    """Markdown: a row for each, and below it the alerts as they were received."""
    ran = f"{about['brokers']} brokers, {about['cores']} cores"
    found = [
        f"The last run: {about['date']}, {ran}, {about['real_s']} s.",
        "",
        "| | what happens | what is found | alerts | what is started | why not |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = (
            row.at,
            row.what,
            [*map(_opened, row.opened), *(f"closed: {_change(each)}" for each in row.closed)],
            [f"{each.kind} ({each.severity})" for each in row.told],
            map(_started, row.started),
            [f"{each.kind} {each.subject}: {each.text}" for each in row.not_started],
        )
        texts = [cell if isinstance(cell, str) else _listed(cell) for cell in cells]
        found.append(f"| {' | '.join(texts)} |")
    found += ["", "### What the person on call has received", ""]
    for row in rows:
        found += [f"**{row.what}.**", ""]
        found += [f"- {_plain(each.text)}" for each in row.told] or ["- Nothing."]
        found.append("")
    return found


def _opened(each: Change) -> str:
    return f"{_change(each)}: {each.text}"


def _change(each: Change) -> str:
    return f"**{each.kind}** {each.at}, after {count_text(each.snapshots, 'snapshot')}"


def _started(each: Started) -> str:
    came = f"{count_text(each.moves, 'move')}, {each.outcome or 'no plan'}"
    cause = f" ({each.cause})" if each.cause else ""
    what = f"{each.policy} {each.kind} {each.subject} by `{each.action}`"
    return f"{each.at} {what}: {came}{cause}"


def _listed(items: Iterable[str]) -> str:
    return "<br>".join(_plain(each) for each in items) or "–"


def _plain(text: str) -> str:
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def main() -> None:
    """Write the table of the last run into the document."""
    before, rest = DOCUMENT.read_text().split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    rows, about = loaded()
    DOCUMENT.write_text(before + "\n".join([BEGIN, "", *lines(rows, about), END]) + after)
    print(f"{RESULT} is in {DOCUMENT}.")


if __name__ == "__main__":
    main()
