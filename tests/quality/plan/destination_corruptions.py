"""Ways to spoil plans that put new replicas on some brokers only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rehome.domain.actions import Action
from rehome.domain.kafka import LogDirName
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_move, with_moves, with_summary
from tests.quality.plan.limit_corruptions import of, shop
from tests.quality.plan.rule_names import ENDS_THERE, LEFT_OUT, SPREAD_1, TO_DESTINATION

FREE = {"topic_spread": None}


def to(*destinations: int, action: Action = Action.DRAIN, **asked: Any) -> Checked:
    """Topic orders lies on brokers 0 and 1 of six; racks /a, /b, /a, /a, /b, /b."""
    brokers: dict[str, Any] = {"brokers": (0,)} if action is Action.DRAIN else {}
    request = ReassignmentRequest(
        action,
        destinations=destinations,
        topics=("orders",),
        tolerances=FREE if action in (Action.DRAIN, Action.REBALANCE) else {},
        tolerance=0.9,
        **{**brokers, **asked},
    )
    return planned(shop().snapshot(), request)


def brought(**asked: object) -> Checked:
    """Topic orders goes to broker 2 of rack /a, and 4 and 5 of rack /b."""
    return to(2, 4, 5, action=Action.REBALANCE, **asked)


def only(checked: Checked, *destinations: int) -> Checked:
    """What was planned, where the request has other destinations."""
    return replace(checked, request=replace(checked.request, destinations=destinations))


def more_replicas() -> Checked:
    return to(2, 5, action=Action.SET_REPLICATION_FACTOR, replication_factor=3)


def filed() -> Checked:
    entry = {"topic": "orders", "partition": 0, "replicas": [2, 1]}
    file = {"version": 1, "partitions": [entry]}
    request = ReassignmentRequest(Action.REASSIGN, destinations=(2,), reassignment=file)
    return planned(shop().snapshot(), request)


def replaced() -> Checked:
    request = ReassignmentRequest(
        Action.REPLACE, destinations=(2,), topics=("orders",), replacements={0: 2}
    )
    return planned(shop().snapshot(), request)


def evacuated() -> Checked:
    """Broker 0 has one log dir: what is in it leaves the broker."""
    request = ReassignmentRequest(
        Action.EVACUATE_LOG_DIRS, destinations=(2,), log_dirs=(LogDirName(0, "/data/0"),)
    )
    return planned(shop().snapshot(), request)


def kept_together(destination: int) -> Checked:
    """Both replicas in rack /a, and no destination that would part them."""
    request = ReassignmentRequest(Action.REPAIR_RACKS, destinations=(destination,))
    rows = cluster(["/a", "/a", "/b", "/a"], [(0, 1)], topic="orders")
    return planned(rows.snapshot(), request)


def homeless(destination: int) -> Checked:
    """A replica on a dead broker, and the only destination holds the partition already."""
    request = ReassignmentRequest(Action.FIX_OFFLINE_REPLICAS, destinations=(destination,))
    rows = cluster([""] * 3, [(0, 1)], topic="orders")
    return planned(replace(rows, dead=frozenset({1})).snapshot(), request)


def one_more_rack(**asked: Any) -> Checked:
    """Rack /a, rack /b, and brokers 3 and 4 without one; partition 0 leaves /a."""
    request = ReassignmentRequest(Action.DRAIN, brokers=(0,), tolerances=FREE, **asked)
    rows = cluster(["/a", "/b", "/b", "", ""], [(0, 1), (1, 3)], topic="orders")
    return planned(rows.snapshot(), request)


def raised_there() -> Checked:
    """A third replica, of which the brokers without a rack get one."""
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)
    rows = cluster(["/a", "/b", "/b", "", ""], [(0, 1)], topic="orders")
    return planned(rows.snapshot(), request)


def unsaid(checked: Checked) -> Checked:
    """The summary does not say what stays elsewhere."""
    notes = checked.plan.summary.infeasible
    rest = tuple(n for n in notes if n.obstacle is not Obstacle.OUTSIDE_DESTINATIONS)
    return with_summary(checked, infeasible=rest)


SOUND: dict[str, Callable[[], Checked]] = {
    "sound drain to destinations": lambda: to(2, 3),
    "sound rebalance to destinations": brought,
    "sound rebalance to destinations within a budget": lambda: brought(budget_moves=3),
    "sound further replicas on destinations": more_replicas,
    "sound file to destinations": filed,
    "sound replacement to a destination": replaced,
    "sound evacuation to a destination": evacuated,
    "sound repair that destinations do not allow": lambda: kept_together(3),
    "sound drain to brokers of no rack": one_more_rack,
    "sound third replica on brokers of no rack": raised_there,
    "sound repair that no destination is left for": lambda: homeless(0),
}

OF_DESTINATIONS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    "a drained replica on no destination": (lambda: only(to(2, 3), 3, 5), {TO_DESTINATION}),
    "a further replica on no destination": (lambda: only(more_replicas(), 2), {TO_DESTINATION}),
    "a file that goes to no destination": (lambda: only(filed(), 3), {TO_DESTINATION}),
    "a replacement that is no destination": (lambda: only(replaced(), 3), {TO_DESTINATION}),
    "an evacuated replica on no destination": (lambda: only(evacuated(), 3), {TO_DESTINATION}),
    "a rebalance that goes beyond its destinations": (
        lambda: with_move(brought(), of(0), target=(3, 4)),
        {TO_DESTINATION, ENDS_THERE},
    ),
    "a replica that a rebalance leaves behind": (
        lambda: with_move(brought(), of(0), target=(0, 4)),
        {ENDS_THERE},
    ),
    "a partition that a rebalance leaves behind": (
        lambda: with_moves(brought(), brought().plan.moves[1:]),
        {ENDS_THERE},
    ),
    "what the budget leaves behind and nothing names": (
        lambda: unsaid(brought(budget_moves=3)),
        {ENDS_THERE},
    ),
    "both replicas in one rack of the destinations": (
        lambda: with_move(brought(), of(0), target=(4, 5)),
        {SPREAD_1},
    ),
    "a drain into the rack of the replica that stays, with brokers of no rack": (
        lambda: with_move(one_more_rack(), of(0), target=(2, 1)),
        {SPREAD_1},
    ),
    "both replicas on brokers of no rack": (
        lambda: with_move(one_more_rack(), of(0), target=(3, 4)),
        {SPREAD_1},
    ),
    "a third replica in a rack twice, and none on brokers of no rack": (
        lambda: with_move(raised_there(), of(0), target=(0, 1, 2)),
        {SPREAD_1},
    ),
    "a destination would part the replicas": (
        lambda: only(kept_together(3), 2),
        {LEFT_OUT},
    ),
    "a destination would take the offline replica": (
        lambda: only(homeless(0), 2),
        {LEFT_OUT},
    ),
}
