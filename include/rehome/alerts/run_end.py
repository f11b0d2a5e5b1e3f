"""The message about a run that has ended: how, the plan, the state left, the next step."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import FilesRead, read_evidence, still_set_by
from rehome.account.plan_bytes import byte_facts
from rehome.account.run_account import RunAccount, RunEvidence, account_of_run
from rehome.account.standing import Stand
from rehome.account.words.figure_words import bytes_sentence, time_taken
from rehome.account.words.run_words import changed_text
from rehome.account.words.step_words import next_step_of, waits_text
from rehome.alerts import alert_text
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import Cause
from rehome.domain.run.paused.paused_plan import Outlook
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.watching.last_attempt import LastAttempt, next_step


class Ended(enum.StrEnum):
    """How Airflow says that a run has ended."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"


def plan_end(
    record: PlanRecord,
    ledger: Ledger,
    files: FilesRead,
    outlook: Outlook | None = None,
    *,
    run_over: bool,
) -> PlanAccount:
    """What is known of a plan when a run that is about it has ended.

    :param files: as far as they can be read.
    :param outlook: what it waits for while it is paused; None = that is not known.
    :param run_over: whether the run that has ended is the one that drives the plan.
    """
    with ledger.reading():
        evidence = read_evidence(ledger, record.plan_id)
        owed = still_set_by(ledger, record.plan_id)
    full_evidence = replace(evidence, files=files, outlook=outlook, owed=owed, run_over=run_over)
    return account_of(full_evidence, utc_now())


def _still_driven(plan: PlanAccount) -> bool:
    """Whether another run is at work on it, which takes its throttles back."""
    return plan.standing.stand in (Stand.RUNNING, Stand.HURT) or plan.throttles.finishing


def _owes(plan: PlanAccount) -> bool:
    return plan.throttles.still_set > 0 and not _still_driven(plan)


def _report(plan: PlanAccount) -> str:
    """Where its report lies in the warehouse."""
    return f"{plan.record.plan_dir}/report.html"


def _plan_facts(plan: PlanAccount) -> dict[str, Any]:
    """For programs."""
    return {
        "plan_id": plan.record.plan_id,
        "state": plan.state.value,
        "cause": plan.record.cause,
        "moves": {state.value: count for state, count in plan.moves.by_state.items()},
        "bytes": byte_facts(plan.bytes),
        "throttles_owed": list(plan.throttles.names),
        "report": _report(plan),
    }


@dataclass(frozen=True, slots=True)
class RunEnd:
    """A run that has ended.

    :param attempt: how often it was cleared.
    :param reason: Airflow's; ``cause``: what its tasks have said; None = they have said nothing.
    :param recurring: it is one of many of its DAG, all of which do the same; of these the DAG
        counts, not the run.
    :param makes_plan: whether its DAG's runs change the cluster by a plan, and only by one.
    :param plan: that it drove; None = there is none, or it is ``unknown``.
    :param follow_up: the plan that follows it up; None = there is none, or it is not known.
    :param of_finding: as an attempt to remedy a finding; None = watching has not started it.
    :param unknown: why the plan is not known; ``follow_up_unknown``: likewise.
    """

    dag_id: str
    run_id: str
    ended: Ended
    attempt: int = 0
    reason: str = ""
    cause: Cause | None = None
    recurring: bool = False
    makes_plan: bool = False
    plan: PlanAccount | None = None
    follow_up: PlanAccount | None = None
    of_finding: LastAttempt | None = None
    unknown: str = ""
    follow_up_unknown: str = ""
    connection: str = ""
    plans: tuple[PlanAccount, ...] = field(init=False)

    def __post_init__(self) -> None:
        plans = tuple(plan for plan in (self.follow_up, self.plan) if plan is not None)
        object.__setattr__(self, "plans", plans)

    def alert(self) -> Alert:
        """The message, by the last of its plans."""
        last = self.plans[0].record if self.plans else None
        paused = self._paused_as
        subject, occurrence = f"{self.dag_id}/{self.run_id}", f"{self.run_id}#{self.attempt}"
        if paused and last is not None:
            subject = last.plan_id
        if self.recurring:
            subject = f"{self.dag_id} ({self.connection})" if self.connection else self.dag_id
            occurrence = ""
        kind = AlertKind.DONE if self.ended is Ended.SUCCEEDED else AlertKind.FAILED
        return Alert(
            kind=paused or kind,
            subject=subject,
            text=self._text(),
            next_step=self._next_step(),
            plan_id=last.plan_id if last else "",
            cluster_id=last.cluster_id if last else "",
            connection=(last.planned_through if last else "") or self.connection,
            state=last.state.value if last else "",
            occurrence=occurrence,
            report=_report(self.plans[0]) if self.plans else "",
            facts=self._facts(),
        )

    @property
    def _paused_as(self) -> AlertKind | None:
        """Who has paused one of its plans; None = none is paused, or the run has failed."""
        paused = [plan.record for plan in self.plans if plan.record.state is PlanState.PAUSED]
        if self.ended is not Ended.SUCCEEDED or not paused:
            return None
        by_person = all(record.pause_requested for record in paused)
        return AlertKind.PAUSED if by_person else AlertKind.PAUSED_AT_WINDOW_END

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {
            "dag_id": self.dag_id,
            "run_id": self.run_id,
            "ended": self.ended.value,
            "reason": self.reason or None,
        }
        if self.cause is not None:
            facts["ended_by"] = self.cause.to_json()
        if self.plan is not None:
            facts |= _plan_facts(self.plan)
        elif self.unknown:
            facts["unknown"] = self.unknown
        if self.follow_up is not None:
            facts["follow_up"] = _plan_facts(self.follow_up)
        elif self.follow_up_unknown:
            facts["follow_up"] = {"unknown": self.follow_up_unknown}
        return facts

    def _text(self) -> str:
        run = f"Run {self.run_id} of {self.dag_id} {self.ended}{self._why}"
        if self.plan is None:
            change = changed_text(self._account, self.unknown)
            return f"{run} {change}" if change else run
        text = f"{run} {_plan_text(self.plan)}"
        if self.follow_up_unknown:
            text += f" Whether a plan follows it up is not known here: {self.follow_up_unknown}"
        elif self.follow_up is not None:
            text += " What appeared meanwhile is moved by a plan of its own."
            text += f" {_plan_text(self.follow_up)}"
        return text

    @property
    def _account(self) -> RunAccount:
        """Of a run without a plan."""
        evidence = RunEvidence(
            *(self.dag_id, self.run_id, self.makes_plan), cause=self.cause, unknown=self.unknown
        )
        return account_of_run(evidence)

    @property
    def _why(self) -> str:
        """After "failed", or "succeeded": of a success, a person's word alone says more."""
        if self.cause is not None and (self.ended is Ended.FAILED or self.cause.kind.by_person):
            return f": {self.cause.said}"
        if self.ended is Ended.SUCCEEDED:
            return "."
        airflow = f" Airflow says: {self.reason}." if self.reason else ""
        return f", and none of its tasks has said why.{airflow}"

    def _next_step(self) -> str:
        if self.of_finding is None or self.of_finding.again_at is None:
            return self._own_step()
        return f"{self._own_step()} {next_step(self.of_finding)}"

    def _own_step(self) -> str:
        open_end = any(_owes(plan) or plan.state is PlanState.PAUSED for plan in self.plans)
        if self.cause is not None and self.cause.remedy and not open_end:
            return self.cause.remedy
        if not self.plans:
            return self._account.next_step
        return _next_step(self.plans)


def _plan_text(plan: PlanAccount) -> str:
    record = plan.record
    cause = f" ({record.cause})" if record.cause not in ("", record.state) else ""
    moves = ", ".join(f"{count} {state}" for state, count in plan.moves.by_state.items()) or "none"
    done = plan.state is PlanState.DONE
    took = f" {time_taken(plan)}" if done and plan.moves.total else ""
    copied = f" {bytes_sentence(plan.bytes)}" if record.started_at and plan.moves.total else ""
    names = ", ".join(plan.throttles.names) or "none"
    return (
        f"Plan {record.plan_id} is {record.state}{cause}.{took}{copied} "
        f"Moves: {moves}. Throttles {'set' if _still_driven(plan) else 'pending cleanup'}: {names}."
    )


def _next_step(plans: Sequence[PlanAccount]) -> str:
    """What people are to do: about what may still be set, about a plan that holds its cluster, else
    about the last plan.

    :param plans: of the run, the last one first.
    """
    if any(map(_owes, plans)):
        return alert_text.owed_text((), (), plans[0].record.planned_through or "")[1]
    last = next((plan for plan in plans if plan.state is PlanState.PAUSED), plans[0])
    waits = waits_text(last)
    step, _ = next_step_of(last)
    return step if waits is None else f"{waits.text} {step}"
