"""More partitions for topics: placed, tried out, approved, created, reported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.clock import utc_now
from rehome.domain.request.limits import with_limits
from rehome.domain.request.partition_counts import AddedPartitions, parse_partition_counts
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.findings import Severity
from rehome.domain.text import count_text
from rehome.execution.access.connection_policy import ADD_PARTITIONS
from rehome.execution.access.own_cluster import OwnCluster
from rehome.executors import refuse_unshared
from rehome.fleet import bound
from rehome.operators.approval.without_plan import (
    ApproveProposedOperator,
    Proposed,
    require_approval,
)
from rehome.operators.base import ClusterOperator
from rehome.reporting.added_partitions import partitions_report
from rehome.run import (
    evidence,
    run_authority,
    run_request,
)
from rehome.run.authority import own_snapshot
from rehome.run.causes.errors import EndedError, TaskConflictError
from rehome.run.causes.task_end import ProposalKind, TaskEnd, TaskReason
from rehome.run.evidence import REPORT_FILE
from rehome.run.words.proposal_words import PARTITIONS_SUBJECT, partitions_question

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot
    from rehome.domain.kafka import TopicPartition
    from rehome.domain.request.partition_counts import PartitionCountsRequest
    from rehome.run.context import RunContext

NEW_PARTITIONS_FILE = "new_partitions.json"


def _request(context: RunContext) -> PartitionCountsRequest:
    settings = context.settings
    return with_limits(parse_partition_counts(context.given), settings.caps, settings.broker_sets)


def _read_placement(context: RunContext) -> AddedPartitions:
    """What the task `place` has placed.

    :raises NotDoneError: it has not. :raises FileChangedError: something else has written the file.
    """
    plan_id, directory = context.plan_id, context.directory
    content = evidence.read_kept(context.ledger, directory, plan_id, NEW_PARTITIONS_FILE)
    if content is None:
        raise evidence.NotDoneError(TaskEnd(TaskReason.NOT_PLACED, plan_id))
    return AddedPartitions.from_json(content)


def _proposal_of(plan: AddedPartitions) -> Proposed:
    """What is approved: all of the placement, by its hash, and what people read of it."""
    return Proposed(
        kind=ProposalKind.PARTITIONS,
        plan_id=plan.plan_id,
        cluster_id=plan.cluster_id,
        digest=plan.plan_hash,
        terms={
            "plan_hash": plan.plan_hash,
            "totals": plan.totals,
            "new_topics": plan.to_json()["new_topics"],
        },
        reads=REPORT_FILE,
    )


def _has_begun(context: RunContext) -> bool:
    """Whether the run has sent its partitions to the controller: then tasks that come before that,
    and are cleared, leave the placement as it is.
    """
    events = context.ledger.events(context.plan_id)
    return any(event.kind is EventKind.ADDING_PARTITIONS for event in events)


def _newest_snapshot(context: RunContext, plan: AddedPartitions) -> Snapshot:
    """The newest of the cluster: days may lie between the placement and this.

    :raises PlanConflictError: there is no snapshot by which to judge it.
    """
    from rehome.warehouse import read_snapshot

    newest = context.ledger.newest_snapshot(plan.cluster_id)
    if newest is None:
        names = (plan.cluster_id,)
        raise TaskConflictError(TaskEnd(TaskReason.NO_NEWEST_SNAPSHOT, names=names))
    return read_snapshot(own_snapshot.require_unchanged(newest))


def _broken_limits(context: RunContext, plan: AddedPartitions) -> list[str]:
    """Caps and broker sets of now that the placement breaks, by the newest snapshot."""
    from rehome.planning.placement.add_partitions import broken_by_placed

    return broken_by_placed(_newest_snapshot(context, plan), plan, _request(context))


def _off_racks(context: RunContext, plan: AddedPartitions) -> list[TopicPartition]:
    """New partitions whose replicas a person has chosen against the racks of now."""
    from rehome.planning.placement.add_partitions import unevenly_placed

    return unevenly_placed(_newest_snapshot(context, plan), plan, _request(context))


class PlacePartitionsOperator(ClusterOperator):
    """Decides where new partitions go, by the planner's own placement. Returns the file's URI."""

    def step(self, context: RunContext) -> str:
        """Read the snapshot, place, keep the result."""
        from rehome.planning.placement.add_partitions import place
        from rehome.warehouse import read_snapshot

        refuse_unshared(context)
        plan_id = context.plan_id
        if _has_begun(context):
            self.log.info("Creating the partitions has begun: their placement stays.")
            return f"{context.directory.uri}/{NEW_PARTITIONS_FILE}"
        run_authority.refuse_unasked(context)
        plan = place(read_snapshot(own_snapshot.uri_of(context)), _request(context), plan_id)
        for partition, replicas in sorted(plan.assignments.items()):
            self.log.info("%s: %s", partition, list(replicas))
        self.log.info("%d new partitions, hash %s", len(plan.assignments), plan.plan_hash)
        directory = context.directory
        evidence.keep(context.ledger, directory, plan_id, NEW_PARTITIONS_FILE, plan.to_json())
        return f"{directory.uri}/{NEW_PARTITIONS_FILE}"


class TryPartitionsOperator(ClusterOperator, SkipMixin):
    """Validate-only: rights, live brokers, drift, and the controller's own verdict.

    Writes the report. With the parameter ``dry_run`` the run ends here.
    """

    inherits_from_skipmixin = True

    def step(self, context: RunContext) -> str:
        """Ask, report, and either go on or stop here."""
        from rehome.execution.create_partitions import broken_findings, check, rack_findings

        plan, directory = _read_placement(context), context.directory
        if _has_begun(context):
            self.log.info("Creating the partitions has begun: there is nothing to try out.")
            return f"{directory.uri}/{REPORT_FILE}"
        if not _request(context).dry_run:
            policy = context.policy_on(plan.cluster_id)
            policy.require(ADD_PARTITIONS, None, utc_now())
        with context.gateway() as cluster:
            active = context.ledger.active_plan(plan.cluster_id)
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(context, found_id)
            findings = check(plan, own, active_plan=active.plan_id if active else None)
        findings += [*broken_findings(_broken_limits(context, plan))]
        findings += rack_findings(_off_racks(context, plan))
        for finding in findings:
            self.log.info("%s", finding)
        errors = [str(item) for item in findings if item.severity is Severity.ERROR]
        content = {"ok": not errors, "findings": [str(item) for item in findings]}
        evidence.record_tried(context, directory, plan.plan_id, content)
        uri = directory.write_text(REPORT_FILE, partitions_report(plan, findings))
        self.log.info("Report: %s", uri)
        if errors:
            raise EndedError(TaskEnd(TaskReason.PARTITIONS_REFUSED, said="\n".join(errors)))
        if _request(context).dry_run:
            self.log.info("Dry run: nothing was changed.")
            self.skip(ti=context.ti, tasks=context.task.get_flat_relatives(upstream=False))
        return uri


class ApprovePartitionsOperator(ApproveProposedOperator):
    """Waits for a person's approval of the placement where the parameter ``approval`` asks for it,
    or the connection's policy.
    """

    def __init__(self, **kwargs: Any):
        super().__init__(subject=PARTITIONS_SUBJECT, **kwargs)

    def proposal(self, context: RunContext) -> Proposed:
        """What the task `place` has placed."""
        return _proposal_of(_read_placement(context))

    def has_begun(self, context: RunContext) -> bool:
        """Whether the run has sent its partitions to the controller."""
        return _has_begun(context)

    def needs_person(self, context: RunContext) -> bool:
        """See that it was tried out; whether a person has to be asked."""
        evidence.require_dry_run(context, context.plan_id)
        return _request(context).approval or run_request.policy_of(context).approval

    def text(self, context: RunContext, file: str, again: str) -> str:
        """Topics, counts and configs; the brokers are in the report."""
        return partitions_question(_read_placement(context), file, again)


class CreatePartitionsOperator(ClusterOperator):
    """Creates the partitions where they were placed, and proves it by reading.

    A retry creates nothing twice. What was approved, and by whom, is read from the ledger alone.
    """

    def step(self, context: RunContext) -> None:
        """Create, prove, write the event, complete the report."""
        from rehome.execution.create_partitions import create, refuse_broken

        plan, directory = _read_placement(context), context.directory
        text = ", ".join(f"{topic}: {total}" for topic, total in plan.totals.items())
        who = {"actor": context.actor, "cluster_id": plan.cluster_id}
        policy = context.policy_on(plan.cluster_id)
        policy.require(ADD_PARTITIONS, None, utc_now())
        # Also where creating them has begun: a run that was deleted and triggered again by another
        # person has the same id.
        needed = _request(context).approval or policy.approval
        require_approval(context, _proposal_of(plan), policy, by_person=needed)
        if not _has_begun(context):
            run_authority.refuse_unasked(context)
            evidence.require_dry_run(context, plan.plan_id)
            refuse_broken(_broken_limits(context, plan))
        with context.gateway() as cluster:
            own = OwnCluster.of(cluster, plan.cluster_id, plan.plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(context, found_id)
            context.ledger.add_event(EventKind.ADDING_PARTITIONS, text, plan_id=plan.plan_id, **who)
            created = create(plan, own)
            context.ledger.add_event(EventKind.PARTITIONS_ADDED, text, plan_id=plan.plan_id, **who)
        directory.write_text(REPORT_FILE, partitions_report(plan, (), created=True))
        self.log.info("%s created and led: %s", count_text(len(created), "partition"), text)
