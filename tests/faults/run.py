"""A run with a fault: its tasks one after the other, each retried as Airflow does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from local.process.waiting import wait_until
from rehome.cluster.interface.errors import ClusterError
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import PlanState
from rehome.errors import RehomeError
from rehome.execution.advance import Advance
from tests.faults.injections import INJECTIONS, Broken, Injection
from tests.faults.matrix import Case, Fault, Moment
from tests.faults.site import Site
from tests.faults.tasks import Errand, Strike, StruckCluster, StruckLedger, Tasks, spot_of

T = TypeVar("T")
CRAWL, FAST = 100_000, 50_000_000
STALL_S = {Fault.DESTINATION_LOST: 12.0}
PATIENCE_S = 120.0


class Run:
    """Drives a plan to its end over one fault.

    :param owed: throttle settings that clearing could not take back at once.
    """

    def __init__(self, site: Site, plan: Plan, case: Case | None) -> None:
        self._site = site
        self._plan = plan
        self._case = case
        self._policy = Policy(
            CRAWL if case else FAST,
            metadata_grace_s=2,
            stall_timeout_s=STALL_S.get(case.fault, PATIENCE_S) if case else PATIENCE_S,
        )
        self._to_kill = case is not None and case.fault is Fault.KILLED
        self._injection: Injection | None = None
        self._strike = Strike()
        if case is not None and not self._to_kill:
            self._injection = INJECTIONS[case.fault](site, case.moment)
            self._strike = Strike(spot_of(case), self._injection.around)
        self._fast = case is None
        self.failed: list[Exception] = []
        self.owed = 0

    def to_its_end(self) -> PlanState:
        """Carry out every task; what the plan has ended as."""
        with StruckLedger.open(self._site.ledger_url) as ledger:
            ledger.strike = self._strike
            cluster = cast(ClusterPort, StruckCluster(self._site.acting, self._strike))
            tasks = Tasks(self._plan, ledger, cluster, self._policy)
            self._repeat("set_up", tasks.set_up)
            self._repeat("execute", tasks.execute)
            wait_until(lambda: self._poll(tasks), "the plan to end", PATIENCE_S, 0.3)
            cleared = self._repeat("clear", tasks.clear)
            self.owed = len(cleared.owed)
            assert self._strike.struck, "the fault never struck"
            assert not self._to_kill, "nothing was killed"
            wait_until(self._fixed, "the fault to be over", PATIENCE_S, 0.5)
            return ledger.plan(self._plan.plan_id).state

    def _poll(self, tasks: Tasks) -> bool:
        """The trigger polls, and wakes the worker where it is needed."""
        self._hurry(tasks)
        needed = self._once("poll", tasks.poll)
        if not needed:
            return False
        done = self._once("progress", tasks.progress)
        return isinstance(done, Advance) and done.finished is not None

    def _once(self, name: str, task: Callable[[], T]) -> T | None:
        """A cluster that is away is borne; None then."""
        try:
            return self._repeat(name, task)
        except ClusterError as error:
            self.failed.append(error)
            return None

    def _repeat(self, name: str, task: Callable[[], T]) -> T:
        """Attempts until one succeeds; a cluster that is away fails a poll and a step."""
        results: list[T] = []

        def attempt() -> bool:
            self._kill_first(name)
            try:
                results.append(task())
            except (RehomeError, Broken) as error:
                if isinstance(error, ClusterError) and name in ("poll", "progress"):
                    raise
                self.failed.append(error)
                return False
            finally:
                self._fixed()
            return True

        wait_until(attempt, f"{name} to succeed", PATIENCE_S, 0.5)
        return results[0]

    def _kill_first(self, name: str) -> None:
        if self._to_kill and self._case is not None and spot_of(self._case).task == name:
            self._to_kill = False
            settings, url = self._site.cluster.client_settings(), self._site.ledger_url
            Errand(self._case, self._plan, self._policy, url, settings).run_until_killed()

    def _fixed(self) -> bool:
        """End the fault when it is time; whether it is over, or goes on for good."""
        injection = self._injection
        if injection is None or injection.fixed or injection.lasting:
            return self._strike.struck
        if self._strike.struck and injection.due():
            injection.fix()
            injection.fixed = True
        return injection.fixed

    def _hurry(self, tasks: Tasks) -> None:
        """Copies crawl until the fault is over, so that they are in flight when it strikes."""
        early = self._case is not None and self._case.moment is Moment.CLEARING
        if self._injection is not None and self._injection.copies_go_on:
            early |= self._strike.struck
        if not self._fast and (early or (not self._to_kill and self._fixed())):
            tasks.ledger.request_rate(self._plan.plan_id, FAST, "ann")
            self._fast = True
