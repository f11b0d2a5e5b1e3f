"""Airflow around the tasks: attempts, retries, deferral, teardowns; people who clear and mark."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from airflow.sdk import TriggerRule

from world.airflow.processes import (
    Deferral,
    Process,
    Skipped,
    Skips,
    Starts,
    TriggerProcess,
    attempt,
)
from world.airflow.shape import Graph, cleared_with, graph_of
from world.running.outside import EPOCH
from world.running.scheduler import NEVER, Actor, Ended, Scheduler

NOTICED_S = 60.0
"""After so long Airflow has noticed that a task's process, or its triggerer, is dead."""
SCHEDULED_S = 2.0
"""From a task's being due to its process's first line."""
FAILS = "__fail__"
"""Airflow's method of a task whose trigger has failed."""


class TaskState(enum.StrEnum):
    """States of a task."""

    NONE = "none"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    DEFERRED = "deferred"
    UP_FOR_RETRY = "up_for_retry"
    SUCCESS = "success"
    FAILED = "failed"
    SKIPPED = "skipped"
    UPSTREAM_FAILED = "upstream_failed"

    @property
    def finished(self) -> bool:
        """Whether nothing more becomes of it by itself."""
        return self in FINISHED


FINISHED = (TaskState.SUCCESS, TaskState.FAILED, TaskState.SKIPPED, TaskState.UPSTREAM_FAILED)
BAD = (TaskState.FAILED, TaskState.UPSTREAM_FAILED)


class RunType(enum.StrEnum):
    """Airflow's names of what has started a run."""

    MANUAL = "manual"
    SCHEDULED = "scheduled"
    BY_TASK = "operator_triggered"
    BY_ASSET = "asset_triggered"


class OutletEvents:
    """Where tasks put what they say of their assets: by the asset's name."""

    def __init__(self) -> None:
        self.of: dict[str, SimpleNamespace] = {}

    def __getitem__(self, asset: Any) -> SimpleNamespace:
        return self.of.setdefault(asset.name, SimpleNamespace(extra={}))


@dataclass
class TaskRun:
    """A task of a run.

    :ivar keeper: what of Airflow sees to it.
    """

    run: DagRun
    task_id: str
    state: TaskState = TaskState.NONE
    try_number: int = 0
    max_tries: int = 0
    id: str = ""
    keeper: Actor | None = None
    process: Process | None = None
    error: BaseException | None = None

    # -- what operators ask of it -----------------------------------------------------------------

    map_index = -1

    def xcom_pull(self, task_ids: str | None = None, key: str = "return_value") -> Any:
        """What a task has left."""
        return self.run.xcoms.get((task_ids or self.task_id, key))

    def xcom_push(self, key: str, value: Any) -> None:
        """Leave something."""
        self.run.xcoms[self.task_id, key] = value

    def get_dag(self, dag_id: str) -> SimpleNamespace:
        """What Airflow knows of a DAG."""
        return SimpleNamespace(is_paused=self.run.airflow.is_paused(dag_id))

    # -- what Airflow does ------------------------------------------------------------------------

    def start(self) -> None:
        """See to it from now on."""
        graph, run = self.run.graph, self.run
        if self.max_tries == 0:
            self.max_tries = int(graph.task(self.task_id).retries or 0)
        self.state = TaskState.SCHEDULED
        self.keeper = run.airflow.scheduler.spawn(f"{run.name}.{self.task_id}.airflow", self._keep)

    def _keep(self) -> None:
        self.state = self._attempts()
        self.run.look()

    def _attempts(self) -> TaskState:
        scheduler = self.run.airflow.scheduler
        while True:
            self.try_number += 1
            self.id = self.run.airflow.new_id()
            state = self._attempt()
            if state is not TaskState.UP_FOR_RETRY:
                return state
            if self.try_number > self.max_tries:
                return TaskState.FAILED
            self.state = state
            delay: timedelta = self.run.graph.task(self.task_id).retry_delay
            scheduler.wait(delay.total_seconds())

    def _attempt(self) -> TaskState:
        """One attempt, with all that it defers to."""
        resumed: Deferral | None = None
        while True:
            self._be_scheduled()
            process = self._run(resumed)
            if process.main.ended is not Ended.RETURNED:
                self.error = process.main.error
                if process.main.ended is Ended.DIED:
                    self.run.airflow.scheduler.wait(NOTICED_S)
                return TaskState.FAILED if process.failed_for_good else TaskState.UP_FOR_RETRY
            match process.main.result:
                case Deferral() as deferral:
                    resumed = self._be_woken(deferral)
                case Skips(task_ids):
                    self.run.skip(task_ids)
                    return TaskState.SUCCESS
                case Skipped():
                    return TaskState.SKIPPED
                case Starts() as starts:
                    new = self.run.airflow.start_by_task(starts, self.run)
                    return TaskState.SUCCESS if new else TaskState.SKIPPED
                case value:
                    if value is not None:
                        self.xcom_push("return_value", value)
                    self.run.ended_well(self.task_id)
                    return TaskState.SUCCESS

    def _be_scheduled(self) -> None:
        self.state = TaskState.SCHEDULED
        airflow = self.run.airflow
        airflow.scheduler.wait(SCHEDULED_S)
        while airflow.is_paused(self.run.graph.dag_id):
            airflow.scheduler.wait(5.0)

    def _run(self, resumed: Deferral | None) -> Process:
        self.state = TaskState.RUNNING
        run = self.run
        operator = run.graph.operator(self.task_id, run.run_id, run.params)
        context = run.context(self, operator)
        actor = run.airflow.spawn(
            f"{run.name}.{self.task_id}", lambda: attempt(operator, context, resumed)
        )
        self.process = run.airflow.begun(Process(run.airflow.scheduler, actor))
        run.airflow.scheduler.join(actor)
        return self.process

    def _be_woken(self, deferral: Deferral) -> Deferral:
        """What the task goes on with."""
        airflow = self.run.airflow
        while True:
            self.state = TaskState.DEFERRED
            name = f"{self.run.name}.{self.task_id}.trigger"
            trigger = TriggerProcess(airflow.scheduler, deferral.trigger, name, airflow.spawn)
            self.process = airflow.begun(trigger)
            airflow.scheduler.join(trigger.main, unless=lambda it=trigger: it.event is not None)  # type: ignore[misc]
            if trigger.event is not None:
                kwargs = {**deferral.kwargs, "event": trigger.event.payload}
                return Deferral(None, deferral.method, kwargs)
            if trigger.failed:
                self.error = trigger.main.error
                return Deferral(None, FAILS, {"error": "Trigger failure"})
            airflow.scheduler.wait(NOTICED_S)  # then another triggerer takes it over

    # -- what people do ---------------------------------------------------------------------------

    def stop(self, state: TaskState) -> None:
        """Whatever runs of it is ended: a process at once, a trigger is told to end."""
        scheduler = self.run.airflow.scheduler
        if self.keeper is not None and self.keeper.alive:
            scheduler.kill(self.keeper)
        process = self.process
        if isinstance(process, TriggerProcess):
            process.cancel()
        elif process is not None and process.alive:
            process.kill()
        self.state = state

    def clear(self) -> None:
        """Have it run once more."""
        self.stop(TaskState.NONE)
        self.max_tries = self.try_number + int(self.run.graph.task(self.task_id).retries or 0)


@dataclass
class DagRun:
    """A run, as Airflow drives it. Airflow itself does not die.

    :param name: of its actors.
    :param params: of it, with the DAG's defaults.
    :ivar xcoms: what its tasks have left; ``events``: what they have said of their assets.
    """

    airflow: Airflow
    graph: Graph
    run_id: str
    name: str
    conf: Mapping[str, Any]
    run_type: RunType = RunType.MANUAL
    user: str | None = None
    asset_events: Mapping[Any, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, TaskRun] = field(default_factory=dict)
    xcoms: dict[tuple[str, str], Any] = field(default_factory=dict)
    events: OutletEvents = field(default_factory=OutletEvents)
    deleted: bool = False
    active: bool = False
    info: SimpleNamespace = field(default_factory=SimpleNamespace)
    _driver: Actor | None = None

    def __post_init__(self) -> None:
        self.params = {**self.graph.params, **self.conf}
        self.tasks = {name: TaskRun(self, name) for name in self.graph.order}
        now = EPOCH + timedelta(seconds=self.airflow.scheduler.at_s)
        self.info = SimpleNamespace(
            dag_id=self.graph.dag_id,
            run_id=self.run_id,
            run_type=self.run_type.value,
            triggering_user_name=self.user,
            run_after=now,
            conf=dict(self.conf),
            clear_number=0,
            data_interval_end=None,
        )

    @property
    def run_after(self) -> datetime:
        """When it was due."""
        found: datetime = self.info.run_after
        return found

    def start(self) -> None:
        """Queue the run."""
        if self.active or self.deleted:
            return
        self.active = True
        self._driver = self.airflow.scheduler.spawn(f"{self.name}.airflow", self._drive)

    def context(self, task: TaskRun, operator: Any) -> dict[str, Any]:
        """What Airflow hands to an operator."""
        return {
            "dag_run": self.info,
            "ti": task,
            "task_instance": task,
            "task": operator,
            "dag": self.graph.dag,
            "params": dict(self.params),
            "outlet_events": self.events,
            "triggering_asset_events": self.asset_events,
        }

    def states(self) -> dict[str, TaskState]:
        """Of its tasks."""
        return {name: task.state for name, task in self.tasks.items()}

    # -- what people do ---------------------------------------------------------------------------

    def clear(self, task_id: str) -> None:
        """Run the task, and all that come after it, once more."""
        if self.deleted:
            return
        for name in cleared_with(self.graph.dag_id, task_id):
            self.tasks[name].clear()
        self.info.clear_number += 1
        self.start()
        self.look()

    def mark(self, state: TaskState, task_id: str | None = None) -> None:
        """Mark a task as success or failed; None = those that run now."""
        for name, task in self.tasks.items():
            runs = task_id is None and task.state not in (TaskState.NONE, *FINISHED)
            if (runs or name == task_id) and not self.deleted:
                task.stop(state)
        self.look()

    def delete(self) -> None:
        """Delete the run: nothing of it is executed any more, teardowns neither."""
        self.deleted = True
        for task in self.tasks.values():
            task.stop(task.state)
        self.look()

    def kill_processes(self) -> None:
        """SIGKILL to what runs of it now."""
        for task in self.tasks.values():
            if task.process is not None and task.process.alive:
                task.process.kill()

    # -- what Airflow does ------------------------------------------------------------------------

    def look(self) -> None:
        """Something has changed: have its driver look again."""
        if self._driver is not None and self._driver.alive:
            self.airflow.scheduler.wake(self._driver)

    def _drive(self) -> None:
        while not self.deleted:
            for name in self.graph.order:
                if self.tasks[name].state is TaskState.NONE:
                    self._decide(self.tasks[name])
            if all(task.state.finished for task in self.tasks.values()):
                break
            self.airflow.scheduler.idle(NEVER)
        self.active = False
        self.airflow.over(self)

    def _decide(self, task: TaskRun) -> None:
        before = {name: self.tasks[name].state for name in self.graph.before(task.task_id)}
        if not all(state.finished for state in before.values()):
            return
        setups = [before[name] for name in self.graph.setups(task.task_id)]
        if (state := _not_run(self.graph.rule(task.task_id), before.values(), setups)) is None:
            task.start()
        else:
            task.state = state

    def skip(self, task_ids: Iterable[str]) -> None:
        """Tasks that come after one are skipped."""
        for name in task_ids:
            if self.tasks[name].state is TaskState.NONE:
                self.tasks[name].state = TaskState.SKIPPED

    def ended_well(self, task_id: str) -> None:
        """A task has succeeded: what it has said of assets is an event."""
        self.airflow.tell_assets(self)


def _not_run(
    rule: TriggerRule, before: Iterable[TaskState], setups: list[TaskState]
) -> TaskState | None:
    """What becomes of a task that its trigger rule does not let run; None = it runs."""
    states = list(before)
    if rule is TriggerRule.ALL_SUCCESS:
        if any(state in BAD for state in states):
            return TaskState.UPSTREAM_FAILED
        return TaskState.SKIPPED if TaskState.SKIPPED in states else None
    assert rule is TriggerRule.ALL_DONE_SETUP_SUCCESS, f"{rule} is not known here"
    if setups and all(state is TaskState.SKIPPED for state in setups):
        return TaskState.SKIPPED
    if setups and TaskState.SUCCESS not in setups:
        return TaskState.UPSTREAM_FAILED
    return None


@dataclass
class Airflow:
    """Airflow of one installation.

    :param name: of the installation.
    :ivar paused: the DAG of reassignments is paused: nothing is scheduled; triggers go on.
    :ivar pauses: since when, and until when, it was.
    """

    scheduler: Scheduler
    name: str
    new_id: Callable[[], str]
    reassigns: str = "reassign_partitions"
    paused: bool = False
    runs: list[DagRun] = field(default_factory=list)
    others: list[DagRun] = field(default_factory=list)
    spawned: list[Actor] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    on_assets: Callable[[DagRun], None] = lambda _: None
    _paused_at: float = 0.0

    def is_paused(self, dag_id: str) -> bool:
        """Whether a DAG is."""
        return self.paused and dag_id == self.reassigns

    def pause(self) -> None:
        """Pause the DAG."""
        if not self.paused:
            self.paused, self._paused_at = True, self.scheduler.at_s

    def unpause(self) -> None:
        """Let its tasks start again."""
        if self.paused:
            self.pauses.append((self._paused_at, self.scheduler.at_s))
            self.paused = False

    def spawn(self, name: str, what: Callable[[], Any]) -> Actor:
        """A thread of a process."""
        actor = self.scheduler.spawn(name, what)
        self.spawned.append(actor)
        return actor

    def begun(self, process: Process) -> Process:
        """Know of a process."""
        self.processes = [each for each in self.processes if each.alive]
        self.processes.append(process)
        return process

    def kill(self, actor: Actor) -> None:
        """SIGKILL to the process that an actor is a thread of."""
        for process in self.processes:
            if process.has(actor):
                process.kill()
        self.scheduler.kill(actor)

    def trigger(
        self, dag_id: str, conf: Mapping[str, Any], user: str | None = "alice", **more: Any
    ) -> DagRun:
        """Trigger a DAG."""
        graph = graph_of(dag_id)
        runs = self.runs if dag_id == self.reassigns else self.others
        kind = "run" if dag_id == self.reassigns else dag_id.partition("_")[0]
        number = 1 + sum(run.graph is graph for run in runs)
        run_id = more.pop("run_id", f"{kind}-{number}-{self.name}")
        run = DagRun(self, graph, run_id, f"{self.name}:{kind}-{number}", conf, user=user, **more)
        runs.append(run)
        run.start()
        return run

    def start_by_task(self, asked: Starts, by: DagRun) -> bool:
        """A task starts a run; False = there is one of that id."""
        if any(run.run_id == asked.run_id for run in self.runs if not run.deleted):
            return False
        self.trigger(
            asked.dag_id, asked.conf, by.user, run_id=asked.run_id, run_type=RunType.BY_TASK
        )
        return True

    def tell_assets(self, run: DagRun) -> None:
        """A task of a run has said something of its assets."""
        self.on_assets(run)

    def over(self, run: DagRun) -> None:
        """A run has ended."""

    def every(self, seconds: float, dag_id: str) -> None:
        """The schedule of a DAG: one run at a time."""

        def schedule() -> None:
            while True:
                self.scheduler.wait(seconds)
                run = self.trigger(dag_id, {}, None, run_type=RunType.SCHEDULED)
                while run.active:
                    self.scheduler.wait(1.0)

        self.scheduler.spawn(f"{self.name}:{dag_id}.airflow", schedule)
