"""Runs whose tasks are cleared at some moment: the operators themselves, less the scheduler.

A task that runs when it is cleared is killed; then it is carried out anew, with all after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics
from tests.dags.clearing.cleared_tasks import TASKS, ClearedRun, Outcome, reach
from tests.dags.clusters import state_of, to
from tests.faults.matrix import Case, Fault, Moment
from tests.faults.site import DESTINATION, FOLLOWER, LEADER, Site

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
        wanted = to(site.kept, {0: [DESTINATION, FOLLOWER], 1: [FOLLOWER, DESTINATION]})
        wanted["partitions"] += to(site.other, {0: [FOLLOWER, DESTINATION]})["partitions"]
        assert LEADER not in wanted["partitions"][0]["replicas"]
        self._params = {"action": "reassign", "reassignment": wanted, "throttle": CRAWL}

    def to_its_end(self, ledger: Ledger) -> tuple[PlanState, Plan]:
        """Carry out every task, some of them twice; what the plan has ended as, and the plan."""
        run, case = ClearedRun(ledger, self._params), self._case
        run.through("throttle")
        if case.fault is Fault.WAREHOUSE_AWAY:
            self._ends_early(run)
        elif case.fault is Fault.CONNECTION_EDITED:
            self._goes_on_elsewhere(run)
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
        """A person marks it failed while copies are in flight."""
        _carry_on(run, "execute")
        away = self._warehouse.with_name("away")
        self._warehouse.rename(away)
        _carry_on(run, "clear_throttle")
        assert run.task("verdict") is Outcome.REFUSED
        away.rename(self._warehouse)

    def _goes_on_elsewhere(self, run: ClearedRun) -> None:
        """A person edits the connection. What acts through it is refused; when it is put right,
        that is cleared.
        """
        assert self._site.elsewhere is not None
        with Elsewhere(self._site.elsewhere, (self._site.kept, self._site.other)) as elsewhere:
            refused = TASKS[TASKS.index(self._edit(run)) :]
            for task_id in refused:
                outcome = run.task(task_id, **_waits(task_id))
                assert outcome is not Outcome.DEFERRED
                if task_id in (refused[0], "clear_throttle"):
                    assert outcome is Outcome.REFUSED, task_id
                    assert f"leads to cluster {elsewhere.cluster.cluster_id}" in run.reported
                    assert f"is for cluster {self._site.cluster.cluster_id}" in run.reported
            assert outcome is Outcome.REFUSED, "the verdict"
            elsewhere.is_untouched()
        reach(self._site.cluster, self._patch)
        if self._case.moment is not Moment.CLEARING:
            run.ledger.request_rate(run.record().plan_id, FAST, "ann")
        for task_id in refused:
            _carry_on(run, task_id)

    def _edit(self, run: ClearedRun) -> str:
        """At the moment; the task that comes next."""
        moment = self._case.moment
        if moment in (Moment.DEFERRED, Moment.CLEARING):
            _carry_on(run, "execute")
        if moment is Moment.DEFERRED:
            assert run.task("progress") is Outcome.DEFERRED
            self._reach_elsewhere()
            return "progress"
        if moment is Moment.CLEARING:
            run.ledger.request_rate(run.record().plan_id, FAST, "ann")
            _carry_on(run, "progress")
            self._edit_in(run, "clear_throttle")
            return "verify"
        self._edit_in(run, "execute")
        return "progress"

    def _edit_in(self, run: ClearedRun, task_id: str) -> None:
        """The task that runs has opened its connection, and keeps to it."""
        owner, name = _SPOTS[self._case.moment]
        real: Callable[..., Any] = getattr(owner, name)
        struck: list[str] = []

        def and_edit(*args: Any, **options: Any) -> Any:
            before = self._case.moment is not Moment.AFTER_RPC
            if not struck and before:
                self._reach_elsewhere()
            answer = real(*args, **options)
            if not struck and not before:
                self._reach_elsewhere()
            struck.append(name)
            return answer

        with self._patch.context() as patched:
            patched.setattr(owner, name, and_edit)
            _carry_on(run, task_id)
        assert struck

    def _reach_elsewhere(self) -> None:
        assert self._site.elsewhere is not None
        reach(self._site.elsewhere, self._patch)


class Elsewhere:
    """Another cluster with topics of the same names, on brokers of the same ids."""

    def __init__(self, cluster: LocalCluster, names: Sequence[str]) -> None:
        self.cluster = cluster
        self._names = names
        self._undo = ExitStack()

    def __enter__(self) -> Elsewhere:
        topics = self._undo.enter_context(Topics(self.cluster))
        for name in self._names:
            topics.create_as(name, [[LEADER, FOLLOWER], [FOLLOWER, LEADER]])
        connection = Connection.from_settings(self.cluster.client_settings())
        self._gateway = self._undo.enter_context(ClusterGateway(connection))
        self._before = state_of(self._gateway, self._names)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._undo.close()

    def is_untouched(self) -> None:
        assert state_of(self._gateway, self._names) == self._before


def _waits(task_id: str) -> dict[str, bool]:
    return {"deferrable": False} if task_id == "progress" else {}


def _carry_on(run: ClearedRun, task_id: str) -> None:
    assert run.task(task_id, **_waits(task_id)) is Outcome.CARRIED_ON, (task_id, run.reported)
