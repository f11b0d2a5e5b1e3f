"""Drives a soak: one random plan after the other, faults among them, until it settles."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
from confluent_kafka import KafkaException

from local.airflow.api import ENDED
from local.process.waiting import wait_until
from tests.e2e.runs import DAG, SWEEP
from tests.e2e.soak.faults import KILLS, Fault, Faults
from tests.e2e.soak.ground import SCHEDULED, Ground
from tests.e2e.soak.judge import RunEnd
from tests.e2e.soak.plans import Plans

LOOK_S = 3.0
LONGEST_S = 1200.0
"""For one run: its copies take a minute or two, whatever happens."""
SETTLED_S = 900.0
LEASE_S = 75.0
"""A lease that nothing renews runs out by then."""
AFTER_S = 120.0
"""So long a fault may still be the cause of what fails."""
UNANSWERED = (httpx.HTTPError, KafkaException, TimeoutError)
OCCUPIED = frozenset({"busy", "dry_run"})
"""Kinds by which a run is refused while another plan has the cluster, as that of a window."""
CHANCE_OF_A_FAULT = 0.8
CHANCE_OF_A_FREE_CLUSTER = 0.8
"""Else a run begins whatever goes on: it is refused where another one has the cluster."""


@dataclass
class Struck:
    """A fault that has struck, with aware UTC times."""

    fault: Fault
    begin: datetime
    end: datetime


class Drive:
    """Plans and faults by one generator.

    :param until: monotonic time at which no plan is begun any more; ``calm_from``: from when on no
        component of Airflow is ended.
    """

    def __init__(
        self, ground: Ground, chance: random.Random, until: float, calm_from: float
    ) -> None:
        self._ground = ground
        self._chance = chance
        self._until, self._calm_from = until, calm_from
        self._plans = Plans(ground, chance)
        self._faults = Faults(ground, chance)
        self.struck: list[Struck] = []
        self.asked: dict[str, dict[str, Any]] = {}
        self.overdue: list[str] = []
        self.unanswered: list[str] = []
        """What the soak itself has asked of Airflow or of brokers, and got no answer to in time."""
        self.lapsing: list[str] = []
        """Owners of leases that were not given back, and had to run out."""

    def go(self) -> None:
        """Until it is time."""
        while time.monotonic() < self._until:
            try:
                self._turn()
            except UNANSWERED as error:
                _say(f"  not answered: {error!r}")
                self.unanswered.append(repr(error))
                self._faults.fix_all()

    def _turn(self) -> None:
        self._go_on_with_paused()
        if self._chance.random() < CHANCE_OF_A_FREE_CLUSTER:
            self._wait_for_ends()
        asked = self._plans.draw()
        fault = None
        if self._chance.random() < CHANCE_OF_A_FAULT:
            fault = self._faults.draw(airflow=time.monotonic() < self._calm_from)
        after_s, lasts_s = self._chance.uniform(0, 25), self._chance.uniform(10, 30)
        early = self._chance.random() < 0.25
        run = self._ground.airflow.api.trigger(DAG, asked)
        self.asked[run] = asked
        _say(f"{run}: {asked} {fault or ''}")
        if fault is not None:
            self._follow(run, until_s=20 if early else 600, until_it_runs=not early)
            self._follow(run, until_s=after_s)
            self._strike(fault, run, lasts_s)
        # Its report and its verdict come while the next one is planned.
        if not self._follow(run, until_s=LONGEST_S, until_it_is_over=True):
            self.overdue.append(run)
            self._cancel_plan_of(run)
        if self._ground.ledger.kinds().get((DAG, run)) in OCCUPIED and not self._is_free():
            self._plans.put_back(asked)

    def _strike(self, fault: Fault, run: str, lasts_s: float) -> None:
        begin = datetime.now(UTC)
        if not self._faults.strike(fault, run):
            _say(f"  {fault}: nothing to strike")
            return
        _say(f"  {fault}")
        if fault in (Fault.SCHEDULER_KILLED, Fault.TRIGGERER_KILLED):
            self._faults.fix(fault)
        else:
            self._follow(run, until_s=lasts_s)
            self._faults.fix(fault)
        self.struck.append(Struck(fault, begin, datetime.now(UTC)))

    def _follow(
        self,
        run: str,
        until_s: float,
        *,
        until_it_runs: bool = False,
        until_it_is_over: bool = False,
    ) -> bool:
        """Wait for the run's end, and answer meanwhile as people do; whether that has come in time.

        :param until_it_runs: or for the beginning of its plan; ``until_it_is_over``: or that one's.
        """
        deadline = time.monotonic() + until_s

        def over() -> bool:
            if self._state(run) in ENDED:
                return True
            if self.asked[run].get("approval"):
                self._answer(run)
            plan = self._ground.ledger.plan_of(run)
            began = plan is not None and plan.started_at is not None
            ended = plan is not None and plan.ended_at is not None
            return (until_it_runs and began) or (until_it_is_over and ended)

        wait_until(
            lambda: over() or time.monotonic() > deadline, f"run {run}", until_s + 300, LOOK_S
        )
        return over()

    def _state(self, run: str) -> str:
        return self._ground.airflow.api.run_state(DAG, run)

    def _answer(self, run: str) -> None:
        """Four of five questions are answered by a yes."""
        api = self._ground.airflow.api
        if api.task_instance(DAG, run, "approve")["state"] != "awaiting_input":
            return
        answer = "Approve" if self._chance.random() < 0.8 else "Reject"
        try:
            api.answer(DAG, run, "approve", answer)
        except httpx.HTTPStatusError as error:
            _say(f"  not answered: {error}")

    def _cancel_plan_of(self, run: str) -> None:
        plan = self._ground.ledger.plan_of(run)
        if plan is not None:
            _say(f"  overdue, cancelled: {self._faults.control(plan.plan_id, 'cancel')}")

    def _go_on_with_paused(self) -> None:
        """What a person or a window's end has paused holds the cluster: it is resumed, or ended."""
        for plan in self._ground.ledger.plans():
            if plan.state == "paused":
                action = self._chance.choice(("resume", "resume", "cancel"))
                _say(f"  {plan.plan_id} {action}: {self._faults.control(plan.plan_id, action)}")

    def _wait_for_ends(self) -> None:
        """Until no plan is carried out; a window's may take longer than it is waited for."""
        deadline = time.monotonic() + LONGEST_S / 2

        wait_until(
            lambda: self._is_free() or time.monotonic() > deadline, "no plan", LONGEST_S, LOOK_S
        )

    def _is_free(self) -> bool:
        """Whether no plan is carried out, and none is paused."""
        states = {plan.state for plan in self._ground.ledger.plans()}
        return not states & {"running", "paused"}

    def settle(self) -> None:
        """Nothing new begins; what goes on comes to its end; what is paused is cancelled."""
        self._faults.fix_all()
        for dag_id in SCHEDULED:
            self._end_schedule(dag_id)
        wait_until(self._at_rest, "every run to end", SETTLED_S, LOOK_S)
        for plan in self._ground.ledger.plans():
            if plan.state == "paused":
                self._faults.control(plan.plan_id, "cancel")
        wait_until(self._at_rest, "every run to end", SETTLED_S, LOOK_S)
        api = self._ground.airflow.api
        api.wait_for_run(SWEEP, api.trigger(SWEEP))
        self._end_schedule(SWEEP)
        self.lapsing = self._ground.ledger.held()
        deadline = time.monotonic() + LEASE_S
        wait_until(lambda: not self._ground.ledger.held() or time.monotonic() > deadline, "leases")

    def _end_schedule(self, dag_id: str) -> None:
        """Pause a DAG between two runs: one of a paused DAG does not go on."""
        api = self._ground.airflow.api

        def paused_between() -> bool:
            api.set_paused(dag_id, paused=True)
            if all(run["state"] in ENDED for run in api.runs(dag_id)):
                return True
            api.set_paused(dag_id, paused=False)
            return False

        wait_until(paused_between, f"{dag_id} to rest", SETTLED_S, LOOK_S)

    def _at_rest(self) -> bool:
        waiting = [each for each in self._every_run() if each["state"] not in ENDED]
        for each in waiting:
            if each["dag_id"] == DAG and self._asks(each["dag_run_id"]):
                self._ground.airflow.api.answer(DAG, each["dag_run_id"], "approve", "Reject")
        return not waiting

    def _asks(self, run: str) -> bool:
        task = self._ground.airflow.api.task_instance(DAG, run, "approve")
        return bool(task["state"] == "awaiting_input")

    def _every_run(self) -> Iterator[dict[str, Any]]:
        api = self._ground.airflow.api
        answer = api.ask("GET", "/dags/~/dagRuns?limit=100&order_by=-run_after")
        total = int(answer["total_entries"])
        yield from answer["dag_runs"]
        for offset in range(100, total, 100):
            where = f"/dags/~/dagRuns?limit=100&offset={offset}&order_by=-run_after"
            yield from api.ask("GET", where)["dag_runs"]

    def runs(self) -> list[RunEnd]:
        """Every run of every DAG, with the faults in its time."""
        kinds = self._ground.ledger.kinds()
        began = {
            (plan.dag_id, plan.run_id) for plan in self._ground.ledger.plans() if plan.started_at
        }
        found = []
        for each in self._every_run():
            key = (each["dag_id"], each["dag_run_id"])
            faults = [struck.fault for struck in self.struck if _meet(struck, each)]
            found.append(
                RunEnd(
                    *key,
                    each["state"],
                    kinds.get(key),
                    key in began,
                    tuple(fault.value for fault in faults),
                    bool(KILLS & {*faults}),
                )
            )
        return found


def _meet(struck: Struck, run: dict[str, Any]) -> bool:
    """Whether a fault was there, or a short while ago, while a run went on."""
    begin = datetime.fromisoformat(run["start_date"] or run["run_after"])
    end = datetime.fromisoformat(run["end_date"]) if run["end_date"] else datetime.now(UTC)
    return struck.begin <= end and (begin - struck.end).total_seconds() < AFTER_S


def _say(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)
