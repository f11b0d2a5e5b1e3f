"""One installation of Rehome: a ledger of its own, a connection, a warehouse, an Airflow."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from rehome.alerts.channels import Channel
from rehome.cluster.interface.port import ClusterPort
from rehome.clusters.clusters_file import NO_FILE, ClustersFile
from rehome.domain.claims import Claim
from rehome.domain.plan.plan import Plan
from rehome.ledger.store import Ledger
from rehome.run.context import RunContext
from world import script
from world.airflow.in_memory import WarehouseInMemory
from world.history import ConfigKey
from world.judge.described import Described
from world.judge.promises import TakenUp
from world.judge.statements import Statement
from world.rehome.channel import CHANNEL, Post, Receiver, Thread
from world.running.ledgers import LedgerSite


class Spent(enum.StrEnum):
    """What calls are spent on."""

    POLL = "poll"
    DECISION = "decision"


@dataclass
class Installation:
    """What belongs to one Rehome.

    :param name: tells it from another one on the same cluster; actors of it begin with it.
    :param connect: a new connection in its name.
    :param plans_in_process: plans as the Spark application does.
    :param calls_so_far: calls to the cluster by the process that runs now.
    :param file: its clusters file.
    :param thread: starts one in the process that runs now.
    :ivar receiver: of its alerts; None = they are in its log only.
    :ivar warehouse: its files, which no ledger's restore takes away.
    :ivar asked: what runs are to do, by their ids; ``scripts``: the same by the ids of plans.
    :ivar spent: calls to the cluster of each poll, and each decision, that came to its end.
    :ivar named: what its last sweep has named as not its ledger's.
    :ivar gate_refused: plans of the planner's that the gate has refused, and why;
        ``snapshots_refused``: plans that it has refused to make of a snapshot.
    """

    name: str
    site: LedgerSite
    connect: Callable[[], ClusterPort]
    say: Callable[[Statement], None]
    true_time: Callable[[], float]
    calls_so_far: Callable[[], int]
    plans_in_process: Callable[[Any, RunContext], None]
    thread: Callable[..., Thread]
    receiver: Receiver | None = None
    warehouse: WarehouseInMemory = field(init=False)
    file: ClustersFile = NO_FILE
    asked: dict[str, script.Plan] = field(default_factory=dict)
    scripts: dict[str, script.Plan] = field(default_factory=dict)
    spent: dict[Spent, list[int]] = field(default_factory=dict)
    named: frozenset[ConfigKey] = frozenset()
    gate_refused: dict[str, list[str]] = field(default_factory=dict)
    snapshots_refused: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.warehouse = WarehouseInMemory(self.name)

    def ledger(self) -> Ledger:
        """As a task opens it."""
        return self.site.ledger()

    def channels(self) -> tuple[Channel, ...]:
        """Where its alerts are sent."""
        return () if self.receiver is None else (CHANNEL,)

    def notifier(self, *, body: str, message_id: str) -> Post:
        """Of its only channel."""
        assert self.receiver is not None
        return self.receiver.notifier(body=body, message_id=message_id)

    def plan(self, plan_id: str) -> Plan:
        """From its files."""
        return self.warehouse.plan(plan_id).load()

    @contextmanager
    def counted(self, what: Spent) -> Iterator[None]:
        """Count the calls that a poll or a decision makes, where it comes to its end."""
        before = self.calls_so_far()
        yield
        self.spent.setdefault(what, []).append(self.calls_so_far() - before)

    def tell(
        self, plan_id: str, where: str, *claims: Claim | Described | TakenUp, since: float
    ) -> None:
        """Say something to people.

        :param since: when the first read began that it is made from.
        """
        self.say(Statement(self.name, plan_id, where, claims, since, self.true_time()))
