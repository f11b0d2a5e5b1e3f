"""Takes over what a person has approved, of what other clients have started, as a plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import request_to_params
from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.states import PlanState
from rehome.domain.text import bytes_text, count_text
from rehome.execution.access.own_cluster import OwnCluster
from rehome.fleet import bound, plan_settings, policies
from rehome.links import PlanPageLink
from rehome.operators.base import ClusterOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.foreign.asked import (
    refuse_by_policy,
    require_named,
    require_person,
)
from rehome.run import (
    drivers,
    evidence,
    plan_of_run,
    recorded_plans,
    run_authority,
    run_request,
)

if TYPE_CHECKING:
    from rehome.domain.plan.plan import Plan
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.execution.foreign.named import NamedReassignments
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


class AdoptReassignmentsOperator(ClusterOperator, SkipMixin):
    """Makes the named reassignments a plan of Rehome, and throttles them; returns the plan's id.
    With the id ``adopt``, after ``approve``, and as the setup of ``clear_throttle``.

    The ledger has the plan, with its approval and an identity for each reassignment, before a
    throttle is set; the controller is asked for nothing. The throttle is in bytes per second, for
    each broker and direction: the parameter ``throttle`` of the run, or the setting
    ``auto_throttle_bytes_per_s``. A retry goes on where the attempt before it stopped. Where all of
    them have ended meanwhile, what follows is skipped.

    :raises NotDoneError: no person has approved exactly this in this run.
    :raises SetMeanwhileError: something else was set on one of them since. Nothing was changed.
    :raises PlanConflictError: another plan of Rehome has the cluster, or a person has rejected it.
    :raises LeaseHeldError: another run of Rehome changes the cluster. Nothing was changed.
    :raises PolicyError: the policy refuses it by now.
    :raises ClusterError: the cluster could not be read, or has refused a throttle.
    """

    inherits_from_skipmixin = True
    operator_extra_links = (PlanPageLink(),)

    def step(self, context: RunContext) -> str | None:
        """Policy, approval, plan, lease, ledger, throttle."""
        from rehome.execution.foreign.adopt import adopt

        selection, plan_id = require_named(context), context.plan_id
        with context.gateway() as cluster:
            record = plan_of_run.carried_on(context)
            if record is not None and record.state is PlanState.DONE:
                self.log.info("Plan %s is done: there is nothing to adopt.", plan_id)
                return plan_id
            own = OwnCluster.of(cluster, selection.cluster_id, plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(context, found_id)
            if record is None or not record.state.active:
                policy = context.policy_on(selection.cluster_id)
                refuse_by_policy(selection, policy)
                run_authority.refuse_unasked(context)
                record = self._record(context, selection, policy, own)
            if record is None:
                self.log.info("All of it has ended meanwhile: there is nothing to adopt.")
                after = context.task.get_flat_relatives(upstream=False)
                self.skip(ti=context.ti, tasks=after)
                return None
            plan = recorded_plans.recorded_moves(context.ledger, record)
            rate = selection.rate_bytes_per_s or 0
            with drivers.driving(context, cluster, record, begins=True) as lease:
                done = adopt(plan, selection, lease.ledger, lease.cluster, rate, context.actor)
        self.log.info(
            "Plan %s has %s of other clients, at %s/s",
            *(plan_id, count_text(len(plan.moves), "reassignment"), bytes_text(rate)),
        )
        for where, value in done.foreign_rates.items():
            self.log.warning(
                "%s is already %s/s, set by another client: it stays, expect a longer run",
                where,
                bytes_text(value),
            )
        return plan_id

    def _record(
        self,
        context: RunContext,
        selection: NamedReassignments,
        policy: ConnectionPolicy,
        own: OwnCluster,
    ) -> PlanRecord | None:
        """Record the plan, with the approval; None = nothing of it is in flight any more."""
        from rehome.execution.foreign.adopt import adopted_plan, still_in_flight

        answered = require_person(context, selection, policy)
        plan_id, run = context.plan_id, context.dag_run
        directory, actor = context.directory, context.actor
        if recorded_plans.recorded_plan(context.ledger, plan_id) is None:
            moves = still_in_flight(selection, context.ledger, own)
            if not moves:
                return None
            rate = selection.rate_bytes_per_s or 0
            plan = adopted_plan(
                plan_id, selection.cluster_id, moves, rate, context.ledger.ledger_id
            )
            request = _request_of(plan, rate)
            if not directory.exists("summary.json"):  # else an attempt before has written it
                plan_settings.keep(
                    directory, plan_settings.values_now(plan.action, context.connection)
                )
                directory.save(plan, request)
            context.ledger.create_plan(
                directory.load(),
                request_to_params(request),
                directory.uri,
                run.run_id,
                actor,
                self.kafka_config_id,
                run.dag_id,
                None,
                policies.recorded_policy(context.connection),
                evidence.digests_of(directory),
            )
        task = run_request.task_plan(context, context.ledger.plan(plan_id))
        plan, request = task.plan, task.request
        by, settings = answered.by, context.settings
        compared = plan_settings.ComparedSettings.of(
            directory, plan.action, context.connection, begun=False
        )
        terms = Terms.of(
            plan.plan_hash,
            request.throttle_bytes_per_s or 0,
            request,
            compared.counting,
            Effects.of(plan, request, followed_up=True),
        )
        context.ledger.approve(
            *(plan_id, plan.plan_hash, (by.name or by.id) if by else ""),
            terms,
            by_person=True,
            lasting_s=settings.approval_lasts_s or 0,
            asked_by=actor,
            answered=answered,
            answer_recorded=True,
        )
        return context.ledger.plan(plan_id)


def _request_of(plan: Plan, rate_bytes_per_s: int) -> ReassignmentRequest:
    """What the plan counts as asked for: Kafka's own JSON, beside what others have in flight."""
    from rehome.domain.plan.kafka_json import reassignment_json

    return parse_request(
        {
            "action": plan.action,
            "reassignment": reassignment_json(plan.moves),
            "throttle": rate_bytes_per_s,
            "additional": True,
            "allow_replication_factor_change": plan.allow_replication_factor_change,
        }
    )


class AdoptionVerdictOperator(VerdictOperator):
    """Fails the run when the plan that it has adopted did not end well (a teardown), by the ledger
    alone. Where it has adopted nothing, the other tasks say how it has ended.

    :raises EndedError: the plan has failed or was cancelled, is not verified, or has a throttle
        pending cleanup.
    """

    def step(self, context: RunContext) -> None:
        """Decide by the ledger alone."""
        if plan_of_run.recorded_plan(context) is None:
            self.log.info("Nothing was adopted.")
            return
        super().step(context)
