"""Another cluster: what a connection leads to when its address has changed hands."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import BrokerId, TopicPartition
from world.history import ConfigWrite, History
from world.kafka.cluster import KafkaModel
from world.ports import Wire
from world.running.outside import VirtualTime
from world.running.scheduler import Scheduler
from world.script import Script

ELSEWHERE = "elsewhere"
"""Its id."""


class Elsewhere:
    """A cluster with the same topics, which loses the same brokers.

    :ivar led: installations whose connection leads there now.
    """

    def __init__(self, script: Script, time: VirtualTime, scheduler: Scheduler) -> None:
        self.led: set[str] = set()
        self._scheduler = scheduler
        rng = Random(f"{ELSEWHERE} {script.order}")
        self._model = KafkaModel(time, rng, script.racks or script.brokers, cluster_id=ELSEWHERE)
        for topic in script.topics:
            self._model.actions.create_topic(topic.name, topic.partitions, topic.configs)
            for number in range(len(topic.partitions)):
                part = TopicPartition(topic.name, number)
                self._model.actions.fill(part, topic.size_bytes)
        self._model.advance_to(time.now())
        self._history = History(self._model.world.log)
        self._history.begin()

    def connect(self, name: str) -> ClusterPort:
        """A connection in the name of an installation."""
        port = self._model.port("User:rehome", name)
        port.hooks = Wire(name, self._history, self._scheduler, self._model.world).hooks()
        return port

    def lose(self, broker: BrokerId) -> None:
        """It is killed, and never back."""
        self._model.actions.kill(broker)

    def changes(self) -> Iterator[tuple[float, str]]:
        """What any installation has changed there, and when."""
        for alter in self._history.alters:
            yield alter.at, f"{alter.owner} reassigned {alter.partition}"
        for write in self._history.writes:
            if isinstance(write, ConfigWrite) and write.owner:
                yield write.at, f"{write.owner} set {write.key} of {write.resource}"
