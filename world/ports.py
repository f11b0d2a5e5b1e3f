"""Connections to the model: each call is a point of the scheduler, and is written down."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from rehome.cluster.interface.rights import Call
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import ReplicaId, TopicPartition
from world.history import DirAsked, History, IsrTaken
from world.kafka.config_definitions import MIN_ISR
from world.kafka.hooks import Fault, FaultKind, Hooks
from world.kafka.metadata import Partition
from world.kafka.world_state import WorldState
from world.running.scheduler import Actor, Point, Scheduler
from world.running.trace import canonical

LATENCIES_S = (0.001, 0.002, 0.005, 0.02, 0.1)


class Wire:
    """Hooks of the connections of one owner.

    :param owner: in whose name; see ``history``.
    :ivar pending: faults that strike the next call of an actor.
    :ivar made: calls by each process so far.
    """

    def __init__(
        self, owner: str, history: History, scheduler: Scheduler, world: WorldState
    ) -> None:
        self._owner = owner
        self._history = history
        self._scheduler = scheduler
        self._world = world
        self._before_it: dict[TopicPartition, Partition] = {}
        self._led_bytes: dict[TopicPartition, float] = {}
        self.pending: dict[Actor, Fault] = {}
        self.made: Counter[str] = Counter()

    def hooks(self) -> Hooks:
        """For a new connection."""
        return Hooks(self._before, self._after, self._read)

    def _before(self, call: Call, args: tuple[Any, ...]) -> Fault | None:
        self._history.called(self._owner, call.api)
        said = f"{call.api} {canonical(args)}" if self._scheduler.trace.kept else call.api
        sent_at = self._scheduler.at_s
        self._scheduler.point(Point.CALL, said, self._latency_s())
        self.made[self._process()] += 1
        if call is Call.ALTER_CONFIGS and not args[1]:
            self._history.asks(self._owner, self._process(), args[0], sent_at)
        if call is Call.ALTER_REPLICA_LOG_DIRS:
            self._note_dirs(args[0])
        if call is Call.ALTER_REASSIGNMENTS:  # what the call itself does, nobody else acts in
            found = {part: self._world.partition(part) for part in args[0]}
            self._before_it = {part: at[1] for part, at in found.items() if at is not None}
            self._led_bytes = {p: self._bytes_led(p, at) for p, at in self._before_it.items()}
        actor = self._scheduler.current
        fault = self.pending.pop(actor, None) if actor else None
        if fault is not None and fault.kind is FaultKind.REQUEST_LOST:
            self._history.lost(self._owner, self._process(), self._scheduler.at_s)
        return fault

    def _after(self, call: Call, args: tuple[Any, ...]) -> None:
        process = self._process()
        self._history.acted(self._owner, process, self._scheduler.at_s)
        if call is Call.LIST_REASSIGNMENTS:
            self._history.listed(process)
        if call is Call.ALTER_REASSIGNMENTS:
            asked = (self._scheduler.at_s, self._owner, process, args[0])
            self._history.altered(*asked, self._led_bytes)
            self._note_isrs()
        self._scheduler.point(Point.ANSWER, call.api, self._latency_s())

    def _read(self, shown: Mapping[ConfigResource, int]) -> None:
        self._history.read(self._process(), self._scheduler.at_s, shown)

    def calls_so_far(self) -> int:
        """Calls that the process that runs now has made."""
        return self.made[self._process()]

    def _bytes_led(self, part: TopicPartition, state: Partition) -> float:
        """What its leader has; of a partition without one, nothing is known."""
        replica = None if state.leader is None else self._world.replica(part, state.leader)
        return 0.0 if replica is None else replica.log.size

    def _note_isrs(self) -> None:
        for part, before in self._before_it.items():
            found = self._world.partition(part)
            if found is None or len(found[1].isr) >= len(before.isr):
                continue
            asked = int(self._world.topic_config(self._world.image, part.topic, MIN_ISR))
            least = min(asked, len(found[1].replicas))
            sizes = (len(before.isr), len(found[1].isr), least)
            self._history.taken.append(IsrTaken(self._scheduler.at_s, self._owner, part, *sizes))

    def _note_dirs(self, targets: Mapping[ReplicaId, str]) -> None:
        for replica, path in targets.items():
            found = self._world.partition(replica.topic_partition)
            before = None if found is None else dict(found[1].dirs).get(replica.broker)
            asked = DirAsked(self._scheduler.at_s, self._owner, replica, path, before)
            self._history.dirs.append(asked)

    def _latency_s(self) -> float:
        return self._scheduler.rng.choice(LATENCIES_S)

    def _process(self) -> str:
        actor = self._scheduler.current
        return f"{actor.name}#{actor.number}" if actor else self._owner
