"""Copies that producers outrun: the dry run's check of inflow against throttle, in mid-run. Pure.

What is written to a partition in flight has to be copied as well, and brokers count what in-sync
followers of the partition fetch against its leader's throttle, too, without ever delaying it. Where
that is as much as the throttle lets through, nothing is left for the copy.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rehome.domain.broker_rates import RateKey
from rehome.domain.kafka import BrokerId, PartitionState, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.run.flows import BrokerFlow, FlowSample
from rehome.domain.text import bytes_text
from rehome.execution.admission.slots import Direction

UNSURE_AFTER_S, LASTING_S = 15.0, 45.0
"""From then on the time left is not known; and people are told. The second one is four of the
brokers' own windows."""
MOST_OF = 0.8
"""Producers are the cause where they take this part of what the throttle delivers, or more."""
_DOES = {
    Direction.IN: "is receiving",
    Direction.OUT: "is sending",
    Direction.ACROSS: "copies between its log dirs",
}


@dataclass(frozen=True, slots=True)
class Outpaced:
    """A broker and direction whose copies come no nearer to their ends. Bytes per second.

    :param inflow_bytes_per_s: what producers bring that counts against the throttle there.
    :param throttle_bytes_per_s: as asked for.
    :param above_bytes_per_s: the copies end only at a throttle above this, as asked for.
    :param lasts: whether it has been so for as long as people are told after.
    """

    direction: Direction
    broker: BrokerId
    inflow_bytes_per_s: float
    throttle_bytes_per_s: int
    above_bytes_per_s: float
    lasts: bool = False

    def __str__(self) -> str:
        return (
            f"the copies that broker {self.broker} {_DOES[self.direction]} cannot catch up: "
            f"producers bring {bytes_text(self.inflow_bytes_per_s)}/s that count against its "
            f"throttle of {bytes_text(self.throttle_bytes_per_s)}/s, which has to be above "
            f"{bytes_text(self.above_bytes_per_s)}/s for them to end"
        )


def may_be_outpaced(sample: FlowSample) -> bool:
    """Whether any broker's copies gained nothing on their sources between two polls."""
    return any(flow.grown_bytes and flow.copied_bytes <= flow.grown_bytes for flow in sample.flows)


def find_outpaced(
    flows: Sequence[FlowSample],
    admitted: Collection[Move],
    partitions: Mapping[TopicPartition, PartitionState],
    throttle_bytes_per_s: int,
    efficiency: float,
    own: Mapping[RateKey, int] | None = None,
) -> tuple[Outpaced, ...]:
    """Where copies gain nothing on their sources, because of producers.

    A copy that gains nothing for another reason is a stall, or is held up elsewhere.

    :param flows: what was copied between polls, oldest first.
    :param throttle_bytes_per_s: what was asked for, per broker and direction.
    :param efficiency: the part of it that brokers deliver.
    :param own: the throttles of brokers that have one of their own.
    """
    rate = throttle_bytes_per_s, efficiency, own or {}
    lasting = {
        (o.direction, o.broker) for o in _over(LASTING_S, flows, admitted, partitions, *rate)
    }
    return tuple(
        replace(each, lasts=(each.direction, each.broker) in lasting)
        for each in _over(UNSURE_AFTER_S, flows, admitted, partitions, *rate)
    )


def _over(
    least_s: float,
    flows: Sequence[FlowSample],
    admitted: Collection[Move],
    partitions: Mapping[TopicPartition, PartitionState],
    throttle_bytes_per_s: int,
    efficiency: float,
    own: Mapping[RateKey, int],
) -> Iterator[Outpaced]:
    """Where it has been so for so long."""
    spans = _newest(flows, least_s)
    for key in sorted(set.intersection(*map(set, spans)) if spans else ()):
        in_flight = [span[key] for span in spans]
        seconds = sum(seconds for seconds, _ in in_flight)
        copied = sum(flow.copied_bytes for _, flow in in_flight)
        grown = sum(flow.grown_bytes for _, flow in in_flight)
        if copied > grown:
            continue
        direction, broker = Direction(key[0]), key[1]
        inflow = grown / seconds * _times_counted(direction, broker, admitted, partitions)
        throttle = own.get(key, throttle_bytes_per_s)
        if inflow < MOST_OF * efficiency * throttle:
            continue
        yield Outpaced(direction, broker, inflow, throttle, inflow / efficiency)


_Span = dict[tuple[str, BrokerId], tuple[float, BrokerFlow]]


def _newest(flows: Sequence[FlowSample], least_s: float) -> list[_Span]:
    """What was in flight between the newest polls that cover the time; [] where they do not."""
    spans: list[_Span] = []
    covered, later = 0.0, None
    for sample in reversed(flows):
        if later is not None and sample.at != later:
            break
        busy = {
            (flow.direction, flow.broker): (sample.seconds, flow)
            for flow in sample.flows
            if flow.copies and flow.left_bytes
        }
        spans.append(busy)
        covered, later = covered + sample.seconds, sample.since
        if covered >= least_s:
            return spans
    return []


def _times_counted(
    direction: Direction,
    broker: BrokerId,
    admitted: Collection[Move],
    partitions: Mapping[TopicPartition, PartitionState],
) -> float:
    """How often what is written counts against a throttle, for each time that it is copied."""
    if direction is not Direction.OUT:
        return 1.0
    copies = fetches = 0
    for move in admitted:
        state = partitions.get(move.partition)
        if state is not None and state.leader == broker and move.adding:
            arrived = len(state.isr.intersection(move.adding))
            copies += len(move.adding) - arrived
            fetches += len(move.adding) - arrived + len(state.isr) - 1
    return fetches / copies if copies else 1.0
