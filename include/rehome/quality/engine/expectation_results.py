"""Results of Great Expectations, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehome.quality.engine.results import ROW_LENGTH, ROWS_SHOWN, ExpectationOutcome, Status
from rehome.quality.engine.rules import Rule


@dataclass(frozen=True, slots=True)
class ExpectationResult:
    """The result of one expectation.

    :param exception: why the check crashed; "" = it ran.
    :param count: rows that break it.
    :param rows: the first of them, each with the rule's keys and shown columns.
    """

    holds: bool
    exception: str = ""
    count: int = 0
    rows: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> ExpectationResult:
        """Read from the JSON of a result: its shape differs by kind of expectation and of crash.

        Great Expectations reports ``success: false`` both for broken data and for a crashed check;
        this function distinguishes them.
        """
        exception = _exception(result["exception_info"])
        content = result.get("result") or {}
        if "details" in content:  # an SQL query of its own
            rows = content["details"].get("unexpected_rows") or []
            count = content.get("observed_value") or 0
        else:
            rows = content.get("partial_unexpected_index_list") or []
            count = content.get("unexpected_count") or 0
        return cls(bool(result["success"]), exception, int(count), tuple(rows[:ROWS_SHOWN]))


def outcome_of(rule: Rule, judged: Sequence[ExpectationResult]) -> ExpectationOutcome:
    """The outcome of a rule from those of its expectations."""
    crashes = [item.exception for item in judged if item.exception]
    if crashes:
        return _outcome(rule, Status.CRASHED, exception=_first_line(crashes[0]))
    broken = [item for item in judged if not item.holds]
    if not broken:
        return _outcome(rule, Status.PASSED)
    rows = _together(rule, broken)
    complete = all(item.count == len(item.rows) for item in broken)
    # Rows may break several expectations of a rule: no fewer than break one.
    count = len(rows) if complete else max(item.count for item in broken)
    shown = tuple(row_text(rule, row) for row in rows[:ROWS_SHOWN])
    return _outcome(rule, Status.FAILED, offending_count=count, offending_rows=shown)


def _together(rule: Rule, broken: Iterable[ExpectationResult]) -> list[Mapping[str, Any]]:
    """The rows that break any of a rule's expectations, by their keys. Identical rows count as
    often as a single expectation lists them.
    """
    rows: dict[str, Mapping[str, Any]] = {}
    times: Counter[str] = Counter()
    for item in broken:
        counts = Counter(row_text(rule, row) for row in item.rows)
        times |= counts
        rows |= {row_text(rule, row): row for row in item.rows}
    order = sorted(rows, key=lambda text: [_sortable(rows[text].get(key)) for key in rule.keys])
    return [rows[text] for text in order for _ in range(times[text])]


def _sortable(value: Any) -> tuple[bool, bool, Any]:
    has_value = value is not None
    number = isinstance(value, int | float)
    return has_value, not number, value if number else str(value)


def row_text(rule: Rule, row: Mapping[str, Any]) -> str:
    """A row by its keys and what the rule shows of it, no longer than a line."""
    shown = dict.fromkeys((*rule.keys, *rule.shows))
    text = ", ".join(f"{name} {row[name]}" for name in shown if row.get(name) is not None)
    return text if len(text) <= ROW_LENGTH else f"{text[: ROW_LENGTH - 1]}…"


def _exception(info: Mapping[str, Any]) -> str:
    if "raised_exception" in info:
        return str(info["exception_message"]) if info["raised_exception"] else ""
    messages = [
        str(item["exception_message"]) for item in info.values() if item["raised_exception"]
    ]
    return "; ".join(messages)


def _first_line(message: str) -> str:
    return (message.strip().splitlines() or ["no message"])[0][:500]


def _outcome(rule: Rule, status: Status, **details: Any) -> ExpectationOutcome:
    return ExpectationOutcome(rule.name, rule.table, status, rule.remedy, **details)
