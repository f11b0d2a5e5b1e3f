"""Cancels what a person has approved, of what other clients have started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehome.domain.run.event_kind import EventKind
from rehome.execution.access.own_cluster import OwnCluster
from rehome.fleet import bound
from rehome.operators.base import ClusterOperator
from rehome.operators.foreign.asked import (
    has_begun,
    refuse_by_policy,
    require_named,
    require_person,
)
from rehome.run import run_authority
from rehome.run.causes.errors import EndedError
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.words.proposal_words import approved_by_text

if TYPE_CHECKING:
    from rehome.execution.access.lease import LeasedCluster
    from rehome.execution.foreign.cancel_foreign import ForeignCancelled
    from rehome.execution.foreign.named import NamedReassignments
    from rehome.run.context import RunContext


class CancelForeignOperator(ClusterOperator):
    """Cancels the named reassignments, puts replicas in the order of before where a snapshot shows
    it, and proves it by reading. With the id ``cancel``, after ``approve``.

    What was approved, and by whom, is read from the ledger alone. A retry finds out by reading what
    the attempt before it has done.

    :raises NotDoneError: no person has approved exactly this in this run.
    :raises SetMeanwhileError: something else was set on one of them since. Nothing was changed.
    :raises LeaseHeldError: a run of Rehome changes the cluster. Nothing was changed.
    :raises PolicyError: the policy refuses it by now.
    :raises EndedError: something of it is still in flight; names each, and why.
    """

    ui_color = "#e3f0e4"

    def step(self, context: RunContext) -> None:
        """Policy, approval, lease; cancel, clean, say what is left."""
        from rehome.execution.access.lease import hold, ttl_s
        from rehome.execution.foreign.cancel_foreign import cancel_foreign
        from rehome.execution.foreign.flight_words import cancelled_lines

        selection, plan_id = require_named(context), context.plan_id
        policy = context.policy_on(selection.cluster_id)
        refuse_by_policy(selection, policy)
        answered = require_person(context, selection, policy)
        if not has_begun(context):
            run_authority.refuse_unasked(context)
        about = {"plan_id": plan_id, "cluster_id": selection.cluster_id}
        with context.gateway() as cluster:
            own = OwnCluster.of(cluster, selection.cluster_id, plan_id)
            found_id = own.describe_cluster().cluster_id
            bound.require(context, found_id)
            owner, lasting_s = context.driver_of(), ttl_s(context.settings)
            with hold(context.ledger, own, owner, lasting_s, release=True) as lease:
                text = approved_by_text(len(selection.reassignments), str(answered.by))
                actor = context.actor
                lease.ledger.add_event(EventKind.CANCELLING_FOREIGN, text, actor=actor, **about)
                done = cancel_foreign(selection, lease.ledger, lease.cluster)
                lines = list(cancelled_lines(done))
                lease.ledger.add_event(
                    EventKind.FOREIGN_CANCELLED, "; ".join(lines), actor=actor, **about
                )
                for line in lines:
                    self.log.info("%s", line)
                if selection.clean_throttles:
                    self._clean(selection, done, lease)
        if done.left:
            said = "; ".join(f"{p}: {error}" for p, error in sorted(done.left.items()))
            count = len(done.cancelled)
            raise EndedError(TaskEnd(TaskReason.FOREIGN_LEFT, said=said, count=count))

    def _clean(
        self, selection: NamedReassignments, done: ForeignCancelled, lease: LeasedCluster
    ) -> None:
        from rehome.execution.foreign.clean_throttles import clean_throttles

        over = [*done.cancelled, *done.ended]
        cleaned = clean_throttles(selection, over, lease.ledger, lease.cluster)
        for change in cleaned.changes:
            self.log.info("Taken away: %s %s %s", change.resource, change.key, change.value or "")
        for resource, error in cleaned.refusals.items():
            self.log.warning("%s keeps its throttle: %s", resource, error)
