"""People at Rehome's page and in its Airflow: what they ask, and the runs that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from include.domain.run.states import Control
from include.errors import RehomeError
from world.rehome.airflow import Airflow, DagRun, TaskState
from world.rehome.tasks import Task
from world.script import Do, What

CONTROLS = {
    What.PAUSE: Control.PAUSE,
    What.RESUME: Control.RESUME,
    What.CHANGE_THROTTLE: Control.CHANGE_THROTTLE,
    What.CANCEL: Control.CANCEL,
    What.ROLL_BACK: Control.ROLL_BACK,
}


@dataclass
class Person:
    """One user of one installation; asks of the plan that was started last.

    :ivar rolls_back: has a run made that takes a plan back.
    """

    airflow: Airflow
    rolls_back: Callable[[str], None] = lambda _: None

    def _plan_id(self) -> str | None:
        runs = self.airflow.runs
        return runs[-1].run.plan_id if runs else None

    def ask(self, what: Control, rate: int | None = None, plan_id: str | None = None) -> None:
        """Ask something of a plan; an error is shown, and that is all."""
        plan_id = plan_id or self._plan_id()
        if plan_id is None:
            return
        site = self.airflow.installation
        began = site.true_time()
        controller = site.controller("alice", plan_id)
        try:
            answer = controller.control(what, plan_id, rate)
        except RehomeError:
            return
        site.tell(plan_id, what, *answer.claims, since=began)
        if answer.run is not None and what is Control.RESUME:
            self.airflow.trigger_run(plan_id, continues=True)
        if answer.run is not None and what is Control.ROLL_BACK:
            self.rolls_back(plan_id)

    def does(self, does: Do) -> None:
        """Do it."""
        if control := CONTROLS.get(does.what):
            self.ask(control, *does.args)
            return
        runs = self.airflow.runs
        run: DagRun | None = runs[-1] if runs else None
        match does.what:
            case What.PAUSE_DAG:
                self.airflow.pause()
            case What.UNPAUSE_DAG:
                self.airflow.unpause()
            case What.SWEEP:
                self.airflow.sweep("sweep-by-hand")
            case _ if run is None:
                return
            case What.CLEAR:
                run.clear(Task(does.args[0]))
            case What.MARK:
                run.mark(TaskState(does.args[0]))
            case What.DELETE_RUN:
                run.delete()
            case What.KILL:
                run.kill_process()
