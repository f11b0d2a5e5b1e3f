"""Results of a gate, for messages, gates.json and the task's log."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from rehome.domain.text import count_text
from rehome.quality.engine.rules import Rule

if TYPE_CHECKING:
    from great_expectations.core import ExpectationSuiteValidationResult

ROWS_SHOWN = 20
"""The most rows that are kept per broken expectation."""

ROWS_NAMED = 5
"""How many of them a message names; gates.json has all."""

ROW_LENGTH = 300
"""The most characters of a row."""


class Status(enum.StrEnum):
    """Outcome of one expectation. A crash is a status of its own: it says nothing about the
    data.
    """

    PASSED = "passed"
    FAILED = "failed"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class ExpectationOutcome:
    """One rule on one table: it holds where all of its expectations do.

    :param offending_count: rows that break it.
    :param offending_rows: the first of them, as text.
    :param exception: what went wrong where the check itself crashed.
    """

    name: str
    table: str
    status: Status
    remedy: str
    offending_count: int = 0
    offending_rows: tuple[str, ...] = ()
    exception: str = ""


@dataclass(frozen=True, slots=True)
class Validation:
    """Great Expectations' result for one table.

    :param suite: name of its suite, ``gate.table``.
    :param rules: the rules that were checked.
    :param result: of all expectations of these rules, in their order.
    """

    suite: str
    rules: tuple[Rule, ...]
    result: ExpectationSuiteValidationResult


@dataclass(frozen=True, slots=True)
class GateResult:
    """All rules of one gate.

    :param gate: ``snapshot``, ``history`` or ``plan``.
    :param binding: whether a failure stops the run. The history's gate is not binding: a resource
        that fails is not used.
    :param validations: source of the Data Docs; not in gates.json.
    """

    gate: str
    outcomes: tuple[ExpectationOutcome, ...]
    binding: bool = True
    validations: tuple[Validation, ...] = field(default=(), compare=False, repr=False)

    @property
    def passed(self) -> bool:
        """Whether every expectation ran and held."""
        return all(outcome.status is Status.PASSED for outcome in self.outcomes)

    @property
    def crashed(self) -> tuple[ExpectationOutcome, ...]:
        """Expectations whose check crashed."""
        return tuple(item for item in self.outcomes if item.status is Status.CRASHED)

    @property
    def failed(self) -> tuple[ExpectationOutcome, ...]:
        """Expectations that the data breaks."""
        return tuple(item for item in self.outcomes if item.status is Status.FAILED)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types, for gates.json."""
        return {
            "gate": self.gate,
            "passed": self.passed,
            "binding": self.binding,
            "outcomes": [asdict(outcome) for outcome in self.outcomes],
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> GateResult:
        """The inverse of :meth:`to_json`."""
        outcomes = (
            ExpectationOutcome(
                **item
                | {
                    "status": Status(item["status"]),
                    "offending_rows": tuple(item["offending_rows"]),
                }
            )
            for item in content["outcomes"]
        )
        return cls(content["gate"], tuple(outcomes), content.get("binding", True))


def describe(results: Iterable[GateResult]) -> str:
    """The results as text: one line per gate, and the remedy after a failure."""
    lines: list[str] = []
    for result in results:
        failure = (
            "refused"
            if result.binding
            else "too thin: the plan was made without the data that these rules check"
        )
        verdict = "passed" if result.passed else failure
        lines.append(f"Gate on the {result.gate}: {verdict}")
        for outcome in result.outcomes:
            lines += _lines(outcome)
    return "\n".join(lines)


def refusal(result: GateResult) -> str:
    """One paragraph on why a gate did not pass: each expectation, its rows and the remedy."""
    return "\n".join(
        line for outcome in (*result.crashed, *result.failed) for line in _lines(outcome)
    )


def reasons(result: GateResult) -> list[str]:
    """Why a binding gate did not pass: a sentence for each expectation; [] = it has passed."""
    if not result.binding:
        return []
    return [_reason(outcome) for outcome in (*result.crashed, *result.failed)]


def _reason(outcome: ExpectationOutcome) -> str:
    name = outcome.name.replace("_", " ")
    if outcome.status is Status.CRASHED:
        return f"the check that {name} has crashed"
    more = outcome.offending_count - 1
    first = "".join(f": {row}" for row in outcome.offending_rows[:1])
    return f"it does not hold that {name}{first}" + (f" and {more} more" if more > 0 else "")


def _lines(outcome: ExpectationOutcome) -> list[str]:
    lines = [f"  {outcome.status.value:7} {outcome.table}: {outcome.name}"]
    if outcome.status is Status.CRASHED:
        lines.append(f"          the check itself crashed: {outcome.exception}")
    if outcome.status is Status.FAILED:
        shown_rows = outcome.offending_rows[:ROWS_NAMED]
        more = outcome.offending_count - len(shown_rows)
        rows = "; ".join(shown_rows) + (f"; and {more} more" if more > 0 else "")
        lines.append(f"          {count_text(outcome.offending_count, 'row')}: {rows}")
        lines.append(f"          remedy: {outcome.remedy}")
    return lines
