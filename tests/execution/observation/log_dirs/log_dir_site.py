"""A plan of one move between log dirs, on a cluster in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import cast

from rehome.domain.clock import utc_now
from rehome.domain.kafka import BrokerError, ReplicaId
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import Advance, advance
from rehome.ledger.store import Ledger
from tests.execution.observation.log_dirs.log_dir_cluster import A, B, C, LogDirCluster
from tests.ledger.small_plans import move

POLICY = Policy(1000, metadata_grace_s=0)
THEIRS = move("x", 0, (1,), (3,), 1)
WITHIN = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, "any"))
BOTH = move("t", 0, (1, 2), (1, 2), 1000, (A, A), (B, C))
ACROSS = move("t", 0, (1, 2), (3, 2), 1000, (A, A), (B, C))
ONE, TWO, THREE = (ReplicaId("t", 0, broker) for broker in (1, 2, 3))
Approved = Callable[..., Plan]
MIXED = move("t", 0, (1, 2), (3, 2), 1000, (A, A), ("any", C))


class Site:
    """A plan of one move that was admitted, on a cluster in memory."""

    def __init__(
        self, of: Move, ledger: Ledger, approved: Approved, memory: LogDirCluster | None = None
    ) -> None:
        self.plan = approved(of, cluster_id="sim")
        self.memory = memory or LogDirCluster([1, 2, 3, 4], [of])
        self.cluster = cast(OwnCluster, self.memory)
        self.ledger = ledger
        self.partition = of.partition

    def step(self, after_s: float = 0) -> Advance:
        """As if so much time had passed."""

        def clock() -> datetime:
            return utc_now() + timedelta(seconds=after_s)

        return advance(self.plan, self.ledger, self.cluster, POLICY, clock)

    def end(self) -> Advance:
        """Step until the plan ends; whatever copies, arrives in between."""
        for _ in range(10):
            done = self.step()
            if done.finished is not None:
                return done
            self.memory.step(10_000)
            self.memory.finish_copies()
        raise AssertionError(f"the plan does not end: {done}")

    @property
    def state(self) -> MoveState:
        return self.ledger.view(self.plan.plan_id).moves[self.partition]

    @property
    def detail(self) -> str:
        return self.ledger.moves(self.plan.plan_id)[self.partition].detail


class Refusing(LogDirCluster):
    """Some of its brokers answer a request with an error that passes."""

    silent: frozenset[int] = frozenset()

    def alter_replica_log_dirs(
        self, targets: Mapping[ReplicaId, str]
    ) -> dict[ReplicaId, BrokerError | None]:
        heard = {r: path for r, path in targets.items() if r.broker not in self.silent}
        timed_out: dict[ReplicaId, BrokerError | None] = {
            replica: BrokerError(7, "REQUEST_TIMED_OUT") for replica in targets.keys() - heard
        }
        return timed_out | super().alter_replica_log_dirs(heard)
