"""Steps one after the other, for as long as small moves end and others can take their places.

A move of a megabyte ends within a second. To wait for the next poll, and for Airflow to wake a
worker, would take a hundred times as long as the copies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rehome.domain.clock import Clock, monotonic_s, sleep, utc_now
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution import advance as stepping
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog, is_small_move
from rehome.execution.advance import Advance
from rehome.ledger.store import Ledger

REST_S = 0.5
"""Between two steps, and at least as long as the step took: half of a controller's time is left."""
REST_ALL_SENT_S = 2.0
"""Where nothing more is to start, a step only sees what has ended: brokers keep their time."""
PATIENCE_S = 10.0
"""So long without a small move that starts or ends, then what is left waits for the next poll:
larger ones may end for a day beside one that waits for a broker."""
QUICK_S, SLOW_S = 1.0, 3.0
"""After a step that took less, twice as many may be in flight; after one that took more, half."""


def steps(
    plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy, clock: Clock = utc_now
) -> Iterator[Advance]:
    """Advance a plan once; and again at once, as long as small moves of it start or end.

    A request to pause or to cancel, and the window's end, act within one step.

    :raises RehomeError: as :func:`~rehome.execution.advance.advance` does.
    """
    backlog, most = Backlog(), policy.max_small_in_flight
    if most is not None:
        policy = replace(policy, max_small_in_flight=min(most, policy.max_partitions_in_flight))
    news_at = monotonic_s()
    while True:
        began = monotonic_s()
        done = stepping.advance(plan, ledger, cluster, policy, clock, backlog=backlog)
        yield done
        now = monotonic_s()
        changed = (plan.by_partition[each] for each in (*done.admitted, *done.settled))
        if any(is_small_move(move, policy.small_bytes) for move in changed):
            news_at = now
        over = done.finished is not None or not backlog.has_small(policy.small_bytes)
        if over or now - news_at >= PATIENCE_S:
            return
        policy = _adapt(policy, most, now - began)
        starts_more = backlog.small_is_pending(policy.small_bytes)
        sleep(max(REST_S if starts_more else REST_ALL_SENT_S, now - began))


def _adapt(policy: Policy, most: int | None, took_s: float) -> Policy:
    """As many in flight as the controller answers for in good time, where no limit is chosen."""
    at_once = policy.max_small_in_flight
    if most is None or at_once is None:
        return policy
    if took_s < QUICK_S:
        at_once = min(2 * at_once, most)
    elif took_s > SLOW_S:
        at_once = max(at_once // 2, policy.max_partitions_in_flight)
    return replace(policy, max_small_in_flight=at_once)
