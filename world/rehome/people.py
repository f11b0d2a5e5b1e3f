"""People at Rehome's page and in its Airflow: what they ask, and the runs that follow from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from rehome.domain.clock import utc_now
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.domain.run.states import Control
from rehome.operators.approval.approve import THROTTLE, ApprovePlanOperator
from rehome.run.context import RunContext
from world.airflow.installed import Airflow
from world.airflow.runs import DagRun
from world.airflow.shape import COLLECT, CONTROL, FOREIGN, SWEEP
from world.airflow.states import TaskState
from world.airflow.task_runs import TaskRun
from world.judge.placement import LetAct
from world.script import Do, What, own_as_param

APPROVER = "bob"
REJECT = str(ApprovePlanOperator.REJECT)
ANSWERS: Mapping[str, str] = {
    "approve": str(ApprovePlanOperator.APPROVE),
    "send_back": str(ApprovePlanOperator.SEND_BACK),
}
SENT_BACK_RATE = 2_000_000
"""Who sends a plan back wants this throttle."""
CONTROLS = {
    What.PAUSE: Control.PAUSE,
    What.RESUME: Control.RESUME,
    What.NEXT_WINDOW: Control.NEXT_WINDOW,
    What.CHANGE_THROTTLE: Control.CHANGE_THROTTLE,
    What.CHANGE_RATES: Control.CHANGE_THROTTLE,
    What.CHANGE_MOVES: Control.CHANGE_MOVES,
    What.CANCEL: Control.CANCEL,
    What.ROLL_BACK: Control.ROLL_BACK,
}
FOREIGN_ACTIONS = {
    What.LIST_FOREIGN: ForeignAction.DESCRIBE.value,
    What.FOLLOW_FOREIGN: ForeignAction.FOLLOW.value,
    What.CANCEL_FOREIGN: ForeignAction.CANCEL.value,
    What.ADOPT_FOREIGN: ForeignAction.ADOPT.value,
}


def adopts(run: DagRun) -> bool:
    """Whether a run is to adopt what other clients have in flight."""
    return run.graph.dag_id == FOREIGN and run.params.get("action") == ForeignAction.ADOPT.value


def plan_of(run: DagRun) -> str | None:
    """The id of the plan of a run, as a person reads it there; None = it has none yet."""
    if adopts(run):
        return RunContext({"dag_run": run.info, "params": run.params}).new_plan_id
    named = run.params.get("plan_id") if run.params.get("action") != "rollback" else None
    return named or run.xcoms.get(("plan", "return_value"))


def asked_about(task: TaskRun) -> str | None:
    """The id of the plan that a task asks about: its run's, or the one that follows that up."""
    group, parted, _ = task.task_id.rpartition(".")
    if not parted:
        return plan_of(task.run)
    return task.run.xcoms.get((f"{group}.plan", "return_value"))


THROUGH = {What.SNAPSHOT_THROUGH: COLLECT, What.SWEEP_THROUGH: SWEEP}
"""DAGs that are triggered with another connection."""


def _asked_of_others(does: Do) -> dict[str, object]:
    """Parameters of a run that is about what others have in flight: of a topic, or all of it."""
    topic, *more = does.args
    asked: dict[str, object] = {"action": FOREIGN_ACTIONS[does.what]}
    if topic:
        asked["topics"] = [topic]
    elif does.what in (What.CANCEL_FOREIGN, What.ADOPT_FOREIGN):
        asked["all_in_flight"] = True
    if does.what is What.ADOPT_FOREIGN:
        return asked | {"throttle": str(*more)}
    return asked | {"clean_throttles": True} if any(more) else asked


@dataclass
class Person:
    """One user of one installation; asks of the plan that was started last.

    :ivar approved: when each plan was first approved, in seconds since the world began.
    :ivar let_act: the same of each run that acts on what other clients have in flight, by its name.
    """

    airflow: Airflow
    approved: dict[str, float] = field(default_factory=dict)
    let_act: dict[str, float] = field(default_factory=dict)

    def _runs(self) -> list[DagRun]:
        """Those that carry plans out; where there are none, those that have adopted one."""
        adopting = [run for run in self.airflow.others if run.graph.dag_id == FOREIGN]
        return self.airflow.runs or adopting

    def that_carry_on(self, name: str) -> Iterator[str]:
        """Names of the runs that resume the plan that a run has adopted."""
        adopting = (run for run in self.airflow.others if run.name == name)
        adopted = {plan_id for run in adopting if (plan_id := plan_of(run))}
        yield from (run.name for run in self.airflow.runs if plan_of(run) in adopted)

    def let(self, name: str, named: int) -> LetAct:
        """What a person has let a run do; ``named``: number of the reading it was named by."""
        conf = next(run.conf for run in self.airflow.others if run.name == name)
        about, cleans = "".join(conf.get("topics", ())), bool(conf.get("clean_throttles"))
        return LetAct(named, self.let_act[name], about, cleans)

    def _plan_id(self) -> str | None:
        plans = [plan_of(run) for run in self._runs()]
        return next((plan_id for plan_id in reversed(plans) if plan_id), None)

    def ask(
        self,
        what: Control,
        rate: int | None = None,
        plan_id: str | None = None,
        **asked: object,
    ) -> None:
        """Ask something of a plan by a run of ``control_reassignment``.

        :param asked: more of its parameters.
        """
        plan_id = plan_id or self._plan_id()
        if plan_id is None:
            return
        through = next((run.through for run in self._runs() if plan_of(run) == plan_id), {})
        conf = {"plan_id": plan_id, "action": what.value, **through, **asked}
        self.airflow.trigger(CONTROL, conf if rate is None else {**conf, "throttle": str(rate)})

    def answer(self, how: str) -> None:
        """Answer the run that has asked last. What is not on offer is rejected."""
        runs = (*self.airflow.runs, *self.airflow.others)
        asking = [task for run in runs for task in run.tasks.values() if task.asks]
        if not asking:
            return
        task = asking[-1]
        assert task.asks is not None
        first = ANSWERS.get(how, REJECT)
        option = next((one for one in task.asks.options if one.startswith(first)), None)
        sent_back = option is not None and how == "send_back"
        plan_id = asked_about(task)
        if option is not None and how == "approve" and plan_id is not None:
            self.approved.setdefault(plan_id, self.airflow.scheduler.at_s)
        if option is not None and how == "approve" and task.run.graph.dag_id == FOREIGN:
            self.let_act.setdefault(task.run.name, self.airflow.scheduler.at_s)
        task.answer(
            {
                "chosen_options": [option or REJECT],
                "params_input": {THROTTLE: str(SENT_BACK_RATE)} if sent_back else {},
                "responded_by_user": {"id": APPROVER, "name": APPROVER},
                "responded_at": utc_now(),
            }
        )

    def does(self, does: Do) -> None:
        """Do it."""
        if does.what is What.CHANGE_RATES:
            rate, own = does.args
            self.ask(Control.CHANGE_THROTTLE, rate, throttle_by_broker=own_as_param(own))
        elif does.what is What.CHANGE_MOVES:
            self.ask(Control.CHANGE_MOVES, max_moves_per_broker=does.args[0])
        elif control := CONTROLS.get(does.what):
            self.ask(control, *does.args)
        elif does.what in FOREIGN_ACTIONS:
            self.airflow.trigger(FOREIGN, _asked_of_others(does))
        elif does.what in THROUGH:
            self.airflow.trigger(THROUGH[does.what], {"kafka_config_id": does.args[0]})
        elif does.what is What.ANSWER:
            self.answer(does.args[0])
        else:
            self._in_airflow(does)

    def _in_airflow(self, does: Do) -> None:
        runs = self._runs()
        run: DagRun | None = runs[-1] if runs else None
        match does.what:
            case What.PAUSE_DAG:
                self.airflow.pause(*does.args)
            case What.UNPAUSE_DAG:
                self.airflow.unpause(*does.args)
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
