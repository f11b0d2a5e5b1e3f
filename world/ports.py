"""Connections to the model: each call is a point of the scheduler, and is written down."""

from __future__ import annotations

from typing import Any

from include.cluster.interface.rights import Call
from world.history import History
from world.kafka.hooks import Fault, Hooks
from world.running.scheduler import Actor, Point, Scheduler
from world.running.trace import canonical

LATENCIES_S = (0.001, 0.002, 0.005, 0.02, 0.1)


class Wire:
    """Hooks of the connections of one owner.

    :param owner: in whose name; see ``history``.
    :ivar pending: faults that strike the next call of an actor.
    """

    def __init__(self, owner: str, history: History, scheduler: Scheduler) -> None:
        self._owner = owner
        self._history = history
        self._scheduler = scheduler
        self.pending: dict[Actor, Fault] = {}

    def hooks(self) -> Hooks:
        """For a new connection."""
        return Hooks(self._before, self._after)

    def _before(self, call: Call, args: tuple[Any, ...]) -> Fault | None:
        self._history.called(self._owner, call.api)
        self._scheduler.point(Point.CALL, f"{call.api} {canonical(args)}", self._latency_s())
        if call is Call.ALTER_CONFIGS:
            self._history.asks(self._owner, self._process(), args[0])
        actor = self._scheduler.current
        return self.pending.pop(actor, None) if actor else None

    def _after(self, call: Call, args: tuple[Any, ...]) -> None:
        process = self._process()
        self._history.acted(self._owner, process)
        if call is Call.DESCRIBE_CONFIGS:
            self._history.read(process, args[0])
        if call is Call.ALTER_REASSIGNMENTS:
            self._history.altered(self._scheduler.at_s, self._owner, process, args[0])
        self._scheduler.point(Point.ANSWER, call.api, self._latency_s())

    def _latency_s(self) -> float:
        return self._scheduler.rng.choice(LATENCIES_S)

    def _process(self) -> str:
        actor = self._scheduler.current
        return f"{actor.name}#{actor.number}" if actor else self._owner
