"""The message about a run that has ended: how, the plan, the state left, the next step."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rehome.account.account import PlanAccount, account_of
from rehome.account.evidence import read_evidence
from rehome.account.plan_bytes import byte_facts
from rehome.account.run_account import RunAccount, RunEvidence, account_of_run
from rehome.account.words.byte_words import bytes_sentence
from rehome.account.words.run_words import changed_text
from rehome.account.words.time_words import elapsed_text
from rehome.alerts import alert_text
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import Cause
from rehome.domain.run.flows import RateReason
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.reporting.predicted_time import of_all, outcome
from rehome.watching.last_attempt import LastAttempt, next_step
from rehome.watching.paused_plan import Outlook
from rehome.watching.paused_text import paused_text


class Ended(enum.StrEnum):
    """How Airflow says that a run has ended."""

    FAILED = "failed"
    SUCCEEDED = "succeeded"


@dataclass(frozen=True, slots=True)
class PlanEnd:
    """A plan when its run has ended.

    :param moves: how many are in each state.
    :param account: what is known of it.
    :param owed: configuration keys that are still to be taken back.
    :param took: how long it took, and what was predicted; "" = not known.
    :param outlook: what it waits for while it is paused; None = that is not known.
    """

    record: PlanRecord
    moves: Mapping[MoveState, int]
    account: PlanAccount
    owed: tuple[str, ...]
    took: str = ""
    outlook: Outlook | None = None

    @classmethod
    def of(
        cls,
        record: PlanRecord,
        ledger: Ledger,
        dry_run: Mapping[str, Any] | None,
        outlook: Outlook | None = None,
    ) -> PlanEnd:
        """By the ledger, and by what the newest dry run has found, where that can be read."""
        evidence = read_evidence(ledger, record.plan_id)
        sums = evidence.sums
        entries = ledger.throttles(record.plan_id, open_only=True)
        account = account_of(replace(evidence, tried=dry_run), utc_now())
        return cls(
            record,
            {state: each.moves for state, each in sorted(sums.items())},
            account,
            tuple(f"{entry.resource} {entry.key}" for entry in entries),
            _took(record, ledger, account, sum(each.moves for each in sums.values())),
            outlook,
        )

    @property
    def waits(self) -> bool:
        """Whether it is paused: what it waits for counts more than what has ended its run."""
        return self.record.state is PlanState.PAUSED

    @property
    def report(self) -> str:
        """Where its report lies in the warehouse."""
        return f"{self.record.plan_dir}/report.html"

    def facts(self) -> dict[str, Any]:
        """For programs."""
        return {
            "plan_id": self.record.plan_id,
            "state": self.record.state.value,
            "cause": self.record.cause,
            "moves": {state.value: count for state, count in self.moves.items()},
            "bytes": byte_facts(self.account.bytes),
            "throttles_owed": list(self.owed),
            "report": self.report,
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
    plan: PlanEnd | None = None
    follow_up: PlanEnd | None = None
    of_finding: LastAttempt | None = None
    unknown: str = ""
    follow_up_unknown: str = ""
    connection: str = ""
    plans: tuple[PlanEnd, ...] = field(init=False)

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
            report=self.plans[0].report if self.plans else "",
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
            facts |= self.plan.facts()
        elif self.unknown:
            facts["unknown"] = self.unknown
        if self.follow_up is not None:
            facts["follow_up"] = self.follow_up.facts()
        elif self.follow_up_unknown:
            facts["follow_up"] = {"unknown": self.follow_up_unknown}
        return facts

    def _text(self) -> str:
        run = f"Run {self.run_id} of {self.dag_id} {self.ended}{self._why}"
        if self.plan is None:
            known = changed_text(self._account, self.unknown)
            return f"{run} {known}" if known else run
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
        owed_or_paused = any(plan.owed or plan.waits for plan in self.plans)
        if self.cause is not None and self.cause.remedy and not owed_or_paused:
            return self.cause.remedy
        if self.plan is None:
            return self._account.next_step
        return _next_step(self.ended, self.plans)


def _plan_text(plan: PlanEnd) -> str:
    record = plan.record
    cause = f" ({record.cause})" if record.cause not in ("", record.state) else ""
    moves = ", ".join(f"{count} {state}" for state, count in plan.moves.items()) or "none"
    took = f" {plan.took}" if plan.took else ""
    copied = f" {bytes_sentence(plan.account.bytes)}" if record.started_at and plan.moves else ""
    return (
        f"Plan {record.plan_id} is {record.state}{cause}.{took}{copied} "
        f"Moves: {moves}. Throttles owed: {', '.join(plan.owed) or 'none'}."
    )


def _next_step(ended: Ended, plans: Sequence[PlanEnd]) -> str:
    """What people are to do.

    :param plans: of the run, the last one first.
    """
    if any(plan.owed for plan in plans):
        connection = plans[0].record.planned_through or ""
        return alert_text.owed((), (), connection)[1]
    paused = [plan for plan in plans if plan.record.state is PlanState.PAUSED]
    if ended is Ended.FAILED and paused:  # it holds its cluster: no new run would get anywhere
        return _of_paused(paused[0])
    moved = [plan.record.plan_id for plan in plans if plan.moves.get(MoveState.DONE)]
    if ended is Ended.FAILED and moved:
        return (
            "Read the report; trigger a new run for the rest, or take back what was done with "
            f"action rollback and plan_id {', then '.join(moved)}."
        )
    if ended is Ended.FAILED:
        return "Read the report and mend the cause, then trigger a new run."
    for plan in plans:
        if plan.record.state is PlanState.PAUSED:
            return _of_paused(plan)
        if plan.record.state is PlanState.PLANNED:
            return "The page shows the plan, and can run it."
    return "Nothing: the report has the proof."


def _of_paused(plan: PlanEnd) -> str:
    if plan.outlook is None:
        return "See the plan's page for what it waits for."
    words = paused_text(plan.outlook, plan.account.resume_refused)
    return f"{words.text} {words.next_step}"


def _took(record: PlanRecord, ledger: Ledger, account: PlanAccount, moves: int) -> str:
    """The time of a plan that went through, and what was predicted of all of it; "" where it had
    nothing to move.
    """
    elapsed, predicted = account.elapsed, of_all(account)
    if not moves or record.state is not PlanState.DONE or elapsed is None:
        return ""
    changed = any(r.reason is RateReason.REQUESTED for r in ledger.rate_changes(record.plan_id))
    if predicted is None or changed or elapsed.pauses:
        return f"It took {elapsed_text(elapsed)}."
    how = outcome(predicted, elapsed.total.total_seconds(), ended=True)
    return f"It took {elapsed_text(elapsed)}, {how}: {predicted}."
