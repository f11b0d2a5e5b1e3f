"""Decides whether the run succeeds: by the ledger and the proof alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rehome.domain.actions import Action, Trait, actions_with
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.completion.drained import is_drain
from rehome.execution.completion.preferred_leaders import all_elected
from rehome.execution.completion.words.end_words import still_there
from rehome.ledger.base.records import EndReason
from rehome.links import PlanPageLink, ReportLink
from rehome.operators.base import ClusterOperator
from rehome.operators.completion.drained import DRAINED
from rehome.operators.completion.preferred_leaders import DEMOTED, LEADERS
from rehome.operators.completion.verify import PROOF
from rehome.run import evidence, plan_of_run, recorded_plans
from rehome.run.causes.errors import EndedError
from rehome.run.causes.recorded import of_run
from rehome.run.causes.task_end import TaskEnd, TaskReason

if TYPE_CHECKING:
    from rehome.domain.run.causes.cause import Cause
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory


class VerdictOperator(ClusterOperator):
    """Fails the run when the plan did not end well (a teardown).

    Airflow alone would call such a run a success: a run marked failed by hand, for one, skips
    what would have failed and succeeds in its teardowns.
    """

    operator_extra_links = (PlanPageLink(), ReportLink())

    def step(self, context: RunContext) -> None:
        """Decide by the ledger alone."""
        record = plan_of_run.recorded_plan(context)
        follow_up = plan_of_run.follow_up(context) if record else None
        plans = [plan.plan_id for plan in (record, follow_up) if plan is not None]
        owed = [entry for plan in plans for entry in context.ledger.throttles(plan, open_only=True)]
        first = of_run(context)
        if record is None:
            raise _without_plan(first)
        plan_id = record.plan_id
        if record.state is PlanState.PAUSED or record.end_reason is EndReason.REJECTED:
            self.log.info("Plan %s is %s: %s", plan_id, record.state, record.cause)
            return
        if record.state is not PlanState.DONE:
            raise EndedError(
                TaskEnd(
                    TaskReason.NOT_DONE_AT_END,
                    plan_id,
                    record.state,
                    said=record.cause if first is None else first.text,
                    place=record.plan_dir,
                )
            )
        directory = context.warehouse.plan_at(record.plan_dir)
        try:
            done = _Kept.of(context.ledger, directory, plan_id)
        except (OSError, ValueError, RehomeError) as error:
            end = TaskEnd(TaskReason.PROOF_NOT_READ, plan_id, said=str(error))
            raise EndedError(end) from None
        proof = self._proof(record, done)
        if owed:
            names = tuple(entry.line for entry in owed)
            raise EndedError(
                TaskEnd(
                    TaskReason.OWED_AT_END, plan_id, names=names, connection=self.kafka_config_id
                )
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
        content = done.drained
        if content is None and is_drain(recorded_plans.recorded_request(record)):
            raise EndedError(TaskEnd(TaskReason.EMPTINESS_NOT_SEEN, record.plan_id))
        if content is None or content["as_planned"]:
            return False
        if follow_up is not None and follow_up.state is PlanState.PAUSED:
            message = f"{follow_up.plan_id} is paused: {follow_up.cause}"
            self.log.warning("%s\nThe plan that follows up, %s", still_there(content), message)
            return True
        end = TaskEnd(
            TaskReason.NOT_EMPTY_AT_END, content=content, said=content["not_followed_up"] or ""
        )
        if follow_up is not None:
            end = replace(
                end, said=follow_up.cause, plan_id=follow_up.plan_id, state=follow_up.state
            )
        raise EndedError(end)

    @staticmethod
    def _require_leaders(record: PlanRecord, done: _Kept) -> None:
        """Where leaders are what the plan is about, its elections belong to it.

        :raises EndedError: they were not made, or demoted brokers still lead.
        """
        if record.action not in actions_with(Trait.IS_ABOUT_LEADERS):
            return
        if done.leaders is None:
            raise EndedError(TaskEnd(TaskReason.NOT_ELECTED, record.plan_id))
        if record.action == Action.ELECT_PREFERRED and not all_elected(done.leaders):
            content = done.leaders
            raise EndedError(TaskEnd(TaskReason.NOT_PREFERRED, record.plan_id, content=content))
        demotion = done.demoted
        if demotion is not None and not demotion["as_planned"]:
            raise EndedError(TaskEnd(TaskReason.STILL_LEADS, record.plan_id, content=demotion))

    @staticmethod
    def _proof(record: PlanRecord, done: _Kept) -> Mapping[str, Any]:
        """The proof that the task verify has left.

        :raises EndedError: it has left none, or the plan did not verify.
        """
        if done.proof is None:
            raise EndedError(TaskEnd(TaskReason.NO_PROOF, record.plan_id))
        if not done.proof["ok"]:
            raise EndedError(TaskEnd(TaskReason.DISPROVED, record.plan_id))
        return done.proof


def _without_plan(first: Cause | None) -> EndedError:
    """Nothing was planned: what came first says why."""
    if first is None:
        return EndedError(TaskEnd(TaskReason.NO_PLAN_AT_END))
    return EndedError(TaskEnd(TaskReason.NO_PLAN_AT_END, said=first.text, remedy=first.remedy))


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
        return cls(*(evidence.read_kept(ledger, directory, plan_id, name) for name in files))
