"""A person reads the report and decides."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rehome import alerting, installation
from rehome.operators.dry_run import tried_out
from rehome.run import (
    approval_terms,
    plan_ids,
    plan_of_run,
    recorded_plans,
    run_authority,
    run_params,
    run_request,
    task_errors,
)
from rehome.run.approval_text import approval_text
from rehome.run.authority import own_snapshot
from rehome.ui.links import PlanPageLink, page_of_plan

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.domain.plan.plan import Plan
    from include.domain.request.request import ReassignmentRequest
    from include.domain.run.approval_terms import Terms
    from include.ledger.base.records import PlanRecord

ASKED_AGAIN = 50
"""Attempts: a plan may be sent back as often, and the ledger may be away for a while."""
THROTTLE = "throttle"
"""The field of the form that names it."""


class SentBackError(AirflowException):
    """Airflow tries the task again, which asks anew: a request for input has one answer only."""


class ApprovePlanOperator(ApprovalOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval names the plan's hash, the rate, the window, and whether the plan may run during
    others. It holds for a plan that is continued later, as long as these stay as they are.
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

    def execute(self, context: Context) -> Any:
        """Wait, or approve in the name of the run's parameters."""
        from include.domain.run.states import PlanState
        from include.reporting.titles import title_of

        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            run_authority.refuse_unasked(context)
            record = plan_of_run.required(context, ledger)
        plan_id = record.plan_id
        if record.state.ended:
            self.log.info("Plan %s is %s: there is nothing to approve.", plan_id, record.state)
            return None
        with task_errors.plain_errors():
            plan, request = run_request.load_plan(context)
            recorded_plans.refuse_changed_files(plan, recorded_plans.plan_directory(context))
            terms = approval_terms.terms_of(context, request)
        if record.state is not PlanState.PLANNED and self._holds(context, record, request, terms):
            self.log.info("Plan %s was approved by %s before.", plan_id, record.approved_by)
            return None
        if plan.moves and self._needs_a_person(record, request):
            context["ti"].xcom_push(key="terms", value=terms.to_json())
            tried = self._tried(context, plan, request, terms)
            self.body = approval_text(
                plan.summary,
                title_of(record),
                terms,
                page_of_plan(plan.plan_id),
                record.askers(run_params.actor_of(context)),
                lasting_s=installation.settings().approval_lasts_s,
                tried=tried,
                sent_back=self._sent_back(context, plan_id),
            )
            if not tried["ok"]:  # with another throttle, it may be
                self.options = [self.SEND_BACK, self.REJECT]
            self.params = _form()
            self.response_timeout = time_left(context)
            self._tell(context, plan, request)
            return super().execute(context)
        self._approve(context, terms, run_params.actor_of(context), by_person=False)
        return None

    def _holds(
        self, context: Context, record: PlanRecord, request: ReassignmentRequest, terms: Terms
    ) -> bool:
        """Whether what was approved is what would be run, by a person whose approval counts."""
        from include.domain.run.states import PlanState
        from include.execution.control.approval import lapses

        runs = record.state is PlanState.RUNNING
        by_person = record.approver is not None and approval_terms.counts(context, record)
        if request.approval and not by_person and not runs:
            return False
        now = None if runs else datetime.now(UTC)
        requested = record.requested_rate_bytes_per_s
        return not lapses(record.approval, terms, now, requested_rate_bytes_per_s=requested)

    def _needs_a_person(self, record: PlanRecord, request: ReassignmentRequest) -> bool:
        """Whether the run asks for it, or the run did that the plan is continued from."""
        return request.approval or record.approver is not None

    def _tried(
        self, context: Context, plan: Plan, request: ReassignmentRequest, terms: Terms
    ) -> dict[str, Any]:
        """The dry run with the throttle of these terms, and with what the cluster has now: made
        anew where it had another throttle, or other caps, broker sets or targets.
        """
        from include.reporting.collect import write_plan_report
        from rehome.hooks.cluster import KafkaClusterHook

        directory = recorded_plans.plan_directory(context)
        found: dict[str, Any] = directory.read_json("dry_run.json")
        same = found["rate_bytes_per_s"] == terms.rate_bytes_per_s
        if same and found.get("settings") == terms.settings:
            return found
        hook = KafkaClusterHook(str(context["params"]["kafka_config_id"]))
        with (
            task_errors.plain_errors(),
            installation.open_ledger() as ledger,
            hook.gateway(installation.settings()) as cluster,
        ):
            snapshot = own_snapshot.uri_of(context)
            result = tried_out(plan, request, snapshot, directory, ledger, cluster)
            write_plan_report(directory, ledger)
            return result.to_json()

    def _tell(self, context: Context, plan: Plan, request: ReassignmentRequest) -> None:
        """Alert people that an approval is needed. Each attempt is another question."""
        from include.alerts.due_alerts import approval_waits

        attempt = f"{context['dag_run'].run_id}#{getattr(context['ti'], 'try_number', 1)}"
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            record = ledger.plan(plan.plan_id)
            left = self.response_timeout
            lapses_at = None if left is None else datetime.now(UTC) + left
            found = approval_waits(plan, record, attempt, request.window_end, lapses_at)
            alerting.raise_alerts(ledger, [found])

    def _sent_back(self, context: Context, plan_id: str) -> str:
        """Why this is asked again in this run; "" = it is asked for the first time."""
        from include.domain.run.event_kind import EventKind

        begun = context["dag_run"].run_after
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            events = [
                event
                for event in ledger.events(plan_id)
                if event.kind is EventKind.APPROVAL_SENT_BACK and event.at >= begun
            ]
        return (
            f"Asked again after {events[-1].actor}'s answer: {events[-1].detail}" if events else ""
        )

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Record who decided what."""
        from include.alerts.kinds import AlertKind
        from include.domain.run.approval_terms import Terms

        plan_id = plan_ids.plan_id_of(context)
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            ledger.close_alerts(plan_id, AlertKind.APPROVAL_WAITING)
        actor = _name(event)
        if event.get("error_type") == "timeout":
            self._lapse(plan_id)
        self.params = _form()
        given = _line((event.get("params_input") or {}).get(THROTTLE))
        chosen = event.get("chosen_options")
        if chosen == [self.SEND_BACK] or (chosen == [self.APPROVE] and given):
            # A throttle given with an approval is not what the numbers were shown for.
            self._send_back(context, plan_id, event, given)
        if event.get("chosen_options") == [self.REJECT]:
            self._reject(plan_id, actor)
            return super().execute_complete(context, event)
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            asked = ledger.plan(plan_id).askers(run_params.actor_of(context))
            approval_terms.refuse_own_approval(context, event, asked)
        result = super().execute_complete(context, event)
        seen = Terms.from_json(context["ti"].xcom_pull(task_ids=self.task_id, key="terms"))
        with task_errors.plain_errors():
            now = approval_terms.terms_of(context, run_request.plan_request(context))
        if now != seen:
            self._ask_again(plan_id, actor, _not_the_same(seen, now))
        self._approve(context, seen, actor, by_person=True)
        return result

    def _send_back(
        self, context: Context, plan_id: str, event: dict[str, Any], text: str
    ) -> NoReturn:
        """Record the throttle that is wanted, or why it cannot be; then Airflow tries again.

        :raises SentBackError: always.
        """
        actor = _name(event)
        with task_errors.plain_errors():
            rate, why = approval_terms.sent_back_with(context, event, text)
            request = run_request.plan_request(context)
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            if rate is not None:
                found = approval_terms.rate_of(context, request, ledger.plan(plan_id))[0]
                ledger.request_rate(plan_id, rate, actor, found_bytes_per_s=found)
        self._ask_again(plan_id, actor, why)

    def _ask_again(self, plan_id: str, actor: str, why: str) -> NoReturn:
        from include.domain.run.event_kind import EventKind

        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            ledger.add_event(EventKind.APPROVAL_SENT_BACK, why, actor=actor, plan_id=plan_id)
        raise SentBackError(f"Plan {plan_id} is asked about again after {actor}'s answer: {why}")

    def _reject(self, plan_id: str, actor: str) -> None:
        from include.domain.run.states import PlanState
        from include.ledger.base.records import EndReason

        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            state = ledger.plan(plan_id).state
            if state.active:
                self.log.info("Plan %s was rejected by %s; it stays %s.", plan_id, actor, state)
                return
            ledger.transition(plan_id, PlanState.CANCELLED, "rejected", actor, EndReason.REJECTED)
        self.log.info("Plan %s was rejected by %s; nothing was changed.", plan_id, actor)

    def _lapse(self, plan_id: str) -> NoReturn:
        """A proposal without an answer ends at its deadline.

        :raises AirflowFailException: always.
        """
        from include.domain.run.states import PlanState

        why = "the proposal had no answer before its deadline"
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            if not ledger.plan(plan_id).state.ended:
                ledger.transition(plan_id, PlanState.CANCELLED, why)
        raise AirflowFailException(
            f"Plan {plan_id} is cancelled: {why}. Nothing was changed. Trigger "
            "reassign_partitions by hand, or wait until its finding opens again."
        )

    def _approve(self, context: Context, terms: Terms, actor: str, *, by_person: bool) -> None:
        plan_id, lasting_s = plan_ids.plan_id_of(context), installation.settings().approval_lasts_s
        given: dict[str, Any] = {"by_person": by_person, "asked_by": run_params.actor_of(context)}
        with task_errors.plain_errors(), installation.open_ledger() as ledger:
            ledger.approve(plan_id, terms.plan_hash, actor, terms, lasting_s=lasting_s, **given)
        self.log.info("Plan %s approved by %s: %s", plan_id, actor, "; ".join(terms.lines()))


def time_left(context: Context) -> timedelta | None:
    """Until a proposal of watching lapses; None = the question waits for as long as it takes."""
    run = context["dag_run"]
    with task_errors.plain_errors(), installation.open_ledger() as ledger:
        start = ledger.watch_start(run.dag_id, run.run_id)
    if start is None or start.deadline is None:
        return None
    return max(start.deadline - datetime.now(UTC), timedelta(seconds=1))


def _not_the_same(seen: Terms, now: Terms) -> str:
    """What has changed while a person decided."""
    from include.execution.control.approval import changed_settings

    changed = [f"`{str(change).replace('`', chr(39))}`" for change in changed_settings(seen, now)]
    if seen.rate_bytes_per_s != now.rate_bytes_per_s or not changed:
        changed.insert(0, "another throttle was asked for")
    return f"what was approved is not what would run by now: {'; '.join(changed)}."


def _name(event: dict[str, Any]) -> str:
    """Who has answered."""
    user = event.get("responded_by_user") or {}
    return str(user.get("name") or user.get("id") or "unknown")


def _line(text: object) -> str:
    """What a person has written, short and on one line: it is shown to others as Markdown."""
    return " ".join(str(text or "").replace("`", "'").split())[:40]


def _form() -> ParamsDict:
    """The field of the form. Not the task's own: the run has a parameter of this name."""
    about = "With Send back: the throttle to try the plan out with, such as 20 MB/s."
    field = Param("", type=["null", "string"], title="Another throttle", description=about)
    return ParamsDict({THROTTLE: field})
