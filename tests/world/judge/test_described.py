"""Listings of what is in flight, held against what was in flight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.execution.observation.foreign_reassignments import (
    CancelOutlook,
    Hindrance,
    NeverEnds,
)
from world.history import OTHERS, Alter, History
from world.judge.claims import Truth
from world.judge.configs import Configs, Ledgers
from world.judge.described import Described, Listed
from world.judge.placement import Partitions
from world.judge.statements import Statement
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Registration, Table

KEYS = {name: PartitionKey(f"id-of-{name}", 0) for name in "tu"}
OURS = Listed(TopicPartition("t", 0), (3,), (1,), ours=True)
THEIRS = Listed(TopicPartition("u", 0), (3,), (1,), ours=False)
BOTH = Described((OURS, THEIRS), others=0, all=True)


def registered(broker: int, *, fenced: bool = False) -> Registration:
    return Registration(broker, None, 1, fenced, (), ())


def truth(*, had: int = 1) -> Truth:
    """A moves t-0, and another client u-0, both from 5 s to 20 s."""
    history = History(MetadataLog())
    history.log.append(0.0, [Table("brokers", n, registered(n)) for n in (1, 2, 3)])
    copying = Partition((3, 2, 1), (1, 2), 1, adding=(3,), removing=(1,))
    states = (
        (0.0, Partition((1, 2), (1, 2), 1)),
        (5.0, copying),
        (20.0, Partition((3, 2), (3, 2), 3)),
    )
    for name, key in KEYS.items():
        table = [Table("topics", name, key.topic_id), Table("names", key.topic_id, name)]
        history.log.append(0.0, table)
        for at, state in states:
            history.log.append(at, [Table("partitions", key, state)])
    history.log.entries.sort(key=lambda entry: entry.at)
    for number, (owner, name) in enumerate((("A", "t"), (OTHERS, "u"))):
        history.alters.append(Alter(number, 5.0, owner, owner, TopicPartition(name, 0), (3, 2)))
    configs = Configs.of(history, Ledgers({"A": [(0.0, f"ledger-{n}") for n in range(had)]}))
    lists = {"p": {KEYS["t"]: frozenset({(3, 2)})}}
    return Truth(history, configs, Partitions.of(history.log), lists)


def is_false(said: Described, since: float = 8.0, at: float = 9.0, had: int = 1) -> bool:
    return bool(list(truth(had=had).false_claims(Statement("A", "", "look", (said,), since, at))))


@pytest.mark.parametrize(
    ("said", "false"),
    [
        (BOTH, False),
        (replace(BOTH, flights=(OURS,)), True),
        (replace(BOTH, flights=(OURS,), others=1), True),  # all was asked about
        (Described((OURS,), 1, all=False), False),
        (Described((OURS,), 0, all=False), True),
        (replace(BOTH, flights=(OURS, replace(THEIRS, adding=(4,)))), True),
        (replace(BOTH, flights=(OURS, replace(THEIRS, ours=True))), True),
        (replace(BOTH, flights=(replace(OURS, ours=False), THEIRS)), True),
    ],
)
def test_all_that_is_in_flight_is_listed_as_it_is_and_as_whose_it_is(
    said: Described, false: bool
) -> None:
    assert is_false(said) is false


def test_what_began_or_ended_meanwhile_may_be_listed_or_not() -> None:
    none = Described((), 0, all=True)
    for said in (BOTH, none):
        assert not is_false(said, since=4.0, at=6.0)
        assert not is_false(said, since=19.0, at=21.0)
    assert is_false(BOTH, since=21.0, at=22.0)
    assert is_false(none)


def test_a_ledger_that_knows_less_takes_what_its_plans_have_begun_for_others() -> None:
    foreign = replace(BOTH, flights=(replace(OURS, ours=False), THEIRS))
    assert is_false(foreign)
    assert not is_false(foreign, had=2)


DEAD = Hindrance(NeverEnds.TARGET_AWAY, (3,), CancelOutlook.TAKEN, (1, 2))


def hindered(
    hindrance: Hindrance | None, *, dead: bool, isr: tuple[int, ...] = (1, 2), unread: bool = False
) -> bool:
    """Whether it is false what is said of u-0 at 8 s, which adds broker 3 from 5 s to 20 s."""
    world = truth()
    if dead:
        world.history.log.append(6.0, [Table("brokers", 3, registered(3, fenced=True))])
    copying = Partition((3, 2, 1), isr, isr[0] if isr else None, adding=(3,), removing=(1,))
    world.history.log.append(6.0, [Table("partitions", KEYS["u"], copying)])
    world.history.log.entries.sort(key=lambda entry: entry.at)
    world = replace(world, partitions=Partitions.of(world.history.log))
    said = Described((replace(THEIRS, hindrance=hindrance, unread=unread),), 1, all=False)
    return bool(list(world.false_claims(Statement("A", "", "look", (said,), 18.0, 19.0))))


@pytest.mark.parametrize(
    ("hindrance", "dead", "isr", "false"),
    [
        (DEAD, True, (1, 2), False),
        (DEAD, False, (1, 2), True),
        (None, False, (1, 2), False),
        (None, True, (1, 2), True),
        (DEAD, True, (3,), True),  # no replica of before is in sync
        (replace(DEAD, cancel=CancelOutlook.REFUSED, in_sync=(3,)), True, (3,), False),
        (replace(DEAD, cancel=CancelOutlook.REFUSED), True, (1, 2), True),
        (replace(DEAD, cancel=CancelOutlook.UNKNOWN, in_sync=()), True, (3,), False),
        (replace(DEAD, in_sync=(1, 4)), True, (1, 2), True),
        (None, False, (), True),
        (Hindrance(NeverEnds.NO_SOURCE, (), CancelOutlook.REFUSED), False, (), False),
        (Hindrance(NeverEnds.KEPT_AWAY, (2,), CancelOutlook.TAKEN), False, (1, 2), True),
    ],
)
def test_what_can_never_end_and_what_ends_it_is_said_as_it_is(
    hindrance: Hindrance | None, dead: bool, isr: tuple[int, ...], false: bool
) -> None:
    assert hindered(hindrance, dead=dead, isr=isr) is false


def test_of_a_partition_that_no_broker_has_described_its_leader_is_not_known() -> None:
    assert not hindered(None, dead=False, isr=(), unread=True)
    assert hindered(None, dead=True, unread=True)
