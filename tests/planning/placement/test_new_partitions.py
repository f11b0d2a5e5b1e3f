from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehome.domain.kafka import TopicPartition
from rehome.domain.request.partition_counts import AddedPartitions, parse_partition_counts
from rehome.errors import InvalidRequestError
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.placement.add_partitions import place, unevenly_placed
from rehome.planning.placement.new_partitions import (
    NewPartitions,
    assign_replicas,
    create_replica_assignment,
)
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.placement.evenness import is_even
from tests.planning.strategies import clusters

SIX = ["/r0", "/r1", "/r2", "/r0", "/r1", "/r2"]


def created(
    of: Cluster,
    topic: str = "new",
    count: int = 1,
    replication_factor: int | None = None,
    **options: Any,
) -> dict[TopicPartition, tuple[int, ...]]:
    arrays = ClusterArrays.from_snapshot(of.snapshot())
    return create_replica_assignment(
        arrays, NewPartitions(topic, count, replication_factor, **options)
    )


def refusal(of: Cluster, **wanted: Any) -> str:
    with pytest.raises(InvalidRequestError) as refused:
        created(of, **wanted)
    return " ".join(refused.value.problems)


def spread_of(rows: Iterable[tuple[int, ...]], brokers: int, place: slice = slice(None)) -> int:
    count = Counter(broker for row in rows for broker in row[place])
    return max(count[b] for b in range(brokers)) - min(count[b] for b in range(brokers))


def test_partitions_added_to_a_topic_go_on_where_its_last_one_left_the_rings() -> None:
    of = cluster(["/A", "/A", "/B", "/B"], [(0, 2, 1), (3, 0, 2)])
    # The root points at A, A at 1, B at 3 (see the trace of two racks and three replicas).
    assert created(of, "t", 2) == {
        TopicPartition("t", 2): (1, 3, 0),
        TopicPartition("t", 3): (2, 1, 3),
    }


def test_a_new_topic_is_spread_evenly_over_racks_brokers_and_leaders() -> None:
    rows = list(created(cluster(SIX, [(0,)]), count=18, replication_factor=3).values())
    assert spread_of(rows, 6) == 0
    assert spread_of(rows, 6, slice(0, 1)) == 0
    assert all({broker % 3 for broker in row} == {0, 1, 2} for row in rows)


def test_topics_begin_at_different_brokers_and_a_seed_repeats_them() -> None:
    of = cluster(SIX, [(0,)])
    first = {topic: created(of, topic, 1, 3)[TopicPartition(topic, 0)] for topic in "abcdefghijkl"}
    assert len(set(first.values())) > 3
    assert first == {topic: created(of, topic, 1, 3)[TopicPartition(topic, 0)] for topic in first}
    assert created(of, "a", 1, 3) != created(of, "a", 1, 3, seed=1)


@examples(60)
@given(
    of=clusters(max_depth=3),
    count=st.integers(1, 5),
    more=st.integers(1, 5),
    seed=st.integers(0, 3),
)
def test_adding_in_two_steps_gives_what_adding_at_once_gives(
    of: Cluster, count: int, more: int, seed: int
) -> None:
    replicas = min(3, len(of.racks))
    once = created(of, "new", count + more, replicas, seed=seed)
    first = created(of, "new", count, replicas, seed=seed)
    grown = replace(
        of, replicas={**of.replicas, **first}, sizes={**of.sizes, **dict.fromkeys(first, 0)}
    )
    assert {**first, **created(grown, "new", more, seed=seed)} == once


@examples(100)
@given(
    of=clusters(max_depth=4, partly=True),
    dead=st.sets(st.integers(0, 6), max_size=1),
    excluded=st.sets(st.integers(0, 6), max_size=1),
    cordoned=st.sets(st.integers(0, 6), max_size=1),
    replicas=st.integers(1, 4),
    simple=st.booleans(),
)
def test_new_partitions_lie_on_distinct_willing_brokers_as_evenly_as_the_tree_allows(
    of: Cluster, dead: set[int], excluded: set[int], cordoned: set[int], replicas: int, simple: bool
) -> None:
    of = replace(of, dead=frozenset(dead), cordoned=frozenset(cordoned))
    excluded &= set(of.racks)
    willing = set(of.racks) - dead - excluded - cordoned
    wanted: dict[str, Any] = {
        "count": 7,
        "replication_factor": replicas,
        "exclude_brokers": tuple(excluded),
        "force_simple_assignment": simple,
    }
    if replicas > len(willing):
        assert f"only {len(willing)} brokers" in refusal(of, **wanted)
        return
    rows = list(created(of, **wanted).values())
    paths = {b: tuple(part for part in rack.split("/") if part) for b, rack in of.racks.items()}
    for row in rows:
        assert len(set(row)) == replicas
        assert set(row) <= willing
        assert simple or is_even(row, paths, willing)


def test_simple_assignment_stripes_as_kafka_does() -> None:
    # The table in Kafka's own documentation of this algorithm: ten partitions, five brokers.
    begun = cluster([""] * 5, [(0, 1, 2)])
    rows = [(0, 1, 2), *created(begun, "t", 9, force_simple_assignment=True).values()]
    assert rows == [
        (0, 1, 2),
        (1, 2, 3),
        (2, 3, 4),
        (3, 4, 0),
        (4, 0, 1),
        (0, 2, 3),
        (1, 3, 4),
        (2, 4, 0),
        (3, 0, 1),
        (4, 1, 2),
    ]


def test_simple_assignment_knows_no_racks_and_balances_leaders() -> None:
    of = cluster([*["/r0"] * 4, "/r1", ""], [(0,)])
    rows = list(created(of, count=12, replication_factor=3, force_simple_assignment=True).values())
    assert spread_of(rows, 6) == spread_of(rows, 6, slice(0, 1)) == 0


def test_a_broker_whose_disk_is_full_gets_none() -> None:
    disks = {0: (1_000, 0), 1: (1_000, 500), 2: (1_000, 500)}
    rows = created(cluster([""] * 3, [(0,)], disks=disks), count=6, replication_factor=2)
    assert {broker for row in rows.values() for broker in row} == {1, 2}


def test_partitions_that_cannot_be_placed_are_refused_with_every_reason() -> None:
    of = cluster(SIX, [(0, 1)])
    assert "at least 1" in refusal(of, topic="t", count=0)
    assert "needs a replication factor" in refusal(of)
    assert "need 2 replicas, as partition 0 has; 3 were asked for" in refusal(
        of, topic="t", replication_factor=3
    )
    assert "to have 7 replicas per partition, but only 6 brokers" in refusal(
        of, replication_factor=7
    )
    assert "Unknown broker 9" in refusal(of, topic="t", exclude_brokers=(9,))


def test_new_partitions_go_to_destinations_alone_also_beside_existing_ones() -> None:
    of = cluster(SIX, [(0, 2), (1, 3)])
    asked: dict[str, Any] = {"count": 6, "destinations": (3, 4, 5)}
    rows = list(created(of, topic="t", **asked).values())
    assert {broker for row in rows for broker in row} == {3, 4, 5}
    simple = created(of, **asked, replication_factor=2, force_simple_assignment=True)
    assert {broker for row in simple.values() for broker in row} == {3, 4, 5}
    assert "only 1 broker can take them" in refusal(of, topic="t", destinations=(4,))
    given = {"topic": "t", "count": 1, "given": ((0, 4),), "destinations": (3, 4)}
    assert "broker 0 cannot take it" in refusal(of, **given)
    assert "Unknown broker 9" in refusal(of, topic="t", destinations=(9,))


def test_a_run_that_names_destinations_has_new_partitions_there_alone() -> None:
    asked = {"partitions": {"t": 4}, "destinations": "3, 4"}
    placed = place(cluster(SIX, [(0, 2)]).snapshot(), parse_partition_counts(asked), "p")
    assert {broker for row in placed.assignments.values() for broker in row} == {3, 4}
    with pytest.raises(InvalidRequestError, match="Broker 3: in destinations and exclude_brokers"):
        parse_partition_counts(asked | {"exclude_brokers": [3]})


def test_brokers_without_a_rack_are_one_more_rack_unless_racks_are_to_be_ignored() -> None:
    of = cluster(["/r0", "/r1", "", ""], [(0,)])
    rows = created(of, count=6, replication_factor=2)
    assert all(set(row) != {2, 3} for row in rows.values())
    assert {broker for row in rows.values() for broker in row} == {0, 1, 2, 3}
    of = cluster(["/r0", "/r1", ""], [(0,)])
    rows = created(of, count=3, replication_factor=2, ignore_racks=True)
    assert spread_of(rows.values(), 3) == 0


BALANCED = {
    "no racks": [None] * 5,
    "three racks": ["/a", "/b", "/c"] * 3,
    "two levels": [f"/{dc}/{rack}" for dc in "xy" for rack in "ab" for _ in range(2)],
    "three levels": [f"/{r}/{dc}/{rack}" for r in "uv" for dc in "xy" for rack in "ab"],
    "two racks, and as many brokers without one": ["/a", "/a", "/b", "/b", None, None],
    "plain names": ["a/1", "a/1", "a/2", "a/2", "b/1", "b/1"],
}


@pytest.mark.parametrize("racks", BALANCED.values(), ids=BALANCED)
@examples(40)
@given(replicas=st.integers(1, 5), partitions=st.integers(1, 40), seed=st.integers(0, 9))
def test_an_assignment_is_as_the_kip_describes_it(
    racks: list[str | None], replicas: int, partitions: int, seed: int
) -> None:
    """Every node hands replicas to its children in turn (steps 2 to 4 of the KIP): so each
    partition is as even as the tree allows, and each node's children hold as many, but for one.
    """
    of = {10 * number: rack for number, rack in enumerate(racks)}
    found = assign_replicas(of, partitions, replicas, seed=seed)
    assert list(found) == list(range(partitions))
    paths = {broker: steps_of(rack) for broker, rack in of.items()}
    assert all(len(row) == replicas and is_even(row, paths, of) for row in found.values())
    depth = max(map(len, paths.values()))
    held = Counter(b for row in found.values() for b in row)
    for level in range(depth + 1):
        below: dict[tuple[str, ...], Counter[tuple[str, ...]]] = {}
        for broker, path in paths.items():
            node = (*path, *[""] * (depth - len(path)), str(broker))[: level + 1]
            below.setdefault(node[:level], Counter())[node] += held[broker]
        if level == 0 or replicas <= len(below):
            assert all(max(c.values()) - min(c.values()) <= 1 for c in below.values())
    assert assign_replicas(dict(reversed(of.items())), partitions, replicas, seed=seed) == found


def steps_of(rack: str | None) -> tuple[str, ...]:
    """Step 1 of the KIP: a rack with levels begins with a slash."""
    if rack is None or not rack.startswith("/"):
        return () if rack is None else (rack,)
    return tuple(rack[1:].split("/"))


def test_kafkas_simple_assignment_is_made_without_a_cluster_too() -> None:
    racks = {1: "/a", 2: "/a", 3: "/b", 4: None}
    rows = list(assign_replicas(racks, 8, 2, force_simple_assignment=True).values())
    assert Counter(row[0] for row in rows) == {1: 2, 2: 2, 3: 2, 4: 2}
    assert Counter(broker for row in rows for broker in row) == {1: 4, 2: 4, 3: 4, 4: 4}


@pytest.mark.parametrize(("partitions", "replicas"), [(0, 1), (1, 0), (1, 3)])
def test_an_assignment_that_cannot_be_is_refused(partitions: int, replicas: int) -> None:
    with pytest.raises(InvalidRequestError):
        assign_replicas({1: "/a", 2: "/b"}, partitions, replicas)


def test_new_topics_and_more_partitions_are_placed_together_and_a_known_topic_is_refused() -> None:
    snapshot = cluster(SIX, [(0, 1)]).snapshot()
    new = {"partitions": 6, "replication_factor": 3, "configs": {"retention.ms": 5}}
    asked = {"partitions": {"t": 2}, "new_topics": {"new": new}}
    placed = place(snapshot, parse_partition_counts(asked), "p")
    assert placed.totals == {"t": 2, "new": 6}
    assert placed.new_topics == {"new": {"retention.ms": "5"}}
    assert {len(row) for row in placed.of_topic("new")} == {3}
    assert AddedPartitions.from_json(placed.to_json()) == placed
    simple = parse_partition_counts(asked | {"force_simple_assignment": True})
    assert place(snapshot, simple, "p").plan_hash != placed.plan_hash
    with pytest.raises(InvalidRequestError, match="There is a topic 't' already"):
        place(snapshot, parse_partition_counts({"new_topics": {"t": new}}), "p")


def test_replicas_that_a_person_has_chosen_are_taken_and_the_rest_is_placed() -> None:
    snapshot = cluster(SIX, [(0, 1)]).snapshot()
    new = {"partitions": 2, "replication_factor": 3}
    asked = {
        "partitions": {"t": 3},
        "new_topics": {"new": new, "other": new},
        "assignments": {"t": [[3, 0], [5, 4]], "new": [[0, 1, 2], [2, 1, 0]]},
    }
    plan = place(snapshot, parse_partition_counts(asked), "p")
    assert plan.of_topic("t") == [(3, 0), (5, 4)]
    assert plan.of_topic("new") == [(0, 1, 2), (2, 1, 0)]
    assert [len(set(row)) for row in plan.of_topic("other")] == [3, 3]
    assert TopicPartition("t", 1) in plan.assignments, "numbers go on after the existing ones"


@pytest.mark.parametrize(
    ("lists", "more", "problem"),
    [
        ([[1, 2]], {}, "2 new partitions, and assignments has 1 list"),
        ([[1, 2]] * 3, {}, "2 new partitions, and assignments has 3 lists"),
        ([[1, 2], [1, 2, 3]], {}, r"\[1, 2, 3\] has 3 brokers, and the topic has 2 replicas"),
        ([[1, 2], [1, 9]], {}, "names broker 9, which the cluster does not have"),
        ([[1, 2], [1, 3]], {"exclude_brokers": [3]}, r"\[1, 3\]: broker 3 cannot take it"),
        ([[1, 2], [1, 4]], {}, "broker 4 cannot take it: it is not live"),
        ([[1, 2], [2, 1]], {"caps": {"brokers": {"2": {"replicas": 1}}}}, "its cap leaves room"),
    ],
)
def test_replicas_that_cannot_be_had_are_refused_by_name(
    lists: list[list[int]], more: dict[str, Any], problem: str
) -> None:
    of = replace(cluster(SIX, [(0, 1)]), dead=frozenset({4}))
    asked = parse_partition_counts({"partitions": {"t": 3}, "assignments": {"t": lists}, **more})
    with pytest.raises(InvalidRequestError, match=problem):
        place(of.snapshot(), asked, "p")


def test_replicas_of_a_topic_that_gets_no_partition_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="assignments name b, and neither partitions nor"):
        parse_partition_counts({"partitions": {"a": 2}, "assignments": {"a": [[1]], "b": [[1]]}})


def test_replicas_that_were_chosen_against_the_racks_are_found_and_those_placed_are_not() -> None:
    snapshot = cluster(SIX, [(0, 1)]).snapshot()  # 0 and 3 are in one rack
    asked = {"partitions": {"t": 4}, "assignments": {"t": [[0, 3], [0, 1], [4, 1]]}}

    def uneven(**more: Any) -> list[TopicPartition]:
        request = parse_partition_counts(asked | more)
        return unevenly_placed(snapshot, place(snapshot, request, "p"), request)

    assert uneven() == [TopicPartition("t", 1), TopicPartition("t", 3)]
    assert uneven(ignore_racks=True) == []
    assert uneven(assignments={}) == []


def test_an_approval_that_was_given_before_an_upgrade_still_holds() -> None:
    asked = parse_partition_counts({"partitions": {"t": 2}})
    placed = place(cluster(SIX, [(0, 1)]).snapshot(), asked, "p")
    recorded = placed.to_json()
    del recorded["new_topics"]  # an earlier Rehome knew none
    content = json.dumps([placed.cluster_id, recorded["assignments"]])
    approved = hashlib.sha256(content.encode()).hexdigest()
    assert AddedPartitions.from_json(recorded).plan_hash == approved
