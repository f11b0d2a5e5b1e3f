"""The page that lists every kind of alert, as the catalogue says."""

from __future__ import annotations

from handbook.markdown import table
from rehome.alerts.catalog import CATALOG, CatalogEntry
from rehome.alerts.kinds import Repeats

AGAIN = {
    Repeats.ONCE: "once",
    Repeats.AGAIN: "every `alert_again_s`, while it lasts",
    Repeats.DAILY: "daily, while it lasts",
    Repeats.ON_THE_PAGE: "on the page only",
}


def alerts_page() -> str:
    """Markdown: a row for each kind, the worst first."""
    rows = [
        (
            _name(entry),
            entry.severity.value,
            entry.raised,
            AGAIN[entry.repeats],
            entry.closes,
            entry.next_step,
        )
        for entry in CATALOG
    ]
    return f"""# Alerts

The setting [`alert_channels`](settings.md) says where alerts are sent. Each kind that is sent has
[a page of its own](../alerts/index.md).

{table(("alert", "severity", "raised when", "sent", "over when", "next step"), rows)}
"""


def _name(entry: CatalogEntry) -> str:
    if not entry.sent:
        return f"`{entry.kind.value}`"
    return f"[`{entry.kind.value}`](../alerts/{entry.kind.value}.md)"
