"""What a person has let a run take away of others' throttles: that of what it has cancelled, where
nothing in flight uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from rehome.domain.configs import ConfigOperation, ResourceType
from rehome.domain.kafka import BrokerId, TopicPartition
from world.history import ConfigWrite, History
from world.judge.configs import items
from world.judge.flights import FOLLOWER_RATE, LEADER_RATE
from world.judge.placement import LetAct, Partitions, run_of
from world.kafka.metadata import Partition

RATES = {LEADER_RATE, FOLLOWER_RATE}
EVERY = "*"


@dataclass(frozen=True)
class Cleaned:
    """Judges what is taken away, by what runs were let do.

    :param let_act: by the names of runs.
    """

    history: History
    partitions: Partitions
    let_act: Mapping[str, LetAct]

    def lets(self, write: ConfigWrite) -> bool:
        """Whether a write takes away what a person has let it take: what was in flight when the
        process looked, and is so when it writes, it could see.
        """
        let = self.let_act.get(run_of(write.process))
        takes = write.how in (ConfigOperation.DELETE, ConfigOperation.SUBTRACT)
        if let is None or not let.cleans or write.at < let.at or not takes:
            return False
        over = set(self._named(let, write.owner))
        used = dict(self._used(write))
        if write.key in RATES:
            return self._rate_rests(write, over, used)
        if write.resource.type is not ResourceType.TOPIC:
            return False
        taken = set(items(write.before)) - set(items(write.after))
        return all(self._item_rests(write.resource.name, item, over, used) for item in taken)

    def _named(self, let: LetAct, by: str) -> Iterator[TopicPartition]:
        """What the run may have named: others had begun it when it looked, another Rehome too. It
        has ended since, or the run has cancelled it.
        """
        for alter in self.history.alters:
            begun = alter.owner != by and alter.target is not None and alter.number < let.named
            if begun and let.is_about(alter.partition):
                yield alter.partition

    def _used(self, write: ConfigWrite) -> Iterator[tuple[TopicPartition, Partition]]:
        for key in self.partitions.states:
            state = self.partitions.at(key, write.at)
            if state is None or not state.reassigning:
                continue
            name = TopicPartition(self.partitions.names[key.topic_id], key.number)
            asked = [alter for alter in self.history.alters if alter.partition == name]
            began = [alter.number for alter in asked if alter.at <= write.at]
            if write.listed is not None and began and began[-1] < write.listed:
                yield name, state

    def _rate_rests(
        self,
        write: ConfigWrite,
        over: Collection[TopicPartition],
        used: Mapping[TopicPartition, Partition],
    ) -> bool:
        if not write.resource.name:
            return not used
        broker = int(write.resource.name)
        involved = {each for part in over for each in self._brokers(part)}
        return broker in involved and all(broker not in each.replicas for each in used.values())

    def _brokers(self, partition: TopicPartition) -> Iterator[BrokerId]:
        for key in self.partitions.named(partition):
            for placed in self.partitions.states[key]:
                yield from () if placed.state is None else placed.state.replicas

    @staticmethod
    def _item_rests(
        topic: str,
        item: str,
        over: Collection[TopicPartition],
        used: Mapping[TopicPartition, Partition],
    ) -> bool:
        if item == EVERY:
            return all(part.topic != topic for part in used)
        number, _, _ = item.partition(":")
        part = TopicPartition(topic, int(number))
        return part in over and part not in used
