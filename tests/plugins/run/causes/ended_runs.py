"""Runs of the real DAGs in the stand-in for Airflow, and what people read when they end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import alerting, installation
from rehome.account.words.standing_words import status_of
from rehome.alerts.alert import Alert
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.cause import Cause
from rehome.page.plan_view import PlanFollower
from rehome.reporting.collect import report_data
from rehome.reporting.plan_text import asked_for
from rehome.run.causes.recorded import CAUSE_XCOM
from rehome.run.run_note import cause_of_run, with_cause
from world.airflow.installed import Airflow
from world.airflow.runs import DagRun
from world.airflow.states import TaskState
from world.running.trace import Trace
from world.script import Do, Plan, Script, Topic, What
from world.stage import Stage

TOPIC = Topic("t", ((1, 2), (2, 3)), 40_000_000)
MOVES = (("t", 0, (3, 2)), ("t", 1, (2, 4)))
PLAN = Plan("A", MOVES)
START = Do(1.0, "A", What.START, (0,))


@dataclass(frozen=True)
class Read:
    """What people read of a run that has ended.

    :ivar cause: as the ledger has it; None = it has none.
    :ivar note: that the scheduler makes of what tasks have left.
    :ivar page: the first line of the plan's page; ``report``: of its report; "" = there is no plan.
    :ivar approved_by: who has approved the plan; ``asked_for``: what its report says of that.
    """

    run_id: str
    failed: bool
    cause: Cause | None
    note: str
    alert: Alert
    page: str
    report: str
    label: str
    approved_by: str | None = None
    asked_for: str = ""


@dataclass
class Readers:
    """Listen to every run that ends."""

    patch: pytest.MonkeyPatch
    read: list[Read] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)

    def ended(self, run: DagRun) -> None:
        """In the place of Airflow, when a run has ended."""
        last = run.graph.order[-1]
        failed = run.tasks[last].state is TaskState.FAILED
        dag = run.graph.dag
        callback: Any = dag.on_failure_callback if failed else dag.on_success_callback
        if callback is None:
            return
        self.alerts.clear()
        callback(
            {
                "dag_run": run.info,
                "params": run.params,
                "dag": dag,
                "ti": run.tasks[last],
                "task": SimpleNamespace(task_id=last),
                "reason": "task_failure",
            }
        )
        alert, note = self.alerts[-1], _note(run)
        read = Read(run.run_id, failed, None, note, alert, page="", report="", label="")
        if not getattr(self, "away", False):
            read = replace(read, **self._of_ledger(run))
        self.read.append(read)

    def _of_ledger(self, run: DagRun) -> dict[str, Any]:
        with installation.open_ledger() as ledger:
            cause = ledger.cause_of(run.graph.dag_id, run.run_id)
            named = run.params.get("plan_id") or run.xcoms.get(("plan", "return_value"))
            plans = [record for record in ledger.plans() if record.plan_id == named]
            if not plans:
                return {"cause": cause}
            view = PlanFollower(ledger, str(named), 60.0).view(utc_now())
            directory = installation.warehouse().plan_at(plans[0].plan_dir)
            data = report_data(ledger, directory)
            return {
                "cause": cause,
                "page": view.status.headline,
                "report": status_of(data.account).headline,
                "label": view.status.label,
                "approved_by": view.record.approved_by,
                "asked_for": asked_for(data),
            }


def _note(run: DagRun) -> str:
    """As :mod:`rehome.run.run_note` makes it of Airflow's database."""
    left = [value for (_, key), value in run.xcoms.items() if key == CAUSE_XCOM]
    failed = [name for name in run.graph.order if run.tasks[name].state is TaskState.FAILED]
    found = cause_of_run([Cause.from_json(each) for each in left], failed)
    return "" if found is None else with_cause(None, found)


def readers(patch: pytest.MonkeyPatch) -> Readers:
    """Of all runs from now on."""
    found = Readers(patch)
    sent = alerting.claim

    def claim(ledger: Any, alerts: Any, *args: Any, **options: Any) -> Any:
        every = list(alerts)
        found.alerts += every
        return sent(ledger, every, *args, **options)

    patch.setattr(alerting, "claim", claim)
    patch.setattr(alerting, "send_unrecorded", found.alerts.append)
    patch.setattr(Airflow, "ended", lambda _, run: found.ended(run))
    return found


def with_params(patch: pytest.MonkeyPatch, *params: Mapping[str, Any]) -> None:
    """Have runs be triggered with other parameters than the script's: of each run, in order."""
    import world.stage
    from world.rehome import by_hand

    others, made = iter(params), by_hand.params_of

    def params_of(*args: Any) -> dict[str, Any]:
        return {**made(*args), **next(others, {})}

    patch.setattr(world.stage, "params_of", params_of)


def raising(target: str, error: BaseException) -> Callable[[pytest.MonkeyPatch], None]:
    """Have a function raise an error."""

    def prepare(patch: pytest.MonkeyPatch) -> None:
        def raises(*_: Any, **__: Any) -> Any:
            raise error

        patch.setattr(target, raises)

    return prepare


def play(plans: tuple[Plan, ...], *does: Do, quiet_s: float = 200.0, topic: Topic = TOPIC) -> Stage:
    """Carry a script out to its end."""
    stage = Stage(Script(1, 4, (topic,), plans, does=does, quiet_s=quiet_s), Trace())
    stage.run()
    return stage
