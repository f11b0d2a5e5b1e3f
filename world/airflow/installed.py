"""Airflow of one installation: its runs, its processes, whether a DAG is paused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from world.airflow.processes import Process, Starts
from world.airflow.runs import DagRun
from world.airflow.shape import graph_of
from world.airflow.states import RunType
from world.running.scheduler import Actor, Scheduler


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

    def ended(self, run: DagRun) -> None:
        """A run has ended. Callbacks of its DAG are called here; in the simulated world nobody
        reads what they send.
        """

    def every(self, seconds: float, dag_id: str) -> None:
        """The schedule of a DAG: one run at a time."""

        def schedule() -> None:
            while True:
                self.scheduler.wait(seconds)
                run = self.trigger(dag_id, {}, None, run_type=RunType.SCHEDULED)
                while run.active:
                    self.scheduler.wait(1.0)

        self.scheduler.spawn(f"{self.name}:{dag_id}.airflow", schedule)
