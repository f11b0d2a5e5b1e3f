"""Tells people how a run ended: the plan, the state left, the next step."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook, BaseNotifier
from airflow.sdk.exceptions import AirflowNotFoundException

from rehome import installation, plan_of_run, run_context

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.ledger.base.records import PlanRecord
    from include.ledger.store import Ledger

WEBHOOK_CONNECTION = "rehome_webhook"
WEBHOOK_TIMEOUT_S = 10.0

log = logging.getLogger(__name__)


class RehomeNotifier(BaseNotifier):
    """A DAG's failure and success callback. Of what it cannot find out it says so.

    Runs that never started have neither a plan nor params: the context is read with care.

    :param ended: ``failed`` or ``succeeded``.
    :param makes_plan: whether the DAG's runs change the cluster by a plan, and only by one.
    """

    def __init__(self, ended: str, *, makes_plan: bool = False) -> None:
        super().__init__()
        self.ended = ended
        self.makes_plan = makes_plan

    def render_template_fields(self, context: Any, jinja_env: Any = None) -> None:
        """Nothing to render: a scheduler's serialized DAG has no environment to render with."""

    def notify(self, context: Context) -> None:
        """Write to the log, and post to the webhook where one is set up."""
        run = context.get("dag_run")
        facts: dict[str, Any] = {
            "dag_id": getattr(run, "dag_id", None),
            "run_id": getattr(run, "run_id", None) or context.get("run_id"),
            "ended": self.ended,
            "reason": context.get("reason"),
        }
        facts |= _plan_facts(context)
        send(_sentence(facts, self.makes_plan), failed=self.ended == "failed", **facts)


def send(text: str, *, failed: bool = True, **facts: Any) -> None:
    """Tell people, through every channel there is.

    The connection ``rehome_webhook`` (any type; its host is the URL, its password a bearer
    token) gets ``{"text": …}`` with the facts by POST. A channel that fails is reported in the log:
    an alert must not break what it reports on.
    """
    (log.error if failed else log.info)("%s", text)
    try:
        connection = BaseHook.get_connection(WEBHOOK_CONNECTION)
    except AirflowNotFoundException:
        return
    import httpx

    headers = {"Authorization": f"Bearer {connection.password}"} if connection.password else {}
    try:
        answer = httpx.post(
            str(connection.host),
            json={"text": text, **facts},
            headers=headers,
            timeout=WEBHOOK_TIMEOUT_S,
        )
        answer.raise_for_status()
    except httpx.HTTPError as error:
        log.error("The webhook of connection %s failed: %s", WEBHOOK_CONNECTION, error)


def _plan_facts(context: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of the run's plan; {} = that there is none; ``unknown``: why nothing is.

    ``follow_up``: the same of the plan that follows it up, where there is one.
    """
    from include.errors import RehomeError

    if context.get("dag_run") is None or not context.get("params"):
        return {"unknown": "Airflow does not say with which parameters it was triggered."}
    try:
        plan_id = run_context.plan_id_of(context)
        with installation.open_ledger() as ledger:
            record = plan_of_run.known(plan_id, ledger)
            if record is None:
                return {}
            return _facts_of(record, ledger) | _follow_up_facts(record, ledger)
    except RehomeError as error:
        return {"unknown": str(error)}


def _follow_up_facts(record: PlanRecord, ledger: Ledger) -> dict[str, Any]:
    """Only a drain is followed up."""
    from include.domain.request.request import Action
    from include.errors import RehomeError

    if record.action != Action.DRAIN.value:
        return {}
    try:
        follow_up = plan_of_run.known(run_context.follow_up_id(record.plan_id), ledger)
    except RehomeError as error:
        return {"follow_up": {"unknown": str(error)}}
    return {} if follow_up is None else {"follow_up": _facts_of(follow_up, ledger)}


def _facts_of(record: PlanRecord, ledger: Ledger) -> dict[str, Any]:
    moves = [move.state.value for move in ledger.moves(record.plan_id).values()]
    owed = ledger.throttles(record.plan_id, open_only=True)
    return {
        "plan_id": record.plan_id,
        "state": record.state.value,
        "cause": record.cause,
        "moves": {state: moves.count(state) for state in sorted(set(moves))},
        "throttles_owed": [f"{entry.resource} {entry.key}" for entry in owed],
        "report": f"{record.plan_dir}/report.html",
    }


def _sentence(facts: Mapping[str, Any], makes_plan: bool) -> str:
    run = f"Run {facts['run_id']} of {facts['dag_id']} {facts['ended']}."
    if "plan_id" not in facts:
        failed = facts["ended"] == "failed"  # of a success, Airflow says no more than that
        reason = f" {facts['reason']}." if failed and facts["reason"] else ""
        known = "No plan was made; nothing was changed. " if makes_plan else ""
        if "unknown" in facts:
            known = f"What it has changed is not known here: {facts['unknown']} "
        return f"{run}{reason} {known}See the log of the run."
    text, plans = f"{run} {_plan_sentence(facts)}", [facts]
    follow_up = facts.get("follow_up")
    if follow_up is not None and "unknown" in follow_up:
        text += f" Whether a plan follows it up is not known here: {follow_up['unknown']}"
    elif follow_up is not None:
        text += (
            f" What appeared meanwhile is moved by a plan of its own. {_plan_sentence(follow_up)}"
        )
        plans.insert(0, follow_up)
    return f"{text} Next: {_next_step(facts['ended'], plans)}"


def _plan_sentence(facts: Mapping[str, Any]) -> str:
    moves = ", ".join(f"{count} {state}" for state, count in facts["moves"].items()) or "none"
    owed = ", ".join(facts["throttles_owed"]) or "none"
    return (
        f"Plan {facts['plan_id']} is {facts['state']} ({facts['cause']}). "
        f"Moves: {moves}. Throttles owed: {owed}. Report: {facts['report']}."
    )


def _next_step(ended: str, plans: Sequence[Mapping[str, Any]]) -> str:
    """What people are to do.

    :param plans: of the run, the last one first.
    """
    if any(plan["throttles_owed"] for plan in plans):
        return (
            "bring back brokers that are away, and let copies end that could not be cancelled; "
            "sweep_throttles then takes the throttles back. Its schedule sees to kafka_default; "
            "for another connection, trigger it."
        )
    moved = [plan["plan_id"] for plan in plans if "done" in plan["moves"]]
    if ended == "failed" and moved:
        return (
            "read the report; trigger again for the rest, or take back what was done with "
            f"action rollback and plan_id {', then '.join(moved)}."
        )
    if ended == "failed":
        return "read the report, mend the cause, trigger again."
    if any(plan["state"] == "paused" for plan in plans):
        return "the next window goes on with it."
    return "nothing."
