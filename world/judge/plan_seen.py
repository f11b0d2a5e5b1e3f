"""A plan as the judge sees it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, ReplicaId, Replicas, TopicPartition
from rehome.ledger.base.records import PlanRecord
from world.history import Alter, ConfigKey
from world.judge.flights import FOLLOWER_LIST, LEADER_LIST, Span
from world.judge.placement import Partitions, target_of
from world.judge.violations import Kind, Violation
from world.kafka.metadata import PartitionKey
from world.running.outside import EPOCH

OwnRate = tuple[BrokerId, str]
"""A broker, and the key of its rate of one direction."""


@dataclass(frozen=True, slots=True)
class RatesAsked:
    """Rates that were asked for of a plan, in bytes per second.

    :param since: from when on they may hold; ``ended``: when the asker had an answer.
    :param agreed: the answer was that they hold: none that was asked for before does, from then on.
    :param rate: of brokers that have none of their own; ``own``: of those that have. None = as they
        were.
    """

    since: float
    ended: float
    agreed: bool
    rate: int | None = None
    own: Mapping[OwnRate, int] | None = None


@dataclass(frozen=True)
class PlanSeen:
    """A plan as the world has seen it.

    :param moves: partition → (topic id, target).
    :param before: replicas that its partitions were planned from.
    :param at_once: how many new replicas a partition may get at once; None = all.
    :param rates: that were asked for of it; none = they are not known.
    :param record: how its ledger has it at the end; None = its ledger does not know it any more.
    :param log_dirs: where it sends replicas that stay on their brokers.
    :param said_lost: partitions of which its ledger says that messages are lost.
    :param approved_s: when a person has approved it; infinite = nobody has, None = nobody has to.
    :param unread: partitions whose messages could not be read while it was made: what is lost of
        them before it has read them is not known to it.
    :param admitted: partitions that the ledger says are in flight.
    :param able: when a process of its run was alive.
    :param throttled: whether a throttle was asked for.
    :param cordons: brokers that it has cordoned, where nothing was in the way of that.
    :param window_s: when its window ends, where nothing but a paused DAG is in the way of that.
    :param undisturbed: whether nobody and nothing has interfered with its run or its ledger.
    """

    plan_id: str
    by: str
    moves: Mapping[TopicPartition, tuple[str, Replicas]]
    record: PlanRecord | None
    log_dirs: frozenset[tuple[ReplicaId, str]]
    admitted: frozenset[TopicPartition]
    able: list[Span]
    throttled: bool
    undisturbed: bool = False
    said_lost: frozenset[str] = frozenset()
    unread: frozenset[PartitionKey] = frozenset()
    approved_s: float | None = None
    window_s: float | None = None
    cordons: frozenset[BrokerId] = frozenset()
    before: Mapping[TopicPartition, Replicas] = field(default_factory=dict)
    at_once: int | None = None
    rates: tuple[RatesAsked, ...] = ()

    @property
    def carried_out(self) -> list[Span]:
        """From its start to its end, by its ledger; [] = it has not begun."""
        if self.record is None or self.record.started_at is None:
            return []
        ended = self.record.ended_at
        since = (self.record.started_at - EPOCH).total_seconds()
        return [Span(since, inf if ended is None else (ended - EPOCH).total_seconds())]

    @property
    def ran(self) -> list[Span]:
        """When a process of its run was alive, while the plan was carried out."""
        within = [
            Span(max(whole.since, able.since), min(whole.until, able.until))
            for whole in self.carried_out
            for able in self.able
        ]
        return [span for span in within if span.lasts_s > 0]

    @property
    def wanted(self) -> frozenset[tuple[TopicPartition, Replicas]]:
        """What it may ask for, by the names of partitions."""
        return frozenset((part, one) for part in self.moves for one in self._lists_of(part))

    @property
    def lists(self) -> dict[PartitionKey, frozenset[Replicas]]:
        """Replicas that it may lead a partition to: the target, and those of steps before it."""
        return {
            PartitionKey(topic_id, part.partition): self._lists_of(part)
            for part, (topic_id, _) in self.moves.items()
        }

    def _lists_of(self, part: TopicPartition) -> frozenset[Replicas]:
        """By the plan alone: old replicas, then as many new ones more as may come at once."""
        target, before = self.moves[part][1], self.before.get(part, ())
        found, new = {target}, [broker for broker in target if broker not in before]
        if self.at_once and before:
            found |= {(*before, *new[:n]) for n in range(self.at_once, len(new), self.at_once)}
        return frozenset(found)

    @property
    def list_items(self) -> dict[ConfigKey, list[str]]:
        """What it puts on throttle lists: who may send its copies, and who receives them."""
        found: dict[ConfigKey, list[str]] = {}
        for part, (_, target) in self.moves.items():
            before, topic = self.before.get(part, ()), ConfigResource.topic(part.topic)
            new = [broker for broker in target if broker not in before]
            may_lead = (*before, *new) if len(new) > 1 else before
            for key, brokers in ((LEADER_LIST, may_lead), (FOLLOWER_LIST, new)):
                found.setdefault((topic, key), []).extend(f"{part.partition}:{b}" for b in brokers)
        return found

    @property
    def targets(self) -> dict[PartitionKey, Replicas]:
        """By the topic that they were planned for."""
        return {
            PartitionKey(topic_id, partition.partition): target
            for partition, (topic_id, target) in self.moves.items()
        }


def too_many_at_once(
    partitions: Partitions, plan: PlanSeen, alters: Sequence[Alter]
) -> Iterator[Violation]:
    """Partitions that a plan has given more new replicas at once than it may.

    :param alters: what anybody has asked for: another client may ask for what the plan does.
    """
    if plan.at_once is None:
        return
    for key, lists in plan.lists.items():
        for placed in partitions.states.get(key, ()):
            state = placed.state
            if state is None or (target := target_of(state)) not in lists:
                continue
            came = [b for b in state.adding if b in target]  # others' are taken off again
            if len(came) <= plan.at_once:
                continue
            part = TopicPartition(partitions.names[key.topic_id], key.number)
            asked = [a.owner for a in alters if a.partition == part and a.at <= placed.at]
            if asked and asked[-1] != plan.by:
                continue
            name = str(part)
            text = f"{name} got {came} at once; {plan.at_once} may come at once"
            yield Violation(Kind.TOO_MANY_NEW, name, text, placed.at)
            break
