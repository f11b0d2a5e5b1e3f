"""Runs whose tasks are cleared at some moment: the operators themselves, less the scheduler.

A task that runs when it is cleared is killed; then it is carried out anew, with all after it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from include.cluster.gateway import ClusterGateway
from include.execution.model import PlanState
from include.ledger.store import Ledger
from include.planning.plan import Plan
from include.warehouse import PlanDirectory
from tests.dags.cleared_tasks import TASKS, ClearedRun, Outcome, reach
from tests.dags.clusters import to
from tests.faults.matrix import Case, Fault, Moment
from tests.faults.site import BESIDE, DESTINATION, LEADER, Site

CRAWL, FAST = 100_000, 50_000_000
_SPOTS: dict[Moment, tuple[type[Any], str]] = {
    Moment.BEFORE_LEDGER: (Ledger, "admit"),
    Moment.BEFORE_RPC: (ClusterGateway, "alter_reassignments"),
    Moment.AFTER_RPC: (ClusterGateway, "alter_reassignments"),
    Moment.CLEARING: (ClusterGateway, "alter_configs"),
}


class Killed(BaseException):
    """As by SIGKILL: nothing catches it."""


class ClearedTasks:
    """A run that is brought to a moment; then a task of it is cleared, with what comes after it.

    :param owed: throttle settings that clearing could not take back: none, here.
    """

    owed = 0

    def __init__(
        self, site: Site, case: Case, directory: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self._site = site
        self._case = case
        self._warehouse = directory / "warehouse"
        self._patch = monkeypatch
        monkeypatch.setenv("REHOME_WAREHOUSE", self._warehouse.as_uri())
        monkeypatch.setenv("REHOME_LEDGER_URL", site.ledger_url)
        monkeypatch.setenv("REHOME_POLL_INTERVAL_S", "0.3")
        reach(site.cluster, monkeypatch)
        wanted = to(site.kept, {0: [DESTINATION, BESIDE], 1: [BESIDE, DESTINATION]})
        wanted["partitions"] += to(site.other, {0: [BESIDE, DESTINATION]})["partitions"]
        assert LEADER not in wanted["partitions"][0]["replicas"]
        self._params = {"action": "reassign", "reassignment": wanted, "throttle": CRAWL}

    def to_its_end(self, ledger: Ledger) -> tuple[PlanState, Plan]:
        """Carry out every task, some of them twice; what the plan has ended as, and the plan."""
        run, case = ClearedRun(ledger, self._params), self._case
        run.through("throttle")
        if case.fault is Fault.WAREHOUSE_AWAY:
            self._ends_early(run)
        else:
            self._strike(run)
            if case.moment is not Moment.CLEARING:
                ledger.request_rate(run.record().plan_id, FAST, "ann")
            for task_id in TASKS[TASKS.index(case.fault.cleared) :]:
                _carry_on(run, task_id)
        record = run.record()
        return record.state, PlanDirectory(record.plan_dir).load()

    def _strike(self, run: ClearedRun) -> None:
        moment = self._case.moment
        if moment is Moment.DEFERRED:
            _carry_on(run, "execute")
            assert run.task("progress") is Outcome.DEFERRED
        elif moment is Moment.CLEARING:
            _carry_on(run, "execute")
            run.ledger.request_rate(run.record().plan_id, FAST, "ann")
            _carry_on(run, "progress")
            self._kill_in(run, "clear_throttle")
        else:
            self._kill_in(run, "execute")

    def _kill_in(self, run: ClearedRun, task_id: str) -> None:
        owner, name = _SPOTS[self._case.moment]
        real: Callable[..., Any] = getattr(owner, name)

        def struck(*args: Any, **options: Any) -> Any:
            if self._case.moment is Moment.AFTER_RPC:
                real(*args, **options)
            raise Killed

        with self._patch.context() as patched:
            patched.setattr(owner, name, struck)
            with pytest.raises(Killed):
                run.task(task_id)

    def _ends_early(self, run: ClearedRun) -> None:
        """Somebody marks it failed while copies are in flight."""
        _carry_on(run, "execute")
        away = self._warehouse.with_name("away")
        self._warehouse.rename(away)
        _carry_on(run, "clear_throttle")
        assert run.task("verdict") is Outcome.REFUSED
        away.rename(self._warehouse)


def _carry_on(run: ClearedRun, task_id: str) -> None:
    waits = {"deferrable": False} if task_id == "progress" else {}
    assert run.task(task_id, **waits) is Outcome.CARRIED_ON, (task_id, run.told)
