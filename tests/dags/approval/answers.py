"""Answers to a request for approval, and what happens after one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from airflow.providers.standard.operators.hitl import ApprovalOperator


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


def answered_by(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """Has a person approve whatever is asked; what was asked."""
    asked: list[str] = []

    def ask(self: Any, context: Any) -> Any:
        """What the scheduler does once a person has answered in the UI."""
        asked.append(self.body)
        who = {"responded_by_user": {"name": name}, "responded_at": datetime.now(UTC)}
        answer = {"chosen_options": ["Approve"], "params_input": {}}
        return self.execute_complete(context, answer | who)

    monkeypatch.setattr(ApprovalOperator, "execute", ask)
    return asked
