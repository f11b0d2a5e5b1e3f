"""A person reads the report and decides."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict

from rehome import alerting
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.domain.run.approval.questions import Answered, AnswerKind
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.states import PlanState
from rehome.execution.access.connection_policy import PolicyError
from rehome.fleet import plan_settings
from rehome.ledger.base.records import EndReason
from rehome.links import PlanPageLink, page_of_plan
from rehome.operators.approval.asking import ASKED_AGAIN, AskingOperator
from rehome.operators.dry_run import tried_out
from rehome.reporting.titles import title_of
from rehome.run import (
    approval_terms,
    evidence,
    plan_of_run,
    recorded_plans,
    run_authority,
    run_request,
)
from rehome.run.asking import hitl
from rehome.run.asking.answer_fault import AnswerFault, Fault
from rehome.run.asking.approval_text import approval_text, not_the_same, plain
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import tell_end
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.evidence import REPORT_FILE
from rehome.run.words.answer_words import (
    OTHER_THROTTLE,
    lapsed_approval_text,
    other_report_text,
)
from rehome.run.words.job_words import lapsed_text

if TYPE_CHECKING:
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.domain.run.approval.questions import QuestionRecord
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.asking.hitl import HumanAnswer
    from rehome.run.context import RunContext
    from rehome.run.run_request import TaskPlan

THROTTLE = "throttle"
"""The field of the form that names it."""


class ApprovePlanOperator(AskingOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval names the plan's hash, the rate, the window, and whether the plan may run during
    others, what else the plan does, and what was shown of it. It holds for a plan that is continued
    later, as long as these stay as they are.
    Rejecting cancels a plan that has not started; nothing was changed. Sending it back with another
    throttle tries it out with that one, and asks again.
    """

    SEND_BACK = "Send back"

    operator_extra_links = (PlanPageLink(),)
    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        asking = {"retries": ASKED_AGAIN, "retry_delay": timedelta(seconds=2)}
        super().__init__(subject="Approve the reassignment?", **{**kwargs, **asking})
        self.options = [self.APPROVE, self.SEND_BACK, self.REJECT]

    def step(self, context: RunContext) -> Any:
        """Wait for a person, or record that none has to be asked."""
        run_authority.refuse_unasked(context)
        record = plan_of_run.require_plan(context)
        plan_id = record.plan_id
        if record.state.ended:
            self.log.info("Plan %s is %s: there is nothing to approve.", plan_id, record.state)
            return None
        task = run_request.task_plan(context, record)
        recorded_plans.refuse_changed_files(task.plan, task.directory)
        tried = self._try_out(task)
        terms = approval_terms.terms_of(task)
        why = ""
        if record.state is not PlanState.PLANNED:
            why = approval_terms.why_not(task, terms)
            if not why:
                given = record.approval.by_whom if record.approval else ""
                self.log.info("Plan %s was approved by %s before.", plan_id, given)
                return None
        changes = terms.effects is None or terms.effects.changes_cluster
        if changes and self._needs_a_person(record, task.request):
            return self._ask(task, terms, tried, why)
        self._approve_by_parameters(context, terms)
        return None

    def _needs_a_person(self, record: PlanRecord, request: ReassignmentRequest) -> bool:
        """Whether the run asks for it, or the run did that the plan is continued from."""
        return request.approval or record.approver is not None

    def _ask(self, task: TaskPlan, terms: Terms, tried: Mapping[str, Any], why: str) -> Any:
        from rehome.account.evidence import GATES
        from rehome.reporting.collect import write_plan_report

        context, plan, record, directory = task.context, task.plan, task.record, task.directory
        askers = record.askers(context.actor)
        again = self.asked_before(context)
        if record.approval is not None and why and not again:
            again = lapsed_approval_text(record.approval.by_whom, why)
        body = approval_text(
            plan.summary,
            title_of(record),
            terms,
            page_of_plan(plan.plan_id),
            askers,
            lasting_s=context.settings.approval_lasts_s,
            tried=tried,
            gates=directory.read_json(GATES) if directory.exists(GATES) else (),
            sent_back=again,
        )
        self.params = _form()
        deadline = lapses_at(context, task.request.window_end)
        write_plan_report(directory, context.ledger)  # of the files as they were recorded
        self._tell(task, deadline)
        # Last: a channel may have taken a minute, and the window ends when it ends.
        self.response_timeout = None if deadline is None else _until(deadline)
        return self.ask(
            context,
            terms.to_json(),
            terms.digest,
            askers,
            record.cluster_id,
            body=body,
            other=[self.SEND_BACK, self.REJECT],
            may_approve=bool(tried["ok"]),  # with another throttle, it may be
            files={REPORT_FILE: directory.digest(REPORT_FILE)},
        )

    def _try_out(self, task: TaskPlan) -> Mapping[str, Any]:
        """The dry run at the throttle of now, and with what the cluster has now: made anew where it
        had another throttle, other caps, broker sets or targets, or where its file was changed.

        :raises NotDoneError: the run has made no dry run at all.
        """
        context, record, request, directory = (
            task.context,
            task.record,
            task.request,
            task.directory,
        )
        try:
            trial = evidence.read_dry_run(context, record.plan_id, directory).content
        except evidence.FileChangedError as error:
            self.log.warning("%s It is tried out anew.", error)
            trial = {}
        if trial:
            compared = plan_settings.ComparedSettings.of(
                directory, record.action, context.connection, begun=record.state.active
            )
            rate = approval_terms.rate_of(context, request, record)[0]
            own = approval_terms.rates_by_broker_of(request, record, rate).to_json()
            as_tried = trial["rate_bytes_per_s"] == rate and trial.get("own_rates", {}) == own
            if as_tried and trial.get("settings") == compared.counting:
                return trial
        with context.gateway() as cluster:
            return tried_out(task, own_snapshot.uri_of(context), cluster).to_json()

    def _tell(self, task: TaskPlan, deadline: datetime | None) -> None:
        """Alert people that an approval is needed. Each attempt is another question."""
        from rehome.alerts.due_alerts import approval_waits

        context, plan = task.context, task.plan
        attempt = f"{context.dag_run.run_id}#{getattr(context.ti, 'try_number', 1)}"
        record = context.ledger.plan(plan.plan_id)
        alert = approval_waits(plan, record, attempt, task.request.window_end, deadline)
        alerting.raise_alerts(context.ledger, [alert])

    def execute_complete(self, context: RunContext, event: dict[str, Any]) -> Any:
        """Record who decided what. Of the event, only what Airflow itself has recorded counts."""
        plan_id, answer = context.plan_id, hitl.answer_in(event)
        context.ledger.close_alerts(plan_id, AlertKind.APPROVAL_WAITING)
        if answer.timed_out:
            self._lapse(context, plan_id, self.question(context), answer)
        question_record = self.open_question(context, answer)
        given = _line(answer.fields.get(THROTTLE))
        approved = self.approves(context, question_record, answer)
        if answer.option == self.SEND_BACK or (approved and given):
            # A throttle given with an approval is not what the numbers were shown for.
            self._send_back(context, question_record, answer, given)
        if answer.option == self.REJECT:
            self.record(context, question_record, answer, AnswerKind.REJECTED)
            self._reject(context, plan_id, str(answer.by))
            self.options, self.params = [self.APPROVE, self.REJECT], _form()
            return super().execute_complete(context.airflow, event)
        if not approved:
            self.ask_again(context, question_record, answer, Fault(AnswerFault.NO_OPTION))
        self._approve(context, question_record, answer)
        return None

    def _approve(
        self, context: RunContext, question_record: QuestionRecord, answer: HumanAnswer
    ) -> None:
        """Approve what was shown, if it is what would run now and the person may."""
        plan_id, person = context.plan_id, answer.by
        assert person is not None  # open_question has seen to it
        now_asked = context.ledger.plan(plan_id).askers(context.actor)
        try:
            then_asked = question_record.question.askers
            approval_terms.refuse_own_approval(context, person, then_asked, now_asked)
        except PolicyError as error:
            self.record(context, question_record, answer, AnswerKind.NOT_COUNTED, error.what)
            raise
        terms_shown = Terms.from_json(question_record.question.terms)
        if changed := self._changes_text(context, question_record, terms_shown):
            self.ask_again(context, question_record, answer, Fault(AnswerFault.CHANGED, changed))
        given: dict[str, Any] = {
            "by_person": True,
            "asked_by": context.actor,
            "lasting_s": context.settings.approval_lasts_s,
            "answered": Answered(
                question_record.question_id, AnswerKind.APPROVED, person, answer.at
            ),
        }
        name = person.name or person.id
        context.ledger.approve(plan_id, terms_shown.plan_hash, name, terms_shown, **given)
        self.log.info("Plan %s approved by %s: %s", plan_id, person, "; ".join(terms_shown.lines()))

    def _changes_text(
        self, context: RunContext, question_record: QuestionRecord, terms_shown: Terms
    ) -> str:
        """What has changed while a person decided, in words; "" = nothing."""
        directory = context.directory
        try:
            record = context.ledger.plan(context.plan_id)
            now = approval_terms.terms_of(run_request.task_plan(context, record))
        except evidence.FileChangedError as error:
            return plain(error.what)
        changed = not_the_same(terms_shown, now)
        if not changed and self.changed_files(directory, question_record):
            changed = other_report_text(REPORT_FILE)
        return changed

    def _send_back(
        self, context: RunContext, question_record: QuestionRecord, answer: HumanAnswer, text: str
    ) -> NoReturn:
        """Record the throttle that is wanted, or why it cannot be; then Airflow tries again.

        :raises AskedAgainError: always.
        """
        person = answer.by
        assert person is not None  # open_question has seen to it
        plan_id = context.plan_id
        rate, fault = approval_terms.sent_back_with(context, person, text)
        request = run_request.plan_request(context)
        if rate is not None:
            record = context.ledger.plan(plan_id)
            present_rate = approval_terms.rate_of(context, request, record)[0]
            who = person.name or person.id
            context.ledger.request_rate(plan_id, rate, who, found_bytes_per_s=present_rate)
        self.ask_again(context, question_record, answer, fault)

    def _reject(self, context: RunContext, plan_id: str, actor: str) -> None:
        state = context.ledger.plan(plan_id).state
        if state.active:
            self.log.info("Plan %s was rejected by %s; it stays %s.", plan_id, actor, state)
            tell_end(context, TaskEnd(TaskReason.REJECTED, plan_id, state, who=actor))
            return
        context.ledger.transition(
            plan_id, PlanState.CANCELLED, "rejected", actor, EndReason.REJECTED
        )
        tell_end(context, TaskEnd(TaskReason.REJECTED, plan_id, who=actor))
        self.log.info("Plan %s was rejected by %s; nothing was changed.", plan_id, actor)

    def _lapse(
        self,
        context: RunContext,
        plan_id: str,
        question_record: QuestionRecord | None,
        answer: HumanAnswer,
    ) -> NoReturn:
        """A question without an answer ends at its deadline, or with its window: it keeps no other
        run waiting. What has begun stays paused.

        :raises EndedError: always.
        """
        ends = context.ledger.plan(plan_id).window_end
        why = lapsed_text(in_window=ends is not None)
        if question_record is not None and question_record.answered is None:
            self.record(context, question_record, answer, AnswerKind.LAPSED, why)
        state = context.ledger.plan(plan_id).state
        if not state.active and not state.ended:
            context.ledger.transition(plan_id, PlanState.CANCELLED, why)
        raise EndedError(TaskEnd(TaskReason.NO_ANSWER, plan_id, state, said=why))

    def _approve_by_parameters(self, context: RunContext, terms: Terms) -> None:
        plan_id, lasting_s = context.plan_id, context.settings.approval_lasts_s
        actor = context.actor
        context.ledger.approve(
            plan_id, terms.plan_hash, actor, terms, lasting_s=lasting_s, asked_by=actor
        )
        self.log.info(
            "No person has to approve plan %s, in the run of %s: %s",
            plan_id,
            actor,
            "; ".join(terms.lines()),
        )


def lapses_at(context: RunContext, window_end: datetime | None) -> datetime | None:
    """When a question needs no answer any more: at the deadline of a proposal of watching, or at
    the end of the run's window; None = it waits for as long as it takes.
    """
    run = context.dag_run
    start = context.ledger.watch_start(run.dag_id, run.run_id)
    deadline = None if start is None else start.deadline
    return min((each for each in (deadline, window_end) if each is not None), default=None)


def _until(deadline: datetime) -> timedelta:
    return max(deadline - utc_now(), timedelta(seconds=1))


def _line(text: object) -> str:
    """What a person has written, short and on one line: it is shown to others as Markdown."""
    return " ".join(str(text or "").replace("`", "'").split())[:40]


def _form() -> ParamsDict:
    """The field of the form. Not the task's own: the run has a parameter of this name."""
    text = {"title": "Another throttle", "description": OTHER_THROTTLE}
    field = Param("", type=["null", "string"], **text)
    return ParamsDict({THROTTLE: field})
