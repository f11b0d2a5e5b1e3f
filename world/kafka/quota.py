"""Replication quotas (KIP-73) between events: what may pass now, and when that changes.

Brokers measure the bytes of listed partitions over 11 windows of one second and delay throttled
replicas while the average is above the rate. What is older is forgotten. So after traffic below the
rate a burst may pass at once, and then nothing until it is forgotten; after the rate is lowered
nothing passes for as long; a rate that is less than a fetch in all windows lets one fetch pass
every 11 seconds. From quiet there is neither burst nor pause.
"""

from __future__ import annotations

from dataclasses import dataclass

WINDOW_S = 10.0
"""Full windows that count; the eleventh is the one being filled."""
FORGET_S = 11.0
UNLIMITED = float("inf")


@dataclass(slots=True)
class Quota:
    """One broker's quota, for one direction.

    :param rate: bytes per second; infinite = none is set.
    :param burst: bytes that may pass at once.
    :param peak: of the burst that is passing: what has to be waited for after it.
    :param pause_s: seconds in which no throttled replica gets anything.
    :param traffic: of listed partitions, bytes per second, since the last event.
    :param quiet_since: since when they have had none; None = they have some.
    """

    rate: float = UNLIMITED
    burst: float = 0.0
    peak: float = 0.0
    pause_s: float = 0.0
    traffic: float = 0.0
    quiet_since: float | None = 0.0

    def set_rate(self, rate: float) -> None:
        """The broker takes up another rate; the windows keep what they have measured."""
        if rate == self.rate:
            return
        self.rate = rate
        self.burst = self.peak = self.pause_s = 0.0
        if rate == UNLIMITED or self.quiet_since is not None:
            return
        if self.traffic > rate:
            self.pause_s = WINDOW_S * (1 - rate / self.traffic)
        else:
            self.burst = self.peak = (rate - self.traffic) * WINDOW_S

    def fetch(self, size: float) -> None:
        """A fetch of this size is about to be made: it passes as a whole, however low the rate."""
        if self.burst == 0 == self.pause_s and size > self.rate * WINDOW_S:
            self.burst = self.peak = size

    def limit(self, in_sync: float) -> float:
        """Bytes per second that throttled replicas get now, together.

        :param in_sync: traffic of listed replicas in the ISR, which counts and is not delayed.
        """
        if self.pause_s > 0:
            return 0.0
        if self.rate == UNLIMITED or self.burst > 0:
            return UNLIMITED
        return max(0.0, self.rate - in_sync)

    def until_next(self) -> float:
        """Seconds until the limit changes by itself; infinite = never."""
        if self.pause_s > 0:
            return self.pause_s
        if self.burst > 0 and self.traffic > self.rate:
            return self.burst / (self.traffic - self.rate)
        return UNLIMITED

    def pass_by(self, seconds: float, now: float) -> None:
        """``traffic`` has passed for some time, until ``now``."""
        if self.rate == UNLIMITED or seconds <= 0:
            return
        paused, self.pause_s = self.pause_s, max(0.0, self.pause_s - seconds)
        self.pause_s = 0.0 if self.pause_s < 1e-6 else self.pause_s
        if self.traffic <= 0:
            if self.quiet_since is None:
                self.quiet_since = now - seconds
            if now - self.quiet_since >= FORGET_S:
                self.burst = self.peak = 0.0
            return
        self.quiet_since = None
        if paused > 0:
            return
        before = self.burst
        self.burst = max(0.0, before + (self.rate - self.traffic) * seconds)
        self.burst = min(self.burst, max(before, (WINDOW_S - 1) * self.rate))
        if self.burst < 1.0:
            if before > 0:
                self.pause_s = min(FORGET_S, self.peak / self.rate)
            self.burst = self.peak = 0.0
        self.peak = max(self.peak, self.burst)
