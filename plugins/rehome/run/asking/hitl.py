"""Airflow's questions to people, as Airflow itself keeps them.

What is kept of a question belongs to the task instance, and goes on to its next attempt: Airflow
then shows the old text and options, whatever the new attempt asks. :func:`forget_earlier_questions`
ends that, in the API server and the scheduler; :func:`show_question` says whether it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from airflow.sdk.execution_time import task_runner
from airflow.sdk.execution_time.comms import CreateHITLDetailPayload
from sqlalchemy import delete, event
from sqlalchemy.orm import Session

from rehome.domain.run.approval_terms import Person

if TYPE_CHECKING:
    from airflow.providers.standard.operators.hitl import HITLOperator

ASKING = frozenset({"ApprovePlanOperator", "ApprovePartitionsOperator", "ApproveForeignOperator"})
"""The operators that ask, as Airflow's database names them."""


@dataclass(frozen=True, slots=True)
class HumanAnswer:
    """An answer as Airflow has recorded it, in the transaction in which the user gave it.

    :param option: that was chosen; "" = none.
    :param by: the authenticated user; None = Airflow does not say.
    :param at: when, aware UTC; ``timed_out``: nobody has answered in time.
    """

    option: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    by: Person | None = None
    at: datetime | None = None
    timed_out: bool = False


def answer_in(event: Mapping[str, Any]) -> HumanAnswer:
    """The answer that Airflow hands to a task that had waited for it.

    It comes from the API server, by the task's own token, out of the row of the task instance:
    users write neither that row nor this event. (``get_hitl_detail_content_detail`` would read the
    same row; the supervisor of a task refuses it, "Unhandled request": only triggers may.)
    """
    chosen: Sequence[str] = event.get("chosen_options") or ()
    user = event.get("responded_by_user") or {}
    person = Person(str(user.get("id") or ""), str(user.get("name") or ""))
    timed_out = bool(event.get("timedout")) or event.get("error_type") == "timeout"
    return HumanAnswer(
        chosen[0] if len(chosen) == 1 else "",
        event.get("params_input") or {},
        person if person.names else None,
        event.get("responded_at"),
        timed_out,
    )


def show_question(operator: HITLOperator, ti_id: Any) -> tuple[str | None, list[str]]:
    """Put the question to Airflow; the text and the options that it shows by then."""
    kept: Any = task_runner.SUPERVISOR_COMMS.send(
        msg=CreateHITLDetailPayload(
            ti_id=ti_id,
            options=operator.options,
            subject=operator.subject,
            body=operator.body,
            defaults=operator.defaults,
            multiple=operator.multiple,
            params=operator.serialized_params,
            assigned_users=[],
        )
    )
    return kept.body, list(kept.options)


def forget_earlier_questions() -> None:
    """Have Airflow's database drop the question of an attempt when it puts that attempt into its
    history, which keeps the question and its answer. For processes that have the database. May be
    called again.
    """
    if not event.contains(Session, "before_flush", _forget):
        event.listen(Session, "before_flush", _forget)


def _forget(session: Any, _context: Any, _instances: Any) -> None:
    # Before: with the flush the task instance gets its next id, and the row would follow it.
    past = [ti_id for item in session.new if (ti_id := _attempt_that_asked(item))]
    if not past:
        return
    from airflow.models.hitl import HITLDetail

    table = HITLDetail.__table__
    session.connection().execute(delete(table).where(table.c.ti_id.in_(past)))


def _attempt_that_asked(item: Any) -> Any:
    """The task instance's id of an attempt that goes into the history, if it may have asked."""
    kind = type(item).__name__
    if kind == "HITLDetailHistory":
        return item.ti_history_id
    # Airflow 3.1 keeps no history of questions: those of other DAGs' tasks are left to it.
    if kind == "TaskInstanceHistory" and item.operator in ASKING:
        return item.task_instance_id
    return None
