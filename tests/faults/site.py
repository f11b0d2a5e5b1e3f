"""The cluster of a case of the matrix: brokers, topics with messages, foreign throttles, a plan."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from local.kafka.cluster import CONTROLLER_ID, LocalCluster
from local.process.waiting import wait_until
from local.workload import Workload
from rehome.domain.actions import Action
from rehome.domain.configs import ConfigChange, ConfigOperation, ConfigResource
from rehome.domain.kafka import ANY_LOG_DIR, BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.states import MoveState, PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion.drained import wait_until_drained
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_REPLICAS, LOG_DIR_RATE
from rehome.ledger.store import Ledger
from tests.conftest import Topics
from tests.execution.access.own_gateway import OwnGateway
from tests.execution.driven import replicas_of
from tests.execution.throttle.on_brokers import BROKERS, set_config, throttle_settings
from tests.ledger.small_plans import make_plan, move
from tests.rights import REASSIGNER

LEADER, FOLLOWER, DESTINATION, ELSEWHERE = 1, 2, 3, 4
"""Broker 1 leads what moves; 2 has replicas that stay; copies go to 3; the plan leaves 4 alone."""
MESSAGES, MESSAGE_BYTES = 2000, 1000
"""Per partition: more than the first fetch takes, so that a copy stays in flight."""
_serial = itertools.count()
_OF_TOPICS = tuple(operation for operation, resource in REASSIGNER if resource == "topic")


@dataclass
class Site:
    """Made anew for each case, on brokers that cases share.

    :param acting: through which the run acts; what it has come to is read through ``gateway``.
    :param user: as whom it acts, with rights to this site's topics only; "" = as an administrator.
    :param elsewhere: another cluster, for faults that need one.
    :param kept: a topic of two partitions to which a producer writes all the time.
    :param other: a topic of one partition, with which something may happen.
    :param late: a topic that appears on the broker that the plan empties; "" = none.
    :param theirs: throttles of another client, as they have to be in the end.
    """

    cluster: LocalCluster
    gateway: OwnGateway
    topics: Topics
    ledger_url: str
    acting: OwnGateway
    user: str = ""
    elsewhere: LocalCluster | None = None
    kept: str = ""
    other: str = ""
    late: str = ""
    theirs: dict[Any, str] = field(default_factory=dict)
    _visible: set[str] = field(default_factory=set)

    def furnish(self) -> None:
        """Create, fill, and throttle as another client would."""
        self.kept = self.topics.create([[LEADER, FOLLOWER], [FOLLOWER, LEADER]], "kept")
        self.other = self.topics.create([[FOLLOWER, LEADER]], "other")
        self.topics.fill(self.other, MESSAGES, MESSAGE_BYTES)
        if self.user:
            for topic in (self.kept, self.other):
                self.give_rights(topic)
        # Higher than ours: it is lowered for the time of the plan, and has to be put back.
        self.set_theirs(ConfigResource.broker(DESTINATION), FOLLOWER_RATE, "90000000")
        self.set_theirs(ConfigResource.topic(self.kept), LEADER_REPLICAS, "7:7,0:1")

    def prepare(self, *, log_dirs: bool = False) -> Plan:
        """Furnish, and record an approved plan.

        :param log_dirs: of copies between the leaders' log dirs, and not to another broker.
        """
        self.furnish()
        if log_dirs:
            self.set_theirs(ConfigResource.broker(LEADER), LOG_DIR_RATE, "90000000")
            return self._record([self._within(*at) for at in self._led()])
        return self.record(DESTINATION)

    def record(self, to: BrokerId) -> Plan:
        """A plan that brings a replica of each partition to a broker."""
        moves = [
            move(self.kept, 0, (LEADER, FOLLOWER), (to, FOLLOWER), MESSAGES * MESSAGE_BYTES),
            move(self.kept, 1, (FOLLOWER, LEADER), (FOLLOWER, to), MESSAGES * MESSAGE_BYTES),
            move(self.other, 0, (FOLLOWER, LEADER), (FOLLOWER, to), MESSAGES * MESSAGE_BYTES),
        ]
        return self._record(moves)

    def left(self) -> list[TopicPartition]:
        """What a drain of the leader, of this site's topics, would find there."""
        names = tuple(filter(None, (self.kept, self.other, self.late)))
        request = ReassignmentRequest(Action.DRAIN, brokers=(LEADER,), topics=names)
        return [
            item.partition
            for item in wait_until_drained(OwnCluster.itself(self.gateway), request).left
        ]

    def record_follow_up(self) -> Plan:
        """A plan that takes the late topic away."""
        return self._record([move(self.late, 0, (LEADER,), (DESTINATION,), 0)])

    def _led(self) -> list[tuple[TopicPartition, tuple[BrokerId, ...]]]:
        kept = [TopicPartition(self.kept, number) for number in range(2)]
        return [
            (kept[0], (LEADER, FOLLOWER)),
            (kept[1], (FOLLOWER, LEADER)),
            (TopicPartition(self.other, 0), (FOLLOWER, LEADER)),
        ]

    def _within(self, partition: TopicPartition, replicas: tuple[BrokerId, ...]) -> Move:
        """Its leader's replica goes to the broker's other log dir."""
        (here,) = self.log_dirs_of(partition, replicas[0])
        (there,) = {str(path) for path in self.cluster.log_dirs(replicas[0])} - {here}
        dirs = (here, ANY_LOG_DIR), (there, ANY_LOG_DIR)
        return move(*partition, replicas, replicas, MESSAGES * MESSAGE_BYTES, *dirs)

    def log_dirs_of(self, partition: TopicPartition, broker: BrokerId) -> list[str]:
        """Where a broker has a partition: two log dirs while one is copied to the other."""
        found = self.gateway.describe_log_dirs([broker], [partition]).value
        return [log_dir.path for log_dir in found if partition in log_dir.replicas]

    def _record(self, moves: Sequence[Move]) -> Plan:
        name = f"plan-{os.getpid()}-{next(_serial)}"
        plan = make_plan(name, *moves, cluster_id=self.cluster.cluster_id)
        with Ledger.open(self.ledger_url) as ledger:
            ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "test")
            ledger.approve(plan.plan_id, plan.plan_hash, "test")
        return plan

    def give_rights(self, topic: str) -> None:
        """Let the run's user see and throttle a topic."""
        for operation in _OF_TOPICS:
            self.cluster.allow(self.user, operation, "topic", topic)
        self._visible.add(topic)

    def take_rights(self, topic: str) -> None:
        """From the run's user."""
        for operation in _OF_TOPICS:
            self.cluster.revoke(self.user, operation, "topic", topic)
        self._visible.discard(topic)

    def workload(self) -> Workload:
        """A producer to the topic that is kept, which knows what was acknowledged."""
        settings = self.cluster.client_settings()
        return Workload(settings, {self.kept: 2}, messages_per_s=40, consume=False)

    def set_theirs(self, resource: ConfigResource, key: str, value: str) -> None:
        """Set what has to stand in the end."""
        set_config(self.gateway, resource, key, value)
        self.theirs[resource, key] = value

    def append_theirs(self, resource: ConfigResource, key: str, item: str) -> None:
        """Add to a list, of which in the end this and what was there before has to stand."""
        change = ConfigChange(resource, key, ConfigOperation.APPEND, item)
        assert self.gateway.alter_configs([change]) == {resource: None}
        known = self.theirs.get((resource, key))
        self.theirs[resource, key] = f"{known},{item}" if known else item

    def alive(self) -> set[BrokerId]:
        """Brokers in a fresh metadata answer."""
        return set(self.gateway.describe_cluster().brokers)

    def replicas(self, partition: TopicPartition) -> tuple[BrokerId, ...]:
        return replicas_of(self.gateway, *partition)

    def repair(self) -> None:
        """Start what does not run."""
        if CONTROLLER_ID not in self.cluster.pids:
            self.cluster.start_controller()
        for broker in self.cluster.broker_ids:
            if broker not in self.cluster.pids:
                self.cluster.restart(broker)
            else:
                self.cluster.resume(broker)
        wait_until(lambda: len(self.alive()) == len(BROKERS), "every broker", 240)

    def tidy(self) -> None:
        """Leave the brokers as they were found, whatever has failed."""
        self.repair()
        for topic in tuple(self._visible):
            self.take_rights(topic)
        self.topics.delete_all()
        wait_until(lambda: not self.gateway.list_reassignments(), "nothing in flight")
        left = [
            ConfigChange(resource, key, ConfigOperation.DELETE)
            for resource, key in throttle_settings(self.gateway)
        ]
        if left:
            self.gateway.alter_configs(left)


def check_throttles(site: Site, ledger: Ledger) -> None:
    """Nothing of ours is left, and everything of theirs: on the cluster and in the journal."""
    there = site.gateway.describe_topics([site.kept, site.other, *site.topics.created])
    names = [name for name, topic in there.items() if topic.error is None]
    gone = {ConfigResource.topic(name) for name in there if name not in names}
    expected = {where: value for where, value in site.theirs.items() if where[0] not in gone}

    def as_expected() -> bool:
        found = throttle_settings(site.gateway, *names)
        # A list of which everything was taken stays, empty: it throttles nothing.
        return {w: v for w, v in found.items() if v or w in expected} == expected

    wait_until(as_expected, f"these throttles, and no others: {expected}", 240)
    assert not ledger.throttles(open_only=True)


def check_ledger(plan: Plan, ledger: Ledger) -> None:
    """Every move has ended, and each start of one has an outcome of its own."""
    record = ledger.plan(plan.plan_id)
    assert record.state in (PlanState.DONE, PlanState.FAILED), record.cause
    states = ledger.view(plan.plan_id).moves
    assert all(state is not MoveState.ADMITTED for state in states.values()), states
    starts = ledger.reassignments(plan.plan_id)
    back = [start for start in starts if start.detail.startswith("it was not sent yet")]
    assert all((start.sent_at, start.outcome) == (None, MoveState.CANCELLED) for start in back)
    made = [start.partition for start in starts if start not in back]
    assert len(set(made)) == len(made), "a move was started twice"
    assert all(start.outcome for start in starts)
