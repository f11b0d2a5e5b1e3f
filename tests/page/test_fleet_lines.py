"""The fleet: each cluster once, whether a snapshot, the file or both know of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.account.clusters.cluster_brokers import broker_states
from rehome.account.clusters.cluster_facts import BrokerState, imbalance
from rehome.page.fleet import FleetMember, members
from tests.quality.snapshots import Rows


def brokers(*held: tuple[int | None, int | None]) -> list[BrokerState]:
    """Stored bytes and size of the disks of each broker."""
    like = broker_states(Rows().snapshot())[0]
    return [
        replace(like, broker=number, size_bytes=size, total_bytes=total)
        for number, (size, total) in enumerate(held)
    ]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([(10, 100), (10, 100)], 0.0),
        ([(30, 100), (10, 100)], 0.5),
        ([(20, 100), (40, 200)], 0.0),
        ([(0, 100), (0, 100)], 0.0),
        ([(30, None), (10, 100)], None),
        ([(None, 100), (10, 100)], None),
        ([], None),
    ],
)
def test_the_imbalance_is_that_of_the_fullest_broker_by_the_size_of_its_disks(
    held: list[tuple[int | None, int | None]], expected: float | None
) -> None:
    found = imbalance(brokers(*held))
    assert found == (None if expected is None else pytest.approx(expected))


def test_each_cluster_is_listed_once_by_the_name_that_people_know() -> None:
    known = {"kafka_berlin": "id-berlin", "kafka_other": "id-other"}
    found = members(
        {"berlin": "kafka_berlin", "oslo": "kafka_oslo"}, known, ["id-other", "id-berlin", "id-x"]
    )
    assert found == [
        FleetMember("berlin", "kafka_berlin", "id-berlin"),
        FleetMember("oslo", "kafka_oslo", ""),
        FleetMember("", "kafka_other", "id-other"),
        FleetMember("", "", "id-x"),
    ]
    assert [member.title for member in found] == ["berlin", "oslo", "id-other", "id-x"]
