"""Airflow of one installation: its runs, its processes, whether a DAG is paused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

from rehome.execution.access.open_windows import CronWindows
from rehome.operators.assets import SNAPSHOTS_ASSET
from world.airflow.processes import Process, Starts
from world.airflow.runs import DagRun
from world.airflow.shape import (
    CARRY_OUT,
    COLLECT,
    IN_WINDOW,
    REASSIGN,
    WATCH,
    Graph,
    graph_in_windows,
    graph_of,
)
from world.airflow.states import BAD, RunType
from world.running.outside import EPOCH
from world.running.scheduler import Actor, Scheduler


@dataclass
class Airflow:
    """Airflow of one installation.

    :param name: of the installation.
    :ivar paused: DAGs that are paused, and since when: nothing is scheduled; triggers go on.
    :ivar pauses: since when, and until when, each was.
    :ivar in_windows: the DAG that runs in the cluster's windows; None = nothing is watched.
    :ivar has_channel: alerts are sent through one.
    :ivar one_run: of each DAG one run is active at a time, whatever the DAG says.
    """

    scheduler: Scheduler
    name: str
    new_id: Callable[[], str]
    paused: dict[str, float] = field(default_factory=dict)
    runs: list[DagRun] = field(default_factory=list)
    others: list[DagRun] = field(default_factory=list)
    spawned: list[Actor] = field(default_factory=list)
    pauses: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    in_windows: Graph | None = None
    has_channel: bool = False
    one_run: bool = False
    _snapshots: list[SimpleNamespace] = field(default_factory=list)

    def is_paused(self, dag_id: str) -> bool:
        """Whether a DAG is."""
        return dag_id in self.paused

    def pause(self, dag_id: str = REASSIGN) -> None:
        """Pause a DAG."""
        self.paused.setdefault(dag_id, self.scheduler.at_s)

    def unpause(self, dag_id: str = REASSIGN) -> None:
        """Let its tasks start again."""
        if (since := self.paused.pop(dag_id, None)) is not None:
            self.pauses.setdefault(dag_id, []).append((since, self.scheduler.at_s))

    def is_full(self, run: DagRun) -> bool:
        """Whether a run stays queued: as many of its DAG run as may at once, or an earlier one is
        queued, too.
        """
        dag_id = run.graph.dag_id
        others = [
            each
            for each in (*self.runs, *self.others)
            if each.active and each is not run and each.graph.dag_id == dag_id
        ]
        most = 1 if self.one_run else run.graph.dag.max_active_runs
        running = sum(not each.queued for each in others)
        return running >= most or any(
            each.queued and each.queued_at < run.queued_at for each in others
        )

    def spawn(self, name: str, what: Callable[[], Any]) -> Actor:
        """A thread of a process."""
        actor = self.scheduler.spawn(name, what)
        self.spawned.append(actor)
        return actor

    def thread(self, target: Callable[[], Any]) -> Actor:
        """One more thread of the process that runs now, which ends with it."""
        current = self.scheduler.current
        assert current is not None
        actor = self.spawn(f"{self.name}:sends.{current.name.partition(':')[2]}", target)
        for process in self.processes:
            if process.has(current):
                process.others.append(actor)
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
        in_windows = self.in_windows if dag_id == IN_WINDOW else None
        graph = in_windows or graph_of(dag_id)
        runs = self.runs if dag_id in CARRY_OUT else self.others
        kind = "run" if dag_id in CARRY_OUT else dag_id.partition("_")[0]
        number = 1 + sum(run.graph is graph or runs is self.runs for run in runs)
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
        event = run.events.of.pop(SNAPSHOTS_ASSET.name, None)
        if event is not None and self.in_windows is not None:
            self._snapshots.append(event)

    def ended(self, run: DagRun) -> None:
        """A run has ended. Where there is no channel, what callbacks of its DAG send nobody reads;
        watching goes by what they write down.
        """
        reads = self.in_windows is not None or self.has_channel
        if reads and run.graph.dag_id in CARRY_OUT:
            failed = any(task.state in BAD for task in run.tasks.values())
            dag: Any = run.graph.dag
            notifier = dag.on_failure_callback if failed else dag.on_success_callback
            last = run.graph.order[-1]
            operator = run.graph.operator(last, run.run_id, run.params)
            context = run.context(run.tasks[last], operator)
            self.spawn(f"{run.name}.callback", lambda: notifier.notify(context))

    def watch(self, every_s: float, windows: CronWindows) -> None:
        """Take snapshots on a schedule, and judge each of any run, one after the other.

        :param windows: of the cluster: in each, a run begins.
        """
        self.in_windows = graph_in_windows(windows.each)
        self.every(every_s, COLLECT)
        if windows.each:
            self.scheduler.spawn(f"{self.name}:{IN_WINDOW}.airflow", lambda: self._open(windows))

        def judge() -> None:
            while True:
                self.scheduler.wait(1.0)
                if not self._snapshots:
                    continue
                events, self._snapshots = self._snapshots, []
                of = {SNAPSHOTS_ASSET: events}
                run = self.trigger(WATCH, {}, None, run_type=RunType.BY_ASSET, asset_events=of)
                while run.active:
                    self.scheduler.wait(1.0)

        self.scheduler.spawn(f"{self.name}:{WATCH}.airflow", judge)

    def _open(self, windows: CronWindows) -> None:
        while (window := windows.next_after(self._now())) is not None:
            self.scheduler.wait((window.begins - self._now()).total_seconds())
            while self.is_paused(IN_WINDOW):
                self.scheduler.wait(5.0)
            if self._now() < window.ends:
                of_schedule = {"run_type": RunType.SCHEDULED, "window_end": window.ends}
                self.trigger(IN_WINDOW, {}, None, **of_schedule)

    def _now(self) -> datetime:
        return EPOCH + timedelta(seconds=self.scheduler.at_s)

    def every(self, seconds: float, dag_id: str) -> None:
        """The schedule of a DAG: one run at a time."""

        def schedule() -> None:
            while True:
                self.scheduler.wait(seconds)
                run = self.trigger(dag_id, {}, None, run_type=RunType.SCHEDULED)
                while run.active:
                    self.scheduler.wait(1.0)

        self.scheduler.spawn(f"{self.name}:{dag_id}.airflow", schedule)
