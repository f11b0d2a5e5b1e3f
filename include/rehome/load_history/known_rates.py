"""What the history knows of a cluster's traffic, and whether that is enough to plan by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.array_types import Floats, Ints
from rehome.domain.text import bytes_text
from rehome.load_history.daily_rollups import window
from rehome.load_history.key_codes import codes_of, distinct, found_at, integers, keys_of
from rehome.load_history.load_profile import loads_of
from rehome.load_history.rollup import Span
from rehome.warehouse import Warehouse

CERTAIN_PART = 0.9
"""A rate of which less than this part is what a log was seen to grow by is called estimated."""

KNOWN_PART = 0.95
"""Part of a cluster's partitions whose load must be known."""

_RATES = {"bytes_in": "in", "bytes_out": "out"}
GROWTH = "growth"


@dataclass(frozen=True, slots=True)
class Demands:
    """How much history is asked for.

    :param window_days: how many days of history are read.
    :param min_hours: a partition's load is known once it was watched for that long; a whole day
        shows its highs and lows.
    :param max_age_hours: how long ago the last interval may have ended.
    """

    window_days: int = 7
    min_hours: float = 24.0
    max_age_hours: float = 24.0


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    """How well one resource is known.

    :param resource: ``bytes_in`` and ``bytes_out`` per second, or ``growth`` of the disks.
    :param partitions: partitions of the snapshot; ``known_partitions`` of them were watched for
        long enough.
    :param hours: how long half of the partitions were watched at least, in the window.
    :param needed_hours: how long it takes for a partition to be known.
    :param age_hours: since the last interval; ``allowed_age_hours`` are allowed.
    :param unread: why consumer groups' offsets are not known, where that is what is missing.
    :param estimated_partitions: of ``known_partitions``, those whose bytes in are not all what
        their logs were seen to grow by; ``estimated_bytes_per_s``: the mean that is estimated for
        them together, and ``least_bytes_per_s`` what is certain of that. Of bytes in only.
    """

    resource: str
    partitions: int
    known_partitions: int
    hours: float
    needed_hours: float
    age_hours: float
    allowed_age_hours: float
    unread: tuple[str, ...] = ()
    estimated_partitions: int = 0
    estimated_bytes_per_s: float = 0.0
    least_bytes_per_s: float = 0.0

    @property
    def is_known(self) -> bool:
        """Whether there is enough to plan by."""
        return not list(self.problems())

    def problems(self) -> Iterator[str]:
        """What is missing, a sentence each."""
        if self.hours < self.needed_hours:
            yield f"the history covers {self.hours:.1f} h of the {self.needed_hours:g} h it takes"
        elif self.known_partitions < KNOWN_PART * self.partitions:
            yield f"it is known of {self.known_partitions:,} of {self.partitions:,} partitions only"
        if self.age_hours > self.allowed_age_hours:
            yield f"the history ends {self.age_hours:.1f} h before the snapshot"
        if self.unread:
            more = f" and {len(self.unread) - 3} more" if len(self.unread) > 3 else ""
            yield f"offsets are not known of {'; '.join(self.unread[:3])}{more}"

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types."""
        return asdict(self) | {"known": self.is_known, "problems": list(self.problems())}


@dataclass(frozen=True)
class LoadHistory:
    """The loads of a window, aligned with a snapshot. P partitions, rows in the snapshot's order.

    :param span: what the window holds.
    :param rates: resource → (P,) bytes per second to plan by, NaN where not known.
    :param growth: (P,) bytes per second that a replica grows by, NaN where not known.
    :param keys: (P,) partitions, ascending by topic and partition.
    """

    span: Span
    topics: tuple[str, ...]
    keys: Ints
    rates: dict[str, Floats]
    growth: Floats
    resources: tuple[ResourceHistory, ...]

    @classmethod
    def read(
        cls, warehouse: Warehouse, snapshot: Snapshot, demands: Demands | None = None
    ) -> LoadHistory:
        """What the warehouse's rollups say of the snapshot's cluster."""
        demands = demands or Demands()
        rollup = window(warehouse, snapshot.cluster_id, demands.window_days)
        return cls.of(loads_of(rollup), rollup.span, snapshot, demands)

    @classmethod
    def of(cls, loads: pa.Table, span: Span, snapshot: Snapshot, demands: Demands) -> LoadHistory:
        """Loads of the partitions of a snapshot. A topic with another id has none of them.

        A rate to plan by is the p95, or the mean where that is larger: a partition that works for
        an hour a day has no p95.
        """
        visible = snapshot.topics.filter(snapshot.topics.column("visible"))
        ids = dict(
            zip(
                visible.column("topic").to_pylist(),
                visible.column("topic_id").to_pylist(),
                strict=True,
            )
        )
        topics = tuple(sorted(ids))
        replicas = snapshot.replicas
        keys = distinct(_keys(replicas, topics))
        same = pc.equal(
            loads.column("topic_id"),
            pa.array([ids.get(topic) for topic in loads.column("topic").to_pylist()], pa.string()),
        )
        loads = loads.filter(pc.fill_null(same, False))
        at = found_at(keys, _keys(loads, topics))
        watched = {
            name: _beside(loads, f"{name}_s", at) / 3600 for name in (*_RATES.values(), GROWTH)
        }
        age = _age_hours(span, snapshot.taken_at)
        mean, least = (_beside(loads, f"bytes_in_{name}", at) for name in ("mean", "least"))

        def history(resource: str, name: str) -> ResourceHistory:
            hours = np.nan_to_num(watched[name])
            known_count = int((hours >= demands.min_hours).sum())
            short = known_count < KNOWN_PART * len(keys)
            guessed = (hours >= demands.min_hours) & (least < CERTAIN_PART * mean)
            guessed &= resource == "bytes_in"
            return ResourceHistory(
                resource=resource,
                partitions=len(keys),
                known_partitions=known_count,
                hours=round(float(np.median(hours)), 3) if len(hours) else 0.0,
                needed_hours=demands.min_hours,
                age_hours=round(age, 3),
                allowed_age_hours=demands.max_age_hours,
                unread=span.unread if resource == "bytes_out" and short else (),
                estimated_partitions=int(guessed.sum()),
                estimated_bytes_per_s=round(float(mean[guessed].sum()), 3),
                least_bytes_per_s=round(float(least[guessed].sum()), 3),
            )

        return cls(
            span=span,
            topics=topics,
            keys=keys,
            rates={
                resource: np.fmax(
                    _beside(loads, f"{resource}_p95", at), _beside(loads, f"{resource}_mean", at)
                )
                for resource in _RATES
            },
            growth=_beside(loads, "growth_bytes_per_s", at),
            resources=tuple(
                history(resource, name) for resource, name in (*_RATES.items(), (GROWTH, GROWTH))
            ),
        )

    def is_known(self, resource: str) -> bool:
        """Whether there is enough history of a resource to plan by it."""
        return any(item.resource == resource and item.is_known for item in self.resources)

    def shortcoming(self) -> str:
        """Why some rates are not known; empty when all are."""
        problem_lists = (item.problems() for item in self.resources if item.resource in _RATES)
        return "; ".join(
            dict.fromkeys(problem for problems in problem_lists for problem in problems)
        )

    def estimates(self) -> str:
        """Which of the rates that are planned by are estimated, and what is certain of them; empty
        where none is.
        """
        return " ".join(
            f"{item.resource} of {item.estimated_partitions:,} of {item.partitions:,} partitions "
            "is estimated, for their logs are compacted, or lost records or a leader meanwhile: "
            f"{bytes_text(item.estimated_bytes_per_s)}/s together, of which "
            f"{bytes_text(item.least_bytes_per_s)}/s is certain."
            for item in self.resources
            if item.is_known and item.estimated_partitions
        )

    def with_rates(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the rates that are known well enough to plan by.

        Columns ``bytes_in_per_s`` and ``bytes_out_per_s`` of its replicas repeat a partition's
        rate; null where a single partition's is not known.
        """
        at = found_at(_keys(snapshot.replicas, self.topics), self.keys)
        replicas = snapshot.replicas
        for resource in _RATES:
            if self.is_known(resource):
                rates = pa.array(self.rates[resource][at], from_pandas=True)
                replicas = replicas.append_column(f"{resource}_per_s", rates)
        return replace(snapshot, replicas=replicas)


def _keys(table: pa.Table, topics: tuple[str, ...]) -> Ints:
    return keys_of(codes_of(table.column("topic"), topics), integers(table.column("partition")))


def _beside(loads: pa.Table, name: str, at: Ints) -> Floats:
    """(P,) a column of the loads in the order of ``at``; NaN where there is none."""
    values = loads.column(name).fill_null(np.nan).to_numpy()
    if not len(values):
        return np.full(len(at), np.nan)
    return np.where(at >= 0, values[at], np.nan)


def _age_hours(span: Span, taken_at: datetime) -> float:
    if not span.through:
        return 0.0
    return (taken_at - datetime.fromisoformat(span.through)).total_seconds() / 3600
