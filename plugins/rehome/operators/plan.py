"""Plans in one Spark application, gated by Great Expectations on both ends."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn

from rehome import alerting
from rehome.alerts.alert import about_plan
from rehome.domain.actions import Action
from rehome.domain.clock import monotonic_s
from rehome.domain.plan.infeasible_lines import infeasible_lines, limit_lines
from rehome.domain.request.request import request_to_params
from rehome.domain.run.askers import Term
from rehome.domain.text import bytes_text, count_text
from rehome.execution.policy_from_request import rate_for, small_bytes_for
from rehome.fleet import plan_settings, policies
from rehome.links import DataDocsLink, PlanPageLink
from rehome.operators import assets
from rehome.quality.engine.results import GateResult, describe
from rehome.run import (
    by_itself,
    evidence,
    plan_of_run,
    recorded_plans,
    run_authority,
    run_request,
)
from rehome.run.authority import own_plan, own_snapshot
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd
from rehome.run.ports import extras
from rehome.spark_job import SparkJobOperator

if TYPE_CHECKING:
    from rehome.domain.request.cluster_values import ClusterValues
    from rehome.domain.request.request import ReassignmentRequest
    from rehome.run.context import RunContext
    from rehome.warehouse import PlanDirectory


class PlanReassignmentOperator(SparkJobOperator):
    """Submits spark_jobs/plan.py, shows the gates' results, and records the plan.

    A run has one plan: once it is recorded, clearing this task returns the same one, and its
    files stay as they are. A planning that was interrupted before that is done again.
    """

    operator_extra_links = (PlanPageLink(), DataDocsLink())

    def __init__(self, **kwargs: Any):
        super().__init__(
            job="plan.py",
            inlets=assets.with_asset(assets.SNAPSHOTS_ASSET, kwargs.pop("inlets", None)),
            outlets=assets.with_asset(assets.PLANS_ASSET, kwargs.pop("outlets", None)),
            name="rehome-plan",
            **kwargs,
        )
        self.snapshot = ""

    def step(self, context: RunContext) -> str:
        """Plan; returns the plan's id. A plan that is continued is there already."""
        run_authority.refuse_unasked(context)
        made = self._made_already(context)
        if made is not None:
            return made
        own_plan.require(context)
        request = run_request.request_of(context)
        self.snapshot = own_snapshot.uri_of(context)
        self.snapshots = (self.snapshot,)
        directory = self._prepare(context, request)
        begun = monotonic_s()
        try:
            self.submit(context)
        except EndedError as error:
            self._job_has_ended(begun, directory)
            if not directory.exists("failure.json"):  # it has not even begun
                failure = {"kind": "crashed", "message": error.what, "details": []}
                directory.write_json("failure.json", failure)
                raise
            self._refuse(context, directory)
        self._job_has_ended(begun, directory)
        return self._record(context, directory, request)

    def _made_already(self, context: RunContext) -> str | None:
        """The id of the plan that the run has recorded, or resumes."""
        look_only = context.params.get("dry_run") and context.named_plan_id is not None
        find = plan_of_run.recorded_plan if look_only else plan_of_run.carried_on
        record = find(context)
        if record is None:
            return None
        assets.tell_of_plan(context, record.plan_id)
        self.log.info("Plan %s is %s, and stays as it was made.", record.plan_id, record.state)
        return record.plan_id

    def _prepare(self, context: RunContext, request: ReassignmentRequest) -> PlanDirectory:
        from rehome.warehouse import cluster_of

        settings, directory = context.settings, context.directory
        directory.discard()  # no ledger has recorded it
        request_uri = directory.write_json(evidence.REQUEST_FILE, request_to_params(request))
        plan_settings.keep(directory, self._values(context, request))
        self.application_args = [
            *("--snapshot", self.snapshot),
            *("--request", request_uri),
            *("--out", directory.uri),
            *("--rate-bytes-per-s", str(rate_for(request, settings))),
            *("--throttle-efficiency", str(settings.throttle_efficiency)),
            *("--reaction-s", str(settings.reaction_s)),
            *("--max-partitions-in-flight", str(settings.max_partitions_in_flight)),
            *("--small-bytes", str(small_bytes_for(request, settings))),
            *("--min-free-disk-fraction", str(settings.min_free_disk_fraction)),
            *("--max-snapshot-age-s", str(settings.max_snapshot_age_s)),
        ]
        warehouse = context.warehouse
        self.application_args += ["--ledger-id", context.ledger.ledger_id]
        self.application_args += ["--quality", warehouse.quality_uri]
        if warehouse.rollups(cluster_of(self.snapshot)).days():
            self.application_args += [
                *("--history", warehouse.uri),
                *("--history-days", str(settings.history_days)),
                *("--min-history-hours", str(settings.min_history_hours)),
                *("--forecast-days", str(settings.forecast_days)),
            ]
        if request.action is Action.ROLLBACK:
            taken_back = warehouse.plan(str(request.plan_id))
            self.application_args += ["--rollback-of", taken_back.uri]
            record = recorded_plans.recorded_plan(context.ledger, str(request.plan_id))
            if record is not None:  # else it is another ledger's, and its own hash has to do
                self.application_args += ["--rollback-of-hash", record.plan_hash]
        return directory

    def _values(self, context: RunContext, request: ReassignmentRequest) -> ClusterValues:
        """What the cluster has for this plan."""
        if not context.in_follow_up:
            stated = plan_settings.stated_params(context.filled)
            return plan_settings.values_now(request.action, context.connection, stated)
        first = context.warehouse.plan(context.first_plan_id)
        return plan_settings.since(first, request.action, context.connection)[1]

    def _refuse(self, context: RunContext, directory: PlanDirectory) -> NoReturn:
        """What the job has refused is not tried again; where it has crashed, it is."""
        from rehome.run.causes.kinds import REFUSALS

        failure = directory.read_json("failure.json")
        kind = failure["kind"]
        raise EndedError(TaskEnd(REFUSALS[kind], said=failure["message"])) from None

    def _job_has_ended(self, begun: float, directory: PlanDirectory) -> None:
        """Show what the gates said, and measure the job; however it has ended."""
        from rehome.warehouse import cluster_of

        took, gates = timedelta(seconds=monotonic_s() - begun), {}
        if directory.exists("gates.json"):
            results = [GateResult.from_json(item) for item in directory.read_json("gates.json")]
            self.log.info("%s\nKept in %s/gates.json", describe(results), directory.uri)
            gates = {result.gate: result.passed for result in results}
        extras().metrics.plan_job(cluster_of(self.snapshot), took, gates)

    def _record(
        self, context: RunContext, directory: PlanDirectory, request: ReassignmentRequest
    ) -> str:
        from rehome.domain.plan.kafka_json import refuse_other_files

        plan, run = directory.load(), context.dag_run
        refuse_other_files(plan.plan_id, directory.file_digests(), plan.summary.files)
        asked_for = request_to_params(request)
        evidence.refuse_other_request(directory, asked_for)
        asks = request.approval or request.dry_run
        by_itself.refuse_lowering(context, plan, asks=asks)
        context.ledger.create_plan(
            plan,
            asked_for,
            directory.uri,
            run.run_id,
            context.actor,
            context.given.get("kafka_config_id"),
            run.dag_id,
            _asked_before(context),
            policies.recorded_policy(context.connection),
            evidence.digests_of(directory),
        )
        assets.tell_of_plan(context, plan.plan_id)
        summary = plan.summary
        self.log.info(
            "Plan %s: %s, %s, %s to move (lower bound %s), "
            "at %s/s; the dry run predicts the time; hash %s",
            plan.plan_id,
            count_text(summary.partitions, "partition"),
            count_text(summary.replica_moves, "replica move"),
            bytes_text(summary.bytes_to_move),
            bytes_text(summary.lower_bound_bytes),
            "?" if summary.rate_bytes_per_s is None else bytes_text(summary.rate_bytes_per_s),
            plan.plan_hash,
        )
        for line in infeasible_lines(summary.infeasible):
            self.log.warning("%s", line)
        for line in limit_lines(summary.infeasible):
            self.log.info("The best that the cluster allows: %s", line)
        tell_of_full_disks(context, directory, plan.plan_id)
        return plan.plan_id


def _asked_before(context: RunContext) -> Mapping[Term, str] | None:
    """Who has asked for what a follow-up takes over from the plan that it follows up."""
    if not context.in_follow_up:
        return None
    first = context.ledger.plan(context.first_plan_id)
    return {**first.terms_asked_by, Term.FOLLOWED_UP: first.actor}


def tell_of_full_disks(context: RunContext, directory: PlanDirectory, plan_id: str) -> None:
    """Raise an alert where a plan would leave brokers whose disks are full soon."""
    from rehome.alerts.due_alerts import disks_full

    if not directory.exists("load.json"):
        return
    load = directory.read_json("load.json")
    about = about_plan(context.ledger.plan(plan_id))
    alert = disks_full(load["forecast"], load["forecast_days"], **about)
    if alert is not None:
        alerting.raise_alerts(context.ledger, [alert])
