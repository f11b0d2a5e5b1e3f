"""What the judge must find of a cluster that has two names."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import Replicas, TopicPartition
from world.history import Alter, ConfigWrite, History
from world.judge.flights import FOLLOWER_LIST, Span
from world.judge.placement import Partitions
from world.judge.plan_seen import PlanSeen
from world.judge.two_of_one import (
    CarriedOutBy,
    Entries,
    adopted_beside_a_plan,
    begun_by_two_entries,
    two_plans_at_once,
)
from world.judge.violations import Kind
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Table
from world.running.outside import EPOCH

PART = TopicPartition("t", 0)


def sent(at: float, run: str, target: Replicas | None = (1, 2)) -> Alter:
    return Alter(int(at), at, "A", f"A:{run}.execute#1", PART, target)


@pytest.mark.parametrize(
    ("alter", "wrong"),
    [
        (sent(60.0, "run-2"), True),
        (sent(60.0, "run-1"), False),  # it had begun before
        (sent(110.0, "run-2"), False),  # one of them was gone by then
        (sent(60.0, "run-2", None), False),  # to cancel is always right
    ],
)
def test_nothing_is_begun_where_two_entries_are_for_one_cluster(alter: Alter, wrong: bool) -> None:
    known = Entries("A", [Span(20.0, 100.0)], {"A:run-1": 10.0, "A:run-2": 30.0})
    assert bool(list(begun_by_two_entries([alter], [known]))) is wrong


@pytest.mark.parametrize(("last", "wrong"), [(40.0, False), (60.0, True)])
def test_one_plan_of_a_ledger_ends_before_another_one_begins(last: float, wrong: bool) -> None:
    alters = [sent(10.0, "run-1"), sent(last, "run-3"), sent(50.0, "run-2")]
    runs = {"A:run-1": "first", "A:run-2": "second", "A:run-3": "first"}
    found = list(two_plans_at_once(alters, [CarriedOutBy("A", runs)]))
    assert bool(found) is wrong
    assert list(two_plans_at_once([*alters, sent(70.0, "run-1", None)], ())) == []


TARGET, ADOPTED = (3, 2), (4, 2)


def world(until: float) -> tuple[History, list[PlanSeen]]:
    """A plan of A has moved t-0 since 10 s, another client u-0 since 20 s; until when."""
    history, names = History(MetadataLog()), {"t": TARGET, "u": ADOPTED}
    for name, target in names.items():
        key = PartitionKey(f"id-of-{name}", 0)
        table = [Table("topics", name, key.topic_id), Table("names", key.topic_id, name)]
        history.log.append(0.0, table)
        copying = Partition((*target, 1), (1, 2), 1, adding=target[:1], removing=(1,))
        states = ((0.0, Partition((1, 2), (1, 2), 1)), (20.0, copying))
        for at, state in (*states, (until, Partition(target, target, 2))):
            history.log.append(at, [Table("partitions", key, state)])
    history.log.entries.sort(key=lambda entry: entry.at)
    records = (running("first", 10.0, until), running("adopted", 50.0, 90.0))
    plans = [
        PlanSeen(
            *(record.plan_id, "A", {TopicPartition(name, 0): (f"id-of-{name}", target)}, record),
            *(frozenset(), frozenset(), []),
            throttled=True,
        )
        for record, (name, target) in zip(records, names.items(), strict=True)
    ]
    return history, plans


def running(plan_id: str, since: float, until: float) -> Any:
    started, ended = (EPOCH + timedelta(seconds=at) for at in (since, until))
    return SimpleNamespace(plan_id=plan_id, started_at=started, ended_at=ended)


def adopted_at(at: float, until: float, *alters: Alter) -> bool:
    history, plans = world(until)
    history.alters.extend(alters)
    write = ConfigWrite(
        *(1, at, "A", "A:foreign-1.adopt#3", ConfigResource.topic("u"), FOLLOWER_LIST),
        *(None, "0:4", None, None),
    )
    history.writes.append(write)
    runs = {"A:run-1": "first", "A:foreign-1": "adopted"}
    seen = [CarriedOutBy("A", runs, ["A:foreign-1"])]
    found = adopted_beside_a_plan(history, plans, Partitions.of(history.log), seen)
    return {each.kind for each in found} == {Kind.TWO_PLANS}


def test_nothing_is_adopted_while_another_plan_of_the_ledger_is_carried_out() -> None:
    assert adopted_at(50.0, until=60.0)
    assert not adopted_at(50.0, until=40.0)


def test_a_plan_that_waits_meanwhile_and_sends_its_move_later_is_carried_out_too() -> None:
    assert not adopted_at(15.0, until=60.0), "nothing of it is in flight, or comes later"
    assert adopted_at(15.0, 60.0, sent(30.0, "run-1"))
    assert not adopted_at(15.0, 60.0, sent(12.0, "run-1"), sent(30.0, "run-1", None))
