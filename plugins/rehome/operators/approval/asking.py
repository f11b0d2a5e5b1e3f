"""A task that asks a person. What counts is in the ledger, and what Airflow has of the answer."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from airflow.providers.standard.operators.hitl import ApprovalOperator

from rehome.domain.run.approval.questions import Answered, AnswerKind, Question
from rehome.domain.run.event_kind import EventKind
from rehome.run.asking import hitl
from rehome.run.asking.answer_fault import AnswerFault, Fault
from rehome.run.causes.errors import AskedAgainError
from rehome.run.causes.operator import RecordedOperator
from rehome.run.words.answer_words import (
    A_PERSON,
    APPROVE_EXACTLY,
    STALE_TEXT,
    asked_after_text,
    asked_anew_text,
    fault_text,
    unanswered_text,
)

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.domain.run.approval.questions import NoQuestion, QuestionRecord
    from rehome.domain.run.askers import Askers
    from rehome.run.asking.hitl import HumanAnswer
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory

ASKED_AGAIN = 50
"""Attempts: a question may be asked anew as often, and the ledger may be away for a while."""
TEXT = "text"
"""What is shown of a question itself, besides files."""


class AskingOperator(RecordedOperator, ApprovalOperator):
    """Writes each question to the ledger before it is shown, and its answer once.

    The option to approve carries a code made of all that the person is shown: Airflow refuses an
    answer to another text, such as one in a page that was opened before.
    """

    def ask(
        self,
        context: RunContext,
        terms: Mapping[str, Any],
        digest: str,
        askers: Askers,
        cluster_id: str,
        *,
        body: str,
        other: Collection[str],
        may_approve: bool = True,
        files: Mapping[str, str] | None = None,
    ) -> Any:
        """Write the question down, show it, and wait.

        :param terms: what is to be approved; ``digest``: of it.
        :param body: the text, as Markdown. :param other: options besides the one to approve.
        :param files: name → SHA-256 of what else the person reads.
        :raises AskedAgainError: Airflow shows another text.
        """
        shown = {TEXT: hashlib.sha256(body.encode()).hexdigest(), **(files or {})}
        question = self._question(context, terms, digest, askers, cluster_id, shown)
        option = f"{self.APPROVE} {question.code}"
        self.options = [*([option] if may_approve else []), *other]
        self.body = body + (APPROVE_EXACTLY.format(option=option) if may_approve else "")
        context.ledger.ask(question)
        text, options = hitl.show_question(self, context.ti.id)
        if (text, options) != (self.body, self.options):
            raise AskedAgainError(STALE_TEXT)
        return ApprovalOperator.execute(self, cast("Context", context.airflow))

    def not_asked(
        self,
        context: RunContext,
        terms: Mapping[str, Any],
        digest: str,
        askers: Askers,
        cluster_id: str,
        why: NoQuestion,
    ) -> None:
        """Write down that no person has to be asked, and why."""
        question = self._question(context, terms, digest, askers, cluster_id, {}, why)
        context.ledger.ask(question)

    def _question(
        self,
        context: RunContext,
        terms: Mapping[str, Any],
        digest: str,
        askers: Askers,
        cluster_id: str,
        shown: Mapping[str, str],
        why: NoQuestion | None = None,
    ) -> Any:
        run, ti = context.dag_run, context.ti
        return Question(
            plan_id=context.plan_id,
            cluster_id=cluster_id,
            dag_id=run.dag_id,
            run_id=run.run_id,
            task_id=self.task_id,
            try_number=ti.try_number,
            ti_id=str(ti.id),
            terms=terms,
            digest=digest,
            shown=shown,
            plan_asked_by=askers.plan,
            run_asked_by=askers.run,
            terms_asked_by=askers.terms,
            not_asked=why,
        )

    def question(self, context: RunContext) -> QuestionRecord | None:
        """What this attempt has shown; None = nothing that the ledger knows of."""
        return context.ledger.question_of(str(context.ti.id))

    def open_question(self, context: RunContext, answer: HumanAnswer) -> QuestionRecord:
        """The question that this attempt has shown, and that has no answer yet.

        :raises AskedAgainError: the ledger knows none, it has an answer, or Airflow does not say
            who has given this one.
        """
        question_record = self.question(context)
        if question_record is None:
            self.ask_again(
                context,
                None,
                answer,
                Fault(AnswerFault.SHOWN_NOT_KNOWN),
            )
        if question_record.answered is not None:
            self.ask_again(context, None, answer, Fault(AnswerFault.ANSWERED_BEFORE))
        if answer.by is None:
            self.ask_again(context, question_record, answer, Fault(AnswerFault.NO_PERSON))
        return question_record

    def approves(
        self, context: RunContext, question_record: QuestionRecord, answer: HumanAnswer
    ) -> bool:
        """Whether the answer approves; where it approves another text, it is asked again."""
        if answer.option == f"{self.APPROVE} {question_record.question.code}":
            return True
        if answer.option.startswith(self.APPROVE):
            self.ask_again(context, question_record, answer, Fault(AnswerFault.OTHER_TEXT))
        return False

    @staticmethod
    def changed_files(directory: PlanDirectory, question_record: QuestionRecord) -> list[str]:
        """Files that the person was to read, and that are others by now."""
        shown = {
            name: digest for name, digest in question_record.question.shown.items() if name != TEXT
        }
        there = {name: directory.digest(name) for name in shown if directory.exists(name)}
        return [name for name, digest in shown.items() if there.get(name) != digest]

    @staticmethod
    def record(
        context: RunContext,
        question_record: QuestionRecord,
        answer: HumanAnswer,
        what: AnswerKind,
        detail: str = "",
    ) -> None:
        """Write what has become of a question, where nothing else is written with it."""
        answered = Answered(question_record.question_id, what, answer.by, answer.at, detail)
        context.ledger.record_answer(answered)

    def ask_again(
        self,
        context: RunContext,
        question_record: QuestionRecord | None,
        answer: HumanAnswer,
        fault: Fault,
    ) -> NoReturn:
        """Record why the answer does not count, or what it asks for; Airflow tries again.

        :param question_record: the question, if it has no answer yet.
        :raises AskedAgainError: always.
        """
        plan_id, who, why = context.plan_id, str(answer.by or ""), fault_text(fault)
        what = AnswerKind.SENT_BACK if fault.kind.sends_back else AnswerKind.NOT_COUNTED
        if question_record is not None:
            self.record(context, question_record, answer, what, why)
        actor = who or A_PERSON
        context.ledger.add_event(EventKind.APPROVAL_SENT_BACK, why, actor=actor, plan_id=plan_id)
        raise AskedAgainError(asked_anew_text(plan_id, who, why, sent_back=fault.kind.sends_back))

    def asked_before(self, context: RunContext) -> str:
        """Why this is asked again in this run; "" = it is asked for the first time."""
        run, plan_id = context.dag_run, context.plan_id
        last = context.ledger.last_question(plan_id)
        events = [
            event
            for event in context.ledger.events(plan_id)
            if event.kind is EventKind.APPROVAL_SENT_BACK and event.at >= run.run_after
        ]
        whose = None if last is None else (last.question.dag_id, last.question.run_id)
        if events and (last is None or events[-1].at >= last.shown_at):
            return asked_after_text(events[-1].actor, events[-1].detail)
        if last is not None and whose == (run.dag_id, run.run_id) and last.answered is None:
            return unanswered_text(last.shown_at)
        return ""
