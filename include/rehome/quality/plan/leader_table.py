"""Table ``leaders_after``: leaders of topics with a minimum per broker (min_leaders), after the
plan.

Computed from the snapshot and the moves alone, by code that the planner does not use.
"""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase

import numpy as np
import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.array_types import Mask
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.limits import CAPPED, cap_of
from rehome.quality.facts.unmet_targets import Obstacles
from rehome.quality.plan.broker_table import BrokerSums
from rehome.quality.plan.limit_table import before_and_after

_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("broker", pa.int32()),
        ("leaders_before", pa.int64()),
        ("leaders_after", pa.int64()),
        ("least", pa.int64()),
        ("given_up", pa.int64()),
        ("is_named", pa.bool_()),
    ]
)


def leaders_after(checked: Checked) -> pa.Table:
    """One row per such topic and broker that should lead a minimum of its partitions: if the topic
    has a broker set, one of its brokers.

    ``least`` is the requested minimum, limited by the topic's partitions divided by the brokers.
    Caps come first: what a broker that may take no more lacks and is named for, it has not given
    up.
    """
    request = checked.request
    minimums = _wanted_leaders(checked)
    part = checked.live
    if request.brokers and request.action is not Action.BALANCE_LEADERS:
        part = part & np.isin(checked.brokers, np.array(request.brokers, np.int64))
    if not minimums or not part.any():
        return _SCHEMA.empty_table()
    moved, partitions = checked.moved, checked.moved.partitions
    first = partitions.replicas.first
    after = first.copy()
    is_there = moved.at >= 0
    after[moved.at[is_there]] = moved.target.first[is_there]
    excuses, at_caps = Obstacles(checked.plan.summary.infeasible).few_leaders, _at_caps(checked)
    topics = partitions.keys >> 32
    rows = []
    for number, topic in enumerate(partitions.topics):
        if topic not in minimums:
            continue
        mine = topics == number
        allowed = checked.allowed_brokers
        of_set = allowed.may[allowed.number[mine][:1]].all(axis=0)
        brokers = checked.brokers[part & of_set].tolist()
        least = min(minimums[topic], int(mine.sum()) // max(len(brokers), 1))
        full = at_caps(mine)
        for broker in brokers:
            before = int((first[mine] == broker).sum())
            leads = int((after[mine] == broker).sum())
            kept, is_named = leads >= min(before, least), (topic, broker) in excuses
            rows.append(
                {
                    "topic": topic,
                    "broker": broker,
                    "leaders_before": before,
                    "leaders_after": leads,
                    "least": least,
                    "given_up": None if kept or (is_named and broker in full) else before - leads,
                    "is_named": is_named,
                }
            )
    return pa.Table.from_pylist(rows, schema=_SCHEMA)


def _at_caps(checked: Checked) -> Callable[[Mask], set[int]]:
    """Of some partitions, the brokers that held or led more than their caps allow, or whose caps
    do not allow any of them in addition.
    """
    sums, capped = BrokerSums(checked).sums_of, []
    for resource in CAPPED:
        each = [cap_of(checked.request, broker, resource) for broker in checked.brokers.tolist()]
        weight = checked.moved.partitions.amounts(resource)
        if weight is not None and any(cap is not None for cap in each):
            caps = np.array([np.inf if cap is None else cap for cap in each])
            capped.append((weight, *before_and_after(checked, sums, resource), caps))

    def at_caps(partitions: Mask) -> set[int]:
        full = np.zeros(len(checked.brokers), bool)
        for weight, before, after, caps in capped:
            full |= np.maximum(before, after + weight[partitions].max(initial=0)) > caps
        return set(checked.brokers[full].tolist())

    return at_caps


def _wanted_leaders(checked: Checked) -> dict[str, int]:
    """Topic → leaders per broker: the largest minimum of all matching names and patterns."""
    table = checked.snapshot.topics
    minimums: dict[str, int] = {}
    for name, least in checked.request.min_leaders.items():
        for topic, internal in zip(
            table.column("topic").to_pylist(), table.column("internal").to_pylist(), strict=True
        ):
            if topic == name or (not internal and fnmatchcase(topic, name)):
                minimums[topic] = max(least, minimums.get(topic, 0))
    return minimums
