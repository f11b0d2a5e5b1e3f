"""Topics on which brokers do not agree are asked again, and never judged by a broker that may be
cut off.

In memory, as a cluster without a metadata quorum leaves them out of its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import cast

import pytest

from rehome.cluster.interface.errors import BrokersDisagreeError
from rehome.domain.kafka import BrokerError, PartitionState, TopicDescription, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.advance import advance
from rehome.execution.completion.preferred_leaders import (
    restore_preferred_leaders,
)
from rehome.execution.completion.words.end_words import not_elected_text, restored_text
from rehome.execution.control.cancel import abort
from rehome.execution.observation import agreed_topics as agreed
from rehome.execution.observation.agreed_topics import agreed_topics
from rehome.execution.observation.drift import DriftError, refuse_drift
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move

MOVES = move("t", 0, (1, 2), (3, 2)), move("u", 0, (1, 2), (3, 2))
FIRST, SECOND = (item.partition for item in MOVES)


class Divided(SimulatedCluster):
    """Its brokers do not agree on some topics; what one of them shows is the last that all knew.

    :ivar differ_on: topics, each with how many more readings they differ in.
    """

    def __init__(self, *args: Collection[object]) -> None:
        super().__init__(*args)  # type: ignore[arg-type]
        self.differ_on: dict[str, int] = {}
        self.asked: list[set[str]] = []
        self.elected: list[TopicPartition] = []

    def current_topics(self, names: Collection[str] | None) -> dict[str, TopicDescription]:
        self.asked.append(set(names or ()))
        wanted = {part.topic for part in self.replicas} if names is None else set(names)
        out = {name for name in wanted if self.differ_on.get(name, 0)}
        for name in out:
            self.differ_on[name] -= 1
        if names is None and out:
            raise BrokersDisagreeError("they differ")
        return self.describe_topics(wanted - out)

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        self.elected += partitions
        return dict.fromkeys(partitions)


class LedByAnother(Divided):
    """The last replica leads, until another one is elected."""

    def state_of(self, partition: TopicPartition, replicas: tuple[int, ...]) -> PartitionState:
        leader = replicas[0 if partition in self.elected else -1]
        return replace(super().state_of(partition, replicas), leader=leader)


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreed, "AGREED_TIMEOUT_S", 0)
    monkeypatch.setattr(agreed, "AGREED_POLL_S", 0)


FOR_EVER = 10**6


def test_all_topics_are_asked_for_at_once_and_only_those_left_out_again() -> None:
    cluster = Divided([1, 2, 3], MOVES)
    cluster.differ_on = {"u": 2}
    assert agreed_topics(cast(OwnCluster, cluster), ["t", "u"]).keys() == {"t", "u"}
    assert cluster.asked == [{"t", "u"}, {"u"}, {"u"}]


def test_an_order_that_brokers_do_not_agree_on_is_not_said_to_be_restored(
    ledger: Ledger, approved: Callable[..., Plan], no_waiting: None
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = Divided([1, 2, 3], plan.moves)
    port = cast(OwnCluster, cluster)
    assert len(advance(plan, ledger, port, Policy(1000, metadata_grace_s=0)).admitted) == 2
    cluster.differ_on = {"u": FOR_EVER}
    done = abort(plan.plan_id, ledger, port, "enough")
    assert (set(done.cancelled), set(done.unread)) == ({FIRST, SECOND}, {SECOND})
    assert (cluster.replicas[FIRST], cluster.replicas[SECOND]) == ((1, 2), (2, 1))
    assert set(ledger.view(plan.plan_id).moves.values()) == {MoveState.CANCELLED}
    (event,) = [
        item for item in ledger.events(plan.plan_id) if item.kind == EventKind.NOT_READ_AFTER_CANCEL
    ]
    assert "u-0" in event.detail
    assert "the brokers do not agree" in event.detail
    assert "t-0" not in event.detail


def test_an_order_is_restored_as_soon_as_brokers_agree(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = Divided([1, 2, 3], plan.moves)
    port = cast(OwnCluster, cluster)
    advance(plan, ledger, port, Policy(1000, metadata_grace_s=0))
    cluster.differ_on = {"u": 2}
    done = abort(plan.plan_id, ledger, port, "enough")
    assert (cluster.replicas[SECOND], done.unread) == ((1, 2), {})


def test_a_plan_whose_topics_brokers_do_not_agree_on_waits_and_is_not_said_to_have_drifted(
    no_waiting: None,
) -> None:
    cluster = Divided([1, 2, 3], MOVES)
    plan = make_plan("p", *MOVES, cluster_id="sim")
    cluster.differ_on = {"u": 1}
    refuse_drift(plan, cast(OwnCluster, cluster))  # they come to agree
    cluster.differ_on = {"u": FOR_EVER}
    with pytest.raises(BrokersDisagreeError, match="do not agree on topic u") as unknown:
        refuse_drift(plan, cast(OwnCluster, cluster))
    assert "the plan stays as it was" in str(unknown.value)
    cluster.replicas[FIRST] = (3, 1)
    with pytest.raises(DriftError, match=r"t-0 has replicas \[3, 1\]") as changed:
        refuse_drift(plan, cast(OwnCluster, cluster))
    assert "u-0" not in str(changed.value), "of which it is not known"


def test_a_move_does_not_start_while_brokers_do_not_agree_on_its_topic(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    plan = approved(*MOVES, cluster_id="sim")
    cluster = Divided([1, 2, 3], plan.moves)
    cluster.differ_on = {"u": 1}
    port, policy = cast(OwnCluster, cluster), Policy(1000, metadata_grace_s=0)
    assert advance(plan, ledger, port, policy).admitted == [FIRST]
    assert advance(plan, ledger, port, policy).admitted == [SECOND], "they agree by now"


def test_all_topics_are_asked_for_until_brokers_agree_on_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Divided([1, 2, 3], MOVES)
    cluster.differ_on = {"u": 2}
    assert agreed_topics(cast(OwnCluster, cluster), None).keys() == {"t", "u"}
    monkeypatch.setattr(agreed, "AGREED_TIMEOUT_S", 0)
    cluster.differ_on = {"u": FOR_EVER}
    with pytest.raises(BrokersDisagreeError):
        agreed_topics(cast(OwnCluster, cluster), None)


def test_a_leader_that_brokers_do_not_agree_on_does_not_lead_already(no_waiting: None) -> None:
    cluster = LedByAnother([1, 2, 3], MOVES)
    plan = make_plan("p", *MOVES, cluster_id="sim")
    cluster.differ_on = {"u": FOR_EVER}
    done = restore_preferred_leaders(plan, cast(OwnCluster, cluster), pause_s=0)
    assert (done.already, done.elected, done.unread) == (0, (FIRST,), (SECOND,))
    assert cluster.elected == [FIRST]
    assert not_elected_text(done.to_json()) == "u-0: who leads it is not known"
    assert "1 could not be read" in restored_text(done)
    cluster.differ_on = {"u": 2}
    again = restore_preferred_leaders(plan, cast(OwnCluster, cluster), pause_s=0)
    assert (again.already, again.elected, again.unread) == (1, (SECOND,), ())
