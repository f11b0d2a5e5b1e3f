"""What a connection's policy allows, and how it is read."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rehome.cluster.connection.settings import Connection
from rehome.domain.actions import Action
from rehome.domain.broker_rates import BrokerRates
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.run.askers import Askers, Term
from rehome.domain.run.states import Control
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import ANYTHING, ConnectionPolicy, PolicyError
from rehome.execution.access.policy_refusals import RefusedBy

NIGHTLY = {"cron": "0 1 * * *", "hours": 4, "timezone": "Europe/Berlin"}
AT_NIGHT, BY_DAY = datetime(2030, 1, 15, 2, tzinfo=UTC), datetime(2030, 1, 15, 12, tzinfo=UTC)
REQUEST = ReassignmentRequest(Action.REBALANCE)


def policy(**values: Any) -> ConnectionPolicy:
    return ConnectionPolicy.parse(values, "prod")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def test_without_a_policy_everything_is_allowed() -> None:
    found = ConnectionPolicy.parse(None, "prod")
    found.require("drain", 10**12, BY_DAY)
    found.require_control(Control.CHANGE_THROTTLE, 10**12)
    found.require_approver(None, ASKED)
    assert found.request_within(REQUEST, BY_DAY) == REQUEST
    assert replace(found, connection="") == ANYTHING


def test_every_problem_of_a_policy_is_named_at_once() -> None:
    wrong = {
        "actions": ["drain", "format_disks"],
        "aproval": True,
        "largest_throttle": 0,
        "own_approval": "perhaps",
        "windows": [{"cron": "at night", "hours": 4}, NIGHTLY | {"timezone": "Europe/Atlantis"}],
    }
    with pytest.raises(InvalidRequestError) as refused:
        policy(**wrong)
    problems = refused.value.problems
    assert len(problems) == 6
    for what in ("format_disks", "aproval", "largest_throttle=0", "own_approval", "at night"):
        assert any(what in problem for problem in problems), what
    assert any("window 2 has timezone='Europe/Atlantis'" in problem for problem in problems)
    assert all("(connection prod)" in problem for problem in problems)


@pytest.mark.parametrize(
    ("window", "reported"),
    [
        ([], "names no window"),
        ({}, "is not a list"),
        (["tonight"], "is not a JSON object"),
        ([{"cron": "0 1 * * *"}], "write cron and hours"),
        ([{"cron": "0 1 * * *", "hours": 0}], "hours=0"),
        ([{"cron": "0 1 * * * *", "hours": 1}], "five fields"),
        ([{"from": "2030-01-01T00:00:00", "until": "2030-01-02T00:00:00Z"}], "no time zone"),
        ([{"from": "2030-01-02T00:00:00Z", "until": "2030-01-01T00:00:00Z"}], "ends before"),
        ([{"from": "soon", "until": "2030-01-01T00:00:00Z"}], "no ISO 8601"),
    ],
)
def test_a_window_that_never_opens_or_never_closes_is_refused(window: Any, reported: str) -> None:
    with pytest.raises(InvalidRequestError, match=reported):
        policy(windows=window)


def test_what_is_not_allowed_is_refused_with_every_cause() -> None:
    strict = policy(actions=["rebalance"], largest_throttle=1000, windows=[NIGHTLY])
    strict.require("rebalance", 1000, AT_NIGHT)
    with pytest.raises(PolicyError) as refused:
        strict.require("drain", 1001, BY_DAY)
    assert [each.by for each in refused.value.refusals] == [
        RefusedBy.ACTION,
        RefusedBy.RATE,
        RefusedBy.WINDOW,
    ]
    reported = str(refused.value)
    for part in ("connection prod", "Action drain", "above the largest throttle, 1000"):
        assert part in reported
    assert "opens at 2030-01-16 00:00 UTC" in reported
    assert "have rehome.policy in the connection's extra changed" in reported


def test_stopping_is_always_allowed_and_going_on_is_not() -> None:
    strict = policy(actions=["rebalance"], largest_throttle=1000, windows=[NIGHTLY])
    for what in (Control.PAUSE, Control.CANCEL):
        strict.require_control(what, 1001)
    strict.require_control(Control.CHANGE_THROTTLE, 1000)
    for what in (Control.CHANGE_THROTTLE, Control.RESUME, Control.ROLL_BACK):
        with pytest.raises(PolicyError, match="above the largest throttle"):
            strict.require_control(what, 1001)
    with pytest.raises(PolicyError, match="Action rollback"):
        strict.require_control(Control.ROLL_BACK, None)


def test_a_request_is_held_to_the_window_the_throttle_and_the_approval() -> None:
    strict = policy(approval=True, largest_throttle=1000, windows=[NIGHTLY])
    bounded = strict.request_within(replace(REQUEST, throttle_min=2000), AT_NIGHT)
    assert bounded.approval
    assert (bounded.throttle_min, bounded.throttle_max) == (1000, 1000)
    assert bounded.window_end == datetime(2030, 1, 15, 4, tzinfo=UTC)
    sooner = datetime(2030, 1, 15, 3, tzinfo=UTC)
    assert strict.request_within(replace(REQUEST, window_end=sooner), AT_NIGHT).window_end == sooner
    later = datetime(2030, 1, 15, 9, tzinfo=UTC)
    assert strict.request_within(replace(REQUEST, window_end=later), AT_NIGHT).window_end == at(
        "2030-01-15T05:00+01:00"
    )


def test_a_run_that_waits_for_a_window_is_held_to_its_end() -> None:
    """As in a pool without a free slot: it was due before the window opened, and begins in it."""
    just_before = at("2030-01-15T00:59+01:00")
    found = policy(windows=[NIGHTLY])
    found.require("rebalance", None, just_before + timedelta(minutes=2))
    assert found.request_within(REQUEST, just_before).window_end == at("2030-01-15T05:00+01:00")
    once = policy(windows=[{"from": "2030-01-15T01:00:00Z", "until": "2030-01-15T05:00:00Z"}])
    assert once.request_within(REQUEST, BY_DAY).window_end is None, "none opens again"


ASKED = Askers("ann", "bob", {Term.RATE: "bob", Term.WINDOW: "carl", Term.ADDITIONAL: "ann"})


def test_a_requester_may_not_approve_unless_that_is_allowed() -> None:
    strict, own = policy(approval=True), Askers("ann", "ann")
    strict.require_approver("bob", own)
    for approver, names in (("ann", ()), ("Ann Smith", ("ann",))):
        with pytest.raises(PolicyError, match="ann has asked for it; another person has to appr"):
            strict.require_approver(approver, own, *names)
    with pytest.raises(PolicyError, match="no person has"):
        strict.require_approver(None, own)
    policy(approval=True, own_approval=True).require_approver("ann", own)
    policy(approval=True, own_approval=True).require_approver("carl", ASKED)


@pytest.mark.parametrize("approver", ["ann", "bob", "carl"])
def test_who_has_asked_for_the_plan_the_run_or_a_term_is_named_and_may_not_approve(
    approver: str,
) -> None:
    strict = policy(approval=True)
    strict.require_approver("dora", ASKED)
    with pytest.raises(PolicyError) as refused:
        strict.require_approver(approver, ASKED)
    assert (
        "ann has asked for the plan, bob for the run and the throttle, and carl for the window; "
        "another person has to approve it."
    ) in str(refused.value)
    assert "have a person other than ann, bob and carl approve it" in str(refused.value)


@pytest.mark.parametrize(
    ("cron", "hours", "when", "until"),
    [
        ("0 1 * * *", 4, "2030-01-15T01:00+01:00", "2030-01-15T05:00+01:00"),
        ("0 1 * * *", 4, "2030-01-15T04:59+01:00", "2030-01-15T05:00+01:00"),
        ("0 1 * * *", 4, "2030-01-15T05:00+01:00", None),
        ("0 22 * * 5", 10, "2030-01-19T03:00+01:00", "2030-01-19T08:00+01:00"),
        # The hour that is left out: it opens that much later.
        ("30 2 * * *", 1, "2030-03-31T03:40+02:00", "2030-03-31T04:30+02:00"),
        # The hour that comes twice: it opens the first time.
        ("30 2 * * *", 2, "2030-10-27T02:10+01:00", "2030-10-27T03:30+01:00"),
        ("30 2 * * *", 1, "2030-10-27T02:40+01:00", None),
        ("0 0 30 2 *", 1, "2030-01-15T00:00+01:00", None),  # never
    ],
)
def test_a_window_is_open_for_elapsed_time_from_its_opening_on_the_local_clock(
    cron: str, hours: float, when: str, until: str | None
) -> None:
    (window,) = policy(
        windows=[{"cron": cron, "hours": hours, "timezone": "Europe/Berlin"}]
    ).windows
    assert window.open_until(at(when)) == (None if until is None else at(until))


def test_a_window_of_one_time_opens_once() -> None:
    once = {"from": "2030-01-15T01:00:00+01:00", "until": "2030-01-15T05:00:00+01:00"}
    found = policy(windows=[once])
    assert found.request_within(REQUEST, AT_NIGHT).window_end == at(once["until"])
    with pytest.raises(PolicyError, match="opens at 2030-01-15 00:00 UTC"):
        found.require("drain", None, at("2030-01-14T00:00+00:00"))
    with pytest.raises(PolicyError, match="none opens again"):
        found.require("drain", None, BY_DAY)


def test_the_policy_is_not_passed_to_kafka_clients() -> None:
    settings = {"bootstrap.servers": "b1:9092", "rehome.policy": {"approval": True}}
    connection = Connection.from_settings(settings)
    assert connection.librdkafka_settings().keys() == {"bootstrap.servers", "security.protocol"}
    assert "policy" not in str(connection.kafka_python_settings())


def test_a_plan_without_a_throttle_has_to_be_allowed_even_where_there_is_no_policy() -> None:
    for found in (ConnectionPolicy.parse(None, "prod"), policy(largest_throttle=1000)):
        with pytest.raises(PolicyError, match="without a throttle"):
            found.require("drain", None, BY_DAY, unthrottled=True)
        with pytest.raises(PolicyError, match="without a throttle"):
            found.require_carried_out("drain", None, unthrottled=True)
    free = policy(unthrottled=True, largest_throttle=1000)
    free.require("drain", 10**9, BY_DAY, unthrottled=True)
    with pytest.raises(PolicyError, match="above the largest throttle"):
        free.require("drain", 10**9, BY_DAY)


def test_a_policy_bounds_single_brokers_whatever_a_plan_asks_for() -> None:
    found = policy(
        largest_throttle=5_000_000, largest_throttle_by_broker={"3": {"follower": 1_000_000}}
    )
    bounded = found.request_within(
        replace(REQUEST, throttle_by_broker=BrokerRates({1: 2_000_000})), BY_DAY
    )
    assert bounded.own_rates(4_000_000) == BrokerRates({1: 2_000_000}, {3: 1_000_000})
    assert bounded.own_rates(900_000) == BrokerRates({1: 2_000_000})
    found.require("drain", 4_000_000, BY_DAY, by_broker=BrokerRates({3: 5_000_000}))
    with pytest.raises(PolicyError) as refused:
        found.require_control(
            Control.CHANGE_THROTTLE, None, BrokerRates({1: 5_000_001}, {3: 1_000_001})
        )
    assert refused.value.texts == (
        "5000001 bytes per second of broker 1 (leader) is above largest_throttle, 5000000.",
        "1000001 bytes per second of broker 3 (follower) is above largest_throttle_by_broker, "
        "1000000.",
    )
    with pytest.raises(InvalidRequestError, match="holds 999, which is less than the least rate"):
        policy(largest_throttle_by_broker={"3": 999})
