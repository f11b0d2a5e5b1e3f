"""Figures of a plan's summary: each resource's balance, each target's price, what smaller budgets
reach, each link's bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rehome.domain.text import count_text


@dataclass(frozen=True, slots=True)
class ResourceBalance:
    """One resource on all brokers, each list aligned with ``PlanSummary.brokers``.

    :param resource: bytes, replicas, bytes_in, leaders or bytes_out, and potential_bytes_out and
        leader_bytes_in where the request asks for them; rates are per second, and what comes with
        leaders goes by the preferred ones.
    :param known: whether the cluster's load of it is known; if not, all loads are 0.
    :param tolerance: allowed deviation from a broker's share; None = spread in any way.
    :param low, high: the band that each broker was to end in; empty without a tolerance.
    """

    resource: str
    known: bool
    tolerance: float | None
    before: tuple[int, ...]
    after: tuple[int, ...]
    low: tuple[int, ...] = ()
    high: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class TargetPrice:
    """What keeping one resource within its tolerance costs: what a plan without it saves; that of
    keeping topics spread is named topic_spread.

    :param method: ``solved``: the same request was planned without the target (below 0 where
        the search happened on something cheaper with it); ``at_least``: taking back what it
        alone asks for saves that much; ``free``: the order of replicas alone, no copies.
    """

    resource: str
    bytes_to_move: int
    replica_moves: int
    method: str


@dataclass(frozen=True, slots=True)
class BudgetPoint:
    """What the same request reaches for fewer bytes: the plan, cut off by a budget.

    :param budget_bytes: the budget; a request with it makes this very plan of the same snapshot.
    :param furthest: resource → how far the broker that is furthest off its share is off, as a part
        of that share.
    """

    budget_bytes: int
    bytes_to_move: int
    replica_moves: int
    furthest: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class TopicBalance:
    """How evenly topics are spread over brokers, of those with at least as many replicas as there
    are brokers.

    :param tolerance: allowed deviation from a broker's share of a topic, at least one replica.
    :param topics: how many there are.
    :param outside_before, outside_after: topics on brokers, replicas and leaders each, that are
        further off; ``worst_before``, ``worst_after``: by how many replicas at most.
    """

    tolerance: float
    topics: int
    outside_before: int
    outside_after: int
    worst_before: int
    worst_after: int


@dataclass(frozen=True, slots=True)
class LeaderMinimums:
    """Brokers that lead fewer partitions of a topic than ``min_leaders`` asks for.

    :param topics: that a minimum is asked for.
    :param lacking_before, lacking_after: leaders that brokers lack, over all topics.
    :param bytes_copied, replicas_copied: what no change of leader could do.
    """

    topics: int
    lacking_before: int
    lacking_after: int
    bytes_copied: int
    replicas_copied: int


@dataclass(frozen=True, slots=True)
class Link:
    """Bytes the plan copies from leaders in one rack to brokers in another, or in the same.

    Racks are paths of the rack tree, ``/dc0/r1``; of a large tree, its upper levels.
    """

    source: str
    target: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Weakened:
    """Partitions that a plan leaves in fewer failure domains of one kind.

    :param level: of the racks, 1 = the topmost (data centres of ``/dc/rack``); 0 = replicas: each
        broker is a domain.
    :param levels: how many levels the cluster's racks have.
    :param before, after: how many domains each of them has replicas in.
    :param partitions: how many partitions; ``example``: the first of them.
    """

    level: int
    levels: int
    before: int
    after: int
    partitions: int
    example: str

    def __str__(self) -> str:
        partitions_text = f"{count_text(self.partitions, 'partition')}, such as {self.example},"
        verb = "ends" if self.partitions == 1 else "end"
        return f"{partitions_text} {verb} with replicas {self._where}"

    @property
    def _where(self) -> str:
        if self.level == 0:
            return f"on {count_text(self.after, 'broker')} instead of {self.before}"
        kind = "rack" if self.levels == 1 else f"domain of rack level {self.level}"
        many = "racks" if self.levels == 1 else f"domains of rack level {self.level}"
        return f"in {count_text(self.after, kind, many)} instead of {self.before}"


def balance_from_json(content: Mapping[str, Any]) -> ResourceBalance:
    """A balance as ``summary.json`` holds it."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in content.items()
    }
    return ResourceBalance(**values)
