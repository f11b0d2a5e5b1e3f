"""Table ``brokers_after``: disks, replicas and leaders of each broker after the plan, and the
summary's figures.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rehome.domain.actions import Action
from rehome.domain.array_types import Ints, Mask
from rehome.domain.kafka import BrokerId
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.resources import LED, OPTIONAL, Resource, asked_resources
from rehome.quality.facts.broker_places import places
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.limits import fair_loads
from rehome.quality.facts.log_dir_fit import unplaced_copies
from rehome.quality.facts.ragged_lists import Ragged
from rehome.quality.facts.unmet_targets import Obstacles
from rehome.quality.facts.unplannable import excused_partitions
from rehome.quality.plan.limit_table import before_and_after, cap_columns

COMPARED = (
    "size_bytes_before",
    "size_bytes_after",
    "replicas_before",
    "replicas_after",
    "leaders_before",
    "leaders_after",
    "bytes_in",
    "bytes_out",
)
"""Figures of a broker in the summary, in the order of the lists ``stated`` and ``computed``."""

BALANCED = {
    Resource.BYTES: ("size_bytes_before", "size_bytes_after"),
    Resource.REPLICAS: ("replicas_before", "replicas_after"),
    Resource.LEADERS: ("leaders_before", "leaders_after"),
}
"""Figures that the summary's balance of resources states as well: they follow the others in the
lists.
"""


BY_SETS = 1e-6
"""Allowed relative difference of the planner's shares: it computes them iteratively if broker sets
overlap."""


def brokers_after(checked: Checked) -> pa.Table:
    """One row per listed broker, with the columns that the rules name."""
    loads = BrokerSums(checked)
    ids = checked.brokers
    headrooms = checked.disks.headrooms_of_brokers()
    headroom = {
        broker: sum(volumes.values())
        for broker, volumes in headrooms.items()
        if volumes is not None
    }
    lost = unplaced_copies(checked)
    within = checked.moved.bytes_within()
    figures = loads.figures()
    between = np.array([within[broker] for broker in ids.tolist()], np.int64)
    stated = _stated_figures(checked.plan.summary, optional(checked))
    unpaid = Obstacles(checked.plan.summary.infeasible).unpaid
    left = np.array([unpaid.get(broker, 0) for broker in ids.tolist()], np.int64)
    immovable = loads.immovable()
    compared = [*COMPARED, *(name for names in BALANCED.values() for name in names)]
    computed = [figures[name] for name in compared]
    for resource in optional(checked):
        computed += before_and_after(checked, loads.sums_of, resource)
    numbers = pa.list_(pa.int64())
    return pa.table(
        {
            "broker": pa.array(ids, pa.int32()),
            "headroom_bytes": pa.array(
                [headroom.get(broker) for broker in ids.tolist()], pa.int64()
            ),
            "arriving_bytes": _some(figures["bytes_in"] + between),
            "fits_nowhere": pa.array(
                [lost.get(broker) or None for broker in ids.tolist()], pa.list_(pa.string())
            ),
            "leaving_bytes": pa.array(loads.removed_bytes + between),
            "growth_bytes": _some(figures["bytes_in"] - loads.removed_bytes),
            "is_drained": pa.array(np.isin(ids, np.array(checked.drained, np.int64))),
            "scope_replicas_after": pa.array(loads.in_scope_after()),
            "stuck_replicas": pa.array(immovable),
            "stated_unpaid": pa.array(left, pa.int64()),
            "replicas_stated_to_stay": pa.array(immovable + left),
            "size_after": pa.array(figures["size_bytes_after"]),
            "replicas_after": pa.array(figures["replicas_after"]),
            **_shares(checked, loads, figures),
            **_shares_of_optional(checked, loads),
            **cap_columns(checked, loads.sums_of),
            "outside": pa.array(_outside(checked), pa.list_(pa.string())),
            "stated": pa.array([stated.get(broker) for broker in ids.tolist()], numbers),
            "computed": pa.array(np.stack(computed, axis=1).tolist(), numbers),
        }
    )


def _some(values: Ints) -> pa.Array:
    """Bytes that need headroom; null where there are none."""
    return pa.array(values, mask=values <= 0)


def _shares(checked: Checked, loads: BrokerSums, figures: dict[str, Ints]) -> dict[str, pa.Array]:
    """Share of each broker in a rebalance or an expansion, and its band; null if it has none, or
    the summary reports the broker. A donor of an expansion may keep what it holds: its band ends
    below only.
    """
    request = checked.request
    obstacles, ids = Obstacles(checked.plan.summary.infeasible), checked.brokers.tolist()
    expands, part = request.action is Action.EXPAND, loads.takes_part()
    shared = checked.live if expands else part
    donors = shared & ~part
    balanced = expands or request.action is Action.REBALANCE
    columns = {}
    for name, resource, before, tolerance in (
        ("bytes", Resource.BYTES, figures["size_bytes_before"], request.tolerance),
        (
            "replicas",
            Resource.REPLICAS,
            figures["replicas_before"],
            request.tolerances.get(Resource.REPLICAS),
        ),
    ):
        is_reported = [(broker, resource) in obstacles.brokers for broker in ids]
        free = ~shared | np.array(is_reported, bool) | (not balanced)
        share = loads.shares(before, resource, shared)
        slack = (tolerance or 0.0) * share + 2
        if not checked.allowed_brokers.may.all():
            slack += BY_SETS * share
        least = np.where(donors, np.minimum(before, share - slack), share - slack)
        columns[f"share_{name}"] = pa.array(share, pa.float64(), mask=free)
        columns[f"most_{name}"] = pa.array(share + slack, pa.float64(), mask=free | donors)
        any_less = free | request.one_sided
        columns[f"least_{name}"] = pa.array(least, pa.float64(), mask=any_less)
    return columns


def _shares_of_optional(checked: Checked, loads: BrokerSums) -> dict[str, pa.Array]:
    """The same for optional resources, with the loads after the plan; bytes in of leaders are
    shared by all live brokers.
    """
    request, ids = checked.request, checked.brokers.tolist()
    excuses = Obstacles(checked.plan.summary.infeasible).brokers
    columns = {}
    for resource in OPTIONAL:
        name = resource.value
        before, after = before_and_after(checked, loads.sums_of, resource)
        part = checked.live if resource in LED else loads.takes_part()
        share = loads.shares(before, resource, part)
        free = ~part | np.array([(broker, resource) in excuses for broker in ids], bool)
        free |= resource not in optional(checked) or request.action is not Action.REBALANCE
        slack = (request.tolerances.get(name) or 0.0) * share + 2
        if not checked.allowed_brokers.may.all():
            slack += BY_SETS * share
        columns[f"{name}_after"] = pa.array(after, pa.int64())
        columns[f"share_{name}"] = pa.array(share, pa.float64(), mask=free)
        columns[f"most_{name}"] = pa.array(share + slack, pa.float64(), mask=free)
        any_less = free | request.one_sided
        columns[f"least_{name}"] = pa.array(share - slack, pa.float64(), mask=any_less)
    return columns


def optional(checked: Checked) -> tuple[Resource, ...]:
    """Optional resources that the request has and the snapshot knows, in order."""
    if checked.request.action not in (Action.REBALANCE, Action.EXPAND):
        return ()
    resources, partitions = asked_resources(checked.request.tolerances), checked.moved.partitions
    return tuple(r for r in OPTIONAL if r in resources and partitions.amounts(r) is not None)


def _outside(checked: Checked) -> list[list[str] | None]:
    """Per live broker, the resources in which it ends outside the summary's band without being
    reported; None = none. A difference of one is accepted, because leaders are whole numbers.
    """
    summary = checked.plan.summary
    obstacles, live = Obstacles(summary.infeasible), set(checked.brokers[checked.live].tolist())
    outside: dict[BrokerId, list[str]] = {}
    for balance in summary.resources:
        resource = Resource(balance.resource)
        bands = zip(summary.brokers, balance.after, balance.low, balance.high, strict=False)
        for load, after, low, high in bands:
            is_reported = (load.broker, resource) in obstacles.brokers
            is_reported |= load.broker not in live
            if not is_reported and not low - 1 <= after <= high + 1:
                outside.setdefault(load.broker, []).append(resource.value)
    return [outside.get(broker) for broker in checked.brokers.tolist()]


def _stated_figures(
    summary: PlanSummary, further: Iterable[Resource] = ()
) -> dict[BrokerId, list[int]]:
    """The summary's figures of each broker: by broker, then by resource."""
    balances = {balance.resource: balance for balance in summary.resources}
    stated: dict[BrokerId, list[int]] = {}
    for at, load in enumerate(summary.brokers):
        stated[load.broker] = [getattr(load, name) for name in COMPARED]
        for resource in (*BALANCED, *further):
            balance = balances.get(resource.value)
            if balance is not None:
                stated[load.broker] += [*balance.before[at : at + 1], *balance.after[at : at + 1]]
    return stated


class BrokerSums:
    """Sums per broker, from the snapshot and the moves."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._moved = checked.moved
        self._partitions = checked.moved.partitions
        self.removed_bytes = self._sum(self._moved.removing, self._moved.size)

    def sums_of(self, lists: Ragged, weight: Ints) -> Ints:
        """(B,) weight of the lists' rows, summed over the brokers they name."""
        return self._sum(lists, weight)

    def _sum(self, lists: Ragged, weight: Ints, rows: Mask | None = None) -> Ints:
        chosen = slice(None) if rows is None else rows[lists.row]
        return self._add_up(lists.values[chosen], weight[lists.row[chosen]])

    def _add_up(self, brokers: Ints, weight: Ints) -> Ints:
        ids = self._checked.brokers
        total = np.zeros(len(ids) + 1, np.int64)
        np.add.at(total, places(ids, brokers), weight)  # the last is of brokers that are not listed
        return total[:-1]

    def figures(self) -> dict[str, Ints]:
        """(B,) each of :data:`COMPARED`."""
        moved, partitions = self._moved, self._partitions
        ones, one = np.ones_like(partitions.size_bytes), np.ones_like(moved.size)
        size = self._sum(partitions.replicas, partitions.size_bytes)
        count = self._sum(partitions.replicas, ones)
        leaders = self._add_up(partitions.replicas.first, ones)
        bytes_in = self._sum(moved.adding, moved.size)
        source = np.where(moved.leader >= 0, moved.leader, moved.current.first)
        sent = moved.size * moved.adding.lengths
        return {
            "size_bytes_before": size,
            "size_bytes_after": size + bytes_in - self.removed_bytes,
            "replicas_before": count,
            "replicas_after": count + self._sum(moved.adding, one) - self._sum(moved.removing, one),
            "leaders_before": leaders,
            "leaders_after": leaders
            + self._add_up(moved.target.first, one)
            - self._add_up(moved.current.first, one),
            "bytes_in": bytes_in,
            "bytes_out": self._add_up(source, sent),
        }

    def in_scope_after(self) -> Ints:
        """(B,) replicas of topics in scope after the plan."""
        moved, partitions = self._moved, self._partitions
        scope = self._checked.in_scope
        inside = np.zeros(len(moved.at), bool)
        inside[moved.at >= 0] = scope[moved.at[moved.at >= 0]]
        one = np.ones_like(moved.size)
        return (
            self._sum(partitions.replicas, np.ones_like(partitions.size_bytes), scope)
            + self._sum(moved.adding, one, inside)
            - self._sum(moved.removing, one, inside)
        )

    def immovable(self) -> Ints:
        """(B,) replicas in scope that cannot be moved, because their partition has no leader; the
        plan leaves it and the summary reports it.
        """
        partitions = self._partitions
        immovable = self._checked.in_scope & excused_partitions(self._checked)
        immovable[self._moved.at[self._moved.at >= 0]] = False
        return self._sum(partitions.replicas, np.ones_like(partitions.size_bytes), immovable)

    def takes_part(self) -> Mask:
        """(B,) brokers that take part in a rebalance."""
        ids = self._checked.request.brokers
        live = self._checked.live
        return live & np.isin(self._checked.brokers, np.array(ids)) if ids else live

    def shares(
        self,
        loads: Ints,
        resource: Resource,
        part: Mask | None = None,
        among: Mask | None = None,
    ) -> npt.NDArray[np.float64]:
        """(B,) share of each broker in the total: by the size of its disks (if all report it) times
        its weight in the request, as far as broker sets allow. Brokers that do not take part keep
        their load.

        :param part: (B,) brokers that share the load; None = those that take part. The whole load
            of leaders is shared, wherever it is now.
        :param among: (B,) the only brokers that share it, as those of a topic do; None = as the
            broker sets of all topics allow.
        """
        checked, total = self._checked, loads.sum()
        part = self.takes_part() if part is None else part
        if resource not in LED:
            total = loads[part].sum()
        ids, capacity = checked.brokers.tolist(), checked.disks.capacity
        disks = np.array([capacity.get(broker, 0) for broker in ids], float)
        if not (disks[checked.live] > 0).all():
            disks = np.ones(len(disks))
        weights = [checked.request.weights.get(broker, 1.0) for broker in ids]
        size = disks * np.array(weights)
        if among is not None:
            size = size * among
        elif not checked.allowed_brokers.may.all():
            size = self._by_sets(size * checked.live, resource)
        size = size * part
        return np.where(part, total * size / max(size.sum(), 1e-9), loads)

    def _by_sets(
        self, size: npt.NDArray[np.float64], resource: Resource
    ) -> npt.NDArray[np.float64]:
        """(B,) load of each broker if the topics of each set are spread over its brokers as evenly
        as possible.
        """
        allowed_brokers, partitions = self._checked.allowed_brokers, self._partitions
        weight = partitions.replicas.lengths
        if resource in LED:
            weight = np.minimum(weight, 1)
        amounts = partitions.amounts(resource)
        weight = weight * (0 if amounts is None else amounts)
        total = np.bincount(allowed_brokers.number, weight, len(allowed_brokers.may)).astype(float)
        loads = fair_loads(size, allowed_brokers.may, total)
        return loads if loads.any() else size
