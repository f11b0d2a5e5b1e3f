"""Airflow around one task: attempts, retries, deferral, questions; people who clear and mark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from traceback import format_exception
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from world.airflow.processes import (
    Asks,
    Deferral,
    Process,
    Skipped,
    Skips,
    Starts,
    TriggerProcess,
    attempt,
)
from world.airflow.states import TaskState
from world.running.scheduler import NEVER, Actor, Ended

if TYPE_CHECKING:
    from world.airflow.runs import DagRun

NOTICED_S = 60.0
"""After so long Airflow has noticed that a task's process, or its triggerer, is dead."""
SCHEDULED_S = 2.0
"""From a task's being due to its process's first line."""
FAILS = "__fail__"
"""Airflow's method of a task whose trigger has failed."""


@dataclass
class Question:
    """What a task has asked people.

    :ivar until: when it was asked no more; ``lapsed``: for nobody has answered in time.
    """

    task_id: str
    since: float
    until: float = NEVER
    lapsed: bool = False


@dataclass
class TaskRun:
    """A task of a run.

    :ivar keeper: what of Airflow sees to it.
    :ivar asks: what it waits to be answered; None = nothing.
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
    asks: Asks | None = None
    _answer: Mapping[str, Any] | None = None

    # -- what operators ask of it -----------------------------------------------------------------

    map_index = -1

    def xcom_pull(self, task_ids: str | None = None, key: str = "return_value") -> Any:
        """What a task has left."""
        return self.run.xcoms.get((task_ids or self.task_id, key))

    def xcom_push(self, key: str, value: Any) -> None:
        """Leave something."""
        self.run.xcoms[self.task_id, key] = value

    def get_task_states(self, dag_id: str, run_ids: list[str]) -> dict[str, dict[str, str]]:
        """States of the tasks of its own run."""
        states = self.run.states()
        return {run_id: {name: state.value for name, state in states.items()} for run_id in run_ids}

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
        nothing = self.run.graph.maps_over(self.task_id) is not None and not self._mapped()
        self.state = TaskState.SKIPPED if nothing else self._attempts()
        self.run.look()

    def _mapped(self) -> Mapping[str, Any]:
        """What a task that Airflow repeats has this time: there is one installation's cluster, so
        it is repeated once at most.
        """
        over = self.run.graph.maps_over(self.task_id)
        given = None if over is None else self.xcom_pull(over[1])
        if over is None or not given:
            return {}
        (only,) = given
        return {over[0]: only}

    def _attempts(self) -> TaskState:
        scheduler = self.run.airflow.scheduler
        while True:
            self.try_number += 1
            self._forget_xcoms()
            self.id = self.run.airflow.new_id()
            state = self._attempt()
            if state is not TaskState.UP_FOR_RETRY:
                return state
            if self.try_number > self.max_tries:
                return TaskState.FAILED
            self.state = state
            delay: timedelta = self.run.graph.task(self.task_id).retry_delay
            scheduler.wait(delay.total_seconds())

    def _forget_xcoms(self) -> None:
        """What an earlier attempt has left."""
        for task_id, key in [of for of in self.run.xcoms if of[0] == self.task_id]:
            del self.run.xcoms[task_id, key]

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
                case Asks() as asks:
                    resumed = self._be_answered(asks)
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
        operator = run.graph.operator(self.task_id, run.run_id, run.params, self._mapped())
        context = run.context(self, operator)
        actor = run.airflow.spawn(
            f"{run.name}.{self.task_id}", lambda: attempt(operator, context, resumed)
        )
        self.process = run.airflow.begun(Process(run.airflow.scheduler, actor))
        run.airflow.scheduler.join(actor)
        self.process.end_threads()
        return self.process

    def _be_woken(self, deferral: Deferral) -> Deferral:
        """What the task resumes."""
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
                lines = format_exception(self.error) if self.error is not None else []
                return Deferral(None, FAILS, {"error": "Trigger failure", "traceback": lines})
            airflow.scheduler.wait(NOTICED_S)  # then another triggerer takes it over

    def _be_answered(self, asks: Asks) -> Deferral:
        """What the task resumes, once a person has answered, or nobody has in time."""
        scheduler = self.run.airflow.scheduler
        self.state, self.asks, self._answer = TaskState.AWAITING_INPUT, asks, None
        until = NEVER if asks.lasts_s is None else scheduler.at_s + asks.lasts_s
        question = Question(self.task_id, scheduler.at_s)
        self.run.questions.append(question)
        while self._answer is None and scheduler.at_s < until:
            scheduler.idle(until)
        self.asks, question.until, question.lapsed = None, scheduler.at_s, self._answer is None
        late = {"error": "no answer", "error_type": "timeout"}
        return Deferral(None, asks.method, {"event": self._answer or late})

    # -- what people do ---------------------------------------------------------------------------

    def answer(self, payload: Mapping[str, Any]) -> None:
        """Answer what it asks."""
        assert self.keeper is not None
        self._answer = payload
        self.run.airflow.scheduler.wake(self.keeper)

    def stop(self, state: TaskState) -> None:
        """Whatever runs of it is ended: a process at once, a trigger by a request to end."""
        scheduler = self.run.airflow.scheduler
        if self.keeper is not None and self.keeper.alive:
            scheduler.kill(self.keeper)
        process = self.process
        if isinstance(process, TriggerProcess):
            process.cancel()
        elif process is not None and process.alive:
            process.kill()
        self.state, self.asks = state, None
        for question in self.run.questions:
            if question.task_id == self.task_id:
                question.until = min(question.until, scheduler.at_s)

    def clear(self) -> None:
        """Have it run once more."""
        self.stop(TaskState.NONE)
        self.max_tries = self.try_number + int(self.run.graph.task(self.task_id).retries or 0)
