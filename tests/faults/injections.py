"""How each fault of the matrix is caused: with real processes and requests where possible.

Only what real brokers cannot be made to do at a chosen moment is put in at the port: an answer
that is lost, and NOT_CONTROLLER, which needs a second controller.
"""

from __future__ import annotations

import json
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.process.waiting import wait_until
from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.run.states import MoveState
from rehome.execution.throttle.keys import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
)
from rehome.execution.throttle.ownership.marks import DEFAULT
from rehome.ledger.store import Ledger
from tests.faults.matrix import Fault, Moment
from tests.faults.site import DESTINATION, ELSEWHERE, FOLLOWER, LEADER, MESSAGES, Site

STOPPED_S = 30.0
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


class Broken(Exception):
    """A bug: an exception that no code expects or catches."""


class Injection(ABC):
    """One fault at one moment, which ends as it strikes unless it says otherwise.

    :param lasting: it goes on until the run is over.
    :param copies_go_on: copies are fast once it has struck, and not only when it is over.
    """

    lasting = False
    copies_go_on = False

    def __init__(self, site: Site, moment: Moment) -> None:
        self.site = site
        self.moment = moment
        self.fixed = False

    def around(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """In the place of the call that is struck."""
        if self.moment is Moment.AFTER_RPC:
            answer = call(*args, **options)
            self.strike()
            return answer
        self.strike()
        return call(*args, **options)

    @abstractmethod
    def strike(self) -> None:
        """Bring it about."""

    def due(self) -> bool:
        """Whether it is to end now; asked after every step once it has struck."""
        return not self.lasting

    def fix(self) -> None:  # noqa: B027 - most faults have nothing to end
        """End what it has begun."""


class Exceptional(Injection):
    def strike(self) -> None:
        raise Broken("a bug")


class NoReply(Injection):
    """At the port: the request never arrives, or arrives and its answer does not."""

    def around(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.moment is not Moment.BEFORE_RPC:
            call(*args, **options)
        self.strike()

    def strike(self) -> None:
        raise ClusterError("The request got no answer", error=ErrorCode.REQUEST_TIMED_OUT.error())


class NotController(Injection):
    """At the port: refused as a whole, or (configs) resource by resource."""

    def around(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if self.moment is not Moment.CLEARING:
            self.strike()
        return {change.resource: ErrorCode.NOT_CONTROLLER.error() for change in args[0]}

    def strike(self) -> None:
        raise ClusterError("The request was refused", error=ErrorCode.NOT_CONTROLLER.error())


class ControllerRestarted(Injection):
    def strike(self) -> None:
        self.site.cluster.stop_controller()

    def fix(self) -> None:
        self.site.cluster.start_controller()
        wait_until(self._answers, "the controller to answer", 240)

    def _answers(self) -> bool:
        try:
            self.site.gateway.list_reassignments()
        except ClusterError:
            return False
        return True


class BrokerKilled(Injection):
    broker: BrokerId = DESTINATION

    def strike(self) -> None:
        self.site.cluster.kill(self.broker)


class DestinationLost(BrokerKilled):
    lasting = True


class LeaderKilled(BrokerKilled):
    broker = LEADER
    lasting = True


class BystanderKilled(BrokerKilled):
    """It is in every target, and nothing is copied to it: for good, once moves are on their way.

    Moves with a dead broker in their target are not started, so before that it comes back.
    """

    broker = FOLLOWER

    def __init__(self, site: Site, moment: Moment) -> None:
        super().__init__(site, moment)
        self.lasting = moment is not Moment.BEFORE_LEDGER

    def due(self) -> bool:
        return self.broker not in self.site.alive()

    def fix(self) -> None:
        self.site.cluster.restart(self.broker)


class DestinationRestarted(BrokerKilled):
    def due(self) -> bool:
        """As soon as the run has had the chance to see that it is away."""
        return self.broker not in self.site.alive()

    def fix(self) -> None:
        self.site.cluster.restart(self.broker)


class BrokerStopped(Injection):
    broker: BrokerId = DESTINATION
    _since = 0.0

    def strike(self) -> None:
        self.site.cluster.pause(self.broker)
        self._since = time.monotonic()

    def due(self) -> bool:
        return time.monotonic() - self._since > STOPPED_S

    def fix(self) -> None:
        self.site.cluster.resume(self.broker)


class LeaderStopped(BrokerStopped):
    broker = LEADER


class TopicDeleted(Injection):
    def strike(self) -> None:
        topics = self.site.topics
        topics.admin.delete_topics([self.site.other])[self.site.other].result(120)


class TopicCreated(Injection):
    def strike(self) -> None:
        self.site.late = self.site.topics.create([[LEADER]], "late")


class ForeignReassignment(Injection):
    """Of a topic that the plan does not know, slowed down by throttles of its own."""

    target = (FOLLOWER, ELSEWHERE)

    def __init__(self, site: Site, moment: Moment) -> None:
        super().__init__(site, moment)
        self.topic = site.topics.create([[FOLLOWER, LEADER]], "theirs")
        site.topics.fill(self.topic, MESSAGES)
        site.set_theirs(ConfigResource.topic(self.topic), FOLLOWER_REPLICAS, f"0:{ELSEWHERE}")
        site.set_theirs(ConfigResource.broker(ELSEWHERE), FOLLOWER_RATE, "100000")

    def strike(self) -> None:
        start(self.site, TopicPartition(self.topic, 0), self.target)

    def fix(self) -> None:
        assert TopicPartition(self.topic, 0) in self.site.gateway.list_reassignments()
        self.site.set_theirs(ConfigResource.broker(ELSEWHERE), FOLLOWER_RATE, "80000000")


class Superseded(Injection):
    target = (FOLLOWER, ELSEWHERE)

    def strike(self) -> None:
        start(self.site, TopicPartition(self.site.other, 0), self.target)


class ForeignThrottle(Injection):
    """Another client adds to our lists and next to our rates, and overrules a rate of ours."""

    def strike(self) -> None:
        site = self.site
        site.append_theirs(ConfigResource.topic(site.kept), FOLLOWER_REPLICAS, "8:8")
        site.set_theirs(ConfigResource.broker(FOLLOWER), LEADER_RATE, "123456789")
        if self.moment is not Moment.CLEARING:  # there is no way to take back only if unchanged
            site.set_theirs(DEFAULT, LEADER_RATE, "77777777")


class ThrottlesDeleted(Injection):
    """By Kafka's own tool, given partitions of the plan's topics that do not exist.

    Its ``--verify`` does the same (KIP-455), but only while nothing at all is in flight.
    """

    def strike(self) -> None:
        site = self.site
        file = Path(site.cluster.directory) / "theirs.json"
        file.write_text(json.dumps(to_nowhere(site.kept, site.other)))
        done = site.cluster.run_tool(TOOL, "--reassignment-json-file", str(file), "--cancel")
        assert "Clearing topic-level throttles on topics" in done.stdout, done.stdout
        del site.theirs[ConfigResource.topic(site.kept), LEADER_REPLICAS]
        if self.moment is not Moment.CLEARING:  # else it is put back: that was decided before
            del site.theirs[ConfigResource.broker(DESTINATION), FOLLOWER_RATE]


def to_nowhere(*topics: str) -> dict[str, object]:
    """Kafka's reassignment JSON for a partition of each topic that there is none of."""
    rows = [{"topic": name, "partition": 99, "replicas": [LEADER, FOLLOWER]} for name in topics]
    return {"version": 1, "partitions": rows}


class RightsRevoked(Injection):
    """Of one topic of the plan. They are given back when the others have arrived without it."""

    copies_go_on = True

    def strike(self) -> None:
        self.site.take_rights(self.site.other)

    def due(self) -> bool:
        if self.moment is Moment.CLEARING:
            return True
        with Ledger.open(self.site.ledger_url) as ledger:
            (record,) = ledger.plans()
            states = ledger.view(record.plan_id).moves
        arrived = {partition.topic for partition, s in states.items() if s is MoveState.DONE}
        assert self.site.other not in arrived, "what cannot be read is not settled"
        left = {partition.topic for partition, s in states.items() if s is not MoveState.DONE}
        return left == {self.site.other}

    def fix(self) -> None:
        self.site.give_rights(self.site.other)


class LedgerLocked(Injection):
    """Another process writes for longer than any task waits."""

    _writer: sqlite3.Connection

    def strike(self) -> None:
        self._writer = sqlite3.connect(_file(self.site), isolation_level=None)
        self._writer.execute("BEGIN IMMEDIATE")

    def fix(self) -> None:
        self._writer.rollback()
        self._writer.close()


class LedgerAway(Injection):
    """Nothing that can be opened is where the database was."""

    def strike(self) -> None:
        for name in self._names():
            name.rename(name.with_name(f"away-{name.name}"))
        _file(self.site).mkdir()

    def fix(self) -> None:
        _file(self.site).rmdir()
        for name in _file(self.site).parent.glob("away-*"):
            name.rename(name.with_name(name.name.removeprefix("away-")))

    def _names(self) -> list[Path]:
        return list(_file(self.site).parent.glob(f"{_file(self.site).name}*"))


def start(site: Site, partition: TopicPartition, target: tuple[BrokerId, ...]) -> None:
    """Reassign as another client."""
    assert site.gateway.alter_reassignments({partition: target}) == {partition: None}


def _file(site: Site) -> Path:
    return Path(site.ledger_url.removeprefix("sqlite:///"))


INJECTIONS: dict[Fault, type[Injection]] = {
    Fault.EXCEPTION: Exceptional,
    Fault.NO_REPLY: NoReply,
    Fault.NOT_CONTROLLER: NotController,
    Fault.CONTROLLER_RESTARTED: ControllerRestarted,
    Fault.DESTINATION_LOST: DestinationLost,
    Fault.DESTINATION_RESTARTED: DestinationRestarted,
    Fault.LEADER_KILLED: LeaderKilled,
    Fault.DESTINATION_STOPPED: BrokerStopped,
    Fault.LEADER_STOPPED: LeaderStopped,
    Fault.BYSTANDER_KILLED: BystanderKilled,
    Fault.TOPIC_DELETED: TopicDeleted,
    Fault.TOPIC_CREATED: TopicCreated,
    Fault.FOREIGN_REASSIGNMENT: ForeignReassignment,
    Fault.SUPERSEDED: Superseded,
    Fault.FOREIGN_THROTTLE: ForeignThrottle,
    Fault.THROTTLES_DELETED: ThrottlesDeleted,
    Fault.RIGHTS_REVOKED: RightsRevoked,
    Fault.LEDGER_LOCKED: LedgerLocked,
    Fault.LEDGER_AWAY: LedgerAway,
}
"""All but the one that needs a process of its own (:class:`tests.faults.tasks.Errand`), and those
of which the operators are called."""
