"""Whose a value is, and whether anybody's was taken away."""

from __future__ import annotations

import pytest

from rehome.domain.configs import ConfigOperation, ConfigResource
from world.history import OTHERS, ConfigWrite, History, TopicChanged
from world.judge.configs import Configs, Ledgers, as_wanted
from world.judge.violations import Kind
from world.kafka.metadata import MetadataLog

TOPIC = ConfigResource.topic("t")
LIST = "leader.replication.throttled.replicas"
DEFAULT = ConfigResource.cluster_default()
RATE = "leader.replication.throttled.rate"
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


class Told:
    """A history, one write after the other; every write is read just before."""

    def __init__(self) -> None:
        self.history = History(MetadataLog())
        self._value: dict[tuple[ConfigResource, str], str | None] = {}

    def write(
        self,
        owner: str,
        where: tuple[ConfigResource, str],
        after: str | None,
        how: ConfigOperation,
        *,
        read: int | None = None,
        asked: str | None = None,
    ) -> None:
        number = len(self.history.writes) + 1
        write = ConfigWrite(
            *(number, float(number), owner, f"{owner}:task", *where),
            *(self._value.get(where), after, how, number if read is None else read, asked),
        )
        self._value[where] = after
        self.history.writes.append(write)

    @property
    def configs(self) -> Configs:
        return Configs.of(self.history)


def test_what_we_set_and_take_back_is_as_before() -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), "0:1", APPEND)
    assert [known.key for known in told.configs.ours_left()] == [(TOPIC, LIST)]
    assert told.configs.keys[TOPIC, LIST].last.ours == {"A": {"0:1"}}
    told.write("A", (TOPIC, LIST), None, DELETE)
    assert list(told.configs.ours_left()) == []


def test_an_empty_list_is_not_what_was_there_before() -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), "0:1", APPEND)
    told.write("A", (TOPIC, LIST), "", SUBTRACT)
    assert [known.last.actual for known in told.configs.ours_left()] == [""]


def test_a_rate_that_others_have_deleted_and_we_put_back_is_not_wanted() -> None:
    told = Told()
    told.history.initial[DEFAULT, RATE] = "9"
    told.write("A", (DEFAULT, RATE), "5", SET)
    told.write(OTHERS, (DEFAULT, RATE), None, DELETE)
    told.write("A", (DEFAULT, RATE), "9", SET)
    known = told.configs.keys[DEFAULT, RATE]
    assert not as_wanted(known, known.last)


def test_items_of_others_that_we_take_off_a_list_are_taken_away() -> None:
    told = Told()
    told.write(OTHERS, (TOPIC, LIST), "7:7", APPEND)
    told.write("A", (TOPIC, LIST), "7:7,0:1", APPEND)
    told.write("A", (TOPIC, LIST), None, DELETE)
    assert [found.kind for found in told.configs.taken_away] == [Kind.TAKEN_AWAY]


def test_what_nobody_could_have_seen_is_counted_apart() -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), "0:1", APPEND)
    told.write(OTHERS, (TOPIC, LIST), "0:1,7:7", APPEND)
    told.write("A", (TOPIC, LIST), None, DELETE, read=1)
    assert told.configs.taken_away == []
    assert told.configs.unavoidable == 1


def test_an_item_that_others_name_while_it_is_ours_may_stay_or_go() -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), "0:1,0:2", APPEND)
    told.write(OTHERS, (TOPIC, LIST), "0:1", SET)
    told.write("A", (TOPIC, LIST), "", SUBTRACT)
    assert told.configs.taken_away == []
    assert list(told.configs.ours_left()) == []


def test_with_a_topic_goes_what_others_wanted_of_it() -> None:
    told = Told()
    told.write(OTHERS, (TOPIC, LIST), "7:7", APPEND)
    told.history.writes.append(TopicChanged(2, 2.0, "t"))
    assert list(told.configs.ours_left()) == []


def test_an_item_of_another_rehome_that_is_there_already_is_not_ours() -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), "0:1", APPEND)
    told.write("B", (TOPIC, LIST), "0:1,1:2", APPEND)
    assert told.configs.keys[TOPIC, LIST].last.ours == {"A": {"0:1"}, "B": {"1:2"}}
    told.write("B", (TOPIC, LIST), "0:1", SUBTRACT)
    known = told.configs.keys[TOPIC, LIST]
    assert known.last.ours == {"A": {"0:1"}}
    assert as_wanted(known, known.last, by="B")
    assert not as_wanted(known, known.last, by="A")


def rate_set_unseen() -> Told:
    """Another client sets 7 after our reading of 9, and before our write of 5."""
    told = Told()
    told.history.initial[DEFAULT, RATE] = "9"
    told.write(OTHERS, (DEFAULT, RATE), "7", SET)
    told.write("A", (DEFAULT, RATE), "5", SET, read=0)
    told.write("A", (DEFAULT, RATE), "4", SET)  # seen: it holds ours
    return told


@pytest.mark.parametrize(("end", "right"), [("9", True), ("7", True), ("4", False), (None, False)])
def test_of_a_value_that_nobody_has_seen_the_one_before_is_put_back(
    end: str | None, right: bool
) -> None:
    told = rate_set_unseen()
    told.write("A", (DEFAULT, RATE), end, SET)
    assert [known.key for known in told.configs.ours_left()] == [(DEFAULT, RATE)] * (not right)


@pytest.mark.parametrize("read", [None, 0])
def test_a_value_that_nobody_has_seen_is_taken_away_unseen(read: int | None) -> None:
    told = Told()
    told.write(OTHERS, (DEFAULT, RATE), "7", SET)
    told.write("A", (DEFAULT, RATE), "5", SET, read=0)
    assert told.configs.unavoidable == 0
    told.write("A", (DEFAULT, RATE), None, DELETE, read=read)
    assert told.configs.taken_away == []
    assert told.configs.unavoidable == 1
    assert list(told.configs.ours_left()) == []


def test_what_others_set_later_is_all_that_they_want_again() -> None:
    told = rate_set_unseen()
    told.write(OTHERS, (DEFAULT, RATE), "6", SET)
    told.write("A", (DEFAULT, RATE), "9", SET)
    known = told.configs.keys[DEFAULT, RATE]
    assert (known.last.wanted, known.last.seen) == ("6", "6")
    assert not as_wanted(known, known.last)


@pytest.mark.parametrize(("asked", "found"), [("0:2,0:1", set()), ("0:1", {Kind.TAKEN_AWAY})])
def test_whose_an_item_is_that_both_have_put_there_between_two_calls_nobody_can_see(
    asked: str, found: set[Kind]
) -> None:
    told = Told()
    told.write(OTHERS, (TOPIC, LIST), "0:2", SET)
    told.write("A", (TOPIC, LIST), "0:2,0:1", APPEND, read=0, asked=asked)
    told.write("A", (TOPIC, LIST), None, DELETE)
    assert {each.kind for each in told.configs.taken_away} == found
    assert told.configs.unavoidable == (not found)


@pytest.mark.parametrize(("asked", "found"), [("0:1", set()), ("0:3", {Kind.TAKEN_AWAY})])
def test_whose_an_item_is_that_others_put_there_after_a_request_of_ours_was_lost_nobody_can_see(
    asked: str, found: set[Kind]
) -> None:
    told = Told()
    told.write("A", (TOPIC, LIST), None, APPEND, asked=asked)
    told.write(OTHERS, (TOPIC, LIST), "0:1", SET)
    told.write("A", (TOPIC, LIST), None, SUBTRACT)
    assert {each.kind for each in told.configs.taken_away} == found


@pytest.mark.parametrize(("plan_id", "found"), [("p", []), ("q", [Kind.TAKEN_AWAY])])
def test_what_a_plan_was_about_to_put_on_lists_nobody_can_tell_from_what_others_put_there(
    plan_id: str, found: list[Kind]
) -> None:
    told = Told()
    told.write("A", (DEFAULT, f"rehome.lists.{'0' * 32}.p.8c2e.3"), "1", SET)
    told.write(OTHERS, (TOPIC, LIST), "0:1", SET)
    told.write("A", (TOPIC, LIST), None, SUBTRACT)
    configs = Configs.of(told.history, announced={plan_id: {(TOPIC, LIST): ["0:1"]}})
    assert [each.kind for each in configs.taken_away] == found


@pytest.mark.parametrize(
    ("mark", "lost"),
    [
        (f"rehome.lists.{'a' * 32}.p.0f.4", True),
        (f"rehome.lists.{'b' * 32}.p.0f.4", False),
        (f"rehome.needs.{'c' * 32}.p.3.leader.5", False),
        ("rehome.before.default.leader.-", False),
    ],
)
def test_a_mark_of_a_replaced_ledger_may_come_after_it_was_replaced(mark: str, lost: bool) -> None:
    ledgers = Ledgers({"A": [(0.0, "a" * 32), (50.0, "b" * 32)]})
    assert ledgers.lost("A", mark) is lost
    assert not ledgers.lost("B", mark)


def test_what_is_lost_unseen_counts_so_until_its_owner_puts_it_back() -> None:
    told = Told()
    told.write(OTHERS, (TOPIC, LIST), "0:1", SET)
    told.write("A", (TOPIC, LIST), None, DELETE, read=0)
    told.write(OTHERS, (TOPIC, LIST), "0:1", SET)
    told.write("A", (TOPIC, LIST), None, DELETE)
    _, set_once, lost, put_back, taken = told.configs.keys[TOPIC, LIST].moments
    assert [each.lost_unseen for each in (set_once, lost, put_back, taken)] == [
        frozenset(),
        {"0:1"},
        frozenset(),
        frozenset(),
    ]
