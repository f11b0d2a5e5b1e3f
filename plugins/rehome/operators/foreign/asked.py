"""What a run of `foreign_reassignments` has named, by the ledger, and who has approved it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.clock import utc_now
from rehome.domain.kafka import Replicas, TopicPartition
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.foreign.foreign_request import ForeignAction, parse_foreign
from rehome.execution.access.connection_policy import ADOPT, CANCEL_FOREIGN
from rehome.operators.approval.without_plan import Proposed, require_approval
from rehome.run import evidence
from rehome.run.authority import own_snapshot
from rehome.run.causes.task_end import ProposalKind, TaskEnd, TaskReason

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from rehome.domain.run.approval.questions import Answered
    from rehome.domain.run.foreign.foreign_request import ForeignRequest
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.execution.foreign.in_flight import Flight
    from rehome.execution.foreign.named import NamedReassignments
    from rehome.ledger.store import Ledger
    from rehome.run.context import RunContext

NAMED_FILE = "foreign_reassignments.json"
_SNAPSHOTS_READ = 5
"""So many snapshots are read for the orders of before."""


def request_of(context: RunContext) -> ForeignRequest:
    """What the run is asked for.

    :raises InvalidRequestError: lists every problem.
    """
    return parse_foreign(context.given)


def named_by_run(context: RunContext) -> NamedReassignments | None:
    """What the task `look` has named; None = it has named nothing.

    :raises FileChangedError: something else has written the file.
    """
    from rehome.execution.foreign.named import NamedReassignments

    plan_id = context.plan_id
    directory = context.directory
    content = evidence.read_kept(context.ledger, directory, plan_id, NAMED_FILE)
    return None if content is None else NamedReassignments.from_json(content)


def require_named(context: RunContext) -> NamedReassignments:
    """The same, in tasks that come after it.

    :raises NotDoneError: it has named nothing.
    """
    selection = named_by_run(context)
    if selection is None:
        run_id = context.dag_run.run_id
        raise evidence.NotDoneError(TaskEnd(TaskReason.NOT_LOOKED, run_id=run_id))
    return selection


def proposed_by(selection: NamedReassignments, plan_id: str) -> Proposed:
    """What is approved: all that is named, by its digest, and what people read of it."""
    return Proposed(
        kind=ProposalKind.FOREIGN,
        plan_id=plan_id,
        cluster_id=selection.cluster_id,
        digest=selection.digest,
        terms={
            "digest": selection.digest,
            "action": selection.action.value,
            "reassignments": len(selection.reassignments),
            "clean_throttles": selection.clean_throttles,
            "rate_bytes_per_s": selection.rate_bytes_per_s,
        },
        reads=NAMED_FILE,
    )


def has_begun(context: RunContext) -> bool:
    """Whether the run has begun to carry out what it was asked."""
    events = context.ledger.events(context.plan_id)
    return any(e.kind in (EventKind.CANCELLING_FOREIGN, EventKind.ADOPTED) for e in events)


def refuse_by_policy(selection: NamedReassignments, policy: ConnectionPolicy) -> None:
    """See that the connection's policy allows it now.

    :raises PolicyError: it does not.
    """
    action = ADOPT if selection.action is ForeignAction.ADOPT else CANCEL_FOREIGN
    policy.require(action, selection.rate_bytes_per_s, utc_now())


def require_person(
    context: RunContext, selection: NamedReassignments, policy: ConnectionPolicy
) -> Answered:
    """See that a person has approved exactly this in this run, by the ledger; the answer.

    :raises NotDoneError: none has.
    :raises PlanConflictError: a person has rejected it.
    :raises PolicyError: the policy wants another person.
    """
    proposed = proposed_by(selection, context.plan_id)
    return require_approval(context, proposed, policy, by_person=True)


def orders_before(
    ledger: Ledger, cluster_id: str, flights: Collection[Flight]
) -> dict[TopicPartition, Replicas]:
    """In which order replicas were before reassignments of others began, by the newest snapshot
    from before each was first seen. What no snapshot shows is left out.
    """
    from rehome.execution.foreign.snapshot_flights import orders_at_rest
    from rehome.warehouse import read_snapshot

    by_time: dict[datetime, list[Flight]] = {}
    for each in flights:
        if each.plan_id is None and each.since is not None:
            by_time.setdefault(each.since, []).append(each)
    orders: dict[TopicPartition, Replicas] = {}
    for since in sorted(by_time, reverse=True)[:_SNAPSHOTS_READ]:
        taken = ledger.newest_snapshot(cluster_id, before=since)
        if taken is not None:
            snapshot = read_snapshot(own_snapshot.require_unchanged(taken))
            orders |= orders_at_rest(snapshot, by_time[since])
    return orders
