"""Describes what is in flight on a cluster; and follows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.providers.standard.utils.skipmixin import SkipMixin

from include.domain.clock import utc_now
from rehome import installation
from rehome.fleet import bound
from rehome.operators.base import ClusterOperator
from rehome.sensors.reassignment import ReassignmentSensor

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from include.domain.run.foreign.foreign_request import ForeignRequest
    from include.execution.foreign.in_flight import Chosen
    from rehome.triggers.watch import ReassignmentWatch


def request_of(context: Context | Mapping[str, Any]) -> ForeignRequest:
    """What the run is asked for.

    :raises InvalidRequestError: lists every problem.
    """
    from include.domain.run.foreign.foreign_request import parse_foreign

    return parse_foreign(context["params"])


def chosen_by(request: ForeignRequest) -> Chosen:
    """Which reassignments a request is about."""
    from include.execution.foreign.in_flight import Chosen

    return Chosen(request.topics, frozenset(request.brokers))


class LookAtReassignmentsOperator(ClusterOperator, SkipMixin):
    """Describes what is in flight (KIP-240, KIP-455), with KIP-179's table.

    The ledger remembers since when each is known. For the action ``describe`` the run ends here.
    """

    inherits_from_skipmixin = True

    def step(self, context: Context) -> None:
        """Read, remember, say."""
        from include.domain.run.foreign.foreign_request import ForeignAction
        from include.execution.foreign.file_status import file_statuses
        from include.execution.foreign.flight_words import described_lines
        from include.execution.foreign.read_flights import describe_reassignments
        from include.execution.progress.progress import status_table

        request = request_of(context)
        with installation.open_ledger() as ledger, self.gateway() as cluster:
            cluster_id = cluster.describe_cluster().cluster_id
            bound.seen(ledger, self.kafka_config_id, cluster_id, context)
            found = describe_reassignments(cluster, ledger, utc_now(), chosen_by(request))
            for line in described_lines(found):
                self.log.info("%s", line)
            if request.file is not None:
                statuses = file_statuses(cluster, request.file, utc_now())
                self.log.info("The reassignment in the file:\n%s", status_table(statuses))
        if request.action is ForeignAction.DESCRIBE:
            self.skip(ti=context["ti"], tasks=context["task"].get_flat_relatives(upstream=False))


class FollowReassignmentsSensor(ReassignmentSensor, SkipMixin):
    """Succeeds when what the run is asked to follow is complete; fails when
    some of it was cancelled or superseded. Changes nothing.

    With a file of Kafka's tool that is what the file names; else what was in flight when it began.
    """

    inherits_from_skipmixin = True

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(drive=False, **kwargs)

    def step(self, context: Context) -> None:
        """Find out what is followed, where that is asked for."""
        self._request = request_of(context)
        self.watch(None)

    def begin(self, watch: ReassignmentWatch) -> None:
        """What the file names, or what is in flight of what is asked about."""
        from include.execution.foreign.file_status import moves_of_file
        from include.execution.foreign.read_flights import list_reassignments
        from include.execution.observation.foreign_reassignments import Watched

        request = self._request
        with self.gateway() as cluster:
            if request.file is not None:
                now = utc_now()
                watch.watched = tuple(
                    Watched(move, now) for move in moves_of_file(cluster, request.file)
                )
                return
            partitions = list(list_reassignments(cluster, chosen_by(request)))
        watch.begin(partitions)
