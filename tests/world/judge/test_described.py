"""Listings of what is in flight, held against what was in flight."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rehome.domain.kafka import TopicPartition
from world.history import OTHERS, Alter, History
from world.judge.claims import Truth
from world.judge.configs import Configs, Ledgers
from world.judge.described import Described, Listed
from world.judge.placement import Partitions
from world.judge.statements import Statement
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Table

KEYS = {name: PartitionKey(f"id-of-{name}", 0) for name in "tu"}
OURS = Listed(TopicPartition("t", 0), (3,), (1,), ours=True)
THEIRS = Listed(TopicPartition("u", 0), (3,), (1,), ours=False)
BOTH = Described((OURS, THEIRS), others=0, all=True)


def truth(*, had: int = 1) -> Truth:
    """A moves t-0, and another client u-0, both from 5 s to 20 s."""
    history = History(MetadataLog())
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
