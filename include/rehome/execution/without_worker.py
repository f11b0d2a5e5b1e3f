"""Ends a plan on time where no task of its run does it: what the trigger and the sweep may change.

A run's task may not come: its DAG is paused, its scheduler is away, no worker is free. A window's
end, a cancel and a stall do not wait for it. Nothing is ever started here.
"""

from __future__ import annotations

from datetime import timedelta

from rehome.domain.clock import Clock, sleep, utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution.access.lease import hold, is_orphaned
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import Advance, advance
from rehome.execution.throttle.clear import clear_throttle
from rehome.ledger.base.fencing import LeaseHeldError
from rehome.ledger.store import Ledger


def stop_now(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    policy: Policy,
    owner: str,
    lease_s: float,
    clock: Clock = utc_now,
) -> Advance:
    """Carry out a stop that a poll has found due, and take throttles back; the lease is given back
    when the plan has paused or ended. What is due no more by now is left to a worker.

    Each caller takes the lease anew, so that of two triggers the first is fenced off by the second.

    :param owner: who holds the lease: the plan's run, or another where that run is dead.
    :raises LeaseHeldError: another run holds the cluster.
    :raises LeaseLostError: another one has taken the lease over meanwhile.
    :raises ClusterError: the cluster could not be reached; the next poll tries again.
    """
    with hold(ledger, cluster, owner, lease_s, wait_s=0) as lease:
        done = advance(plan, lease.ledger, lease.cluster, policy, clock, only_stops=True)
    if done.finished is not None:
        with hold(ledger, cluster, owner, lease_s, wait_s=0, release=True) as lease:
            clear_throttle(plan.plan_id, lease.ledger, lease.cluster)
    return done


def keep_window(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    policy: Policy,
    owner: str,
    lease_s: float,
    within_s: float,
    clock: Clock = utc_now,
) -> Advance | None:
    """End what an orphaned plan has in flight when its window ends; None = nothing was done.

    Waits for that end where it comes within ``within_s``: until the next call, say.

    :raises ClusterError: the cluster could not be reached; try again.
    """
    ends = policy.window_end
    if ends is None or ends - clock() > timedelta(seconds=within_s):
        return None
    sleep(max(0.0, (ends - clock()).total_seconds()))
    if not is_orphaned(ledger.plan(plan.plan_id), ledger):
        return None  # its run goes on
    try:
        return stop_now(plan, ledger, cluster, policy, owner, lease_s, clock)
    except LeaseHeldError:
        return None
