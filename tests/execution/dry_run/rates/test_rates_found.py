"""Which rates would hold while a plan runs, from what brokers have set."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.domain import clock
from rehome.domain.broker_rates import BrokerRates
from rehome.domain.configs import ConfigResource
from rehome.execution.admission.slots import Direction, Slot
from rehome.execution.dry_run.cluster_state import read_cluster
from rehome.execution.dry_run.rates.rates_found import find_rates
from rehome.execution.dry_run.throttle_checks import throttle_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.throttle.keys import FOLLOWER_RATE
from tests.execution.throttle.ownership.box import DEFAULT, Box
from tests.ledger.small_plans import move

RATE = 5_000_000


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    made.model.actions.create_topic("a", [(1, 2)])
    with clock.replaced_by(made):
        made.sleep(1)
        yield made
    made.close()


def into(broker: int) -> Slot:
    return Slot(Direction.IN, broker)


def stops(broker: int, direction: Direction, rate: int) -> TypedFinding:
    kind = FoundKind.THROTTLE_STOPS_BROKER
    return TypedFinding(kind, f"broker {broker}", direction=direction, rate_bytes_per_s=rate)


def test_a_brokers_own_rate_goes_before_their_default_and_the_lower_one_holds(box: Box) -> None:
    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))

    def held() -> dict[Slot, int]:
        return dict(find_rates(plan, box.own, read_cluster(plan, box.own), RATE).lower_rates)

    assert held() == {}
    box.set(ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    assert held() == {into(3): 1000}
    box.set(DEFAULT, FOLLOWER_RATE, "70")
    assert held() == {into(1): 70, into(2): 70, into(3): 1000}
    box.set(DEFAULT, FOLLOWER_RATE, str(2 * RATE))
    assert held() == {into(3): 1000}
    box.set(ConfigResource.broker(3), FOLLOWER_RATE, str(2 * RATE))
    assert held() == {}


def test_a_broker_with_a_throttle_of_its_own_has_it_in_what_is_predicted(box: Box) -> None:
    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))
    own = BrokerRates({1: 900}, {3: 2 * RATE})

    def held() -> dict[Slot, int]:
        return dict(find_rates(plan, box.own, read_cluster(plan, box.own), RATE, own).lower_rates)

    assert held() == {Slot(Direction.OUT, 1): 900, into(3): 2 * RATE}
    box.set(ConfigResource.broker(3), FOLLOWER_RATE, "1000")
    assert held() == {Slot(Direction.OUT, 1): 900, into(3): 1000}, "another client's, which holds"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (BrokerRates({9: 5_000}), TypedFinding(FoundKind.THROTTLE_OF_NO_BROKER, "broker 9")),
        (BrokerRates({1: 999}), stops(1, Direction.OUT, 999)),
        (BrokerRates({}, {3: 0}), stops(3, Direction.IN, 0)),
        (BrokerRates({4: 5_000}), TypedFinding(FoundKind.THROTTLE_UNUSED, "broker 4")),
    ],
)
def test_throttles_of_brokers_that_cannot_be_are_found(
    own: BrokerRates, expected: TypedFinding, box: Box
) -> None:
    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))
    now = read_cluster(plan, box.own)

    def found(own: BrokerRates) -> list[TypedFinding]:
        rates = find_rates(plan, box.own, now, RATE, own)
        return [*throttle_findings(plan, box.own, now, RATE, rates, ours={}, own=own)]

    assert found(BrokerRates({1: 5_000}, {3: 5_000})) == []
    assert found(own) == [expected]


@pytest.mark.slow
def test_rates_by_policy_or_targets_may_be_of_brokers_that_are_away_or_move_nothing(
    box: Box,
) -> None:
    """The run names none of them, so there is no id to correct."""
    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))
    now, own = read_cluster(plan, box.own), BrokerRates({9: 5_000, 4: 5_000})
    rates = find_rates(plan, box.own, now, RATE, own)
    for named, subjects in ((None, ["broker 4", "broker 9"]), ((9,), ["broker 9"]), ((), [])):
        given = throttle_findings(
            plan, box.own, now, RATE, rates, ours={}, own=own, run_brokers=named
        )
        assert [each.subject for each in given] == subjects
