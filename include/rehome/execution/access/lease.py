"""Acting on a cluster under its lease: ledger and cluster that only the lease's owner can change.

Kafka knows no fencing tokens, so each write to the cluster is preceded by a renewal that fails
where another run has taken over. One gap remains, between the commit of the renewal and the sending
of the request: a process that is stopped there would send one request late. The run that took over
has cancelled, cleared and read everything back by then, and the next poll records the true state.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.clock import monotonic_s, sleep
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.ledger.base.fencing import Lease, LeaseHeldError
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.settings import Settings

log = logging.getLogger(__name__)

POLL_S = 0.2
POLLS_PER_LEASE = 4
_READS = frozenset(
    {
        "current_topics",
        "describe_cluster",
        "describe_configs",
        "describe_log_dirs",
        "describe_topics",
        "finalized_features",
        "list_reassignments",
        "log_end_offsets",
        "supported_versions",
    }
)


@dataclass(frozen=True, slots=True)
class LeasedCluster:
    """What may be changed while the lease is held.

    :param ledger: every write of it depends on the lease.
    :param cluster: every write to it is preceded by a renewal of the lease.
    """

    ledger: Ledger
    cluster: OwnCluster


class _Fenced:
    """A cluster; whatever is not known to only read is preceded by a renewal."""

    def __init__(self, cluster: ClusterPort, ledger: Ledger) -> None:
        self._cluster = cluster
        self._ledger = ledger

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._cluster, name)
        if name in _READS:
            return call

        def write(*args: Any, **options: Any) -> Any:
            self._ledger.renew_lease()
            return call(*args, **options)

        return write


def is_orphaned(record: PlanRecord, ledger: Ledger) -> bool:
    """Whether a plan runs, and the run that drives it no longer renews its lease."""
    holder = ledger.holder(record.cluster_id)
    alive = holder is not None and holder.owner == record.driver
    return record.state is PlanState.RUNNING and not alive


def ttl_s(settings: Settings) -> float:
    """How long a lease lasts without a renewal, in seconds; several polls at least."""
    return max(settings.lease_s, POLLS_PER_LEASE * settings.poll_interval_s)


@contextmanager
def hold(
    ledger: Ledger,
    cluster: OwnCluster,
    owner: str,
    lasting_s: float,
    *,
    plan_id: str | None = None,
    wait_s: float | None = None,
    release: bool = False,
    begins: bool = False,
) -> Iterator[LeasedCluster]:
    """Take the cluster's lease and act under it.

    :param cluster: compared before the ledger is written to.
    :param lasting_s: until the lease expires, unless it is renewed.
    :param plan_id: the plan to act on, which must be in the owner's hands.
    :param wait_s: how long to wait for the run that holds it; None = until one that does not renew
        it must have lost it.
    :param release: give it back at the end; else the owner keeps it, for its next step.
    :param begins: the plan is to begin: where it has not, the lease is given back. No step follows,
        nothing of the plan is on the cluster, and others would wait for the lease to run out.
    :raises WrongClusterError: the connection leads to another cluster. Nothing was changed.
    :raises LeaseHeldError: another run holds it, and goes on renewing it.
    :raises PlanConflictError: another run drives the plan by now.
    :raises LeaseLostError: from any write, once another run has taken the lease over.
    """
    cluster.compare()
    patience_s = lasting_s + 1 if wait_s is None else wait_s
    deadline = monotonic_s() + patience_s
    lease = _acquire(ledger, cluster.cluster_id, owner, lasting_s, plan_id, deadline)
    under = ledger.under(lease)
    try:
        yield LeasedCluster(
            under, cluster.behind(lambda port: cast(ClusterPort, _Fenced(port, under)))
        )
    finally:
        if release or (begins and plan_id and _has_not_begun(ledger, plan_id)):
            ledger.release_lease(lease)


def _has_not_begun(ledger: Ledger, plan_id: str) -> bool:
    """Where the ledger cannot be read now, the lease runs out by itself."""
    try:
        return not ledger.plan(plan_id).state.active
    except RehomeError as error:
        log.warning(
            "Plan %s keeps its lease: whether it has begun is not known: %s", plan_id, error
        )
        return False


def _acquire(
    ledger: Ledger,
    cluster_id: str,
    owner: str,
    lasting_s: float,
    plan_id: str | None,
    deadline: float,
) -> Lease:
    while True:
        try:
            return ledger.acquire_lease(cluster_id, owner, lasting_s, plan_id=plan_id)
        except LeaseHeldError:
            if monotonic_s() >= deadline:
                raise
        sleep(POLL_S)
