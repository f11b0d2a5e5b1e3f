"""Which brokers are alive, and what is away as a whole, by the controllers' log."""

from __future__ import annotations

from world.judge.living import away_all_the_time, between, longest_alive, states_of
from world.kafka.metadata import MetadataLog, Partition, PartitionKey, Registration, Table

NEVER_DEAD = frozenset({1, 2, 3, 4})


def broker(number: int, *, fenced: bool = False, rack: str | None = None) -> Table:
    path = f"/dc{number % 2}/r{number}" if rack is None else rack
    return Table("brokers", number, Registration(number, path, 1, fenced, (), ()))


def log_of(*fenced: tuple[float, int, bool], rack: str | None = None) -> MetadataLog:
    """Four brokers in two data centres, a partition on 2 and 4; (when, which, whether fenced)."""
    found = MetadataLog()
    held = Table("partitions", PartitionKey("t", 0), Partition((2, 4), (2,), 2))
    found.append(0.0, [*(broker(each, rack=rack) for each in range(1, 5)), held])
    for at, number, now in fenced:
        found.append(at, [broker(number, fenced=now, rack=rack)])
    return found


def test_a_state_says_who_lives_holds_and_lacks() -> None:
    first, last = states_of(log_of((10.0, 2, True)))
    assert (first.live, first.holding, first.lacking) == (
        NEVER_DEAD,
        frozenset({2, 4}),
        frozenset({4}),
    )
    assert last.live == {1, 3, 4}


def test_a_partition_that_is_deleted_lacks_nothing() -> None:
    log = log_of()
    log.append(5.0, [Table("partitions", PartitionKey("t", 0), None)])
    assert states_of(log)[-1].lacking == frozenset()


def test_states_between_two_times_begin_with_the_one_that_held() -> None:
    states = states_of(log_of((10.0, 2, True), (20.0, 2, False)))
    assert [each.at for each in between(states, 15.0, 20.0)] == [10.0, 20.0]


def test_a_broker_is_back_only_if_it_dies_again() -> None:
    states = states_of(log_of((10.0, 2, True), (20.0, 2, False), (50.0, 2, True)))
    assert longest_alive(states, 2, 10.0, 60.0) == 30.0
    assert longest_alive(states, 2, 10.0, 40.0) == 0.0


def test_a_data_centre_is_away_while_none_of_its_brokers_is_alive() -> None:
    states = states_of(log_of((10.0, 2, True), (20.0, 4, True), (30.0, 4, False)))
    assert away_all_the_time(states, 21.0, 29.0) == {"dc0", "many brokers"}
    assert away_all_the_time(states, 15.0, 29.0) == set()


def test_without_racks_many_brokers_are_away() -> None:
    states = states_of(log_of((10.0, 2, True), (20.0, 4, True), rack=""))
    assert away_all_the_time(states, 11.0, 19.0) == set()
    assert away_all_the_time(states, 21.0, 29.0) == {"many brokers"}
