"""Each broker of a plan: what it copies now, what it holds now."""

from __future__ import annotations

from datetime import UTC, datetime

from rehome.account.known import Known, NotKnown, Source, Unknown
from rehome.account.pace import PlanPace
from rehome.domain.plan.summary import BrokerLoad
from rehome.page.plan_view import BROKERS_SHOWN, broker_lines, shift_by_broker
from tests.ledger.small_plans import move

T0 = datetime(2030, 1, 1, tzinfo=UTC)


def test_brokers_gain_and_lose_what_finished_moves_copied() -> None:
    done = [move("t", 0, (4, 1), (2, 1), 100), move("t", 1, (4, 1), (1, 4), 70)]
    assert shift_by_broker(done) == {2: 100, 4: -100}


def test_a_brokers_rate_is_the_accounts() -> None:
    pace = PlanPace(T0, 20.0, {2: 20.0}, {4: 20.0}, {}, frozenset())
    loads = [BrokerLoad(2, 0, 500, 0, 1, 0, 0, 500, 0), BrokerLoad(3, 5, 5, 1, 1, 0, 0, 0, 0)]
    (line,), left_out = broker_lines(loads, {2: 80}, Known(pace, T0, Source.POLL), [])
    assert (line.broker, line.bytes_now, left_out) == (2, 80, 0)
    assert line.in_bytes_per_s == 20
    assert line.out_bytes_per_s == 0
    (line,), _ = broker_lines(loads, {}, Unknown(NotKnown.ONE_POLL), [])
    assert line.in_bytes_per_s is None


def test_the_brokers_that_change_most_are_shown_of_a_large_cluster() -> None:
    loads = [BrokerLoad(n, 0, n, 0, 0, 0, 0, n, 0) for n in range(1, 101)]
    lines, left_out = broker_lines(loads, {}, Unknown(NotKnown.ONE_POLL), [])
    assert [line.broker for line in lines] == list(range(61, 101))
    assert (len(lines), left_out) == (BROKERS_SHOWN, 60)
