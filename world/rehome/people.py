"""People at Rehome's page and in its Airflow: what they ask, and the runs that follow from it."""

from __future__ import annotations

from dataclasses import dataclass

from include.domain.run.states import Control
from world.airflow.installed import Airflow
from world.airflow.runs import DagRun
from world.airflow.shape import CONTROL, SWEEP
from world.airflow.states import TaskState
from world.script import Do, What

CONTROLS = {
    What.PAUSE: Control.PAUSE,
    What.RESUME: Control.RESUME,
    What.CHANGE_THROTTLE: Control.CHANGE_THROTTLE,
    What.CANCEL: Control.CANCEL,
    What.ROLL_BACK: Control.ROLL_BACK,
}


def plan_of(run: DagRun) -> str | None:
    """The id of the plan of a run, as a person reads it there; None = it has none yet."""
    named = run.params.get("plan_id") if run.params.get("action") != "rollback" else None
    return named or run.xcoms.get(("plan", "return_value"))


@dataclass
class Person:
    """One user of one installation; asks of the plan that was started last."""

    airflow: Airflow

    def _plan_id(self) -> str | None:
        plans = [plan_of(run) for run in self.airflow.runs]
        return next((plan_id for plan_id in reversed(plans) if plan_id), None)

    def ask(self, what: Control, rate: int | None = None, plan_id: str | None = None) -> None:
        """Ask something of a plan by a run of ``control_reassignment``."""
        plan_id = plan_id or self._plan_id()
        if plan_id is None:
            return
        conf = {"plan_id": plan_id, "action": what.value}
        self.airflow.trigger(CONTROL, conf if rate is None else {**conf, "throttle": str(rate)})

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
                self.airflow.trigger(SWEEP, {})
            case _ if run is None:
                return
            case What.CLEAR:
                run.clear(does.args[0])
            case What.MARK:
                run.mark(TaskState(does.args[0]), *does.args[1:])
            case What.DELETE_RUN:
                run.delete()
            case What.KILL:
                run.kill_processes()
