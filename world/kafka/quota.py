"""Replication quotas (KIP-73) between events: what may pass now, and when that changes.

Brokers measure the bytes of listed partitions over 11 windows of one second and delay throttled
replicas while the average is above the rate. So after traffic below the rate a burst may pass at
once, up to what the windows lack, and then nothing until they have forgotten it; after the rate is
lowered nothing passes for as long; from quiet there is neither.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_S = 10.0
"""Full windows that count; the eleventh is the one being filled."""
UNLIMITED = float("inf")


@dataclass(slots=True)
class Quota:
    """One broker's quota, for one direction.

    :param rate: bytes per second; infinite = none is set.
    :param balance: bytes that may pass at once; negative = a pause until it is 0 again.
    :param peak: the balance with which a burst began: what has to be waited for after it.
    :param traffic: of listed partitions, bytes per second, since the last event.
    :param quiet_since: since when they have had none; None = they have some.
    """

    rate: float = UNLIMITED
    balance: float = 0.0
    peak: float = 0.0
    traffic: float = 0.0
    quiet_since: float | None = 0.0

    def set_rate(self, rate: float) -> None:
        """The broker takes up another rate; the windows keep what they have measured."""
        if rate == self.rate:
            return
        self.rate = rate
        measured = self.traffic * WINDOW_S if self.quiet_since is None else 0.0
        limited = rate != UNLIMITED and measured > 0
        self.balance = max(rate * WINDOW_S - measured, -measured) if limited else 0.0
        self.peak = max(self.balance, 0.0)

    def limit(self, in_sync: float) -> float:
        """Bytes per second that throttled replicas get now, together.

        :param in_sync: traffic of listed replicas in the ISR, which counts and is not delayed.
        """
        if self.rate == UNLIMITED or self.balance > 0:
            return UNLIMITED
        return 0.0 if self.balance < 0 else max(0.0, self.rate - in_sync)

    def until_next(self, traffic: float) -> float:
        """Seconds until the limit changes by itself, while this much passes; infinite = never."""
        if self.rate == UNLIMITED or self.balance == 0:
            return UNLIMITED
        change = self.rate - traffic
        if (self.balance > 0) == (change > 0) or change == 0:
            return UNLIMITED
        return -self.balance / change

    def pass_by(self, seconds: float, now: float) -> None:
        """``traffic`` has passed for some time, until ``now``."""
        if self.rate == UNLIMITED or seconds <= 0:
            return
        if self.traffic <= 0 and self.balance >= 0:
            if self.quiet_since is None:
                self.quiet_since = now - seconds
            if now - self.quiet_since >= WINDOW_S:
                self.balance = self.peak = 0.0
            return
        self.quiet_since = None
        before = self.balance
        self.balance += (self.rate - self.traffic) * seconds
        if before > 0 and self.balance <= 1.0:
            self.balance, self.peak = -self.peak, 0.0
        elif abs(self.balance) < 1.0 or (before < 0 and self.balance > 0):
            self.balance = 0.0
        self.balance = min(self.balance, (WINDOW_S - 1) * self.rate)
        self.peak = max(self.peak, self.balance) if self.balance > 0 else 0.0
