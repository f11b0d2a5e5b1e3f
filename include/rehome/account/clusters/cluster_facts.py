"""A cluster as a snapshot shows it: the facts alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from rehome.domain.kafka import BrokerId

if TYPE_CHECKING:
    from rehome.cluster.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class Named:
    """Some of many.

    :param count: how many there are; ``first``: the first of them.
    """

    count: int
    first: tuple[str, ...]


class KnownLoad(Protocol):
    """What was measured of a cluster's traffic and growth before a snapshot."""

    def with_rates(self, snapshot: Snapshot, /) -> Snapshot:
        """The snapshot with the rates that are known well enough to plan by."""
        ...

    def problems(self) -> str:
        """Why some are not known; "" = all are."""
        ...

    def by_broker(self, snapshot: Snapshot, /) -> Mapping[BrokerId, Mapping[str, float | None]]:
        """Broker → what is known of it, named as in :class:`BrokerState`."""
        ...


@dataclass(frozen=True, slots=True)
class BrokerState:
    """One broker. Bytes, and bytes per second; None where it is not known.

    :param rack: its path in the rack tree; empty = none.
    :param problem: why it did not answer; "" = it did.
    :param leaders: partitions that it leads now; ``out_of_sync``: replicas of it out of the ISR.
    :param total_bytes, usable_bytes: of its log dirs that are not offline.
    :param throttled: configuration → rate that is set dynamically and in force.
    :param config_problem: why these rates are not known; "" = they are.
    :param written_bytes_per_s: to its replicas; ``sent_bytes_per_s``: by its leaders, to followers
        too. High rates of the history's window, as plans are made by.
    :param days_until_full: of its disks, as they grow; None where they do not, too.
    """

    broker: BrokerId
    rack: tuple[str, ...]
    live: bool
    problem: str
    replicas: int
    leaders: int
    out_of_sync: int
    size_bytes: int | None
    total_bytes: int | None
    usable_bytes: int | None
    offline_log_dirs: int
    cordoned_log_dirs: int
    throttled: Mapping[str, int]
    config_problem: str
    written_bytes_per_s: float | None = None
    sent_bytes_per_s: float | None = None
    days_until_full: float | None = None

    @property
    def used(self) -> float | None:
        """Part of its disks that is in use, by whatever; None = not known."""
        if not self.total_bytes or self.usable_bytes is None:
            return None
        return 1 - self.usable_bytes / self.total_bytes


@dataclass(frozen=True, slots=True)
class ClusterView:
    """A cluster at the time of a snapshot.

    :param racks: rack → its brokers, in the order of the tree; one rack without a name where
        brokers have none.
    :param under_replicated: partitions with a replica out of the ISR.
    :param offline: partitions without a leader.
    :param reassigning: partitions that were being reassigned by other clients; ``moving``: how many
        by Rehome.
    :param foreign_throttles: rates, and items of lists, that other clients had set; ``throttled``:
        how many settings were Rehome's.
    :param unknown_load: why traffic or growth are not known; "" = they are.
    """

    cluster_id: str
    taken_at: datetime
    racks: tuple[tuple[str, tuple[BrokerState, ...]], ...]
    topics: int
    partitions: int
    under_replicated: Named
    offline: Named
    reassigning: Named
    moving: int
    foreign_throttles: Named
    throttled: int
    hidden_topics: int
    unknown_load: str

    @property
    def brokers(self) -> tuple[BrokerState, ...]:
        """Every broker, rack by rack."""
        return tuple(broker for _, brokers in self.racks for broker in brokers)


def imbalance(brokers: Sequence[BrokerState]) -> float | None:
    """How far the fullest broker is above its share of the stored bytes, as part of that share.

    Shares are by the size of the disks. None where a live broker's are not known.
    """
    alive = [broker for broker in brokers if broker.live]
    sizes = [broker.total_bytes or 0 for broker in alive]
    stored_sizes = [broker.size_bytes for broker in alive]
    if not alive or not all(sizes) or None in stored_sizes:
        return None
    stored = sum(size or 0 for size in stored_sizes)
    if not stored:
        return 0.0
    shares = [stored * part / sum(sizes) for part in sizes]
    return max((size or 0) / share - 1 for size, share in zip(stored_sizes, shares, strict=True))
