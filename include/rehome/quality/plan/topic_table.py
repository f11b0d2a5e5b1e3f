"""Table ``topics_after``: brokers that are off their shares of a topic after the plan.

Computed from the snapshot and the moves alone, by code that the planner does not use.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.array_types import Floats, Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.request.request import (
    MAY_SHARE_A_BROKER,
    MOST_TOPIC_CELLS,
    SpreadOf,
    evens_topics,
    spread_tolerance,
)
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.unmet_targets import Obstacles
from rehome.quality.facts.unplannable import offline_counts, without_leader
from rehome.quality.plan.limit_table import set_too_small

_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("replicas", pa.int64()),
        ("off_brokers", pa.list_(pa.int64())),
        ("is_named", pa.bool_()),
    ]
)


def topics_after(checked: Checked) -> pa.Table:
    """One row per topic with bands, with the brokers that end off their share of its replicas by
    more than the tolerance.
    """
    tolerance = spread_tolerance(checked.request)
    moved, partitions = checked.moved, checked.moved.partitions
    order = np.argsort(checked.brokers, kind="stable")
    ids = checked.brokers[order]
    chosen, few, may = _chosen_topics(checked)
    if np.isinf(tolerance) or not len(chosen):
        return _SCHEMA.empty_table()
    row = np.full(len(partitions.topics), -1)
    row[chosen] = np.arange(len(chosen))
    topic_of = partitions.keys >> 32
    leaders = checked.request.topic_spread_of is SpreadOf.LEADERS
    before = _counts(row, topic_of[partitions.replicas.row], partitions.replicas.values, ids)
    if leaders:
        before = _counts(row, topic_of, partitions.replicas.first, ids)
    topic_moved = np.where(moved.at >= 0, topic_of[moved.at], -1)
    after = before.copy()
    for side, sign in ((moved.target, 1), (moved.current, -1)) if leaders else ():
        after += sign * _counts(row, topic_moved, side.first, ids)
    for lists, sign in () if leaders else ((moved.adding, 1), (moved.removing, -1)):
        after += sign * _counts(row, topic_moved[lists.row], lists.values, ids)
    off = _off(checked, before, after, order, tolerance, may, few)
    obstacles = Obstacles(checked.plan.summary.infeasible)
    names = [partitions.topics[topic] for topic in chosen.tolist()]
    return pa.table(
        {
            "topic": names,
            "replicas": after.sum(axis=1),
            "off_brokers": [ids[brokers].tolist() or None for brokers in off],
            "is_named": [name in obstacles.topics for name in names],
        },
        schema=_SCHEMA,
    )


def _is_drained(checked: Checked) -> Mask:
    drained: Mask = np.isin(checked.brokers, np.array(checked.drained, np.int64))
    return drained


def _takes_part(checked: Checked) -> Mask:
    """(B,) brokers that take part."""
    request = checked.request
    part = checked.live & ~_is_drained(checked)
    if request.brokers and request.action is Action.REBALANCE:
        part = part & np.isin(checked.brokers, np.array(request.brokers, np.int64))
    return part


def _chosen_topics(checked: Checked) -> tuple[Ints, Mask, Mask]:
    """Topics in scope; (T,) which of them have fewer replicas than brokers that may hold them; and
    (T, B) the brokers of each topic's set. Of the former, those with too few replicas to be
    uneven, or all if there are very many, are left out.
    """
    partitions, allowed_brokers = checked.moved.partitions, checked.allowed_brokers
    topics = partitions.keys >> 32
    number = np.full(len(partitions.topics), len(allowed_brokers.may) - 1)
    number[topics] = allowed_brokers.number
    hosts = checked.live & ~_is_drained(checked)
    brokers = (allowed_brokers.may & hosts).sum(axis=1)[number]
    replicas = np.bincount(topics, partitions.replicas.lengths, len(partitions.topics))
    free = np.bincount(topics, _may_move(checked), len(partitions.topics)) > 0
    chosen, large = free & (replicas > 0), replicas >= np.maximum(brokers, 1)
    small = chosen & ~large & (replicas > MAY_SHARE_A_BROKER)
    cells = int(((chosen & large) | small).sum()) * len(hosts)
    if checked.request.topic_spread_of is SpreadOf.LEADERS or cells > MOST_TOPIC_CELLS:
        small = np.zeros_like(small)
    topics = np.flatnonzero((chosen & large) | small)
    return topics, ~large[topics], allowed_brokers.may[number[topics]]


def _may_move(checked: Checked) -> Mask:
    """(P,) partitions that the plan can move. What a drain cannot move, another rule names."""
    partitions = checked.moved.partitions
    may: Mask = checked.in_scope & ~partitions.in_flight & ~set_too_small(checked)
    if checked.request.action is Action.DRAIN:
        return may
    may &= ~without_leader(checked) & (offline_counts(checked) == 0)
    return may


def _counts(row: Ints, topic: Ints, brokers: Ints, ids: Ints) -> Ints:
    """(T, B) replicas; topics without a row, and unlisted brokers, are ignored."""
    at = places(ids, brokers)
    is_listed = (topic >= 0) & (at >= 0)
    is_listed[is_listed] = row[topic[is_listed]] >= 0
    topics = int(row.max()) + 1
    cells = np.bincount(
        row[topic[is_listed]] * len(ids) + at[is_listed], minlength=topics * len(ids)
    )
    return cells.reshape(topics, len(ids))


def _off(
    checked: Checked,
    before: Ints,
    after: Ints,
    order: Ints,
    tolerance: float,
    may: Mask,
    few: Mask,
) -> Mask:
    """(T, B) brokers, ascending by id, that end off their share by more than the tolerance.

    Brokers that should not receive may keep what they held, and give down to their share. Nothing
    moves for the spread of topics alone unless the request asks for it.

    :param may: (T, B) brokers of each topic's set, in the snapshot's order. Another rule checks the
        other brokers.
    :param few: (T,) topics with fewer replicas than brokers.
    """
    request, part = checked.request, _takes_part(checked)[order]
    capacity = checked.disks.capacity
    ids: list[BrokerId] = checked.brokers[order].tolist()
    disks = np.array([capacity.get(broker, 0) for broker in ids], float)
    if not (disks[(checked.live & ~_is_drained(checked))[order]] > 0).all():
        disks = np.ones(len(ids))
    weights = np.array([request.weights.get(broker, 1.0) for broker in ids])
    size = disks * weights * part * may[:, order]
    spread = after[:, part | _is_drained(checked)[order]].sum(axis=1)
    share: Floats = spread[:, None] * size / np.maximum(size.sum(axis=1, keepdims=True), 1e-9)
    slack = np.maximum(1.0, tolerance * share) + 1e-6
    receives = part & (request.action is Action.REBALANCE)
    if request.action is Action.EXPAND:
        receives = part & np.isin(ids, request.brokers)
    receives = receives & evens_topics(request) & ~few[:, None]
    most = share + slack
    if not evens_topics(request):
        most = np.maximum(most, MAY_SHARE_A_BROKER)
    most[few] = np.maximum(most, MAY_SHARE_A_BROKER)[few]
    over = (after > most) & (receives | (after > before))
    gave = (after < before) & (request.action is not Action.DRAIN) & ~few[:, None]
    under = (after < share - slack) & (receives | gave) & (not request.one_sided)
    off: Mask = (over | under) & part & may[:, order]
    return off
