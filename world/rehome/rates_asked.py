"""Which rates people have asked for of a plan, by the runs that they have triggered, and what came
of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from rehome.domain.run.states import Control
from rehome.operators.approval.approve import THROTTLE
from world.airflow.installed import Airflow
from world.airflow.runs import DagRun
from world.airflow.shape import CONTROL, FOREIGN
from world.airflow.states import TaskState
from world.judge.flights import FOLLOWER_RATE, LEADER_RATE
from world.judge.plan_seen import OwnRate, RatesAsked
from world.rehome.people import SENT_BACK_RATE, plan_of

ADOPT = "adopt"
"""The task that throttles."""
OWN = "throttle_by_broker"
KEYS = {"leader": LEADER_RATE, "follower": FOLLOWER_RATE}


def rates_asked(airflow: Airflow, plan_id: str) -> Iterator[RatesAsked]:
    """All of them; none where it has not been asked for a number, but to find one."""
    runs = [run for run in (*airflow.runs, *airflow.others) if plan_of(run) == plan_id]
    carried = [run for run in runs if run.graph.dag_id != CONTROL]
    if not carried or any(_number(run.conf.get(THROTTLE)) is None for run in carried):
        return
    for run in carried:  # one that carries it on asks for what holds by then
        first, since = run is carried[0], carries_on_since(airflow, run)
        own = run.conf.get(OWN, {} if first else None)
        yield RatesAsked(since, since, agreed=first, **_rates(run.conf, own))
        if run.questions and not is_adopting(run):
            yield RatesAsked(since, inf, agreed=False, rate=SENT_BACK_RATE)
    for run in runs:
        if run not in carried and run.conf.get("action") == Control.CHANGE_THROTTLE.value:
            yield _changed(run)


def is_adopting(run: DagRun) -> bool:
    """Whether a run adopts what others have in flight: that goes on as it was until it has."""
    return run.graph.dag_id == FOREIGN


def carries_on_since(airflow: Airflow, run: DagRun) -> float:
    """From when on what is in flight is a run's; infinite = never."""
    if not is_adopting(run):
        return run.began_at
    adopted = [each.ended_at for each in airflow.spawned if each.name == f"{run.name}.{ADOPT}"]
    return max(adopted) if run.tasks[ADOPT].state is TaskState.SUCCESS else inf


def _changed(run: DagRun) -> RatesAsked:
    ended = inf if run.ended_at is None else run.ended_at
    well = {TaskState.SUCCESS, TaskState.SKIPPED}  # no other run has to be started
    agreed = well.issuperset(run.states().values())
    return RatesAsked(run.began_at, ended, agreed, **_rates(run.conf, run.conf.get(OWN)))


def _rates(conf: Mapping[str, Any], own: Any) -> dict[str, Any]:
    return {"rate": _number(conf.get(THROTTLE)), "own": None if own is None else _by_key(own)}


def _by_key(own: Mapping[str, Mapping[str, int]]) -> dict[OwnRate, int]:
    return {
        (int(broker), KEYS[side]): rate
        for broker, rates in own.items()
        for side, rate in rates.items()
    }


def _number(value: Any) -> int | None:
    return int(value) if str(value).isdigit() else None
