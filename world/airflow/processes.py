"""Processes of Airflow's: of a task, which runs its operator's own methods, and of a trigger."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow.sdk.bases.operator import ExecutorSafeguard
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowSkipException,
    DagRunTriggerException,
    DownstreamTasksSkipped,
    TaskAwaitingInput,
    TaskDeferred,
)
from airflow.triggers.base import TriggerEvent

from world.airflow.loop import VirtualLoop
from world.airflow.shape import QUIET
from world.running.scheduler import Actor, Ended, Scheduler


@dataclass(frozen=True, slots=True)
class Deferral:
    """A task has handed over to a trigger; it resumes a method of its operator."""

    trigger: Any
    method: str
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asks:
    """A task waits for a person's answer; it resumes a method of its operator.

    :param lasts_s: how long; None = as long as it takes.
    """

    options: Sequence[str]
    method: str
    lasts_s: float | None


@dataclass(frozen=True, slots=True)
class Skips:
    """A task has succeeded, and what comes after it is skipped."""

    task_ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Starts:
    """A task has asked for a run of another DAG."""

    dag_id: str
    run_id: str
    conf: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Skipped:
    """A task has skipped itself."""


@dataclass
class Process:
    """Lives and dies as one.

    :param main: its first thread; ``others``: those that it has started.
    """

    scheduler: Scheduler
    main: Actor
    others: list[Actor] = field(default_factory=list)

    @property
    def alive(self) -> bool:
        """Whether its first thread goes on."""
        return self.main.alive

    def has(self, actor: Actor) -> bool:
        """Whether it is one of its threads."""
        return actor is self.main or actor in self.others

    def kill(self) -> None:
        """SIGKILL: the thread that runs now, if it is one of them, last."""
        current = self.scheduler.current
        for actor in sorted((self.main, *self.others), key=lambda actor: actor is current):
            self.scheduler.kill(actor)

    def end_threads(self) -> None:
        """Its first thread has ended: the others end with it."""
        for actor in self.others:
            self.scheduler.kill(actor)

    @property
    def failed_for_good(self) -> bool:
        """Whether another attempt is of no use."""
        return isinstance(self.main.error, AirflowFailException)


class TriggerProcess(Process):
    """A trigger in a triggerer, made anew of what it was serialized to.

    :ivar event: that it has fired; None = none yet.
    """

    def __init__(
        self, scheduler: Scheduler, trigger: Any, name: str, spawn: Callable[..., Actor]
    ) -> None:
        self.event: TriggerEvent | None = None
        path, kwargs = trigger.serialize()
        made = type(trigger)
        assert path == f"{made.__module__}.{made.__qualname__}"
        self._trigger = made(**kwargs)
        self._trigger.__dict__["_log"] = QUIET
        self._loop = VirtualLoop(scheduler, lambda body: self._thread(spawn, name, body))
        main = spawn(name, lambda: self._loop.run_until_complete(self._events()))
        super().__init__(scheduler, main)

    def _thread(self, spawn: Callable[..., Actor], name: str, body: Callable[[], Any]) -> Actor:
        self.others = [each for each in self.others if each.alive]
        self.others.append(spawn(f"{name}.thread", body))
        return self.others[-1]

    async def _events(self) -> None:
        async for event in self._trigger.run():
            self.event = event
            self.scheduler.wake_who_joins(self.main)

    def cancel(self) -> None:
        """The triggerer cancels it: it ends by itself, and threads go on to their ends."""
        if self.alive:
            self._loop.cancel()

    @property
    def failed(self) -> bool:
        """Whether it has raised an error, or has ended without an event."""
        return self.event is None and self.main.ended in (Ended.RAISED, Ended.RETURNED)


def attempt(operator: Any, context: Mapping[str, Any], resumed: Deferral | None) -> Any:
    """One process of a task: as Airflow's task runner calls it.

    :param resumed: what it resumes; None = it begins.
    :returns: what the operator returns, or what Airflow is to do now.
    """
    ExecutorSafeguard.tracker.set(operator)
    try:
        if resumed is None:
            return operator.execute(context)
        return operator.resume_execution(resumed.method, dict(resumed.kwargs), context)
    except TaskDeferred as deferred:
        return Deferral(deferred.trigger, deferred.method_name, deferred.kwargs or {})
    except TaskAwaitingInput as asks:
        lasts_s = asks.timeout.total_seconds() if asks.timeout else None
        return Asks(tuple(operator.options), asks.method_name, lasts_s)
    except DownstreamTasksSkipped as skips:
        return Skips([str(getattr(task, "task_id", task)) for task in skips.tasks])
    except DagRunTriggerException as starts:
        return Starts(starts.trigger_dag_id, starts.dag_run_id, starts.conf or {})
    except AirflowSkipException:
        return Skipped()
