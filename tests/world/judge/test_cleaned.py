"""What a person has let a run take away of others' throttles, and what not; and the order of
replicas that a cancel puts back.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.configs import ConfigOperation, ConfigResource
from rehome.domain.kafka import TopicPartition
from world.history import OTHERS, Alter, ConfigWrite, History
from world.judge.cleaned import Cleaned
from world.judge.configs import Configs
from world.judge.flights import Span
from world.judge.orders import CancelSeen, out_of_order
from world.judge.placement import LetAct, Partitions
from world.judge.violations import Kind
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Table
from world.others import LISTS, RATES

ONE = TopicPartition("t", 0)
DELETE, SUBTRACT = ConfigOperation.DELETE, ConfigOperation.SUBTRACT
RUN = "A:foreign-1"
LET = LetAct(named=6, at=8.0, about="t", cleans=True)
BROKER, TOPIC = ConfigResource.broker, ConfigResource.topic
DEFAULT = ConfigResource.cluster_default()


def world(beside: tuple[int, int, int] = (4, 3, 2)) -> History:
    """Another client moves t-0 from 1 to 3, and u-0 gets one more replica; t-0 is cancelled."""
    history = History(MetadataLog())
    moving = {
        "t": Partition((3, 2, 1), (1, 2), 1, adding=(3,), removing=(1,)),
        "u": Partition(beside, beside[:2], beside[0], adding=beside[2:]),
    }
    for at, name in enumerate(moving):
        table = [Table("topics", name, name), Table("names", name, name)]
        before = Partition((1, 2) if name == "t" else beside[:2], (1, 2), 1)
        key = PartitionKey(name, 0)
        history.log.append(float(at), [*table, Table("partitions", key, before)])
    history.begin()
    for at, (name, state) in enumerate(moving.items(), 2):
        history.altered(float(at), OTHERS, "tool", {TopicPartition(name, 0): state.replicas[:2]})
        history.log.append(float(at), [Table("partitions", PartitionKey(name, 0), state)])
    history.number = 10
    history.altered(9.0, "A", f"{RUN}.cancel#3", {ONE: None})
    back = Table("partitions", PartitionKey("t", 0), Partition((2, 1), (1, 2), 1))
    history.log.append(9.0, [back])
    return history


def write(
    resource: ConfigResource, key: str, before: str, after: str | None, how: ConfigOperation
) -> ConfigWrite:
    process = f"{RUN}.cancel#3"
    return ConfigWrite(20, 10.0, "A", process, resource, key, before, after, how, 19, listed=15)


def lets(asked: ConfigWrite, let: LetAct = LET, history: History | None = None) -> bool:
    history = history or world()
    return Cleaned(history, Partitions.of(history.log), {RUN: let}).lets(asked)


RATE_OF_1 = write(BROKER(1), RATES[0], "9", None, DELETE)


@pytest.mark.parametrize(
    ("asked", "let"),
    [
        (RATE_OF_1, True),
        (write(BROKER(3), RATES[0], "9", None, DELETE), False),  # u-0 uses it
        (write(BROKER(5), RATES[0], "9", None, DELETE), False),  # it was of nothing cancelled
        (write(DEFAULT, RATES[0], "9", None, DELETE), False),
        (write(TOPIC("t"), LISTS[0], "0:1,0:2,1:4", "1:4", SUBTRACT), True),
        (write(TOPIC("t"), LISTS[0], "0:1,1:4", None, DELETE), False),  # t-1 was not cancelled
        (write(TOPIC("t"), LISTS[0], "*", None, DELETE), True),
        (write(TOPIC("u"), LISTS[0], "0:4", "", SUBTRACT), False),
        (write(TOPIC("u"), LISTS[0], "*", None, DELETE), False),
        (write(BROKER(1), "log.retention.ms", "9", None, DELETE), False),
    ],
)
def test_only_throttles_of_what_was_cancelled_go_and_only_where_nothing_uses_them(
    asked: ConfigWrite, let: bool
) -> None:
    assert lets(asked) is let


@pytest.mark.parametrize(
    "changed",
    [
        replace(LET, cleans=False),
        replace(LET, at=11.0),
        replace(LET, about="u"),
        replace(LET, named=1),  # it had not begun when it was named
    ],
)
def test_nothing_goes_that_the_person_was_not_asked_about(changed: LetAct) -> None:
    assert lets(RATE_OF_1)
    assert not lets(RATE_OF_1, changed)


def test_another_run_was_let_nothing_and_nobody_may_set_anything() -> None:
    assert not lets(replace(RATE_OF_1, process="A:foreign-2.cancel#4"))
    assert not lets(replace(RATE_OF_1, how=ConfigOperation.SET, after="5"))


def test_what_began_after_the_process_had_looked_it_could_not_see() -> None:
    history = world((1, 4, 3))
    assert not lets(RATE_OF_1, history=history)
    assert lets(replace(RATE_OF_1, listed=1), history=history)


def test_what_is_let_go_nobody_wants_any_more() -> None:
    history = world()
    history.initial = {(RATE_OF_1.resource, RATE_OF_1.key): "9"}
    history.writes = [RATE_OF_1]
    cleaned = Cleaned(history, Partitions.of(history.log), {RUN: LET})
    let = Configs.of(history, lets=cleaned.lets)
    assert (let.taken_away, list(let.ours_left())) == ([], [])
    assert [each.kind for each in Configs.of(history).taken_away] == [Kind.TAKEN_AWAY]


KEY = PartitionKey("id-of-t", 0)
THEIRS = Alter(3, 10.0, OTHERS, "tool", ONE, (2, 3))
CANCEL = Alter(6, 20.0, "A", f"{RUN}.cancel#4", ONE, None)
ORDERED = Alter(7, 20.5, "A", f"{RUN}.cancel#4", ONE, (1, 2))
SEEN = CancelSeen(RUN, 21.0, (Span(2.0, 4.0),))


def partitions(*left: tuple[float, tuple[int, int]]) -> Partitions:
    log = MetadataLog()
    topic = [Table("topics", "t", KEY.topic_id), Table("names", KEY.topic_id, "t")]
    log.append(0.0, [*topic, Table("partitions", KEY, Partition((1, 2), (1, 2), 1))])
    copying = Partition((2, 3, 1), (1, 2), 1, adding=(3,), removing=(1,))
    log.append(10.0, [Table("partitions", KEY, copying)])
    for at, replicas in left:
        log.append(at, [Table("partitions", KEY, Partition(replicas, (1, 2), 1))])
    return Partitions.of(log)


LOST, KEPT = ((20.0, (2, 1)),), ((20.0, (2, 1)), (20.5, (1, 2)))


@pytest.mark.parametrize(("left", "found"), [(LOST, [Kind.MISPLACED]), (KEPT, [])])
def test_the_order_of_before_is_back(
    left: tuple[tuple[float, tuple[int, int]]], found: list[Kind]
) -> None:
    violations = out_of_order(partitions(*left), [THEIRS, CANCEL, ORDERED], [SEEN])
    assert [each.kind for each in violations] == found


@pytest.mark.parametrize(
    ("alters", "seen"),
    [
        ((THEIRS, CANCEL), replace(SEEN, snapshots=())),
        ((THEIRS, CANCEL), replace(SEEN, snapshots=(Span(2.0, 4.0), Span(9.0, 12.0)))),
        ((THEIRS, CANCEL), replace(SEEN, snapshots=(Span(12.0, 14.0),))),
        ((THEIRS, CANCEL), replace(SEEN, run="A:foreign-2")),
        ((replace(THEIRS, owner="A"), CANCEL), SEEN),  # it was its own
        ((CANCEL,), SEEN),
        ((THEIRS, CANCEL, replace(ORDERED, process="tool")), SEEN),  # another client came between
    ],
)
def test_what_no_snapshot_has_shown_or_others_have_changed_is_not_judged(
    alters: tuple[Alter, ...], seen: CancelSeen
) -> None:
    assert not list(out_of_order(partitions(*LOST), alters, [seen]))
