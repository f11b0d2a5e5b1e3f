"""A run's tasks as its operators carry them out, and the spots in them where faults happen.

``python -m tests.faults.tasks < pickled Errand`` carries one out in a process that kills itself
at its spot.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, cast

from rehome.cluster.connection.settings import Connection
from rehome.cluster.gateway import ClusterGateway
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.execution.access.lease import LeasedCluster, hold
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.admission.backlog import Backlog
from rehome.execution.advance import Advance, advance
from rehome.execution.control.cancel import abort
from rehome.execution.decide import decide, needs_worker
from rehome.execution.governor.cluster_health import bystanders
from rehome.execution.poll import poll
from rehome.execution.throttle.set_up import Cleared, clear_throttle, set_up_throttle, sweep
from rehome.ledger.base.fencing import Lease
from rehome.ledger.store import Ledger
from tests.faults.matrix import Case, Moment

LEASE_S = 60.0
Around = Callable[..., Any]
"""Called with the call that was reached and its arguments, in the place of it."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A task, and a call of the cluster or the ledger in it, the first of its name."""

    task: str
    call: str


_SPOTS = {
    Moment.BEFORE_LEDGER: Spot("execute", "admit"),
    Moment.BEFORE_RPC: Spot("execute", "alter_reassignments"),
    Moment.AFTER_RPC: Spot("execute", "alter_reassignments"),
    Moment.DEFERRED: Spot("poll", "list_reassignments"),
    Moment.CLEARING: Spot("clear", "alter_configs"),
}
_LOG_DIR_SPOTS = {
    Moment.BEFORE_RPC: Spot("execute", "alter_replica_log_dirs"),
    Moment.AFTER_RPC: Spot("execute", "alter_replica_log_dirs"),
    Moment.DEFERRED: Spot("poll", "describe_log_dirs"),
}


def spot_of(case: Case) -> Spot:
    """Where a case strikes."""
    spots = _SPOTS | _LOG_DIR_SPOTS if case.log_dirs else _SPOTS
    return spots[case.moment]


class Strike:
    """Strikes once: when its spot is reached while its task runs. Without a spot, never."""

    def __init__(self, spot: Spot | None = None, around: Around | None = None) -> None:
        self._spot = spot
        self._around = around
        self.task = ""
        self.struck = spot is None

    def reached(self, name: str, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.struck or self._around is None or self._spot != Spot(self.task, name):
            return call(*args, **options)
        self.struck = True
        return self._around(call, *args, **options)


class StruckCluster:
    """A cluster whose calls pass a strike."""

    def __init__(self, cluster: ClusterGateway, strike: Strike) -> None:
        self._cluster = cluster
        self._strike = strike

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._cluster, name)
        return lambda *args, **options: self._strike.reached(name, call, *args, **options)


class StruckLedger(Ledger):
    """A ledger whose journalling of admissions passes a strike."""

    strike: Strike

    def under(self, lease: Lease) -> Self:
        ledger = super().under(lease)
        ledger.strike = self.strike
        return ledger

    def admit(self, *args: Any, **options: Any) -> bool:
        return bool(self.strike.reached("admit", super().admit, *args, **options))


@dataclass(frozen=True)
class Tasks:
    """What the tasks of a run do, less Airflow."""

    plan: Plan
    ledger: StruckLedger
    cluster: ClusterPort
    policy: Policy

    @contextmanager
    def _task(self, name: str, *, release: bool = False) -> Iterator[LeasedCluster]:
        self.ledger.strike.task = name
        record = self.ledger.plan(self.plan.plan_id)
        own, options = OwnCluster.of_plan(self.cluster, record), {"release": release}
        with hold(
            self.ledger, own, record.run_id, LEASE_S, plan_id=record.plan_id, **options
        ) as held:
            yield held

    def set_up(self) -> None:
        with self._task("set_up") as held:
            set_up_throttle(self.plan, held.ledger, held.cluster, self.policy.rate_bytes_per_s)

    def execute(self) -> Advance:
        with self._task("execute") as held:
            return advance(self.plan, held.ledger, held.cluster, self.policy)

    def progress(self) -> Advance:
        with self._task("progress") as held:
            sweep(held.ledger, held.cluster, self.plan.cluster_id)
            return advance(self.plan, held.ledger, held.cluster, self.policy)

    def poll(self) -> bool:
        """The trigger's poll: whether the worker is needed."""
        self.ledger.strike.task = "poll"
        record = self.ledger.plan(self.plan.plan_id)
        assert self.ledger.heartbeat(record.cluster_id, record.run_id, LEASE_S)
        others, backlog = bystanders(self.plan, self.cluster.describe_topics()), Backlog()
        own = cast(OwnCluster, self.cluster)
        found = poll(self.plan, self.ledger, own, self.policy, backlog, bystanders=others)
        if found is None:
            return True
        seen = found.observation
        actions = decide(self.plan, found.view, seen, seen.taken_at, self.policy, backlog)
        return needs_worker(actions)

    def clear(self) -> Cleared:
        with self._task("clear", release=True) as held:
            if not held.ledger.plan(self.plan.plan_id).state.ended:
                abort(
                    self.plan.plan_id,
                    held.ledger,
                    held.cluster,
                    "the run ended before the plan did",
                )
            return clear_throttle(self.plan.plan_id, held.ledger, held.cluster)


@dataclass(frozen=True)
class Errand:
    """A task to be killed in."""

    case: Case
    plan: Plan
    policy: Policy
    ledger_url: str
    settings: dict[str, str]

    def run_until_killed(self) -> None:
        """Carry the task out in a process of its own, which must die at its spot."""
        process = subprocess.run(
            [sys.executable, "-m", "tests.faults.tasks"],
            input=pickle.dumps(self),
            capture_output=True,
            timeout=90,
            check=False,
        )
        assert process.returncode == -signal.SIGKILL, process.stderr.decode()

    def carry_out(self) -> None:
        """In the process that is to die."""
        spot = spot_of(self.case)
        strike = Strike(spot, self._die)
        connection = Connection.from_settings(self.settings)
        with StruckLedger.open(self.ledger_url) as ledger, ClusterGateway(connection) as gateway:
            ledger.strike = strike
            cluster = cast(ClusterPort, StruckCluster(gateway, strike))
            getattr(Tasks(self.plan, ledger, cluster, self.policy), spot.task)()

    def _die(self, call: Callable[..., Any], *args: Any, **options: Any) -> None:
        if self.case.moment is Moment.AFTER_RPC:
            call(*args, **options)
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    errand = pickle.load(sys.stdin.buffer)
    errand.carry_out()
