"""New partitions that were placed, judged by caps and broker sets that changed since."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rehome.domain.request.partition_counts import AddedPartitions, parse_partition_counts
from rehome.planning.placement.add_partitions import broken_by_placed, place
from tests.planning.clusters import Cluster, cluster

OF = cluster(["", "", "", ""], [(0, 1), (1, 0)])
ASKED: dict[str, Any] = {
    "partitions": {"t": 4},
    "new_topics": {"logs-a": {"partitions": 2, "replication_factor": 2}},
}


def placed(**limits: Any) -> AddedPartitions:
    return place(OF.snapshot(), parse_partition_counts(ASKED | limits), "p")


def broken(plan: AddedPartitions, of: Cluster = OF, **limits: Any) -> list[str]:
    return broken_by_placed(of.snapshot(), plan, parse_partition_counts(ASKED | limits))


def replicas_on(plan: AddedPartitions, broker: int) -> int:
    return sum(broker in row for row in plan.assignments.values())


def test_what_keeps_the_limits_of_now_is_let_through() -> None:
    limits: dict[str, Any] = {
        "caps": {"default": {"replicas": 9, "leaders": 5}, "brokers": {"3": {"replicas": 0}}},
        "broker_sets": [{"name": "slow", "topics": ["logs-*"], "brokers": [1, 2]}],
    }
    assert broken(placed()) == []
    assert broken(placed(**limits), **limits) == []


@pytest.mark.parametrize(("kind", "first"), [("replicas", slice(None)), ("leaders", slice(0, 1))])
def test_a_cap_counts_what_is_there_and_all_that_is_new(kind: str, first: slice) -> None:
    plan = placed()
    for broker in range(4):
        held = sum(broker in row[first] for row in OF.replicas.values())
        more = sum(broker in row[first] for row in plan.assignments.values())
        assert more > 0
        assert broken(plan, caps={"brokers": {str(broker): {kind: held + more}}}) == []
        (text,) = broken(plan, caps={"brokers": {str(broker): {kind: held + more - 1}}})
        assert f"broker {broker} would get" in text
        assert f"{kind} more, and its cap leaves room for" in text
    assert len({tp.topic for tp, row in plan.assignments.items() if 0 in row}) == 2


def test_a_set_of_now_names_topic_and_broker() -> None:
    plan = placed()
    logs = {b for tp, row in plan.assignments.items() if tp.topic == "logs-a" for b in row}
    sets = [{"name": "slow", "topics": ["logs-*"], "brokers": [min(logs)]}]
    texts = broken(plan, broker_sets=sets)
    assert texts == [
        f"logs-a: broker {b} is not of its broker set 'slow'." for b in sorted(logs - {min(logs)})
    ]
    exclusive = [{"name": "x", "topics": ["x"], "brokers": sorted(logs), "exclusive": True}]
    assert any(
        "it belongs to an exclusive set" in text for text in broken(plan, broker_sets=exclusive)
    )


def test_a_disk_that_is_above_its_cap_takes_nothing() -> None:
    plan = placed()
    of = replace(OF, disks={b: (1000, 100 if b == 0 else 900) for b in range(4)})  # usable
    assert replicas_on(plan, 0)
    assert broken(plan, of) == []
    (text,) = broken(plan, of, caps={"default": {"disk_fraction": 0.5}})
    assert text == "Broker 0 has no log dir with room by its cap on disks."


def test_brokers_that_are_gone_are_left_to_other_checks() -> None:
    plan = placed()
    fewer = cluster(["", ""], [(0, 1), (1, 0)])
    assert broken(plan, fewer, caps={"default": {"replicas": 99}}) == []
