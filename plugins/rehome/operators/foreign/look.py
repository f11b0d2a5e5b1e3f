"""Describes what is in flight on a cluster; and follows it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from rehome.domain.clock import utc_now
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.execution.observation.foreign_reassignments import Watched
from rehome.executors import refuse_unshared
from rehome.fleet import bound
from rehome.operators.approval.without_plan import APPROVE_TASK, refuse_rejected
from rehome.operators.base import ClusterOperator
from rehome.operators.foreign.asked import (
    NAMED_FILE,
    has_begun,
    orders_before,
    proposed_by,
    refuse_by_policy,
    request_of,
    require_named,
)
from rehome.run import evidence, run_authority
from rehome.run.causes.operator import RecordedOperator
from rehome.sensors.reassignment import ReassignmentSensor

if TYPE_CHECKING:
    from rehome.domain.run.foreign.foreign_request import ForeignRequest
    from rehome.execution.foreign.in_flight import Chosen
    from rehome.execution.foreign.read_flights import DescribedFlights
    from rehome.run.context import RunContext
    from rehome.triggers.watch import ReassignmentWatch


ADOPTION = ("adopt", "progress", "clear_throttle", "verify", "report", "verdict")
"""Tasks that take over what was named, as a plan."""
_TASKS_OF: Mapping[ForeignAction, Collection[str]] = {
    ForeignAction.DESCRIBE: (),
    ForeignAction.FOLLOW: ("follow",),
    ForeignAction.CANCEL: (APPROVE_TASK, "cancel"),
    ForeignAction.ADOPT: (APPROVE_TASK, *ADOPTION),
}
"""Tasks that an action needs after `look`."""
FOREIGN_TASKS = ("look", *dict.fromkeys(task for of_one in _TASKS_OF.values() for task in of_one))
"""Ids of the tasks of all actions."""


def chosen_by(request: ForeignRequest) -> Chosen:
    """Which reassignments a request is about."""
    from rehome.execution.foreign.in_flight import Chosen

    return Chosen(request.topics, frozenset(request.brokers))


class LookAtReassignmentsOperator(ClusterOperator, SkipMixin):
    """Describes what is in flight, of any client (KIP-240, KIP-455), with KIP-179's table, in its
    log. The first task of a DAG about that, with the id ``look``; it changes nothing.

    Which reassignments, and what is asked of them, say the parameters of the run
    (:func:`~rehome.params.fixed_foreign_params`). For ``cancel`` and ``adopt`` it names each one in
    the ledger, and returns the SHA-256 digest of them, which a person is to approve; else None. Of
    Rehome's tasks after it, those of other actions are skipped; where there is nothing to cancel or
    to adopt, all tasks after it are.

    :raises InvalidRequestError: the parameters of the run cannot be carried out; lists every
        problem.
    :raises ClusterError: the cluster could not be read.
    :raises PolicyError: the policy of the connection refuses the action, or its rate.
    :raises PlanConflictError: a person has rejected what this run has named before.
    """

    inherits_from_skipmixin = True

    def step(self, context: RunContext) -> str | None:
        """Read, remember, say."""
        from rehome.execution.foreign.file_status import file_statuses
        from rehome.execution.foreign.flight_words import described_lines
        from rehome.execution.foreign.read_flights import describe_reassignments
        from rehome.execution.progress.progress import status_table

        request = request_of(context)
        with context.gateway() as cluster:
            cluster_id = cluster.describe_cluster().cluster_id
            bound.record_binding(context, cluster_id)
            flights = describe_reassignments(cluster, context.ledger, utc_now(), chosen_by(request))
            for line in described_lines(flights):
                self.log.info("%s", line)
            if request.file is not None:
                statuses = file_statuses(cluster, request.file, utc_now())
                self.log.info("The reassignment in the file:\n%s", status_table(statuses))
            changes = request.action.changes_cluster
            digest = self._name(context, flights) if changes else None
        nothing = changes and digest is None
        self._skip(context, () if nothing else _TASKS_OF[request.action], everything=nothing)
        return digest

    def _name(self, context: RunContext, flights: DescribedFlights) -> str | None:
        """Write down what the run is about; its digest, None = there is nothing. What it has begun
        stays.
        """
        from rehome.execution.foreign.named import NamedReassignments, name_reassignments

        if has_begun(context):
            self.log.info("Carrying it out has begun: what was named stays.")
            return require_named(context).digest
        refuse_unshared(context)
        run_authority.refuse_unasked(context)
        bound.require(context, flights.cluster_id)
        plan_id = context.plan_id
        request, rate = request_of(context), None
        if request.action is ForeignAction.ADOPT:
            default = context.settings.auto_throttle_bytes_per_s
            rate = request.rate_bytes_per_s or default
        orders = orders_before(context.ledger, flights.cluster_id, flights.reassignments)
        selection = NamedReassignments(
            flights.cluster_id,
            request.action,
            name_reassignments(flights.reassignments, orders),
            request.clean_throttles,
            rate,
        )
        refuse_rejected(context, proposed_by(selection, plan_id))
        refuse_by_policy(selection, context.policy_on(flights.cluster_id))
        if not selection.reassignments:
            self.log.info("Nothing of other clients is in flight, of what is asked about.")
            return None
        directory = context.directory
        evidence.keep(context.ledger, directory, plan_id, NAMED_FILE, selection.to_json())
        self.log.info("%d named, digest %s", len(selection.reassignments), selection.digest)
        return selection.digest

    def _skip(self, context: RunContext, kept: Collection[str], *, everything: bool) -> None:
        """Skip Rehome's tasks of other actions; where there is nothing to do, all that comes after.
        A task of the DAG's author may have any id that the action leaves free.
        """
        after = context.task.get_flat_relatives(upstream=False)
        of_others = {*FOREIGN_TASKS}.difference(kept)
        skipped = [
            each
            for each in after
            if everything or (isinstance(each, RecordedOperator) and each.task_id in of_others)
        ]
        self.skip(ti=context.ti, tasks=skipped)


class FollowReassignmentsSensor(ReassignmentSensor, SkipMixin):
    """Succeeds when what the run is asked to follow is complete: with a file of Kafka's tool
    (parameter ``reassignment``) what the file names, else what ``topics`` and ``brokers`` choose of
    what was in flight when it began. Changes nothing, and holds no worker.

    Its log has KIP-179's table at each poll, and says what can never end. Parameters as of
    :class:`~rehome.sensors.reassignment.ReassignmentSensor`, but for ``drive`` and ``partitions``.

    :raises EndedError: some of it was cancelled or replaced, or is not what the file names.
    :raises InvalidRequestError: the file names partitions that there are not.
    """

    inherits_from_skipmixin = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(drive=False, **kwargs)

    def step(self, context: RunContext) -> None:
        """Find out what is followed, where that is asked for."""
        self.watch(context, None)

    def begin(self, context: RunContext, watch: ReassignmentWatch) -> None:
        """What the file names, or what is in flight of what is asked about."""
        from rehome.execution.foreign.file_status import moves_of_file
        from rehome.execution.foreign.read_flights import list_reassignments

        request = request_of(context)
        with context.gateway() as cluster:
            if request.file is not None:
                now = utc_now()
                watch.watched = tuple(
                    Watched(move, now) for move in moves_of_file(cluster, request.file)
                )
                return
            partitions = list(list_reassignments(cluster, chosen_by(request)))
        watch.begin(partitions)
