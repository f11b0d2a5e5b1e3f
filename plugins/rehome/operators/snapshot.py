"""Takes a snapshot of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.cluster.interface.errors import ClusterError, require
from rehome.cluster.interface.rights import Role, rights_to_start
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.clock import utc_now
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text
from rehome.errors import InvalidRequestError, PlanConflictError, RehomeError
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.observation.drift import DriftError
from rehome.executors import refuse_unshared
from rehome.fleet import bound, paused_plan
from rehome.operators import assets
from rehome.operators.base import ClusterOperator
from rehome.run import (
    plan_of_run,
    recorded_plans,
    run_authority,
    run_request,
)
from rehome.run.authority import own_plan, own_snapshot
from rehome.run.causes.errors import ClusterHeldError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.ports import extras
from rehome.run.run_note import NOTES, write_note
from rehome.run.words.plan_words import MAKES_WAY, other_cluster_text

if TYPE_CHECKING:
    from rehome.cluster.gateway import ClusterGateway
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.ledger.base.records import PlanRecord
    from rehome.ledger.stores.watched.starts import StartRecord
    from rehome.run.context import RunContext


class SnapshotClusterOperator(ClusterOperator, SkipMixin):
    """Reads the cluster into the warehouse; returns the snapshot's URI.

    :param for_request: also check the run's parameters, and that no other plan is active on the
        cluster: what cannot work must not start. A paused plan that the run is to resume,
        or that waits for this run's window, is taken up; if the cluster has changed too much
        for one that waits, it is given up, and the run makes a new one. What a dry run has planned
        is taken up last: what fails before leaves it to another run. In a window, that is what a
        person has handed over to it. Where no plan waits, and windows of the cluster make none of
        their own, the run ends here.
    """

    inherits_from_skipmixin = True

    def __init__(self, *, for_request: bool = False, **kwargs: Any):
        outlets = assets.with_asset(assets.SNAPSHOTS_ASSET, kwargs.pop("outlets", None))
        super().__init__(outlets=outlets, **kwargs)
        self.for_request = for_request

    def step(self, context: RunContext) -> str:
        """Snapshot → URI; "" = the run had nothing to do."""
        from rehome.cluster.snapshot.take import take_snapshot

        if self.for_request:
            refuse_unshared(context)
            run_authority.refuse_unasked(context)
        begins = self.for_request and not plan_of_run.goes_on(context)
        planned = None
        if begins and self._ends_here(context, own_plan.is_idle):
            return ""
        if begins:
            if texts := context.filled.texts:
                self.log.info("%s", texts)
            run_request.refuse_closed_window(context)
            self._refuse_by_policy(context)
            heal = extras().heals.heal_by(context.dag_run, context.ledger)
            extras().heals.refuse_changed_rules(heal, self.kafka_config_id)
        with context.gateway() as cluster:
            self._refuse_other_cluster(context, cluster)
            if begins:
                self._refuse_misled(context, cluster)
                require("This run", rights_to_start(cluster, self._role(context)))
                planned = self._settle_plan(context, cluster)
                if planned is None and self._ends_here(context, own_plan.is_over):
                    return ""
            snapshot = take_snapshot(cluster, utc_now())
        uri = own_snapshot.keep(context, snapshot, self.kafka_config_id)
        self._tell(context, snapshot, uri)
        hidden = [f"Topic Describe on {name}" for name in snapshot.hidden_topics]
        if begins:
            require("A plan", hidden)
            self._refuse_restarting(context, snapshot, planned)
        elif hidden:
            self.log.warning("Topics are hidden, for this right is missing: %s", ", ".join(hidden))
        if planned is not None:
            self._begin_planned(context, planned)
            self._ends_here(context, own_plan.is_over, self.outlets)
        return uri

    def _tell(self, context: RunContext, snapshot: Snapshot, uri: str) -> None:
        """Say what was read: in the log, in metrics, to who waits for snapshots, in the ledger."""
        from rehome.execution.foreign.in_flight import all_in_flight
        from rehome.execution.foreign.snapshot_flights import snapshot_flights

        self.log.info(
            "%s, %s, %s read in %.1f s: %s",
            count_text(len(snapshot.brokers), "broker"),
            count_text(len(snapshot.topics), "topic"),
            count_text(len(snapshot.replicas), "replica"),
            snapshot.duration_s,
            uri,
        )
        extras().metrics.snapshot_taken(snapshot.cluster_id, snapshot.taken_at)
        assets.tell_of_snapshot(context, snapshot, uri, self.kafka_config_id)
        bound.record_binding(context, snapshot.cluster_id)
        extras().heals.snapshot_taken(context.ledger, snapshot)
        flights, _ = snapshot_flights(snapshot)
        context.ledger.note_seen(snapshot.cluster_id, snapshot.taken_at, all_in_flight(flights))
        for row in snapshot.brokers.to_pylist():
            if not row["answered"]:
                self.log.warning("Broker %s did not answer: %s", row["broker"], row["error"])

    def _ends_here(
        self,
        context: RunContext,
        why: Callable[[RunContext], bool],
        outlets: Sequence[Any] = (),
    ) -> bool:
        """Whether there is nothing to do for the run: then no task follows, and its note says so.

        :param outlets: what has come of it all the same; () = not even a snapshot.
        """
        if not why(context):
            return False
        note = own_plan.idle_note(context)
        self.log.info("%s", note)
        self.outlets = [*outlets, NOTES]
        write_note(context, note)
        self.skip(ti=context.ti, tasks=context.task.get_flat_relatives(upstream=False))
        return True

    def _refuse_restarting(
        self, context: RunContext, snapshot: Snapshot, planned: str | None
    ) -> None:
        """A heal copies nothing off a broker that has gone away since its finding was seen, and
        nothing at all while a whole rack is away.

        :param planned: id of the plan that was handed over to this run; None = none was.
        """
        heal = extras().heals.heal_by(context.dag_run, context.ledger)
        if planned is not None:
            heal = extras().heals.heal_of(context.ledger.plan(planned), context.ledger)
        if heal is not None:
            extras().heals.refuse_away(heal, snapshot, context.ledger)

    def _role(self, context: RunContext) -> Role:
        request = run_request.request_of(context)
        if request.dry_run:
            return Role.PLANNER
        return Role.UNTHROTTLED if request.unthrottled else Role.REASSIGNER

    def _begin_planned(self, context: RunContext, plan_id: str) -> None:
        try:
            self._begin(context, plan_id)
        except PlanConflictError as error:
            if context.named_plan_id is not None:
                raise
            self.log.warning("%s", error.what)

    def _refuse_other_cluster(self, context: RunContext, cluster: ClusterGateway) -> None:
        """A plan that was asked for on a cluster's page is for that cluster: refuse any other."""
        page_cluster_id = str(context.given.get("cluster_id") or "")
        actual_id = cluster.describe_cluster().cluster_id if page_cluster_id else ""
        if page_cluster_id != actual_id:
            raise InvalidRequestError(
                [other_cluster_text(self.kafka_config_id, actual_id, page_cluster_id)]
            )

    def _refuse_misled(self, context: RunContext, cluster: ClusterGateway) -> None:
        """Nothing begins through a connection that leads elsewhere than it is bound to. Of a plan
        that is resumed, its own cluster is known.
        """
        found_id, plan_id = cluster.describe_cluster().cluster_id, context.named_plan_id
        if plan_id is not None:
            OwnCluster.of_plan(cluster, context.ledger.plan(plan_id)).describe_cluster()
        bound.require(context, found_id)

    def _refuse_by_policy(self, context: RunContext) -> None:
        """A dry run changes nothing, so it only reports what a run would meet."""
        request, plan_id = run_request.request_of(context), context.named_plan_id
        action, record = request.action.value, None
        if plan_id is not None:
            record = context.ledger.plan(plan_id)
            action = record.action
        try:
            context.policy_for(record).require(
                action,
                request.throttle_bytes_per_s,
                utc_now(),
                unthrottled=request.unthrottled,
                by_broker=request.throttle_by_broker,
            )
        except PolicyError as error:
            if not request.dry_run:
                raise
            self.log.warning("A run that changes the cluster would be refused: %s", error.what)

    def _settle_plan(self, context: RunContext, cluster: ClusterGateway) -> str | None:
        """Resume a paused plan, or see that a new one may be made; or the id of what a dry run
        has planned and the run is to carry out.
        """
        from rehome.execution.access.lease import is_orphaned
        from rehome.execution.control.resume import waits_for_window

        plan_id = context.named_plan_id
        if plan_id is not None and context.ledger.plan(plan_id).state is not PlanState.PLANNED:
            self._take_up(context, cluster, plan_id)
            return None
        if plan_id is not None:
            self._check(context, cluster, plan_id)
        active = context.ledger.active_plan(cluster.describe_cluster().cluster_id)
        heal = extras().heals.heal_by(context.dag_run, context.ledger)
        in_window = context.window_end is not None
        if context.params.get("dry_run"):
            return None
        if active is not None and self._makes_way(context, active, heal):
            self._give_up(context, cluster, active, MAKES_WAY)
            active = None
        if active is None:
            return self._handed_over(context, cluster, heal) if in_window else plan_id
        if not in_window or heal is not None or not waits_for_window(active, context.ledger):
            silent = is_orphaned(active, context.ledger)
            reason = TaskReason.CLUSTER_HELD_SILENT if silent else TaskReason.CLUSTER_HELD
            run_id = str(active.driver)
            raise ClusterHeldError(TaskEnd(reason, active.plan_id, active.state, run_id=run_id))
        if self._go_on(context, cluster, active.plan_id):
            return None
        return self._handed_over(context, cluster)

    def _handed_over(
        self,
        context: RunContext,
        cluster: ClusterGateway,
        heal: StartRecord | None = None,
    ) -> str | None:
        """Id of the plan that the window is to carry out, where its run has none yet. Those that
        cannot be carried out any more end, and say why. Heals of errors go first.

        :param heal: what the run was started to heal: it takes up no plan for anything else.
        """
        if context.in_follow_up or plan_of_run.recorded_plan(context) is not None:
            return None
        cluster_id, dag_id = cluster.describe_cluster().cluster_id, context.dag_run.dag_id
        waiting = [
            (each, extras().heals.heal_of(each, context.ledger))
            for each in context.ledger.handed_over(cluster_id, dag_id)
        ]
        for record, heals in sorted(
            waiting, key=lambda each: not extras().heals.goes_first(each[1])
        ):
            if heal is not None and (heals is None or heals.about[:2] != heal.about[:2]):
                continue
            try:
                extras().heals.refuse_changed_rules(heals, self.kafka_config_id)
                extras().heals.refuse_over(heals, context.ledger)
                context.policy_for(record).require_carried_out(
                    record.action,
                    record.asked_rate_bytes_per_s,
                    unthrottled=record.unthrottled,
                    by_broker=record.asked_rates_by_broker,
                )
                recorded_plans.refuse_broken_limits(context, record.plan_id)
                self._check(context, cluster, record.plan_id)
            except (ClusterError, ClustersFileError):
                raise  # another attempt may find the cluster well, or the file
            except RehomeError as error:
                self.log.warning("%s Plan %s is given up.", error.what, record.plan_id)
                context.ledger.transition(record.plan_id, PlanState.CANCELLED, error.what)
                continue
            return record.plan_id
        return None

    def _go_on(self, context: RunContext, cluster: ClusterGateway, plan_id: str) -> bool:
        """Whether the run resumes a plan that waits; else that is given up."""
        try:
            recorded_plans.refuse_broken_limits(context, plan_id)
            self._take_up(context, cluster, plan_id)
        except DriftError as error:
            self._give_up(context, cluster, context.ledger.plan(plan_id), error.what)
            return False
        return True

    def _makes_way(self, context: RunContext, active: PlanRecord, heal: StartRecord | None) -> bool:
        """For what the run heals, or for a heal that was handed over to its window."""
        if not paused_plan.is_stuck(context.ledger, active):
            return False
        if heal is None and context.window_end is not None:
            to = active.cluster_id, context.dag_run.dag_id, self.kafka_config_id
            heal = extras().heals.urgent(context.ledger, *to)
        return extras().heals.goes_first(heal)

    def _give_up(
        self,
        context: RunContext,
        cluster: ClusterGateway,
        record: PlanRecord,
        why: str,
    ) -> None:
        from rehome.execution.access.lease import ttl_s
        from rehome.execution.control.controller import give_up

        self.log.warning("Plan %s is given up: %s", record.plan_id, why)
        owner, lease_s = context.driver_of(), ttl_s(context.settings)
        give_up(record, context.ledger, OwnCluster.of_plan(cluster, record), why, owner, lease_s)

    def _take_up(self, context: RunContext, cluster: ClusterGateway, plan_id: str) -> None:
        self._check(context, cluster, plan_id)
        self._begin(context, plan_id)

    def _check(self, context: RunContext, cluster: ClusterGateway, plan_id: str) -> None:
        from rehome.execution.control.resume import check_continuable

        record = context.ledger.plan(plan_id)
        own = OwnCluster.of_plan(cluster, record)
        plan, driver = (
            recorded_plans.recorded_moves(context.ledger, record),
            context.driver_of(record),
        )
        check_continuable(plan, context.ledger, own, driver, context.dag_run.dag_id)

    def _begin(self, context: RunContext, plan_id: str) -> None:
        from rehome.execution.access.lease import ttl_s
        from rehome.execution.control.resume import bounds_of, window_of

        run, request = context.dag_run, run_request.request_of(context)
        if request.dry_run:
            return
        in_window = context.window_end is not None
        # Of a plan that was handed over, people have seen all but the window.
        handed_over = in_window and context.ledger.plan(plan_id).for_window_at is not None
        context.ledger.take_up(
            plan_id,
            run.dag_id,
            run.run_id,
            window_of(request) if handed_over else bounds_of(request),
            context.actor,
            lease_s=ttl_s(context.settings),
            rate_bytes_per_s=None if in_window else request.throttle_bytes_per_s,
            handed_over=handed_over,
            keeps_asked=in_window,
        )
        self.log.info("Going on with plan %s.", plan_id)
