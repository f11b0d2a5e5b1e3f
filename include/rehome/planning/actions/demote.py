"""The action demote: brokers lead nothing; other replicas lead in their place.

Nothing is copied. A demoted broker becomes last in the replica order of each partition that it led,
so that the controller elects it last when another leader fails (as Cruise Control's demotion does).
"""

from __future__ import annotations

import numpy as np

from rehome.domain.array_types import NONE, Ints, Mask, Rows
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import LOOSE, Resource
from rehome.planning.leadership.leader_balance import LedShares, balance_leaders_by_share
from rehome.planning.leadership.leader_caps import keep_led_caps
from rehome.planning.leadership.new_leaders import take_over
from rehome.planning.leadership.preferred_leaders import promote
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.model.in_sync import in_sync
from rehome.planning.model.layout import Layout
from rehome.planning.model.resource_loads import capacities, known
from rehome.planning.model.scope import brokers_named, partitions_in_scope, raise_if
from rehome.planning.placement.movable import free_to_reorder, named
from rehome.planning.result.move_causes import each_by_itself
from rehome.planning.result.outcome import Outcome, tree_of

_TOLERANCES = {Resource.LEADERS: LOOSE, Resource.BYTES_OUT: 0.05}
"""If bytes out are known, leaders are balanced by these, not by their number."""


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
        infeasible=(*infeasible, *named(arrays, stuck, Obstacle.NO_OTHER_LEADER)),
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
    promote(rows, given, take_over(rows[given], able[given], led, share))
    if known(arrays, Resource.BYTES_OUT):
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
