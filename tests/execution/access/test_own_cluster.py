"""The cluster of a plan, known by its id. What a real cluster cannot be made to do is simulated."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

import pytest

from rehome.cluster.interface.errors import ClusterUnreachableError, Unreachable
from rehome.cluster.interface.port import ClusterPort
from rehome.domain.kafka import ClusterDescription
from rehome.execution.access.lease import hold
from rehome.execution.access.own_cluster import OwnCluster, WrongClusterError
from rehome.ledger.store import Ledger
from tests.execution.simulated_cluster import SimulatedCluster


class Readdressed(SimulatedCluster):
    """Its addresses may come to belong to another cluster, or to none."""

    name = "kafka_default"

    def __init__(self) -> None:
        super().__init__([1, 2], [])
        self.cluster_id: str | None = "sim"
        self.asked: list[str] = []

    def describe_cluster(self) -> ClusterDescription:
        self.asked.append("describe_cluster")
        if self.cluster_id is None:
            raise ClusterUnreachableError("No broker answers", cause=Unreachable.NO_ANSWER)
        return replace(super().describe_cluster(), cluster_id=self.cluster_id)

    def finalized_features(self) -> dict[str, int]:
        self.asked.append("finalized_features")
        return {}


@pytest.fixture
def cluster() -> Readdressed:
    return Readdressed()


def own_of(cluster: Readdressed, cluster_id: str = "sim") -> OwnCluster:
    return OwnCluster.of(cast(ClusterPort, cluster), cluster_id, "p1", "kafka_default")


def test_the_id_is_read_before_the_first_call_passes_and_once(cluster: Readdressed) -> None:
    own = own_of(cluster)
    own.finalized_features()
    own.finalized_features()
    assert cluster.asked == ["describe_cluster", "finalized_features", "finalized_features"]


def test_no_call_ever_passes_to_another_cluster(cluster: Readdressed) -> None:
    own = own_of(cluster, "another")
    for _ in range(2):
        with pytest.raises(WrongClusterError, match="Nothing was changed on either cluster"):
            own.finalized_features()
    assert "finalized_features" not in cluster.asked


def test_a_cluster_that_is_away_is_compared_by_its_first_answer(cluster: Readdressed) -> None:
    own, cluster.cluster_id = own_of(cluster, "another"), None
    own.compare()
    with pytest.raises(ClusterUnreachableError):
        own.finalized_features()
    cluster.cluster_id = "sim"
    with pytest.raises(WrongClusterError):
        own.finalized_features()
    assert "finalized_features" not in cluster.asked


def test_addresses_that_come_to_belong_to_another_cluster_are_noticed(
    cluster: Readdressed,
) -> None:
    own = own_of(cluster)
    own.compare()
    cluster.cluster_id = "rebuilt"
    with pytest.raises(WrongClusterError) as refused:
        own.describe_cluster()
    assert (refused.value.cluster_id, refused.value.found_id) == ("sim", "rebuilt")
    assert "Connection kafka_default leads to cluster rebuilt" in str(refused.value)
    assert "led to the right cluster before" in str(refused.value)
    with pytest.raises(WrongClusterError):
        own.finalized_features()


def test_no_lease_is_taken_through_the_wrong_connection(
    cluster: Readdressed, ledger: Ledger
) -> None:
    with (
        pytest.raises(WrongClusterError),
        hold(ledger, own_of(cluster, "another"), "run-1", 60.0),
    ):
        pass
    assert ledger.holder("another") is None
    assert ledger.holder("sim") is None


def test_the_check_of_the_cluster_id_holds_under_the_lease(
    cluster: Readdressed, ledger: Ledger
) -> None:
    with hold(ledger, own_of(cluster), "run-1", 60.0) as held:
        held.cluster.finalized_features()
    assert cluster.asked == ["describe_cluster", "finalized_features"]
