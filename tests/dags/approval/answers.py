"""Answers to a request for approval, and what happens after one.

A run in this process waits for nobody: here a person answers at once, as Airflow's API server would
record it. The question is the ledger's, as in production; Airflow's own row of it is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator

from rehome.run.context import RunContext

APPROVE, SEND_BACK, REJECT = "Approve", "Send back", "Reject"
REQUESTER = "(who has triggered the run)"


@dataclass(frozen=True)
class Given:
    """What a person answers.

    :param option: as a person reads it, without its code; or one as it stands.
    :param user_id: Airflow's id of the user; None = the name.
    """

    option: str = APPROVE
    by: str = "ann"
    throttle: str = ""
    user_id: str | None = None

    def event(self, options: list[str]) -> dict[str, Any]:
        """As Airflow hands it to the task."""
        chosen = [each for each in options if each.split(" ")[0] == self.option] or [self.option]
        return {
            "chosen_options": chosen,
            "params_input": {"throttle": self.throttle},
            "responded_by_user": {"name": self.by, "id": self.user_id or self.by},
            "responded_at": datetime.now(UTC),
            "timedout": False,
        }


@dataclass
class Answers:
    """What was asked, and what has come of the answers."""

    bodies: list[str] = field(default_factory=list)
    options: list[list[str]] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    @property
    def names(self) -> list[list[str]]:
        """The options of each question, without their codes."""
        return [
            [APPROVE if each.startswith(APPROVE) else each for each in one] for one in self.options
        ]


def answered(
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[Answers], Given],
    *,
    again: bool = True,
) -> Answers:
    """Has people answer whatever is asked.

    :param answer: the next answer, by what was asked so far.
    :param again: whether what is asked again is asked at once, as by Airflow's next attempt.
    """
    from rehome.run.asking import hitl
    from rehome.run.causes.errors import AskedAgainError

    found = Answers()

    def ask(self: Any, context: Any) -> Any:
        found.bodies.append(self.body)
        found.options.append(list(self.options))
        given = answer(found)
        if given.by == REQUESTER:
            given = replace(given, by=RunContext(context).actor)
        event = given.event(self.options)
        if "throttle" not in self.params:
            event["params_input"] = {}
        try:
            return self.execute_complete(RunContext(context), event)
        except AskedAgainError as error:
            if not again:
                raise
            found.refused.append(str(error))
            return self.execute(context)

    monkeypatch.setattr(
        hitl, "show_question", lambda asking, ti_id: (asking.body, list(asking.options))
    )
    monkeypatch.setattr(ApprovalOperator, "execute", ask)
    return found


def answered_by(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Has a person approve whatever is asked; what was asked."""
    return answered(monkeypatch, lambda _: Given(by=name), again=False).bodies


def after_approval(
    monkeypatch: pytest.MonkeyPatch, approve: type[Any], then: Callable[[], None]
) -> None:
    """Have something happen between the approval and the start."""
    really = approve.execute

    def execute(self: Any, context: Any) -> Any:
        result = really(self, context)
        then()
        return result

    monkeypatch.setattr(approve, "execute", execute)
