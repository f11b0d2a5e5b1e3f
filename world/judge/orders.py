"""A cancel of what others have started puts replicas in the order of before, where a snapshot from
before shows it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from rehome.domain.kafka import Replicas
from world.history import METADATA_LAG_S, OTHERS, Alter
from world.judge.flights import Span
from world.judge.placement import Partitions, run_of
from world.judge.violations import Kind, Violation
from world.kafka.metadata import PartitionKey


@dataclass(frozen=True, slots=True)
class CancelSeen:
    """A run that was let cancel what others had in flight, and said that it has.

    :param ended: when it said so.
    :param snapshots: that its installation had taken, each from its first reading to its end.
    """

    run: str
    ended: float
    snapshots: tuple[Span, ...]


def out_of_order(
    partitions: Partitions, alters: Collection[Alter], cancels: Collection[CancelSeen]
) -> Iterator[Violation]:
    """Partitions that a cancel has left in another order than a snapshot had shown."""
    for cancel in cancels:
        for asked in alters:
            if asked.target is None and run_of(asked.process) == cancel.run:
                yield from _out_of_order(partitions, alters, cancel, asked)


def _out_of_order(
    partitions: Partitions, alters: Collection[Alter], cancel: CancelSeen, asked: Alter
) -> Iterator[Violation]:
    of_it = [each for each in alters if each.partition == asked.partition]
    before = [each for each in of_it if each.number < asked.number]
    late = [each for each in of_it if each.number > asked.number and each.at <= cancel.ended]
    if not before or before[-1].owner != OTHERS or before[-1].target is None:
        return
    if any(run_of(each.process) != cancel.run for each in late):
        return
    began = before[-1].at
    for key in partitions.named(asked.partition):
        order = _shown(partitions, key, began, cancel.snapshots)
        left = partitions.at(key, cancel.ended)
        if order is None or left is None or left.reassigning or left.replicas == order:
            continue
        text = f"{asked.partition} has {left.replicas}; a snapshot had shown {order}"
        yield Violation(Kind.MISPLACED, str(asked.partition), text, cancel.ended)


def _shown(
    partitions: Partitions, key: PartitionKey, began: float, snapshots: Collection[Span]
) -> Replicas | None:
    """The order that the newest snapshot from before it began shows, if that was the order still;
    None = there is none.
    """
    taken = [each for each in snapshots if each.since < began]
    if not taken or taken[-1].until >= began:
        return None
    since = taken[-1].since - METADATA_LAG_S
    states = [partitions.at(key, when) for when in partitions.times(since, began)[:-1]]
    orders = {None if s is None or s.reassigning else s.replicas for s in states}
    return orders.pop() if len(orders) == 1 else None
