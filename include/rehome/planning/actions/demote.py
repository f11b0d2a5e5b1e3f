"""The action demote: brokers lead nothing; other replicas lead in their place.

Nothing is copied. A demoted broker becomes last in the replica order of each partition that it led,
so that the controller elects it last when another leader fails (as Cruise Control's demotion does).
"""

from __future__ import annotations

from collections import deque

import numpy as np

from rehome.domain.array_types import NONE, Floats, Ints, Mask, Rows
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import LOOSE, Resource
from rehome.planning.leadership.leader_balance import LedShares, balance_leaders_by_share
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities, is_known
from rehome.planning.model.scope import brokers_named, partitions_in_scope, raise_if
from rehome.planning.placement.movable import free_to_reorder, notes_of
from rehome.planning.result.outcome import Outcome, each_by_itself, tree_of

_TOLERANCES = {Resource.LEADERS: LOOSE, Resource.BYTES_OUT: 0.05}
"""If bytes out are known, leaders are balanced by these, not by their number."""

_LEAST_GAIN = 1e-9


def plan_demotion(arrays: ClusterArrays, request: ReassignmentRequest) -> Outcome:
    """The named brokers lead nothing in scope and are no preferred leaders; the others lead by
    share.

    If a named broker leads a partition only because no election has taken place, the preferred
    leader is elected. Offline replicas do not matter, because nothing is copied. A partition that
    no other broker can lead stays and is reported as infeasible.

    :raises InvalidRequestError: unknown brokers, or no live one is left to lead.
    """
    demoted = brokers_named(arrays, request)
    hosts = arrays.brokers.live & ~demoted
    if not hosts.any():
        raise_if(["No live broker is left to lead in the place of the demoted ones."])
    rows, leader = arrays.rows, arrays.leader
    led = demoted[leader] & (leader != NONE)
    prefers = demoted[rows[:, 0]] & (rows[:, 0] != NONE)
    meant = partitions_in_scope(arrays, request) & (led | prefers)
    free, infeasible = free_to_reorder(arrays, meant)
    able = in_sync(arrays, np.arange(len(rows)), rows) & hosts[rows] & (rows != NONE)
    elected = np.flatnonzero(free & able[:, 0])
    given = np.flatnonzero(free & ~able[:, 0] & able.any(axis=1))
    stuck = np.flatnonzero(free & ~able.any(axis=1))
    layout = Layout(arrays)
    _hand_over(layout, given, able, hosts, request)
    _demoted_last(layout, given, demoted)
    tree = tree_of(arrays, arrays.brokers.live, request)
    ids = arrays.brokers.ids

    def cause(p: int) -> tuple[MoveCause, ...]:
        gone = sorted({int(b) for b in (rows[p, 0], leader[p]) if b != NONE and demoted[b]})
        return tuple(MoveCause(CauseCode.DEMOTED, broker) for broker in ids[gone].tolist())

    return Outcome(
        layout=layout,
        tree_before=tree,
        tree_after=tree,
        lower_bound_bytes=0,
        reason=MoveReason.LEADER,
        causes=each_by_itself(cause),
        infeasible=(*infeasible, *notes_of(arrays, stuck, Obstacle.NO_OTHER_LEADER)),
        elections=tuple(elected.tolist()),
    )


def _hand_over(
    layout: Layout, given: Ints, able: Mask, hosts: Mask, request: ReassignmentRequest
) -> None:
    """Put the new leader first in each of the partitions: by share of leaders, then by share of
    bytes out if these are known.
    """
    arrays, rows = layout.arrays, layout.rows
    if not len(given):
        return
    share = capacities(arrays, hosts, request.weights) * hosts
    others = np.ones(len(rows), bool)
    others[given] = False
    leads = rows[others, 0]
    led = np.bincount(leads[leads != NONE], minlength=len(hosts))
    promote(rows, given, _take_over(rows[given], able[given], led, share))
    if is_known(arrays, Resource.BYTES_OUT):
        shares = LedShares.of(layout, np.stack([share, share]), _TOLERANCES)
        if shares is not None:
            balance_leaders_by_share(layout, shares, ~others, hosts)
    keep_led_caps(layout, ~others, lower=False, leading=hosts)


def _demoted_last(layout: Layout, given: Ints, demoted: Mask) -> None:
    """Reorder these rows: the leader, the others in their order, then the demoted brokers."""
    origin, leads = layout.origin[given], layout.rows[given, 0]
    rank = np.where(origin == NONE, 3, np.where(demoted[origin], 2, 1))
    rank[origin == leads[:, None]] = 0
    order = np.argsort(rank, axis=1, kind="stable")
    ordered: Rows = np.take_along_axis(origin, order, axis=1)
    layout.rows[given] = ordered


def _take_over(rows: Rows, able: Mask, led: Ints, share: Floats) -> Ints:
    """(n,) the position in each row that is to lead, such that the sum over brokers of (partitions
    led)² / share is minimal.

    Each partition can be led by a few brokers, and each broker should lead its share. This is a
    semi-matching with convex costs. It is optimal when no chain of leader changes lowers the cost
    (Harvey, Ladner, Lovász, Tamir: Semi-matchings for bipartite graphs, 2006).

    :param rows: (n, R) dense broker indexes.
    :param able: (n, R) positions that may lead; at least one per row, on a broker with a share.
    :param led: (B,) other partitions that each broker leads.
    :param share: (B,) relative part that each broker is to lead; above 0 where one may lead.
    """
    options = [
        [
            (broker, position)
            for position, (broker, may) in enumerate(zip(row, can, strict=True))
            if may
        ]
        for row, can in zip(rows.tolist(), able.tolist(), strict=True)
    ]
    leaders = _Leaders([dict(choice) for choice in options], led, share)
    leaders.even_out()
    positions = [of[leader] for of, leader in zip(map(dict, options), leaders.of, strict=True)]
    return np.array(positions, np.int64)


class _Leaders:
    """The leader of each partition.

    :ivar of: the leader of each.
    """

    def __init__(self, options: list[dict[int, int]], led: Ints, share: Floats) -> None:
        self._options, self._share = options, share.tolist()
        self._count: list[int] = led.tolist()
        self.of = [-1] * len(options)
        self._partitions_of: dict[int, set[int]] = {}
        for partition in sorted(range(len(options)), key=lambda p: (len(options[p]), p)):
            self._give(partition, min(options[partition], key=lambda b: (self._joining(b), b)))

    def _joining(self, broker: int) -> float:
        """Cost of one more partition."""
        return float((2 * self._count[broker] + 1) / self._share[broker])

    def _leaving(self, broker: int) -> float:
        """Saving by one partition less."""
        return float((2 * self._count[broker] - 1) / self._share[broker])

    def _give(self, partition: int, broker: int) -> None:
        old = self.of[partition]
        if old >= 0:
            self._partitions_of[old].discard(partition)
            self._count[old] -= 1
        self.of[partition] = broker
        self._partitions_of.setdefault(broker, set()).add(partition)
        self._count[broker] += 1

    def even_out(self) -> None:
        """Change leaders along chains, until no chain lowers the cost.

        Brokers reached from one that cannot hand anything on are done as well: each of their
        targets would have been a target for that broker too.
        """
        settled: set[int] = set()
        while True:
            givers = [
                b
                for b, partitions in self._partitions_of.items()
                if partitions and b not in settled
            ]
            if not givers:
                return
            giver = max(givers, key=lambda b: (self._leaving(b), -b))
            reached = self._reach(giver, settled)
            taker = min(reached, key=lambda b: (self._joining(b), b))
            if taker != giver and self._joining(taker) < self._leaving(giver) - _LEAST_GAIN:
                self._pass_along(reached, taker)
            else:
                settled.update(reached)

    def _reach(self, giver: int, settled: set[int]) -> dict[int, tuple[int, int] | None]:
        """Brokers that a chain of changes leads to, each with the partition it would get and the
        broker that it comes from.
        """
        reached: dict[int, tuple[int, int] | None] = {giver: None}
        waiting = deque([giver])
        while waiting:
            broker = waiting.popleft()
            for partition in sorted(self._partitions_of.get(broker, ())):
                for other in self._options[partition]:
                    if other not in reached and other not in settled:
                        reached[other] = partition, broker
                        waiting.append(other)
        return reached

    def _pass_along(self, reached: dict[int, tuple[int, int] | None], taker: int) -> None:
        step = reached[taker]
        while step is not None:
            partition, broker = step
            self._give(partition, taker)
            taker, step = broker, reached[broker]
