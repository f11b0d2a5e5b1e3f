"""Airflow around the tasks of a run: which may start, teardowns; people who clear and mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from world.airflow.shape import Graph, cleared_with
from world.airflow.states import FINISHED, RunType, TaskState, not_run
from world.airflow.task_runs import Question, TaskRun
from world.running.outside import EPOCH
from world.running.scheduler import NEVER, Actor

if TYPE_CHECKING:
    from world.airflow.installed import Airflow


class OutletEvents:
    """Where tasks put what they say of their assets: by the asset's name."""

    def __init__(self) -> None:
        self.of: dict[str, SimpleNamespace] = {}

    def __getitem__(self, asset: Any) -> SimpleNamespace:
        return self.of.setdefault(asset.name, SimpleNamespace(extra={}))


@dataclass
class DagRun:
    """A run, as Airflow drives it. Airflow itself does not die.

    :param name: of its actors.
    :param params: of it, with the DAG's defaults.
    :param window_end: of a run of the windows' schedule: when its window closes.
    :ivar began_at: when it was triggered; ``ended_at``: when it ended first, None = it has not.
    :ivar queued: as many as may run at once of its DAG do; ``queued_at``: since when it is, or was;
        ``started_at``: when it was so no more, first.
    :ivar questions: what its tasks have asked people.
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
    window_end: datetime | None = None
    params: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, TaskRun] = field(default_factory=dict)
    xcoms: dict[tuple[str, str], Any] = field(default_factory=dict)
    events: OutletEvents = field(default_factory=OutletEvents)
    deleted: bool = False
    active: bool = False
    queued: bool = True
    queued_at: float = 0.0
    started_at: float | None = None
    questions: list[Question] = field(default_factory=list)
    info: SimpleNamespace = field(default_factory=SimpleNamespace)
    began_at: float = 0.0
    ended_at: float | None = None
    _driver: Actor | None = None

    def __post_init__(self) -> None:
        self.params = {**self.graph.params, **self.conf}
        self.tasks = {name: TaskRun(self, name) for name in self.graph.order}
        self.began_at = self.airflow.scheduler.at_s
        now = EPOCH + timedelta(seconds=self.began_at)
        self.info = SimpleNamespace(
            dag_id=self.graph.dag_id,
            run_id=self.run_id,
            run_type=self.run_type.value,
            triggering_user_name=self.user,
            run_after=now,
            conf=dict(self.conf),
            clear_number=0,
            data_interval_end=self.window_end,
            start_date=None,
        )

    @property
    def through(self) -> dict[str, Any]:
        """The connection that it names, as a parameter; {} = the one that runs have by default."""
        name = "kafka_config_id"
        return {name: self.conf[name]} if name in self.conf else {}

    @property
    def run_after(self) -> datetime:
        """When it was due."""
        found: datetime = self.info.run_after
        return found

    def start(self) -> None:
        """Queue the run."""
        if self.active or self.deleted:
            return
        self.active, self.queued_at = True, self.airflow.scheduler.at_s
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
        while self.airflow.is_full(self) and not self.deleted:
            self.airflow.scheduler.wait(1.0)
        self.queued = False
        if self.started_at is None:
            self.started_at = self.airflow.scheduler.at_s
        self.info.start_date = EPOCH + timedelta(seconds=self.airflow.scheduler.at_s)
        while not self.deleted:
            for name in self.graph.order:
                if self.tasks[name].state is TaskState.NONE:
                    self._decide(self.tasks[name])
            if all(task.state.finished for task in self.tasks.values()):
                break
            self.airflow.scheduler.idle(NEVER)
        if self.ended_at is None:
            self.ended_at = self.airflow.scheduler.at_s
        if not self.deleted:
            self.airflow.ended(self)
        self.active, self.queued = False, True

    def _decide(self, task: TaskRun) -> None:
        before = {name: self.tasks[name].state for name in self.graph.before(task.task_id)}
        if not all(state.finished for state in before.values()):
            return
        setups = [before[name] for name in self.graph.setups(task.task_id)]
        if (state := not_run(self.graph.rule(task.task_id), before.values(), setups)) is None:
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
