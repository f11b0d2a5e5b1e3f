"""Steps one after the other, for as long as small moves end and others can take their places.

A move of a megabyte ends within a second. To wait for the next poll, and for Airflow to wake a
worker, would take a hundred times as long as the copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from math import inf

from rehome.domain.clock import Clock, monotonic_s, sleep, utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.pace import SMALL_MOVE_S
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution import advance as stepping
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog, is_small_move
from rehome.execution.admission.small_costs import mean_cost, takes_s
from rehome.execution.advance import Advance
from rehome.ledger.store import Ledger

REST_S, REST_PART = 0.5, 4
"""Between two looks at what is in flight, and so many times as long as a look takes: of thousands
of moves it takes the controller's time, too."""
WAIT_S = 5.0
"""At least so long the next step waits for most of what is in flight: it asks every broker, which
have to answer while they take replicas on. Meanwhile only the controller is asked."""
MOST_WAIT_S = 30.0
"""No longer: the lease on the cluster is renewed by what a step writes."""
PATIENCE_S = 10.0
"""So long without a small move that starts or ends, then what is left waits for the next poll:
larger ones may end for a day beside one that waits for a broker."""
SLOW_STEP_S = 3.0
"""After a step that took more, half as many small moves may be in flight."""
AT_FIRST = 5_000
"""So many may be in flight at first, fewer of large topics: brokers take replicas on one after the
other, and who produces to them waits meanwhile (docs/decisions/155)."""
FEW_LEFT = 0.25
"""Of as many as are in flight, or may be: with no more left than that, brokers wait for more."""
QUICK_S, SLOW_S, SLOW_PART = 3.5, 8.0, 1.5
"""Where few are left so soon after they began, twice as many may be in flight; where some take
longer than the second, and than one and a half times what so many may take, half as many."""


def steps(
    plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy, clock: Clock = utc_now
) -> Iterator[Advance]:
    """Advance a plan once; and again at once, as long as small moves of it start or end.

    A request to pause or to cancel, and the window's end, act within one step.

    :raises RehomeError: as :func:`~rehome.execution.advance.advance` does.
    """
    small_moves = _small_of(plan, policy)
    small = {move.partition for move in small_moves}
    backlog, most, policy = Backlog(), policy.max_small_in_flight, for_first_step(policy, plan)
    each_s = SMALL_MOVE_S * mean_cost(small_moves)
    at_once = None if most is None else _AtOnce(policy, most, each_s)
    wait = _Wait(plan, ledger, cluster, policy.window_end, clock)
    if small:  # the task before has started some just now, or a worker that has died
        states = ledger.view_of_open(plan.plan_id).moves
        wait.until_most_end({p for p in small if states.get(p) is MoveState.ADMITTED})
    news_at = monotonic_s()
    while True:
        began = monotonic_s()
        done = stepping.advance(plan, ledger, cluster, policy, clock, backlog=backlog)
        yield done
        now = monotonic_s()
        started, ended = small.intersection(done.admitted), small.intersection(done.settled)
        if started | ended:
            news_at = now
        over = done.finished is not None or not backlog.has_small(policy.small_bytes)
        if over or began - news_at >= PATIENCE_S:
            return
        left = small.intersection(backlog.admitted) - started - ended
        if at_once is not None:
            large = len(backlog.admitted) - len(small.intersection(backlog.admitted))
            is_reached = done.in_flight - large >= at_once.number
            at_once.follow(began, now, started - ended, ended, len(left), is_reached=is_reached)
            policy = replace(policy, max_small_in_flight=at_once.number)
        sleep(REST_S)
        wait.until_most_end(left | (started - ended), now - began)


def for_first_step(policy: Policy, plan: Plan) -> Policy:
    """Of a step that cannot know how many small moves brokers carry out at once."""
    most = policy.max_small_in_flight
    if most is None:
        return policy
    number = min(most, max(1, round(AT_FIRST / mean_cost(_small_of(plan, policy)))))
    return replace(policy, max_small_in_flight=number)


def _small_of(plan: Plan, policy: Policy) -> list[Move]:
    return [move for move in plan.moves if is_small_move(move, policy.small_bytes)]


@dataclass
class _Wait:
    """For what is in flight, by looks at the controller alone.

    :param window_end: it ends then; None = there is none.
    :param stopping: whether the plan was to stop when the last one ended: the step knew.
    """

    plan: Plan
    ledger: Ledger
    cluster: OwnCluster
    window_end: datetime | None
    clock: Clock
    stopping: bool = False

    def until_most_end(self, in_flight: Collection[TopicPartition], took_s: float = 0.0) -> None:
        """Or until the plan is to stop, or for as long as they may take.

        The controller lists no moves between log dirs: for those alone, as long as a step takes.

        :param took_s: what the last step took: where that is long, the next one waits as long.
        """
        moves = [self.plan.by_partition[partition] for partition in in_flight]
        listed = {move.partition for move in moves if move.target != move.current}
        least_s = max(WAIT_S, takes_s(moves)) if listed else 0.0
        wait_s = min(max(least_s, took_s), MOST_WAIT_S)
        until_s = monotonic_s() + wait_s
        while moves and (began_s := monotonic_s()) < until_s and not self._is_to_stop():
            if listed:
                left = self.cluster.list_reassignments().keys() & listed
                if len(left) <= FEW_LEFT * len(listed):
                    return
            now_s = monotonic_s()
            rest_s = max(REST_S, REST_PART * (now_s - began_s))
            sleep(max(min(rest_s, until_s - now_s), 0.0))

    def _is_to_stop(self) -> bool:
        """Whether it is, and the last step did not know."""
        record, end = self.ledger.plan(self.plan.plan_id), self.window_end
        is_over = end is not None and self.clock() >= end
        before = self.stopping
        self.stopping = is_over or record.pause_requested or record.cancel_requested
        return self.stopping and not before


class _AtOnce:
    """How many small moves may be in flight: as many as brokers carry out in a few seconds, and as
    the controller answers for in good time. Never fewer than of all moves.

    :param policy: with as many as at first.
    :param most: the most there may be.
    :param move_s: what brokers may take for each.
    """

    def __init__(self, policy: Policy, most: int, move_s: float) -> None:
        self.number, self._most, self._move_s = policy.most_small, most, move_s
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
        slow_s = max(SLOW_S, SLOW_PART * self._move_s * self.number)
        is_slow = began_s - oldest_s > slow_s and oldest_s > self._halved_s
        is_quick = bool(took_s) and max(took_s) <= QUICK_S and left <= FEW_LEFT * self.number
        if is_slow or now_s - began_s > SLOW_STEP_S:
            self.number, self._halved_s = max(self.number // 2, self._least), began_s
        elif is_quick and is_reached:
            self.number = min(2 * self.number, self._most)
        self._start_s |= dict.fromkeys(started, now_s)
