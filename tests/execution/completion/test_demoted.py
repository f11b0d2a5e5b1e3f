"""Which partitions count as led by a demoted broker, by the answers of brokers."""

from __future__ import annotations

from typing import cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.actions import Action
from rehome.domain.kafka import Broker, ClusterDescription, PartitionState, TopicDescription
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion.demoted import read_demoted
from rehome.execution.completion.words.end_words import demotion_text

DEMOTE = ReassignmentRequest(Action.DEMOTE, brokers=(3,))


class Seen:
    """A broker's answers: a fake, for real brokers elect by themselves."""

    def __init__(self, state: PartitionState) -> None:
        self._topic = TopicDescription("t", "id", False, {0: state})

    def describe_cluster(self) -> ClusterDescription:
        brokers = {broker: Broker(broker, "sim", 0, None) for broker in (1, 2, 3)}
        return ClusterDescription("sim", None, brokers, None)

    def current_topics(self, names: None) -> dict[str, TopicDescription]:
        return {"t": self._topic}


@pytest.mark.parametrize(
    ("state", "reported"),
    [
        (PartitionState(1, (1, 3), frozenset({1, 3})), "leads nothing that others could lead."),
        (PartitionState(3, (1, 3), frozenset({1, 3})), "still leads, or is preferred for: t-0."),
        (PartitionState(1, (3, 1), frozenset({1, 3})), "still leads, or is preferred for: t-0."),
        (
            PartitionState(3, (1, 3), frozenset({3})),
            "No other broker has a replica in sync of: t-0.",
        ),
    ],
)
def test_leaders_and_preferred_leaders_are_found(state: PartitionState, reported: str) -> None:
    cluster = OwnCluster.itself(cast(ClusterPort, Seen(state)))
    assert reported in demotion_text(read_demoted(cluster, DEMOTE).to_json())
