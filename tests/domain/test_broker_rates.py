"""Throttles of single brokers: compared, bounded, said."""

from __future__ import annotations

from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates, RateSide

OWN = BrokerRates({1: 5_000_000, 4: 1_000_000}, {1: 2_000_000, 4: 1_000_000})


def test_they_are_read_back_as_they_were_written() -> None:
    assert BrokerRates.from_json(OWN.to_json()) == OWN
    assert BrokerRates.from_json(None) == NO_OWN_RATES
    assert not NO_OWN_RATES
    assert OWN.to_json() == {
        "1": {"leader": 5_000_000, "follower": 2_000_000},
        "4": {"leader": 1_000_000, "follower": 1_000_000},
    }


def test_a_line_for_each_broker_says_what_it_sends_and_receives() -> None:
    assert OWN.lines() == (
        "broker 1 sends 5 MB/s and receives 2 MB/s at most",
        "broker 4 sends and receives 1 MB/s at most",
    )
    assert BrokerRates({}, {2: 1_000}).lines() == ("broker 2 receives 1 kB/s at most",)


def test_a_bound_lowers_a_brokers_own_rate_and_the_plans_where_that_is_higher() -> None:
    bounds = BrokerRates({1: 3_000_000, 2: 600_000}, {2: 9_000_000})
    bounded = OWN.at_most(bounds, 2_000_000)
    assert bounded.leader == {1: 3_000_000, 2: 600_000, 4: 1_000_000}
    assert bounded.follower == OWN.follower, "the plan's rate is below broker 2's bound"
    assert OWN.at_most(NO_OWN_RATES, 1) == OWN


def test_what_would_let_more_through_is_named_by_direction() -> None:
    assert list(OWN.above(OWN, None)) == []
    assert list(OWN.above(BrokerRates({1: 4_000_000}), 1_500_000)) == [
        (RateSide.LEADER, 1),
        (RateSide.FOLLOWER, 1),
    ]


def test_of_two_bounds_the_lower_one_counts() -> None:
    other = BrokerRates({1: 6_000_000, 2: 7}, {4: 900_000})
    assert OWN.strictest(other) == BrokerRates(
        {1: 5_000_000, 4: 1_000_000, 2: 7}, {1: 2_000_000, 4: 900_000}
    )
