"""What happens to a cluster without any client: brokers and disks fail, rights are changed."""

from __future__ import annotations

from collections.abc import Collection

from world.history import OTHERS, History
from world.kafka.acls import AclResource, Binding, Operation
from world.kafka.cluster import KafkaModel
from world.script import Do, What

OURS = "User:rehome"
"""Whom all Rehomes log in as."""
FULL_BUT = 1_000_000.0
"""Bytes that are left free in a log dir that others have filled."""
NEEDED = (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
"""Of a topic; of the cluster also Alter."""


class Fate:
    """Acts on a model.

    :param topics: names of those that the script has.
    :ivar lost: brokers that never come back.
    """

    def __init__(self, model: KafkaModel, history: History, topics: Collection[str]) -> None:
        self._model = model
        self._history = history
        self._topics = topics
        self.lost: set[int] = set()

    def does(self, does: Do) -> bool:
        """Do it; False = it is nothing of fate's."""
        return self._to_broker(does) or self._to_disk(does) or self._to_others(does)

    def _to_broker(self, does: Do) -> bool:
        actions = self._model.actions
        match does.what:
            case What.BROKER_KILLED:
                actions.kill(does.args[0])
            case What.BROKER_LOST:
                actions.kill(does.args[0])
                self.lost.add(does.args[0])
            case What.BROKER_STOPPED:
                actions.stop(does.args[0])
            case What.BROKER_STARTED:
                actions.start(does.args[0])
            case What.BROKER_WIPED:
                actions.start(does.args[0], empty=True)
            case _:
                return False
        return True

    def _to_disk(self, does: Do) -> bool:
        if does.what not in (What.DISK_FILLED, What.LOG_DIR_FAILED):
            return False
        broker, number = does.args
        node = self._model.world.nodes[broker]
        path = sorted(node.disks)[number]
        if does.what is What.LOG_DIR_FAILED:
            self._model.actions.fail_disk(broker, path)
            return True
        free = node.disks[path].capacity - node.used(path)
        other = node.disks[path].other_bytes + max(0.0, free - FULL_BUT)
        self._model.actions.fill_disk(broker, path, other)
        return True

    def _to_others(self, does: Do) -> bool:
        match does.what:
            case What.DELETE_TOPIC:
                self._model.actions.delete_topic(does.args[0])
            case What.RIGHTS_REVOKED:
                self._revoke(*does.args)
            case What.RIGHTS_GIVEN_BACK:
                self._model.actions.allow(self._rights(does.args[0]))
            case _:
                return False
        self._history.acted(OTHERS, does.who, does.at_s)
        return True

    def _revoke(self, topic: str, operation: str) -> None:
        rights = self._rights(topic)
        gone = [one for one in rights if operation in ("ALL", one.operation.value)]
        self._model.actions.revoke(gone)

    def _rights(self, topic: str) -> list[Binding]:
        """What a reassigner needs of a topic, or ("") of the cluster."""
        if topic:
            return [Binding(OURS, one, AclResource.TOPIC, topic) for one in NEEDED]
        needed = (*NEEDED, Operation.ALTER)
        return [Binding(OURS, one, AclResource.CLUSTER) for one in needed]

    def all_rights(self) -> None:
        """Everybody has what they need."""
        for name in ("", *self._topics):
            self._model.actions.allow(self._rights(name))

    def fix(self) -> None:
        """All that was broken is whole: brokers run on disks that work, rights are there. What is
        lost stays away.
        """
        for broker, node in self._model.world.nodes.items():
            if broker in self.lost:
                continue
            if not all(disk.online for disk in node.disks.values()):
                self._model.actions.kill(broker)
                for disk in node.disks.values():
                    disk.online = True
            for disk in node.disks.values():
                disk.other_bytes = 0.0
            self._model.actions.start(broker)
        if self._model.world.secured:
            self.all_rights()
