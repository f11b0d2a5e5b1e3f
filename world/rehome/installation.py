"""One installation of Rehome: a ledger of its own, a connection, the files of its plans."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime

from include.cluster.interface.port import ClusterPort
from include.domain.claims import Claim
from include.domain.plan.move import Move
from include.domain.plan.plan import Plan
from include.domain.request.request import ReassignmentRequest
from include.domain.run.run_policy import Policy
from include.execution.access.own_cluster import OwnCluster
from include.execution.control.controller import Controller
from include.ledger.base.records import PlanRecord
from include.ledger.store import Ledger
from world.history import ConfigKey
from world.judge.statements import Statement
from world.running.ledgers import LedgerSite

DAG_ID = "reassign_partitions"


class Spent(enum.StrEnum):
    """What calls are spent on."""

    POLL = "poll"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Bounds:
    """How a plan is to be carried out. Bytes per second, virtual seconds.

    :param window_end: None = it runs without a window.
    """

    rate_bytes_per_s: int
    poll_interval_s: float = 20.0
    max_moves_per_broker: int = 4
    window_end: datetime | None = None
    additional: bool = False
    unthrottled: bool = False


@dataclass
class Installation:
    """What belongs to one Rehome.

    :param name: tells it from another one on the same cluster; actors of it begin with it.
    :param connect: a new connection in its name.
    :param calls_so_far: calls to the cluster by the process that runs now.
    :ivar plans: the files of plans, which no ledger's restore takes away; ``requests``: what drains
        were asked for.
    :ivar spent: calls to the cluster of each poll, and each decision, that came to its end.
    :ivar dag_paused: whether its DAG is paused in Airflow.
    :ivar named: what its last sweep has named as not its ledger's.
    :ivar follows_up: has a run made that carries a follow-up out.
    """

    name: str
    site: LedgerSite
    connect: Callable[[], ClusterPort]
    say: Callable[[Statement], None]
    true_time: Callable[[], float]
    calls_so_far: Callable[[], int] = lambda: 0
    plans: dict[str, Plan] = field(default_factory=dict)
    bounds: dict[str, Bounds] = field(default_factory=dict)
    requests: dict[str, ReassignmentRequest] = field(default_factory=dict)
    spent: dict[Spent, list[int]] = field(default_factory=dict)
    follows_up: Callable[[str, Plan], None] = lambda _of, _plan: None
    dag_paused: Callable[[], bool] = lambda: False
    named: frozenset[ConfigKey] = frozenset()

    def ledger(self) -> Ledger:
        """As a task opens it."""
        return self.site.ledger()

    def cluster_of(self, record: PlanRecord) -> OwnCluster:
        """The plan's cluster, as a task opens it."""
        return OwnCluster.of_plan(self.connect(), record)

    def policy(self, plan_id: str) -> Policy:
        """As ``policy_for`` makes it of the request and the settings."""
        bounds = self.bounds[plan_id]
        return Policy(
            bounds.rate_bytes_per_s,
            max_moves_per_broker=bounds.max_moves_per_broker,
            poll_interval_s=bounds.poll_interval_s,
            reaction_s=bounds.poll_interval_s + 6,
            window_end=bounds.window_end,
            additional=bounds.additional,
        )

    def moves_by_files(self, plan_id: str, digest: str) -> Sequence[Move] | None:
        """As the operator has them of a plan that the ledger does not know any more."""
        plan = self.plans.get(plan_id)
        return plan.moves if plan is not None and plan.plan_hash.startswith(digest) else None

    def lease_s(self, plan_id: str) -> float:
        """As ``ttl_s`` has it."""
        return max(60.0, 4 * self.bounds[plan_id].poll_interval_s)

    def controller(self, actor: str, plan_id: str) -> Controller:
        """What passes requests of a person on."""
        return Controller(
            *(self.ledger(), self.connect(), actor, self.lease_s(plan_id), f"control/{actor}"),
            dag_paused=lambda _dag_id: self.dag_paused(),
        )

    def record(self, plan: Plan, bounds: Bounds, run_id: str) -> None:
        """As the tasks plan and approve do; a person was not asked."""
        self.plans[plan.plan_id] = plan
        self.bounds[plan.plan_id] = bounds
        ledger = self.ledger()
        request = {
            "action": plan.action,
            "throttle": bounds.rate_bytes_per_s,
            "unthrottled": bounds.unthrottled,
        }
        ledger.create_plan(
            *(plan, request, f"memory://{plan.plan_id}", run_id, "alice"), dag_id=DAG_ID
        )
        ledger.approve(plan.plan_id, plan.plan_hash, "alice")

    def renew_bounds(self, plan_id: str, rate_bytes_per_s: int) -> None:
        """A run that goes on with a plan brings bounds of its own: no window, another rate."""
        self.bounds[plan_id] = replace(
            self.bounds[plan_id], rate_bytes_per_s=rate_bytes_per_s, window_end=None
        )

    @contextmanager
    def counted(self, what: Spent) -> Iterator[None]:
        """Count the calls that a poll or a decision makes, where it comes to its end."""
        before = self.calls_so_far()
        yield
        self.spent.setdefault(what, []).append(self.calls_so_far() - before)

    def tell(self, plan_id: str, where: str, *claims: Claim, since: float) -> None:
        """Say something to people.

        :param since: when the first read began that it is made from.
        """
        self.say(Statement(self.name, plan_id, where, claims, since, self.true_time()))
