"""What the copies of a plan receive per second: in all, by broker and by partition. Pure.

All from the same gains, over the same time: the parts make up the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain

from rehome.account.evidence import PlanEvidence
from rehome.account.known import Fact, Known, NotKnown, Source, Unknown
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.progress import PACE_WINDOW, PollGains, ProgressSample
from rehome.domain.run.states import PlanState
from rehome.execution.progress.received import pace_samples


@dataclass(frozen=True, slots=True)
class PlanPace:
    """Bytes per second, between the first and the last poll of the last minute.

    :param since: the first of them; the last is when the fact was known.
    :param into, out_of: by broker, over the network; who is not in it has copied nothing.
    :param partitions: of those that a copy was in flight of.
    :param silent: partitions of which the last poll could not read every copy.
    """

    since: datetime
    total: float
    into: Mapping[BrokerId, float]
    out_of: Mapping[BrokerId, float]
    partitions: Mapping[TopicPartition, float]
    silent: frozenset[TopicPartition]

    def of_partition(self, partition: TopicPartition) -> float | NotKnown:
        """Of a move in flight. Of one that a broker is silent about, what came until then: the
        total and the brokers have it, too.
        """
        came = self.partitions.get(partition)
        if partition in self.silent:
            return came or NotKnown.BROKER_SILENT
        return NotKnown.NOT_POLLED if came is None else came


def pace_of(evidence: PlanEvidence, now: datetime) -> Fact[PlanPace]:
    """By the polls of the last minute; not known, and why, where there are none to compare."""
    if evidence.record.state is not PlanState.RUNNING:
        return Unknown(NotKnown.NOT_RUNNING)
    if evidence.recent and now - evidence.recent[-1].sampled_at > PACE_WINDOW:
        return Unknown(NotKnown.OLD_POLL)
    return pace_at_poll(evidence.recent, evidence.gains)


def pace_at_poll(recent: Sequence[ProgressSample], gains: Sequence[PollGains]) -> Fact[PlanPace]:
    """Of a plan that runs, at its newest poll.

    :param recent: of the newest polls, oldest first; ``gains``: what was received at them.
    """
    if not recent:
        return Unknown(NotKnown.NOT_POLLED)
    samples = pace_samples(recent)
    first, last = samples[0], samples[-1]
    if len(samples) == 1:
        return Unknown(NotKnown.ONE_POLL)
    if first.received_bytes is None or last.received_bytes is None:
        return Unknown(NotKnown.NOT_RECORDED)
    pace = _pace(gains, first.sampled_at, last.sampled_at)
    return Known(pace, last.sampled_at, Source.POLL)


def copied_by_broker(
    flying: Collection[tuple[Move, BrokerId | None]],
) -> tuple[Counter[BrokerId], Counter[BrokerId]]:
    """How many moves copy to each broker, and from it.

    :param flying: moves in flight, each with the leader that it copies from, where that is known.
    """
    into = Counter(broker for move, _ in flying for broker in move.adding)
    out_of = Counter(leader for move, leader in flying if move.adding and leader is not None)
    return into, out_of


def _pace(gains: Sequence[PollGains], since: datetime, until: datetime) -> PlanPace:
    into: Counter[BrokerId] = Counter()
    out_of: Counter[BrokerId] = Counter()
    partitions: Counter[TopicPartition] = Counter()
    polls = [poll for poll in gains if since < poll.at <= until]
    silent = {
        gain.replica.topic_partition
        for poll in polls[-1:]
        for gain in poll.gains
        if gain.size_bytes is None
    }
    for replica, read_from, size in chain.from_iterable(poll.gains for poll in polls):
        partitions[replica.topic_partition] += size or 0
        if read_from != replica.broker:
            into[replica.broker] += size or 0
            if read_from is not None:
                out_of[read_from] += size or 0
    seconds = (until - since).total_seconds()
    return PlanPace(
        since,
        partitions.total() / seconds,
        {broker: size / seconds for broker, size in into.items()},
        {broker: size / seconds for broker, size in out_of.items()},
        {partition: size / seconds for partition, size in partitions.items()},
        frozenset(silent),
    )
