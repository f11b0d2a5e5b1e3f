"""Steps one after the other, for as long as small moves end and others can take their places.

A move of a megabyte ends within a second. To wait for the next poll, and for Airflow to wake a
worker, would take a hundred times as long as the copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from math import inf

from rehome.domain.clock import Clock, monotonic_s, sleep, utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution import advance as stepping
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog, is_small_move
from rehome.execution.advance import Advance
from rehome.ledger.store import Ledger

REST_S = 0.5
"""Between two steps; after a slow one at least as long as it took: most of that were answers."""
REST_ALL_SENT_S = 2.0
"""Where nothing more is to start, a step only sees what has ended: brokers keep their time."""
PATIENCE_S = 10.0
"""So long without a small move that starts or ends, then what is left waits for the next poll:
larger ones may end for a day beside one that waits for a broker."""
SLOW_STEP_S = 3.0
"""After a step that took more, half as many small moves may be in flight."""
AT_FIRST = 1_000
"""So many may be in flight at first: a broker takes replicas on one after the other, and who
produces to it waits meanwhile. Two cores with four brokers take four to seven seconds for them."""
FEW_LEFT = 0.25
"""Of as many as may be in flight: with no more left than that, brokers wait for more."""
QUICK_S, SLOW_S = 3.5, 8.0
"""Where few are left so soon after they began, twice as many may be in flight; where some take
longer than the second, half as many."""


def steps(
    plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy, clock: Clock = utc_now
) -> Iterator[Advance]:
    """Advance a plan once; and again at once, as long as small moves of it start or end.

    A request to pause or to cancel, and the window's end, act within one step.

    :raises RehomeError: as :func:`~rehome.execution.advance.advance` does.
    """
    backlog, most, policy = Backlog(), policy.max_small_in_flight, for_first_step(policy)
    at_once = None if most is None else _AtOnce(policy, most)
    news_at = monotonic_s()
    while True:
        began = monotonic_s()
        done = stepping.advance(plan, ledger, cluster, policy, clock, backlog=backlog)
        yield done
        now = monotonic_s()
        started, ended = (_small(plan, policy, each) for each in (done.admitted, done.settled))
        if started | ended:
            news_at = now
        over = done.finished is not None or not backlog.has_small(policy.small_bytes)
        if over or now - news_at >= PATIENCE_S:
            return
        if at_once is not None:
            left = _small(plan, policy, backlog.admitted) - started - ended
            is_reached = done.in_flight >= at_once.number
            at_once.follow(began, now, started - ended, ended, len(left), is_reached=is_reached)
            policy = replace(policy, max_small_in_flight=at_once.number)
        took_s = now - began
        rest_s = REST_S if backlog.small_is_pending(policy.small_bytes) else REST_ALL_SENT_S
        sleep(rest_s if took_s <= SLOW_STEP_S else max(rest_s, took_s))


def for_first_step(policy: Policy) -> Policy:
    """Of a step that cannot know how many small moves brokers carry out at once."""
    most = policy.max_small_in_flight
    return policy if most is None else replace(policy, max_small_in_flight=min(most, AT_FIRST))


def _small(plan: Plan, policy: Policy, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
    """Those of these partitions that have small moves."""
    moves = plan.by_partition
    return {each for each in partitions if is_small_move(moves[each], policy.small_bytes)}


class _AtOnce:
    """How many small moves may be in flight: as many as brokers carry out in a few seconds, and as
    the controller answers for in good time. Never fewer than of all moves.

    :param policy: with as many as at first.
    :param most: the most there may be.
    """

    def __init__(self, policy: Policy, most: int) -> None:
        self.number, self._most = policy.most_small, most
        self._least = min(self.number, policy.max_partitions_in_flight)
        self._start_s: dict[TopicPartition, float] = {}
        self._halved_s = -inf

    def follow(
        self,
        began_s: float,
        now_s: float,
        started: Collection[TopicPartition],
        ended: Collection[TopicPartition],
        left: int,
        *,
        is_reached: bool,
    ) -> None:
        """Take in a step, and which small moves it has started and seen to have ended. What an
        earlier process has started says nothing when it ends.

        :param began_s, now_s: the step's beginning and its end, of a monotonic clock.
        :param left: small moves in flight that it has not started.
        :param is_reached: whether as many moves are in flight now as may be.
        """
        took_s = [began_s - self._start_s.pop(each) for each in ended if each in self._start_s]
        oldest_s = min(self._start_s.values(), default=began_s)
        is_slow = began_s - oldest_s > SLOW_S and oldest_s > self._halved_s
        is_quick = bool(took_s) and max(took_s) <= QUICK_S and left <= FEW_LEFT * self.number
        if is_slow or now_s - began_s > SLOW_STEP_S:
            self.number, self._halved_s = max(self.number // 2, self._least), began_s
        elif is_quick and is_reached:
            self.number = min(2 * self.number, self._most)
        self._start_s |= dict.fromkeys(started, now_s)
