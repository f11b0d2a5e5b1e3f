"""The run as the one that drives a plan: it alone changes the plan's cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rehome.execution.access.own_cluster import OwnCluster

if TYPE_CHECKING:
    from rehome.cluster.interface.port import ClusterPort
    from rehome.execution.access.connection_policy import ConnectionPolicy
    from rehome.execution.access.lease import LeasedCluster
    from rehome.execution.control.controller import Controller
    from rehome.ledger.base.records import PlanRecord
    from rehome.run.context import RunContext


@contextmanager
def driving(
    context: RunContext,
    cluster: ClusterPort,
    record: PlanRecord,
    **options: Any,
) -> Iterator[LeasedCluster]:
    """Act on a plan's cluster as the run that drives the plan: see ``lease.hold``.

    :param options: ``wait_s``, ``release`` and ``begins``, as there.
    :raises PlanConflictError: another run drives the plan by now.
    :raises WrongClusterError: the connection leads to another cluster than the plan's.
    """
    from rehome.execution.access.lease import hold, ttl_s

    own = OwnCluster.of_plan(cluster, record)
    owner, lasting_s = context.driver_of(record), ttl_s(context.settings)
    options["plan_id"] = record.plan_id
    with hold(context.ledger, own, owner, lasting_s, **options) as lease:
        yield lease


def controller(
    context: RunContext,
    cluster: ClusterPort,
    policy: ConnectionPolicy,
) -> Controller:
    """Passes requests to plans on, in the name of the user who triggered the run, within the
    policy.
    """
    from rehome.execution.access.lease import ttl_s
    from rehome.execution.control.controller import Controller

    lease_s = ttl_s(context.settings)
    return Controller(
        *(context.ledger, cluster, context.actor, lease_s, context.driver_of(), policy),
        dag_paused=context.dag_paused,
    )
