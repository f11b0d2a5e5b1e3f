"""Questions to people: what was shown, and what they have answered. Written to the ledger once."""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from rehome.domain.run.approval_terms import Person
from rehome.domain.run.askers import Askers, Term

_CODE = 8


class AnswerKind(enum.StrEnum):
    """What has become of a question."""

    APPROVED = "approved"
    REJECTED = "rejected"
    SENT_BACK = "sent_back"  # with another throttle, which is tried out
    NOT_COUNTED = "not_counted"  # approved, but something else than would run, or by an asker
    LAPSED = "lapsed"  # nobody has answered in time
    NOT_ASKED = "not_asked"  # no person had to be


class NoQuestion(enum.StrEnum):
    """Why no person was asked."""

    NOT_REQUIRED = "not_required"  # neither the run nor the policy wants it
    NOTHING_CHANGES = "nothing_changes"  # on the cluster


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked, by one attempt of a task.

    :param plan_id: of a plan, or of new partitions.
    :param ti_id: Airflow's id of the task instance that shows it; every attempt has its own.
    :param terms: what is to be approved, as plain JSON types.
    :param shown: name → SHA-256 of what else the person reads: the text, and the report.
    :param plan_asked_by, run_asked_by, terms_asked_by: who has asked for the plan, for the run that
        asks the question, and for terms that are not the plan's own: as in ``Askers``.
    :param not_asked: why it is none; None = it was shown.
    """

    plan_id: str
    cluster_id: str
    dag_id: str
    run_id: str
    task_id: str
    try_number: int
    ti_id: str
    terms: Mapping[str, Any]
    digest: str
    shown: Mapping[str, str] = field(default_factory=dict)
    plan_asked_by: str = ""
    run_asked_by: str | None = None
    terms_asked_by: Mapping[Term, str] = field(default_factory=dict)
    not_asked: NoQuestion | None = None

    @property
    def askers(self) -> Askers:
        """Who had asked for it when it was shown."""
        return Askers(self.plan_asked_by, self.run_asked_by, self.terms_asked_by)

    @property
    def code(self) -> str:
        """What the option to approve is called by: who has read another text cannot choose it."""
        shown = "".join(f"{name}={digest};" for name, digest in sorted(self.shown.items()))
        content = f"{self.digest};{shown}"
        return hashlib.sha256(content.encode()).hexdigest()[:_CODE]


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer as Airflow has recorded it.

    :param by: None = nobody has answered.
    :param at: Airflow's time of it, aware UTC.
    :param detail: why it did not count; for people.
    """

    question_id: int
    answer: AnswerKind
    by: Person | None = None
    at: datetime | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question in the ledger, with its answer.

    :param answered: None = there is no answer, or it could not be recorded.
    """

    question_id: int
    question: Question
    shown_at: datetime
    answered: Answered | None = None
    recorded_at: datetime | None = None
