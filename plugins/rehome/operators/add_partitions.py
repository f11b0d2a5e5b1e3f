"""More partitions for topics: placed, tried out, approved, created, reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.providers.standard.utils.skipmixin import SkipMixin
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.executors import refuse_unshared_ledger
from rehome.fleet import bound
from rehome.operators.base import ClusterOperator
from rehome.run import (
    approval_terms,
    plan_ids,
    recorded_plans,
    run_params,
    run_request,
    task_errors,
)
from rehome.run.authority import own_snapshot

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.domain.request.partition_counts import AddedPartitions, PartitionCountsRequest

NEW_PARTITIONS_FILE, DRY_RUN_FILE = "new_partitions.json", "dry_run.json"
APPROVER = "approver"
"""XCom of the task that waits for approval: the person who has given it."""
APPROVE_TASK = "approve"


def _request(context: Context) -> PartitionCountsRequest:
    from include.domain.request.limits import with_limits
    from include.domain.request.partition_counts import parse_partition_counts

    settings = installation.settings()
    return with_limits(
        parse_partition_counts(context["params"]), settings.caps, settings.broker_sets
    )


def _placed(context: Context) -> AddedPartitions:
    from include.domain.request.partition_counts import AddedPartitions

    return AddedPartitions.from_json(
        recorded_plans.plan_directory(context).read_json(NEW_PARTITIONS_FILE)
    )


def _begun(context: Context) -> bool:
    """Whether the run has sent its partitions to the controller: then tasks that come before that,
    and are cleared, leave the placement as it is.
    """
    from include.domain.run.event_kind import EventKind

    with installation.open_ledger() as ledger:
        events = ledger.events(plan_ids.plan_id_of(context))
    return any(event.kind is EventKind.ADDING_PARTITIONS for event in events)


def _broken_limits(context: Context, plan: AddedPartitions) -> list[str]:
    """Caps and broker sets of now that the placement breaks, by the newest snapshot. Days may lie
    between the placement and this.

    :raises PlanConflictError: there is no snapshot by which to judge it.
    """
    from include.errors import PlanConflictError
    from include.planning.placement.add_partitions import broken_by_placed
    from include.warehouse import read_snapshot

    newest = installation.warehouse().latest_snapshot(plan.cluster_id)
    if newest is None:
        raise PlanConflictError(
            f"The warehouse has no snapshot of cluster {plan.cluster_id}, so it is not known "
            "whether the placement keeps the caps and broker sets of now",
            state_left="No partition was created.",
            next_step="Trigger again: a new run takes a snapshot and places the partitions anew.",
        )
    return broken_by_placed(read_snapshot(newest), plan, _request(context))


class PlacePartitionsOperator(ClusterOperator):
    """Decides where new partitions go, by the planner's own placement. Returns the file's URI."""

    def step(self, context: Context) -> str:
        """Read the snapshot, place, keep the result."""
        from include.planning.placement.add_partitions import place
        from include.warehouse import read_snapshot

        refuse_unshared_ledger(context, installation.settings().ledger_url)
        plan_id = plan_ids.plan_id_of(context)
        if _begun(context):
            self.log.info("Creating the partitions has begun: their placement stays.")
            return f"{recorded_plans.plan_directory(context).uri}/{NEW_PARTITIONS_FILE}"
        plan = place(read_snapshot(own_snapshot.uri_of(context)), _request(context), plan_id)
        for partition, replicas in sorted(plan.assignments.items()):
            self.log.info("%s: %s", partition, list(replicas))
        self.log.info("%d new partitions, hash %s", len(plan.assignments), plan.plan_hash)
        return recorded_plans.plan_directory(context).write_json(
            NEW_PARTITIONS_FILE, plan.to_json()
        )


class TryPartitionsOperator(ClusterOperator, SkipMixin):
    """Validate-only: rights, live brokers, drift, and the controller's own verdict.

    Writes the report. With the parameter ``dry_run`` the run ends here.
    """

    inherits_from_skipmixin = True

    def step(self, context: Context) -> str:
        """Ask, report, and either go on or stop here."""
        from include.domain.run.findings import Severity
        from include.execution.access.connection_policy import ADD_PARTITIONS
        from include.execution.access.own_cluster import OwnCluster
        from include.execution.create_partitions import broken_findings, check
        from include.reporting.added_partitions import partitions_report

        plan, directory = _placed(context), recorded_plans.plan_directory(context)
        if _begun(context):
            self.log.info("Creating the partitions has begun: there is nothing to try out.")
            return f"{directory.uri}/report.html"
        if not _request(context).dry_run:
            self.policy.require(ADD_PARTITIONS, None, datetime.now(UTC))
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            active = ledger.active_plan(plan.cluster_id)
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(ledger, self.kafka_config_id, found_id, context)
            found = check(plan, own, active_plan=active.plan_id if active else None)
        found += [*broken_findings(_broken_limits(context, plan))]
        for finding in found:
            self.log.info("%s", finding)
        errors = [str(item) for item in found if item.severity is Severity.ERROR]
        directory.write_json(
            DRY_RUN_FILE, {"ok": not errors, "findings": [str(item) for item in found]}
        )
        uri = directory.write_text("report.html", partitions_report(plan, found))
        self.log.info("Report: %s", uri)
        if errors:
            problems = "\n".join(errors)
            text = f"New partitions are refused:\n{problems}\nNothing was changed."
            self.log.error("%s", text)
            raise AirflowFailException(text)
        if _request(context).dry_run:
            self.log.info("Dry run: nothing was changed.")
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))
        return uri


class ApprovePartitionsOperator(ApprovalOperator):
    """Waits for a person's approval where the parameter ``approval`` asks for it.

    The approval is bound to the hash of what was placed.
    """

    ui_color = "#f3e2e9"

    def __init__(self, **kwargs: Any):
        super().__init__(subject="Approve the new partitions?", **kwargs)

    def execute(self, context: Context) -> Any:
        """Wait, or go on in the name of the run's parameters; returns the approved hash."""
        plan = _placed(context)
        asked = _request(context).approval or run_request.policy_of(context).approval
        if _begun(context) or not asked:
            return plan.plan_hash
        totals = [f"- {topic}: {total} partitions" for topic, total in plan.totals.items()]
        report = f"{recorded_plans.plan_directory(context).uri}/report.html"
        self.body = "\n".join([*totals, f"- report: {report}", f"- hash `{plan.plan_hash}`"])
        context["ti"].xcom_push(key="plan_hash", value=plan.plan_hash)
        return super().execute(context)

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """The hash that the person saw."""
        if event.get("chosen_options") != [self.REJECT]:
            from include.domain.run.askers import Askers

            with task_errors.plain_errors():
                asked = Askers(run_params.actor_of(context))
                approval_terms.refuse_own_approval(context, event, asked)
        super().execute_complete(context, event)
        user = event.get("responded_by_user") or {}
        context["ti"].xcom_push(key=APPROVER, value=user.get("name") or user.get("id"))
        return context["ti"].xcom_pull(task_ids=self.task_id, key="plan_hash")


class CreatePartitionsOperator(ClusterOperator):
    """Creates the partitions where they were placed, and proves it by reading.

    A retry creates nothing twice.

    :param approved: hash of the placement that was approved.
    """

    template_fields: Sequence[str] = (*ClusterOperator.template_fields, "approved")

    def __init__(self, *, approved: str, **kwargs: Any):
        super().__init__(**kwargs)
        self.approved = approved

    def step(self, context: Context) -> None:
        """Create, prove, write the event, complete the report."""
        from include.domain.run.askers import Askers
        from include.domain.run.event_kind import EventKind
        from include.execution.access.connection_policy import ADD_PARTITIONS
        from include.execution.access.own_cluster import OwnCluster
        from include.execution.create_partitions import create, refuse_broken
        from include.reporting.added_partitions import partitions_report

        plan, directory = _placed(context), recorded_plans.plan_directory(context)
        if plan.plan_hash != self.approved:
            raise AirflowFailException(
                f"The placement has the hash {plan.plan_hash}, but {self.approved} was approved. "
                "Nothing was changed. Trigger again."
            )
        text = ", ".join(f"{topic}: {total}" for topic, total in plan.totals.items())
        who = {"actor": run_params.actor_of(context), "cluster_id": plan.cluster_id}
        self.policy.require(ADD_PARTITIONS, None, datetime.now(UTC))
        if not _begun(context):
            approver = context["ti"].xcom_pull(task_ids=APPROVE_TASK, key=APPROVER)
            self.policy.require_approver(approver, Askers(run_params.actor_of(context)))
            refuse_broken(_broken_limits(context, plan))
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(ledger, self.kafka_config_id, found_id, context)
            ledger.add_event(EventKind.ADDING_PARTITIONS, text, plan_id=plan.plan_id, **who)
            created = create(plan, own)
            ledger.add_event(EventKind.PARTITIONS_ADDED, text, plan_id=plan.plan_id, **who)
        directory.write_text("report.html", partitions_report(plan, (), created=True))
        self.log.info("%d partitions created and led: %s", len(created), text)
