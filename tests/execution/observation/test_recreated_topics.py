"""A topic that was deleted and created again is another topic: the plan leaves it alone.

In memory; test_recreated_topics_on_brokers shows it on real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import cast

import pytest

from rehome.domain.kafka import BrokerError, TopicDescription, TopicPartition
from rehome.domain.plan.plan import Plan
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import Finish
from rehome.execution.advance import advance
from rehome.execution.completion.preferred_leaders import (
    RestoredLeaders,
    restore_preferred_leaders,
)
from rehome.execution.completion.verify import GoneKind, verify
from rehome.execution.control.cancel import abort
from rehome.execution.decide import decide
from rehome.execution.observation.drift import drift
from rehome.execution.observation.drifted import Drift, DriftKind
from rehome.execution.observation.words.fate_words import RECREATED
from rehome.ledger.store import Ledger
from tests.execution.observed import POLICY, T0, TP, in_flight, running, seen
from tests.execution.simulated_cluster import SimulatedCluster
from tests.ledger.small_plans import make_plan, move

OURS = replace(move("t", 0, (1, 2), (3, 2), 5000), topic_id="old")
PLAN = make_plan("p", OURS)
NOTHING_LEFT = "nothing is left to move: 1 partition is gone, and the plan has no other"


def ended(plan: Plan, *, admitted: bool, topic_id: str) -> list[object]:
    """What is decided when the partition is found as planned, in flight if it was admitted."""
    view, found = in_flight(plan) if admitted else (running(plan), seen(plan))
    return list(decide(plan, view, replace(found, topic_ids={"t": topic_id}), T0, POLICY))


@pytest.mark.parametrize("admitted", [True, False])
def test_a_move_of_a_topic_that_was_created_again_is_gone_and_nothing_is_cancelled(
    admitted: bool,
) -> None:
    assert ended(PLAN, admitted=admitted, topic_id="new") == [
        Settle(TP[0], MoveState.GONE, RECREATED),
        Finish(
            PlanState.DONE,
            "nothing is left to move: 1 partition is gone, and the plan has no other",
        ),
    ]


@pytest.mark.parametrize(("planned", "found"), [("old", "old"), ("", "new"), ("old", "")])
def test_without_topic_ids_a_topic_is_known_by_its_name(planned: str, found: str) -> None:
    plan = make_plan("p", replace(OURS, topic_id=planned))
    assert ended(plan, admitted=True, topic_id=found) == []


class Recreated(SimulatedCluster):
    """Topics have the id "new" once :attr:`again` is set, else "old"."""

    again = False

    def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, BrokerError | None]:
        return dict.fromkeys(partitions)

    def describe_topics(
        self, names: Collection[str] | None = None, *, operations: bool = False
    ) -> dict[str, TopicDescription]:
        topic_id = "new" if self.again else "old"
        described = super().describe_topics(names, operations=operations)
        return {name: replace(topic, topic_id=topic_id) for name, topic in described.items()}


def test_an_abort_leaves_what_another_client_starts_on_the_new_topic_alone(
    ledger: Ledger, approved: Callable[..., Plan]
) -> None:
    plan = approved(OURS, cluster_id="sim")
    memory = Recreated([1, 2, 3], plan.moves)
    cluster = cast(OwnCluster, memory)
    policy = Policy(1000, metadata_grace_s=0)
    assert advance(plan, ledger, cluster, policy).admitted == [OURS.partition]
    memory.again = True  # and its owner makes the very same move
    abort(plan.plan_id, ledger, cluster, "enough")
    assert memory.targets == {OURS.partition: (3, 2)}
    assert ledger.view(plan.plan_id).moves == {OURS.partition: MoveState.GONE}


def test_the_new_topic_is_drift_is_not_verified_and_gets_no_election() -> None:
    memory = Recreated([1, 2, 3], PLAN.moves)
    memory.replicas[OURS.partition] = (3, 2)
    memory.again = True
    cluster = cast(OwnCluster, memory)
    assert drift(PLAN, cluster.describe_topics(["t"])) == {
        OURS.partition: Drift(DriftKind.OTHER_TOPIC)
    }
    proof = verify(PLAN, cluster)
    assert (proof.ok, proof.problems) == (True, {})
    assert proof.gone == {OURS.partition: GoneKind.CREATED_AGAIN}
    assert restore_preferred_leaders(PLAN, cluster) == RestoredLeaders(0, (), (), {})
