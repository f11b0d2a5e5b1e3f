"""Throttles of single brokers, each by direction (KIP-179): what a broker sends, as the leader that
copies are read from, and what it receives, as a follower.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehome.domain.kafka import BrokerId
from rehome.domain.text import bytes_text

RateKey = tuple[str, BrokerId]
"""A direction of copies, as flows name it ("out", "in"), and a broker."""


class RateSide(enum.StrEnum):
    """Which of a broker's rates."""

    LEADER = "leader"
    FOLLOWER = "follower"

    @property
    def direction(self) -> str:
        """The direction in which it limits copies, as flows name it."""
        return "out" if self is RateSide.LEADER else "in"


@dataclass(frozen=True, slots=True)
class BrokerRates:
    """Rates in bytes per second by broker. Who is not named has the plan's.

    :param leader: of what brokers send; ``follower``: of what they receive.
    """

    leader: Mapping[BrokerId, int] = field(default_factory=dict)
    follower: Mapping[BrokerId, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether any broker has a rate of its own."""
        return bool(self.leader or self.follower)

    def of(self, side: RateSide) -> Mapping[BrokerId, int]:
        """The rates of one direction."""
        return self.leader if side is RateSide.LEADER else self.follower

    def by_key(self) -> dict[RateKey, int]:
        """The same by direction and broker."""
        return {
            (side.direction, broker): rate
            for side in RateSide
            for broker, rate in sorted(self.of(side).items())
        }

    @property
    def brokers(self) -> tuple[BrokerId, ...]:
        """All that are named."""
        return tuple(sorted({*self.leader, *self.follower}))

    def above(self, bounds: BrokerRates, others: int | None) -> Iterator[tuple[RateSide, BrokerId]]:
        """Where these would let more through.

        :param bounds: rates that may not be exceeded; ``others``: of brokers that it does not name,
            None = any.
        """
        for side in RateSide:
            for broker, rate in sorted(self.of(side).items()):
                most = bounds.of(side).get(broker, others)
                if most is not None and rate > most:
                    yield side, broker

    def at_most(self, bounds: BrokerRates, others: int) -> BrokerRates:
        """These, and the plan's rate for all others, none above its bound.

        :param others: the plan's rate. A broker whose bound is above it needs none of its own.
        """
        rates_by_side: dict[RateSide, dict[BrokerId, int]] = {}
        for side in RateSide:
            rates = dict(self.of(side))
            for broker, most in bounds.of(side).items():
                rate = min(rates.get(broker, others), most)
                if broker in rates or rate < others:
                    rates[broker] = rate
            rates_by_side[side] = rates
        return BrokerRates(rates_by_side[RateSide.LEADER], rates_by_side[RateSide.FOLLOWER])

    def limited_to(self, rate_bytes_per_s: int) -> BrokerRates:
        """These, none above a rate."""
        limited_rates = [
            {broker: min(rate, rate_bytes_per_s) for broker, rate in self.of(side).items()}
            for side in RateSide
        ]
        return BrokerRates(*limited_rates)

    def strictest(self, other: BrokerRates) -> BrokerRates:
        """As bounds: of each broker the lower one, of whom only one names it that one."""
        rates_of_sides = [dict(self.of(side)) for side in RateSide]
        for rates, side in zip(rates_of_sides, RateSide, strict=True):
            for broker, rate in other.of(side).items():
                rates[broker] = min(rate, rates.get(broker, rate))
        return BrokerRates(*rates_of_sides)

    def lines(self) -> tuple[str, ...]:
        """In words, a broker each."""
        return tuple(map(self._line, self.brokers))

    def _line(self, broker: BrokerId) -> str:
        sent, received = self.leader.get(broker), self.follower.get(broker)
        if sent is not None and sent == received:
            return f"broker {broker} sends and receives {bytes_text(sent)}/s at most"
        said = []
        if sent is not None:
            said.append(f"sends {bytes_text(sent)}/s")
        if received is not None:
            said.append(f"receives {bytes_text(received)}/s")
        return f"broker {broker} {' and '.join(said)} at most"

    def to_json(self) -> dict[str, dict[str, int]]:
        """As plain JSON types; :meth:`from_json` reads it back."""
        return {
            str(broker): {
                side.value: self.of(side)[broker] for side in RateSide if broker in self.of(side)
            }
            for broker in self.brokers
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any] | None) -> BrokerRates:
        """The inverse of :meth:`to_json`; None = no broker has one."""
        rates_by_side: dict[RateSide, dict[BrokerId, int]] = {side: {} for side in RateSide}
        for broker, rates in (content or {}).items():
            for side, rate in rates.items():
                rates_by_side[RateSide(side)][int(broker)] = rate
        return cls(rates_by_side[RateSide.LEADER], rates_by_side[RateSide.FOLLOWER])


NO_OWN_RATES = BrokerRates()
"""Every broker has the plan's rate."""
