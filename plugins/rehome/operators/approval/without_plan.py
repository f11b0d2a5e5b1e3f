"""What a run that makes no plan asks a person about, and whether one has approved it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from rehome.domain.clock import utc_now
from rehome.domain.run.approval.questions import AnswerKind, NoQuestion
from rehome.domain.run.askers import Askers
from rehome.execution.access.connection_policy import PolicyError
from rehome.operators.approval.asking import ASKED_AGAIN, AskingOperator
from rehome.run import approval_terms, evidence
from rehome.run.asking import hitl
from rehome.run.asking.answer_fault import AnswerFault, Fault
from rehome.run.causes.errors import TaskConflictError
from rehome.run.causes.recorded import tell_end
from rehome.run.causes.task_end import NotApproved, ProposalKind, TaskEnd, TaskReason

if TYPE_CHECKING:
    from rehome.domain.run.approval.questions import Answered, QuestionRecord
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.run.asking.hitl import HumanAnswer
    from rehome.run.context import RunContext

APPROVE_TASK = "approve"
"""The task that asks, in every DAG that has one."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a run proposes to do, all of it by a digest.

    :param terms: what people read of it in the ledger.
    :param reads: name of the file that the person reads.
    """

    kind: ProposalKind
    plan_id: str
    cluster_id: str
    digest: str
    terms: Mapping[str, Any]
    reads: str


def refuse_rejected(context: RunContext, proposed: Proposed) -> None:
    """See that no person has rejected it, or another proposal of the same run: a run that is
    cleared asks nobody else.

    :raises PlanConflictError: a person has.
    """
    for each in context.ledger.questions(proposed.plan_id):
        if each.answered is not None and each.answered.answer is AnswerKind.REJECTED:
            end = TaskEnd(
                TaskReason.REJECTED_BEFORE,
                proposed.plan_id,
                who=str(each.answered.by),
                proposal=proposed.kind,
            )
            raise TaskConflictError(end)


def require_approval(
    context: RunContext, proposed: Proposed, policy: ConnectionPolicy, *, by_person: bool
) -> Answered:
    """See that the run's task `approve` is done by the ledger, for exactly this; its answer.

    :param by_person: whether a person has to have answered, whatever was so when it was asked.
    :raises NotDoneError: it is not.
    :raises PlanConflictError: a person has rejected it.
    :raises PolicyError: the policy wants a person, or another one.
    """
    refuse_rejected(context, proposed)
    run, actor = context.dag_run, context.actor
    last = context.ledger.last_question(proposed.plan_id)
    answered = None if last is None else last.answered
    own = last is not None and (last.question.dag_id, last.question.run_id) == (
        run.dag_id,
        run.run_id,
    )
    counts = (AnswerKind.APPROVED, AnswerKind.NOT_ASKED)
    if last is None or answered is None or not own or answered.answer not in counts:
        raise _not_approved(proposed, NotApproved.NO_ANSWER)
    if last.question.askers.plan != actor:
        raise _not_approved(proposed, NotApproved.OTHER_ASKER)
    lasting = timedelta(seconds=context.settings.approval_lasts_s)
    if utc_now() >= (last.recorded_at or last.shown_at) + lasting:
        raise _not_approved(proposed, NotApproved.TOO_OLD)
    if (last.question.terms, last.question.digest) != (proposed.terms, proposed.digest):
        raise _not_approved(proposed, NotApproved.OTHER_TERMS)
    person = answered.by
    names = frozenset[str]() if person is None else person.names
    name = None if person is None else person.name or person.id
    for askers in (Askers(actor), last.question.askers):
        policy.require_approver(name, askers, *names)
    if person is None and by_person:
        raise _not_approved(proposed, NotApproved.NO_PERSON)
    return answered


def _not_approved(proposed: Proposed, why: NotApproved) -> evidence.NotDoneError:
    return evidence.NotDoneError(
        TaskEnd(
            TaskReason.NOT_APPROVED,
            proposed.plan_id,
            why=why,
            task=APPROVE_TASK,
            proposal=proposed.kind,
        )
    )


class ApproveProposedOperator(AskingOperator):
    """Waits for a person's approval of what the run proposes.

    The approval is bound to the digest of all of it, and is a row of the ledger.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        asking = {"retries": ASKED_AGAIN, "retry_delay": timedelta(seconds=2)}
        super().__init__(**{**kwargs, **asking})

    @abstractmethod
    def proposal(self, context: RunContext) -> Proposed:
        """What the ledger knows that the run proposes.

        :raises NotDoneError: the task before has proposed nothing.
        """

    @abstractmethod
    def has_begun(self, context: RunContext) -> bool:
        """Whether the run has begun to carry it out: then nobody is asked."""

    @abstractmethod
    def needs_person(self, context: RunContext) -> bool:
        """Whether a person has to be asked. It also sees that what comes before it is done."""

    @abstractmethod
    def text(self, context: RunContext, file: str, again: str) -> str:
        """What the person is asked, as Markdown.

        :param file: URI of the one to read. :param again: why it is asked again; "" = it is not.
        """

    def step(self, context: RunContext) -> Any:
        """Wait, or record that no person has to be asked."""
        proposed = self.proposal(context)
        if self.has_begun(context):
            return None
        refuse_rejected(context, proposed)
        askers = Askers(context.actor)
        about = (context, proposed.terms, proposed.digest, askers, proposed.cluster_id)
        if not self.needs_person(context):
            self.not_asked(*about, NoQuestion.NOT_REQUIRED)
            return None
        directory, name = context.directory, proposed.reads
        text = self.text(context, f"{directory.uri}/{name}", self.asked_before(context))
        files = {name: directory.digest(name)}
        return self.ask(*about, body=text, other=[self.REJECT], files=files)

    def execute_complete(self, context: RunContext, event: dict[str, Any]) -> Any:
        """Record who decided what. Of the event, only what Airflow itself has recorded counts."""
        answer = hitl.answer_in(event)
        question_record = self.open_question(context, answer)
        if answer.option == self.REJECT:
            self.record(context, question_record, answer, AnswerKind.REJECTED)
            about = context.plan_id
            tell_end(context, TaskEnd(TaskReason.PROPOSAL_REJECTED, about, who=str(answer.by)))
            self.options = [self.APPROVE, self.REJECT]
            return super().execute_complete(context.airflow, event)
        if not self.approves(context, question_record, answer):
            self.ask_again(context, question_record, answer, Fault(AnswerFault.NO_OPTION))
        self._approve(context, question_record, answer)
        return None

    def _approve(
        self, context: RunContext, question_record: QuestionRecord, answer: HumanAnswer
    ) -> None:
        """Approve what was shown, if it is what would be done now and the person may."""
        person = answer.by
        assert person is not None  # open_question has seen to it
        try:
            now_asked = Askers(context.actor)
            approval_terms.refuse_own_approval(
                context, person, question_record.question.askers, now_asked
            )
        except PolicyError as error:
            self.record(context, question_record, answer, AnswerKind.NOT_COUNTED, error.what)
            raise
        now = self.proposal(context)
        if (now.terms, now.digest) != (
            question_record.question.terms,
            question_record.question.digest,
        ):
            self.ask_again(context, question_record, answer, Fault(AnswerFault.PROPOSAL_CHANGED))
        if changed := self.changed_files(context.directory, question_record):
            fault = Fault(AnswerFault.FILE_CHANGED, ", ".join(changed))
            self.ask_again(context, question_record, answer, fault)
        self.record(context, question_record, answer, AnswerKind.APPROVED)
        self.log.info("%s approved by %s", context.plan_id, person)
