"""Plans every cluster of the clusters file that is due, in one Spark application."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rehome import installation
from rehome.clusters.due import NOT_DUE_WORDS
from rehome.domain.clock import utc_now
from rehome.domain.request.fields.fleet_parameters import parse_fleet
from rehome.domain.request.request import request_to_params
from rehome.domain.run.states import PlanState
from rehome.domain.text import bytes_text
from rehome.errors import RehomeError
from rehome.executors import refuse_unshared
from rehome.fleet import due_clusters, plan_settings, policies
from rehome.operators.plan import tell_of_full_disks
from rehome.places.path_parts import path_part
from rehome.run import evidence
from rehome.run.authority import own_snapshot, refusals
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import run_digest
from rehome.run.words.plan_words import NOTHING_TO_MOVE, recorded_already_text
from rehome.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from rehome.fleet.due_clusters import Due
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory, Warehouse


class PlanFleetOperator(SparkJobOperator):
    """Submits spark_jobs/fleet.py for the clusters that are due, and records their plans.

    Nothing is carried out: each is the plan of a dry run, which a person may hand over to a window.
    A cluster that cannot be planned does not stop the others; it fails the task at the end. What an
    attempt has recorded, the next one leaves as it is: that cluster is not due any more.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(job="fleet.py", name="rehome-fleet", **kwargs)

    def step(self, context: RunContext) -> list[str]:
        """Plan; returns the ids of the plans that were recorded."""
        refuse_unshared(context)
        now = utc_now()
        due, waiting = due_clusters.find(context.ledger, parse_fleet(context.given), now)
        for name, why in waiting.items():
            self.log.info("%s is not due: %s", name, NOT_DUE_WORDS[why])
        plans, failed = self._plan(context, due, now) if due else ([], {})
        for name, reason in failed.items():
            self.log.error("%s has no plan: %s", name, reason)
        if failed:
            raise EndedError(TaskEnd(TaskReason.FLEET_WITHOUT_PLANS, content=failed))
        return plans

    def _plan(
        self, context: RunContext, due: Sequence[Due], now: datetime
    ) -> tuple[list[str], dict[str, str]]:
        """Ids of plans, and for each cluster without one the reason."""
        from rehome.warehouse import Warehouse

        run = context.dag_run
        digest = run_digest(run.dag_id, run.run_id)
        name = f"{run.run_after:%Y%m%dT%H%M%SZ}-fleet-{digest}"
        requests: dict[str, Any] = {}
        options: dict[str, Any] = {}
        chosen: dict[str, Due] = {}
        failed = {
            **_misled_reasons(context, due),
            **_earlier_plans(
                context.ledger, {one.name: (one, _plan_id(name, one.cluster_id)) for one in due}
            ),
        }
        for one in due:
            if one.name in failed:
                continue
            try:
                own_snapshot.require_unchanged(one.snapshot)
                request = due_clusters.request_for(context.ledger, one, now)
                settings = installation.settings(one.connection)
                values = plan_settings.values_now(request.action, one.connection)
            except RehomeError as error:
                failed[one.name] = str(error)
                continue
            chosen[one.cluster_id] = one
            requests[one.cluster_id] = request_to_params(request)
            directory = context.warehouse.plan(_plan_id(name, one.cluster_id))
            plan_settings.keep(directory, values)
            options[one.cluster_id] = due_clusters.options_of(request, settings)
        if not chosen:
            return [], failed
        plans = Warehouse(f"{context.warehouse.uri}/plans")
        request_uri = plans.write_json(
            f"{name}-requests.json", {"clusters": requests, "options": options}
        )
        every = [context.warehouse.snapshot_uri(one.snapshot.name) for one in chosen.values()]
        self.snapshots = every
        self.application_args = self._arguments(context, name, request_uri, plans.uri, every)
        results = self._submit(context, plans, f"{name}.json")
        recorded = []
        for cluster_id, one in chosen.items():
            directory = context.warehouse.plan(_plan_id(name, cluster_id))
            if results[cluster_id]["plan_hash"] is None:
                failed[one.name] = directory.read_json("failure.json")["message"]
                continue
            try:
                asked_for = requests[cluster_id]
                recorded.append(self._record(context, one, directory, asked_for))
            except RehomeError as error:
                failed[one.name] = str(error)
        return recorded, failed

    @staticmethod
    def _arguments(
        context: RunContext, name: str, request_uri: str, out: str, snapshots: Sequence[str]
    ) -> list[str]:
        warehouse = context.warehouse
        return [
            *("--snapshots", *snapshots),
            *("--request", request_uri),
            *("--out", out),
            *("--name", name),
            *("--quality", warehouse.quality_uri),
            *("--ledger-id", context.ledger.ledger_id),
            *("--history", warehouse.uri),
        ]

    def _submit(self, context: RunContext, plans: Warehouse, result: str) -> Mapping[str, Any]:
        """What became of each cluster, by its id."""
        if plans.exists(result):  # of an attempt before
            plans.remove(result)
        try:
            self.submit(context)
        except EndedError:  # also where one cluster has no plan
            if not plans.exists(result):
                raise
        return {entry["cluster_id"]: entry for entry in plans.read_json(result)}

    def _record(
        self,
        context: RunContext,
        one: Due,
        directory: PlanDirectory,
        asked_for: Mapping[str, Any],
    ) -> str:
        from rehome.domain.plan.kafka_json import refuse_other_files

        plan, run = directory.load(), context.dag_run
        refuse_other_files(plan.plan_id, directory.file_digests(), plan.summary.files)
        evidence.refuse_other_request(directory, asked_for)
        context.ledger.create_plan(
            plan,
            asked_for,
            directory.uri,
            run.run_id,
            context.actor,
            one.connection,
            run.dag_id,
            policy=policies.recorded_policy(one.connection),
            files=evidence.digests_of(directory),
        )
        if not plan.moves:
            context.ledger.transition(plan.plan_id, PlanState.CANCELLED, NOTHING_TO_MOVE)
            self.log.info("%s: %s", one.name, NOTHING_TO_MOVE)
            return plan.plan_id
        tell_of_full_disks(context, directory, plan.plan_id)
        size = bytes_text(plan.summary.bytes_to_move)
        self.log.info("%s: plan %s moves %s", one.name, plan.plan_id, size)
        return plan.plan_id


def _plan_id(name: str, cluster_id: str) -> str:
    """Of a cluster's plan in a run of this name: the job names its directory so."""
    return f"{name}-{path_part(cluster_id)}"


def _misled_reasons(context: RunContext, due: Sequence[Due]) -> dict[str, str]:
    """Why clusters have no plan whose connection leads elsewhere; the audit knows of each."""
    mismatches = due_clusters.misled_entries(context.ledger, due)
    for each in mismatches.values():
        refusals.tell_misled(context, each)
    return {name: f"{each.text}. {each.next_step}" for name, each in mismatches.items()}


def _earlier_plans(ledger: Ledger, planned: Mapping[str, tuple[Due, str]]) -> dict[str, str]:
    """Clusters that this run has planned before, by their names: their files are never replaced.

    :param planned: name → the cluster, and the plan's id.
    """
    return {
        name: recorded_already_text(plan_id)
        for name, (one, plan_id) in planned.items()
        if any(plan.plan_id == plan_id for plan in ledger.plans(one.cluster_id))
    }
