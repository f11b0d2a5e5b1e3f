"""Airflow around the tasks: attempts, retries, deferral, teardowns; people who clear and mark."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from world.rehome.installation import Installation
from world.rehome.tasks import STEPS, Deferred, FailedForGood, Run, Task, sweep_throttles, trigger
from world.running.scheduler import Actor, Ended, Scheduler

ORDER = tuple(Task)
RETRY_S = 10.0
NOTICED_S = 60.0
"""After so long Airflow has noticed that a task's process, or its triggerer, is dead."""
SCHEDULED_S = 2.0
"""From a task's being due to its process's first line."""


class TaskState(enum.StrEnum):
    """States of a task that matter here."""

    NONE = "none"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    DEFERRED = "deferred"
    UP_FOR_RETRY = "up_for_retry"
    SUCCESS = "success"
    FAILED = "failed"
    UPSTREAM_FAILED = "upstream_failed"


@dataclass
class DagRun:
    """A run, as Airflow drives it. Airflow itself does not die."""

    airflow: Airflow
    run: Run
    states: dict[Task, TaskState] = field(default_factory=dict)
    process: Actor | None = None
    marked: TaskState | None = None
    cleared_from: Task | None = None
    deleted: bool = False
    active: bool = False

    @property
    def name(self) -> str:
        """Of its actors."""
        return f"{self.run.installation.name}:{self.run.run_id}"

    def start(self, first: Task = Task.TAKE_UP) -> None:
        """Queue the run from a task on."""
        self.active = True
        self.airflow.scheduler.spawn(f"{self.name}.airflow", lambda: self._drive(first))

    # -- what people do ---------------------------------------------------------------------------

    def clear(self, task: Task) -> None:
        """Run the task, and all that come after it, once more."""
        if self.deleted:
            return
        if not self.active:
            self.start(task)
            return
        self.cleared_from = task
        self._end_process()

    def mark(self, state: TaskState) -> None:
        """Mark the task that runs now as success or failed."""
        if self.active:
            self.marked = state
            self._end_process()

    def delete(self) -> None:
        """Delete the run: nothing of it is executed any more, teardowns neither."""
        self.deleted = True
        self._end_process()

    def kill_process(self) -> None:
        """SIGKILL to what runs of it now."""
        self._end_process()

    def _end_process(self) -> None:
        if self.process is not None:
            self.airflow.scheduler.kill(self.process)

    # -- what Airflow does ------------------------------------------------------------------------

    def _drive(self, first: Task) -> None:
        at = ORDER.index(first)
        for task in ORDER[at:]:
            self.states[task] = TaskState.NONE
        while at < len(ORDER) and not self.deleted:
            task = ORDER[at]
            before = ORDER[:at]
            if not task.teardown and any(self._has_failed(other) for other in before):
                self.states[task] = TaskState.UPSTREAM_FAILED
            else:
                self.states[task] = self._attempts(task)
            at += 1
            if self.cleared_from is not None:
                at = ORDER.index(self.cleared_from)
                self.cleared_from = None
        self.active = False

    def _has_failed(self, task: Task) -> bool:
        return self.states.get(task) in (TaskState.FAILED, TaskState.UPSTREAM_FAILED)

    def _attempts(self, task: Task) -> TaskState:
        for number in range(task.retries + 1):
            if number:
                self.states[task] = TaskState.UP_FOR_RETRY
                self.airflow.scheduler.wait(RETRY_S)
            state = self._attempt(task) or self._interrupted()
            if state is not None:
                return state
        return TaskState.FAILED

    def _attempt(self, task: Task) -> TaskState | None:
        """One attempt, with all that it defers to; None = it failed, and may be tried again."""
        while True:
            self._be_scheduled(task)
            if state := self._interrupted():
                return state
            process = self._process(task)
            if state := self._interrupted():
                return state
            if process.ended is Ended.RETURNED:
                if process.result is not Deferred.TO_TRIGGER:
                    return TaskState.SUCCESS
                if self._be_woken(task):
                    continue
                return None
            if process.ended is Ended.DIED:
                self.airflow.scheduler.wait(NOTICED_S)
            return TaskState.FAILED if isinstance(process.error, FailedForGood) else None

    def _interrupted(self) -> TaskState | None:
        if self.deleted or self.cleared_from is not None:
            return TaskState.NONE
        marked, self.marked = self.marked, None
        return marked

    def _be_scheduled(self, task: Task) -> None:
        self.states[task] = TaskState.SCHEDULED
        self.airflow.scheduler.wait(SCHEDULED_S)
        while self.airflow.paused and not self.deleted and self.cleared_from is None:
            self.airflow.scheduler.wait(5.0)

    def _process(self, task: Task) -> Actor:
        self.states[task] = TaskState.RUNNING
        step, run = STEPS[task], self.run
        self.process = self.airflow.spawn(f"{self.name}.{task}", lambda: step(run))
        self.airflow.scheduler.join(self.process)
        return self.process

    def _be_woken(self, task: Task) -> bool:
        """Wait for the trigger; False = it has failed, or the task was ended meanwhile."""
        while True:
            self.states[task] = TaskState.DEFERRED
            self.process = self.airflow.spawn(f"{self.name}.trigger", lambda: trigger(self.run))
            self.airflow.scheduler.join(self.process)
            if self.deleted or self.cleared_from is not None or self.marked is not None:
                return False
            if self.process.ended is not Ended.DIED:
                return self.process.ended is Ended.RETURNED
            self.airflow.scheduler.wait(NOTICED_S)


@dataclass
class Airflow:
    """Airflow of one installation.

    :ivar paused: the DAG is paused: nothing is scheduled; triggers go on.
    :ivar pauses: since when, and until when, it was.
    """

    scheduler: Scheduler
    installation: Installation
    paused: bool = False
    runs: list[DagRun] = field(default_factory=list)
    spawned: list[Actor] = field(default_factory=list)
    pauses: list[tuple[float, float]] = field(default_factory=list)
    _paused_at: float = 0.0

    def __post_init__(self) -> None:
        self.installation.dag_paused = lambda: self.paused

    def pause(self) -> None:
        """Pause the DAG."""
        if not self.paused:
            self.paused, self._paused_at = True, self.scheduler.at_s

    def unpause(self) -> None:
        """Let its tasks start again."""
        if self.paused:
            self.pauses.append((self._paused_at, self.scheduler.at_s))
            self.paused = False

    def spawn(self, name: str, what: object) -> Actor:
        """A process of its own."""
        assert callable(what)
        actor = self.scheduler.spawn(name, what)
        self.spawned.append(actor)
        return actor

    def trigger_run(self, plan_id: str, *, continues: bool) -> DagRun:
        """Trigger the DAG."""
        run_id = f"run-{len(self.runs) + 1}"
        run = DagRun(self, Run(self.installation, plan_id, run_id, continues))
        self.runs.append(run)
        run.start()
        return run

    def sweep_every(self, seconds: float) -> None:
        """The schedule of the sweep."""

        def schedule() -> None:
            number = 0
            while True:
                self.scheduler.wait(seconds)
                number += 1
                self.sweep(f"sweep-{number}")

        self.scheduler.spawn(f"{self.installation.name}:sweeps.airflow", schedule)

    def sweep(self, name: str) -> None:
        """One run of the sweep."""
        site = self.installation
        actor = self.spawn(
            f"{site.name}:{name}", lambda: sweep_throttles(site, f"sweep_throttles/{name}", 60.0)
        )
        self.scheduler.join(actor, 600.0)
