"""Decides whether the run succeeds: by the ledger and the proof alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.domain.request.request import ABOUT_LEADERS, Action
from rehome.domain.run.causes.cause import CauseKind
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.links import PlanPageLink, ReportLink
from rehome.operators.base import ClusterOperator
from rehome.operators.completion.drained import DRAINED
from rehome.operators.completion.preferred_leaders import DEMOTED, LEADERS
from rehome.operators.completion.verify import PROOF
from rehome.run import evidence, plan_of_run, recorded_plans
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import of_run

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from rehome.domain.run.causes.cause import Cause
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.warehouse import PlanDirectory


class VerdictOperator(ClusterOperator):
    """Fails the run when the plan did not end well (a teardown).

    Airflow alone would call such a run a success: a run marked failed by hand, for one, skips
    what would have failed and succeeds in its teardowns.
    """

    operator_extra_links = (PlanPageLink(), ReportLink())

    def step(self, context: Context) -> None:
        """Decide by the ledger alone."""
        from rehome.alerts.alert_text import SWEPT
        from rehome.ledger.base.records import EndReason

        with installation.open_ledger() as ledger:
            record = plan_of_run.recorded(context, ledger)
            follow_up = plan_of_run.follow_up(context, ledger) if record else None
            plans = [plan.plan_id for plan in (record, follow_up) if plan is not None]
            owed = [entry for plan in plans for entry in ledger.throttles(plan, open_only=True)]
            first = of_run(context, ledger)
        if record is None:
            raise _without_plan(first)
        plan_id = record.plan_id
        if record.state is PlanState.PAUSED or record.end_reason is EndReason.REJECTED:
            self.log.info("Plan %s is %s: %s", plan_id, record.state, record.cause)
            return
        if record.state is not PlanState.DONE:
            why = record.cause if first is None else first.text
            raise EndedError(
                CauseKind.VERDICT,
                f"Plan {plan_id} is {record.state}: {why}",
                next_step=f"See the report: {record.plan_dir}/report.html",
            )
        directory = installation.warehouse().plan_at(record.plan_dir)
        try:
            with installation.open_ledger() as ledger:
                done = _Kept.of(ledger, directory, plan_id)
        except (OSError, ValueError, RehomeError) as error:
            raise EndedError(
                CauseKind.NOT_VERIFIED,
                f"Every move of plan {plan_id} has ended, but whether the result was verified is "
                "not "
                f"known: {error}",
                next_step="Remove the cause, then clear the task verify, with what comes after "
                "it: it "
                "reads the cluster afresh.",
            ) from None
        proof = self._proof(record, done)
        if owed:
            raise EndedError(
                CauseKind.OWED,
                f"Plan {plan_id} is done and verified, but throttles are owed: "
                + "; ".join(f"{entry.resource} {entry.key}: {entry.detail}" for entry in owed),
                next_step="When the cause is gone, trigger sweep_throttles with kafka_config_id "
                f"{self.kafka_config_id}, or leave it to the schedule. {SWEPT}",
            )
        if self._not_empty(record, done, follow_up):
            return
        self._require_leaders(record, done)
        findings = proof.get("findings", {})
        for partition, finding in findings.items():
            self.log.warning("%s: %s", partition, finding)
        message = f", with {len(findings)} findings" if findings else ""
        self.log.info("Plan %s is done and verified%s.", plan_id, message)

    def _not_empty(self, record: PlanRecord, done: _Kept, follow_up: PlanRecord | None) -> bool:
        """Whether a drain goes on later, with its follow-up.

        :raises EndedError: its brokers are not proved to be empty, and nothing
            goes on.
        """
        from rehome.execution.completion.drained import is_drain
        from rehome.execution.completion.words.end_words import not_ended, still_there

        found = done.drained
        if found is None and is_drain(recorded_plans.recorded_request(record)):
            raise EndedError(
                CauseKind.NOT_EMPTY,
                f"Plan {record.plan_id} is done, but no task has seen that what was to be empty is "
                "empty",
                next_step="Clear the task drained, with what comes after it.",
            )
        if found is None or found["as_planned"]:
            return False
        if follow_up is not None and follow_up.state is PlanState.PAUSED:
            message = f"{follow_up.plan_id} is paused: {follow_up.cause}"
            self.log.warning("%s\nThe plan that follows up, %s", still_there(found), message)
            return True
        why = found["not_followed_up"]
        if follow_up is not None:
            why = f"plan {follow_up.plan_id} is {follow_up.state}: {follow_up.cause}"
        raise EndedError(CauseKind.NOT_EMPTY, not_ended(found, why or ""))

    @staticmethod
    def _require_leaders(record: PlanRecord, done: _Kept) -> None:
        """Where leaders are what the plan is about, its elections belong to it.

        :raises EndedError: they were not made, or demoted brokers still lead.
        """
        from rehome.execution.completion.preferred_leaders import all_elected
        from rehome.execution.completion.words.end_words import demotion_text, not_elected_text

        if record.action not in ABOUT_LEADERS:
            return
        if done.leaders is None:
            raise EndedError(
                CauseKind.NOT_LED,
                f"Plan {record.plan_id} is done, but its leaders were not elected: see the task "
                "restore_leaders",
                next_step="Clear the task restore_leaders, with what comes after it.",
            )
        if record.action == Action.ELECT_PREFERRED and not all_elected(done.leaders):
            raise EndedError(
                CauseKind.NOT_LED,
                f"Plan {record.plan_id} has ended, but not every preferred leader leads: "
                f"{not_elected_text(done.leaders)}",
                next_step="Trigger a new run of elect_preferred when these replicas are in sync.",
            )
        found = done.demoted
        if found is not None and not found["as_planned"]:
            raise EndedError(
                CauseKind.NOT_LED,
                f"Every move of plan {record.plan_id} has ended, but brokers still lead that were "
                f"to be demoted. {demotion_text(found)}",
                next_step="Trigger a new run of the demotion.",
            )

    @staticmethod
    def _proof(record: PlanRecord, done: _Kept) -> Mapping[str, Any]:
        """The proof that the task verify has left.

        :raises EndedError: it has left none, or the plan did not verify.
        """
        if done.proof is None:
            raise EndedError(
                CauseKind.NOT_VERIFIED,
                f"Plan {record.plan_id} is done, but was not verified: the ledger has no proof of "
                "the task verify, whatever its state says",
                next_step="Clear that task, with what comes after it.",
            )
        if not done.proof["ok"]:
            raise EndedError(
                CauseKind.NOT_VERIFIED,
                f"Plan {record.plan_id} is done, but a fresh read finds partitions that differ "
                "from the plan, that have lost messages, or that could not be read",
                next_step="See the report, which names each. What could not be read: mend the "
                "broker, then clear the task verify, with what comes after it. Where replicas "
                "differ: trigger a new run.",
            )
        return done.proof


def _without_plan(first: Cause | None) -> EndedError:
    """Nothing was planned: what came first says why."""
    why = "no task has said why" if first is None else first.text
    return EndedError(
        CauseKind.VERDICT,
        f"The run ended before there was a plan: {why}",
        state_left="Nothing was changed.",
        next_step="See the log of the task that failed first." if first is None else first.remedy,
    )


@dataclass(frozen=True, slots=True)
class _Kept:
    """What the tasks of the end have left. None = nothing, whatever their state says."""

    proof: Mapping[str, Any] | None
    drained: Mapping[str, Any] | None
    leaders: Mapping[str, Any] | None
    demoted: Mapping[str, Any] | None

    @classmethod
    def of(cls, ledger: Ledger, directory: PlanDirectory, plan_id: str) -> _Kept:
        """Read all of it.

        :raises FileChangedError: something else has written one of the files.
        """
        files = (PROOF, DRAINED, LEADERS, DEMOTED)
        return cls(*(evidence.kept(ledger, directory, plan_id, name) for name in files))
