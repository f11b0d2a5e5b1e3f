"""What brokers copy, and the rates set on them: what the governor's state consists of."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import BrokerId

QUOTA_WINDOW_S = 11.0
"""Over so many seconds a broker averages what it compares with a throttle
(``replica.quota.window.num`` samples of ``replica.quota.window.size.seconds``)."""
FETCH_BYTES = 1_048_576
"""What a fetch brings of one partition at most, throttled or not (``replica.fetch.max.bytes``)."""

CHANGES_VIEWED, FLOWS_VIEWED = 10, 60
"""How far back the governor reads: the newest so many of each."""


@dataclass(frozen=True, slots=True)
class BrokerFlow:
    """What a broker has copied in one direction between two polls.

    :param direction: a ``slots.Direction``'s value.
    :param copied_bytes: since the poll before.
    :param left_bytes: what is in flight and not copied yet.
    :param copies: how many copies are in flight.
    :param grown_bytes: what the sources of these copies have grown by meanwhile.
    :param allowed_bytes: what the whole throttle would have let through, had it been delivered,
        of what the other ends of these copies left to the broker.
    """

    direction: str
    broker: BrokerId
    copied_bytes: int
    left_bytes: int
    copies: int
    grown_bytes: int = 0
    allowed_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Strain:
    """How well the watched partitions are: some of others, and some of the plan's own.

    :param outside_isr: replicas on live brokers that are not in the ISR.
    :param messages_behind: what in-sync followers lack of their leaders, together.
    """

    outside_isr: int
    messages_behind: int


@dataclass(frozen=True, slots=True)
class FlowSample:
    """What all brokers have copied between two polls; without those that moved nothing.

    Left out is who shares a copy with a broker that did not answer at either poll.

    :param silent: brokers that did not answer at the second one.
    """

    since: datetime
    at: datetime
    flows: tuple[BrokerFlow, ...]
    strain: Strain | None = None
    silent: tuple[BrokerId, ...] = ()

    @property
    def seconds(self) -> float:
        """Time between the two polls."""
        return (self.at - self.since).total_seconds()

    @property
    def busiest_bytes_per_s(self) -> float:
        """What the broker and direction that copied most delivered."""
        most = max((flow.copied_bytes for flow in self.flows), default=0)
        return most / self.seconds if self.seconds > 0 else 0.0


def complete_samples(flows: Sequence[FlowSample]) -> tuple[FlowSample, ...]:
    """Those samples from which no broker is left out: what may be compared with each other."""
    before = [(), *(sample.silent for sample in flows)]
    return tuple(s for s, silent in zip(flows, before, strict=False) if not s.silent and not silent)


class RateReason(enum.StrEnum):
    """Why a rate was set."""

    SET_UP = "set up"
    REQUESTED = "requested"
    RAISED = "raised"  # brokers deliver less than the target
    LOWERED = "lowered"  # brokers deliver more than the target
    UNBOUND = "not what limits"  # a raise brought nothing: taken back
    STRAIN = "strain"  # others suffer: the target is cut
    RECOVERY = "recovery"  # others are well again: the target grows


@dataclass(frozen=True, slots=True)
class OwnRate:
    """The rate of a broker that has one of its own, in one direction: as :class:`RateChange`."""

    direction: str
    broker: BrokerId
    at: datetime
    rate_bytes_per_s: int
    target_bytes_per_s: int
    limit_bytes_per_s: int
    reason: RateReason
    cause: str
    delivered_bytes_per_s: float | None = None

    @property
    def key(self) -> RateKey:
        """Whose it is."""
        return self.direction, self.broker

    def to_json(self) -> dict[str, Any]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {**asdict(self), "at": self.at.isoformat(), "reason": self.reason.value}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> OwnRate:
        """The inverse of :meth:`to_json`."""
        at, reason = datetime.fromisoformat(content["at"]), RateReason(content["reason"])
        return cls(**{**content, "at": at, "reason": reason})


@dataclass(frozen=True, slots=True)
class RateChange:
    """A rate that was set, and why. Bytes per second, per broker and direction.

    :param rate_bytes_per_s: nominal: what is set on the brokers.
    :param target_bytes_per_s: what they are to deliver.
    :param limit_bytes_per_s: the most that was asked for; the target is lower under strain.
    :param delivered_bytes_per_s: what was measured when the rate was set; None = nothing was.
    :param own: those of brokers that have one of their own since then.
    """

    at: datetime
    rate_bytes_per_s: int
    target_bytes_per_s: int
    limit_bytes_per_s: int
    reason: RateReason
    cause: str
    delivered_bytes_per_s: float | None = None
    own: tuple[OwnRate, ...] = ()


def silence_s(rate_bytes_per_s: float) -> float:
    """How long a throttled copy may show no byte although all is well.

    A fetch is not cut to the quota: what it brought too much is waited for, and after a cut of
    the rate so is what the whole window holds; but no longer than a broker remembers. Both ends
    of a copy may have one to wait for, one after the other.
    """
    fetch_s = FETCH_BYTES / rate_bytes_per_s if rate_bytes_per_s > 0 else QUOTA_WINDOW_S
    return QUOTA_WINDOW_S + min(fetch_s, QUOTA_WINDOW_S)
