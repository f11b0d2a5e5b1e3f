"""Copies under throttles as brokers keep them: whole fetches, then silence, over a moving window.

A broker compares a throttle with what it has copied over the last eleven samples of a second,
divided by the age of the oldest of them, and checks it only before a fetch (ReplicationQuotaManager
and SimpleRate in Kafka). From this follow what real brokers show: less than the nominal rate is
delivered, what was not used for a while comes as a burst, and a cut is followed by silence.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.flows import FETCH_BYTES, QUOTA_WINDOW_S
from rehome.execution.admission.fair_share import DONE_BELOW_BYTES, CopyId

SAMPLE_S = 1.0
GOLDEN = (5**0.5 - 1) / 2
"""The fractional parts of its multiples are spread evenly, and are the same in every run."""


class QuotaWindow:
    """What a broker has copied in one direction, as it remembers it."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, float]] = deque()  # begin, bytes

    def record(self, now_s: float, size_bytes: float) -> None:
        """Count what has just been copied."""
        self._forget(now_s)
        if self._samples and now_s - self._samples[-1][0] < SAMPLE_S:
            begin, counted = self._samples.pop()
            self._samples.append((begin, counted + size_bytes))
        else:
            self._samples.append((now_s, size_bytes))

    def exceeds(self, now_s: float, rate_bytes_per_s: float) -> bool:
        """Whether more was copied than the rate allows."""
        self._forget(now_s)
        if not self._samples:
            return False
        age_s = max(now_s - self._samples[0][0], SAMPLE_S)
        return sum(counted for _, counted in self._samples) / age_s > rate_bytes_per_s

    def _forget(self, now_s: float) -> None:
        while self._samples and now_s - self._samples[0][0] >= QUOTA_WINDOW_S:
            self._samples.popleft()


class ThrottledCopies:
    """Every copy in flight, fetched in rounds; has what ``Copies`` has.

    :param check_s: mean time between two checks of a broker's quota, which vary by half of
        it: the longer, the less of a rate is delivered (0.5 s as on a quiet broker: some 95 %).
    :param link_bytes_per_s: what a broker receives at most.
    """

    def __init__(
        self,
        brokers: Collection[BrokerId],
        check_s: float = 0.5,
        link_bytes_per_s: float = 125e6,
    ) -> None:
        self._check_s = check_s
        self._link_bytes_per_s = link_bytes_per_s
        self._live = set(brokers)
        self._rate = 0.0
        self._now_s = 0.0
        self._checks = 0
        self._next_check_s = 0.0
        self._left: dict[CopyId, float] = {}
        self._leader: dict[TopicPartition, BrokerId] = {}
        self._into = {broker: QuotaWindow() for broker in brokers}
        self._out = {broker: QuotaWindow() for broker in brokers}
        self.copied: dict[BrokerId, float] = dict.fromkeys(brokers, 0.0)

    def __len__(self) -> int:
        return len(self._left)

    def set_rate(self, rate_bytes_per_s: float, live: Collection[BrokerId]) -> None:
        """Throttle every live broker so in each direction; dead ones copy nothing."""
        self._rate, self._live = rate_bytes_per_s, set(live)

    def start(self, copies: Collection[tuple[CopyId, BrokerId, int]]) -> None:
        """Begin copies: id, the leader that they read from, bytes."""
        for copy, leader, size_bytes in copies:
            self._left[copy] = float(size_bytes)
            self._leader[copy[0]] = leader

    def stop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the copies of these partitions."""
        gone = set(partitions)
        self._left = {copy: left for copy, left in self._left.items() if copy[0] not in gone}

    def read_from(self, partition: TopicPartition, leader: BrokerId) -> None:
        """Go on with a partition's copies from another leader."""
        self._leader[partition] = leader

    def remaining(self) -> dict[CopyId, int]:
        """Bytes that each copy lacks."""
        return {copy: -int(-left // 1) for copy, left in self._left.items()}

    def next_end_s(self) -> float:
        """Seconds until anything may change; infinite when nothing can."""
        moving = any(b in self._live and self._leader[p] in self._live for p, b in self._left)
        return max(self._next_check_s - self._now_s, 1e-6) if moving else float("inf")

    def run(self, seconds: float) -> list[CopyId]:
        """Let so much time pass; the copies that became complete."""
        self._now_s += seconds
        if self._now_s + 1e-6 < self._next_check_s:
            return []
        self._checks += 1
        self._next_check_s = self._now_s + self._check_s * (0.5 + self._checks * GOLDEN % 1)
        live = sorted(self._live)
        first = self._checks % max(len(live), 1)  # no broker always asks before the others
        for broker in (*live[first:], *live[:first]):
            self._fetch(broker)
        ended = [copy for copy, left in self._left.items() if left <= DONE_BELOW_BYTES]
        for copy in ended:
            del self._left[copy]
        return ended

    def _fetch(self, broker: BrokerId) -> None:
        """Fetch round after round, until the quota or the link says that it is enough."""
        allowance = self._link_bytes_per_s * self._check_s
        while allowance > 0 and not self._into[broker].exceeds(self._now_s, self._rate):
            fetched = self._round(broker, allowance)
            if not fetched:
                return
            allowance -= fetched

    def _round(self, broker: BrokerId, allowance: float) -> float:
        fetched = 0.0
        for copy, left in self._left.items():
            leader = self._leader[copy[0]]
            if copy[1] != broker or leader not in self._live:
                continue
            if self._out[leader].exceeds(self._now_s, self._rate):
                continue
            size = min(left, allowance - fetched, FETCH_BYTES)
            self._left[copy] = left - size
            self._out[leader].record(self._now_s, size)
            fetched += size
        self._into[broker].record(self._now_s, fetched)
        self.copied[broker] += fetched
        return fetched
