"""Items of lists are asked for when their mark has been answered: what others set before is theirs.

The request that writes the mark is lost, or arrives and is not answered; then another client sets
items that read like those that the plan needs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from rehome.cluster.interface.error_codes import ErrorCode
from rehome.cluster.interface.errors import ClusterError
from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import BrokerError, ConfigValue
from rehome.domain.plan.plan import Plan
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.throttle.clear import Cleared, clear_throttle, sweep
from rehome.execution.throttle.foreign import foreign_throttles
from rehome.execution.throttle.keys import FOLLOWER_REPLICAS, LEADER_REPLICAS, LISTS
from rehome.execution.throttle.ownership.lost import NOT_TOLD_APART
from rehome.execution.throttle.plan_throttle import Setting
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.base.records import SetBy, ThrottleEntry, ThrottleState
from tests.execution.throttle.ownership.box import Box
from tests.ledger.small_plans import move
from world.kafka.port import ModelPort

TOPIC = ConfigResource.topic("t")
MOVE = move("t", 0, (1, 2), (3, 2))
PLAN = "one"


class _Unanswered(ModelPort):
    """Marks of lists get no answer.

    :param arrives: the request has arrived.
    """

    def __init__(self, box: Box, *, arrives: bool) -> None:
        super().__init__(box.model, "User:rehome", "rehome")
        self._arrives = arrives

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, validate_only: bool = False
    ) -> dict[ConfigResource, BrokerError | None]:
        marks = any(change.key.startswith("rehome.lists.") for change in changes)
        answer = {} if marks and not self._arrives else super().alter_configs(changes)
        if marks:
            raise ClusterError("no answer", error=ErrorCode.REQUEST_TIMED_OUT.error("no answer"))
        return answer


def unanswered(box: Box, *, arrives: bool) -> Plan:
    plan = box.approved("a", PLAN, MOVE)
    port = OwnCluster.itself(_Unanswered(box, arrives=arrives))
    with pytest.raises(ClusterError, match="no answer"):
        set_up_throttle(plan, box.ledger("a"), port, 5_000_000)
    box.sleep(1)
    return plan


def entries(box: Box) -> dict[str, ThrottleEntry]:
    return {entry.key: entry for entry in box.ledger("a").throttles(PLAN, keys=LISTS)}


def ended(box: Box) -> Cleared:
    box.ledger("a").transition(PLAN, PlanState.CANCELLED, "enough")
    return clear_throttle(PLAN, box.ledger("a"), box.own)


def test_nothing_is_known_as_asked_before_the_mark_is_answered(box: Box) -> None:
    unanswered(box, arrives=False)
    assert {entry.state for entry in entries(box).values()} == {ThrottleState.INTENDED}
    assert {entry.asked_values for entry in entries(box).values()} == {()}
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    found = foreign_throttles(box.ledger("a"), box.own).throttles
    assert [(each.resource, each.value) for each in found] == [(TOPIC, "0:1,0:2")]


def test_what_others_set_meanwhile_stays_theirs_when_it_is_tried_again(box: Box) -> None:
    plan = unanswered(box, arrives=False)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    set_up_throttle(plan, box.ledger("a"), box.own, 5_000_000)
    leader, follower = (entries(box)[key] for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS))
    assert (leader.state, leader.set_by) == (ThrottleState.CLEARED, SetBy.OTHERS)
    assert (follower.state, follower.ours) == (ThrottleState.APPLIED, ("0:3",))
    ended(box)
    assert [box.holds(TOPIC, key) for key in LISTS] == ["0:1,0:2", None]
    assert box.marks == set()


def test_what_is_still_missing_is_asked_for_anew(box: Box) -> None:
    plan = unanswered(box, arrives=False)
    box.set(TOPIC, LEADER_REPLICAS, "0:1")
    set_up_throttle(plan, box.ledger("a"), box.own, 5_000_000)
    leader = entries(box)[LEADER_REPLICAS]
    assert (leader.ours, leader.prior_value) == (("0:2",), "0:1")
    ended(box)
    assert [box.holds(TOPIC, key) for key in LISTS] == ["0:1", None]


def test_what_was_never_asked_is_not_taken_away(box: Box) -> None:
    unanswered(box, arrives=False)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    done = ended(box)
    assert box.holds(TOPIC, LEADER_REPLICAS) == "0:1,0:2"
    assert {entry.key for entry in done.changed_by_others} == {LEADER_REPLICAS}
    assert done.owed == ()


def test_lists_that_nobody_has_changed_are_as_they_were(box: Box) -> None:
    unanswered(box, arrives=True)
    done = ended(box)
    assert [box.holds(TOPIC, key) for key in LISTS] == [None, None]
    assert (done.changed_by_others, done.owed, box.marks) == ((), (), set())


def test_where_the_mark_is_there_nobody_knows_and_a_person_decides(box: Box) -> None:
    """The ledger may have been restored from when nothing had been asked."""
    unanswered(box, arrives=True)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    owed = ended(box).owed
    assert [(e.key, e.state, e.detail) for e in owed] == [
        (LEADER_REPLICAS, ThrottleState.OWED, NOT_TOLD_APART)
    ]
    assert sweep(box.ledger("a"), box.own, "model").owed != ()
    assert box.holds(TOPIC, LEADER_REPLICAS) == "0:1,0:2"
    box.set(TOPIC, LEADER_REPLICAS, None)
    assert sweep(box.ledger("a"), box.own, "model").owed == ()
    assert box.marks == set()


def test_it_is_not_forgotten_when_the_topic_cannot_be_read(box: Box) -> None:
    unanswered(box, arrives=False)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    box.ledger("a").transition(PLAN, PlanState.CANCELLED, "enough")
    clear_throttle(PLAN, box.ledger("a"), OwnCluster.itself(_Unread(box)))
    assert {entry.state for entry in entries(box).values()} == {ThrottleState.INTENDED}
    assert sweep(box.ledger("a"), box.own, "model").owed == ()
    assert box.holds(TOPIC, LEADER_REPLICAS) == "0:1,0:2"


def test_another_plan_does_not_take_it_over(box: Box) -> None:
    unanswered(box, arrives=False)
    box.set(TOPIC, LEADER_REPLICAS, "0:1,0:2")
    second = box.approved("a", "two", MOVE)
    Setting(second, box.ledger("a"), box.own).lists(second.moves, trim=False)
    own = {e.key: e.ours for e in box.ledger("a").throttles("two", open_only=True, keys=LISTS)}
    assert own == {FOLLOWER_REPLICAS: ("0:3",)}


class _Unread(ModelPort):
    """Topics do not show their configuration."""

    def __init__(self, box: Box) -> None:
        super().__init__(box.model, "User:rehome", "rehome")

    def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str] | None = None
    ) -> dict[ConfigResource, dict[str, ConfigValue] | BrokerError]:
        refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED.error("no")
        found = super().describe_configs(resources, keys)
        return found | ({TOPIC: refused} if TOPIC in found else {})
