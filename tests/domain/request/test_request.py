from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import OnWindowEnd, request_to_params
from rehome.errors import InvalidRequestError

NOW = datetime(2030, 1, 1, tzinfo=UTC)
REASSIGNMENT = {"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2]}]}

EMPTY_FORM: dict[str, Any] = {
    "kafka_config_id": "kafka_default",
    "action": "rebalance",
    "brokers": [],
    "topics": [],
    "replication_factor": None,
    "reassignment": None,
    "plan_id": "",
    "throttle": "auto",
    "window_end": None,
    "on_window_end": "finish",
    "max_moves_per_broker": 4,
    "dry_run": False,
    "approval": False,
    "additional": False,
}


def test_a_form_in_which_only_the_action_is_chosen_is_about_everything() -> None:
    request = parse_request(EMPTY_FORM)
    assert request.action is Action.REBALANCE
    assert request.brokers == ()
    assert request.topics == ()
    assert request.throttle_bytes_per_s is None
    assert request.on_window_end is OnWindowEnd.FINISH


def test_every_parameter_is_read() -> None:
    request = parse_request(
        EMPTY_FORM
        | {
            "action": "drain",
            "brokers": ["3", 1],
            "topics": "orders, pay*",
            "throttle": "50000000",
            "window_end": "2030-01-01T06:00:00+02:00",
            "on_window_end": "cancel",
            "throttle_min": 1_000,
            "throttle_max": "2000",
            "max_moves_per_broker": 2,
            "dry_run": True,
            "additional": True,
            "tolerance": 0.05,
            "seed": 7,
            "plan_id": "p1",
        },
        now=NOW,
    )
    assert request.brokers == (1, 3)
    assert request.topics == ("orders", "pay*")
    assert request.throttle_bytes_per_s == 50_000_000
    assert (request.throttle_min, request.throttle_max) == (1_000, 2_000)
    assert request.window_end == datetime(2030, 1, 1, 4, tzinfo=UTC)
    assert request.on_window_end is OnWindowEnd.CANCEL
    assert (request.max_moves_per_broker, request.tolerance, request.seed) == (2, 0.05, 7)
    assert request.dry_run
    assert request.additional
    assert not request.approval


@pytest.mark.parametrize("written", [REASSIGNMENT, json.dumps(REASSIGNMENT)])
def test_a_reassignment_is_read_as_text_or_as_json(written: dict[str, Any] | str) -> None:
    request = parse_request({"action": "reassign", "reassignment": written})
    assert request.reassignment == REASSIGNMENT


@pytest.mark.parametrize(
    "params",
    [
        {"action": "drain", "brokers": [3], "window_end": "2030-01-02T00:00:00Z", "throttle": 5000},
        {"action": "reassign", "reassignment": REASSIGNMENT, "dry_run": True},
        {"action": "set_replication_factor", "replication_factor": 2, "topics": ["a*"]},
    ],
)
def test_a_request_survives_its_file(params: dict[str, Any]) -> None:
    request = parse_request(params, now=NOW)
    written = json.loads(json.dumps(request_to_params(request)))
    assert parse_request(written, now=NOW) == request


def test_finish_is_also_understood_by_its_former_word_and_is_written_by_its_own() -> None:
    """Files of plans hold it, and so do parameters of runs that began before."""
    former, present = (
        parse_request({"action": "drain", "brokers": [1], "on_window_end": word}, now=NOW)
        for word in ("drain", "finish")
    )
    assert former == present
    written = request_to_params(former)
    assert (written["on_window_end"], written["action"]) == ("finish", "drain")


@pytest.mark.parametrize("throttle", [50_000_000, "50000000", " 50000000 ", "50 MB/s", "50MB"])
def test_a_throttle_is_a_number_or_a_rate_as_people_write_it(throttle: int | str) -> None:
    request = parse_request({"action": "rebalance", "throttle": throttle}, now=NOW)
    assert request.throttle_bytes_per_s == 50_000_000


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({}, "action is needed"),
        ({"action": "rebuild"}, "not one of rebalance, drain"),
        ({"action": "rebalance", "throtle": 1}, "Unknown parameter 'throtle'"),
        ({"action": "rebalance", "throttle_bytes_per_s": 1}, "Unknown parameter"),
        ({"action": "rebalance", "throttle": 0}, "throttle=0"),
        ({"action": "rebalance", "throttle": -5}, "throttle=-5"),
        ({"action": "rebalance", "throttle": "fast"}, "throttle='fast'"),
        ({"action": "rebalance", "throttle": True}, "throttle=True"),
        ({"action": "rebalance", "throttle": 1.5}, "throttle=1.5"),
        ({"action": "rebalance", "throttle": "50 Mbit/s"}, "a rate such as 50 MB/s"),
        ({"action": "rebalance", "throttle_min": 0}, "less than 1"),
        (
            {"action": "rebalance", "throttle_min": 3000, "throttle_max": 2000},
            "above throttle_max=2000",
        ),
        ({"action": "rebalance", "window_end": "tonight"}, "not an ISO 8601 time"),
        ({"action": "rebalance", "window_end": 5}, "not an ISO 8601 time"),
        ({"action": "rebalance", "window_end": "2031-01-01T00:00:00"}, "no time zone"),
        ({"action": "rebalance", "window_end": "2029-12-31T23:59:59Z"}, "passed already"),
        ({"action": "rebalance", "on_window_end": "stop"}, "not one of finish, cancel"),
        ({"action": "rebalance", "max_moves_per_broker": 0}, "less than 1"),
        ({"action": "rebalance", "dry_run": "yes"}, "neither true nor false"),
        ({"action": "rebalance", "tolerance": 1}, "fraction"),
        ({"action": "rebalance", "tolerance": "nan"}, "fraction"),
        ({"action": "rebalance", "tolerance": "wide"}, "tolerance='wide'"),
        ({"action": "rebalance", "seed": -1}, "less than 0"),
        ({"action": "rebalance", "replication_factor": 3}, "does not use it"),
        ({"action": "rebalance", "reassignment": REASSIGNMENT}, "does not use it"),
        ({"action": "repair_racks", "brokers": [1]}, "does not use it"),
        ({"action": "reassign", "reassignment": REASSIGNMENT, "topics": "t"}, "does not use it"),
        ({"action": "drain"}, "needs brokers"),
        ({"action": "drain", "brokers": []}, "needs brokers"),
        ({"action": "drain", "brokers": [1, 1]}, "names a broker more than once"),
        ({"action": "drain", "brokers": [-1]}, "names broker -1"),
        ({"action": "drain", "brokers": ["b1"]}, "names broker 'b1'"),
        ({"action": "drain", "brokers": 3}, "not a list"),
        ({"action": "rebalance", "topics": [1]}, "names or patterns"),
        ({"action": "set_replication_factor"}, "needs replication_factor"),
        ({"action": "set_replication_factor", "replication_factor": 0}, "less than 1"),
        ({"action": "set_replication_factor", "replication_factor": "x"}, "not a whole number"),
        ({"action": "reassign"}, "needs reassignment"),
        ({"action": "reassign", "reassignment": {}}, "needs reassignment"),
        ({"action": "reassign", "reassignment": "{"}, "not valid JSON"),
        ({"action": "expand", "brokers": [1], "destinations": [1]}, "does not use it"),
        ({"action": "rebalance", "brokers": [1], "destinations": [1]}, "Name one of them"),
        (
            {"action": "drain", "brokers": [1, 2], "destinations": [2, 3]},
            "Broker 2: in destinations, and in brokers, which are to be emptied",
        ),
        (
            {"action": "drain", "brokers": [1], "destinations": [3, 4], "exclude_brokers": [4]},
            "Broker 4: in destinations, and in exclude_brokers",
        ),
        (
            {"action": "replace", "replacements": {"1": 2}, "destinations": [1, 2]},
            "Broker 1: in destinations, and in replacements",
        ),
        (
            {"action": "replace", "replacements": {"1": 2}, "destinations": [3]},
            "Broker 2: in replacements, and not in destinations",
        ),
        ({"action": "rollback"}, "needs plan_id"),
        ({"action": "rollback", "plan_id": 5}, "is not text"),
    ],
)
def test_bad_parameters_are_refused_with_the_reason(params: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_request(params, now=NOW)
    assert len(refused.value.problems) == 1
    assert problem in refused.value.problems[0]


BEYOND_KAFKA = {
    "brokers": [2**40],
    "exclude_brokers": [2**31],
    "destinations": [2**31],
    "topics": ["t" * 300],
    "throttle": 10**30,
    "throttle_min": 999,
    "throttle_max": 2**63,
    "weights": {str(2**40): 1},
    "tolerance": 10**400,
    "seed": 10**30,
    "replication_factor": 2**15,
    "replacements": {"1": 2**31},
    "log_dirs": [f"{2**31}:/data"],
    "min_leaders": {"t" * 300: 1},
    "caps": {"brokers": {str(2**31): {"replicas": 1}}},
    "broker_sets": [{"name": "fast", "topics": ["a"], "brokers": [2**31]}],
    "budget_bytes": 2**64,
    "plan_id": "p" * 300,
    "reassignment": {
        "version": 1,
        "partitions": [{"topic": "t", "partition": 0, "replicas": [2**31]}],
    },
}


NAMED_BY = {"topics": "Topic 'ttt", "min_leaders": "Topic 'ttt", "reassignment": "2147483648"}
"""What is named where that is more than the parameter."""


@pytest.mark.parametrize("name", BEYOND_KAFKA)
def test_what_kafka_cannot_take_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        parse_request({"action": "rebalance", name: BEYOND_KAFKA[name]}, now=NOW)
    first = refused.value.problems[0]
    assert (NAMED_BY.get(name) or name) in first
    assert len(first) < 400


@pytest.mark.parametrize(
    "entry",
    [
        {"topic": "t" * 250, "partition": 0, "replicas": [1]},
        {"topic": "../t", "partition": 0, "replicas": [1]},
        {"topic": "t", "partition": 2**31, "replicas": [1]},
        {"topic": "t", "partition": 0, "replicas": [2**31]},
    ],
)
def test_a_file_names_only_what_can_be(entry: dict[str, Any]) -> None:
    written = {"version": 1, "partitions": [entry]}
    with pytest.raises(InvalidRequestError) as refused:
        parse_request({"action": "reassign", "reassignment": written}, now=NOW)
    assert len(refused.value.problems) == 1


def test_the_largest_that_kafka_takes_is_taken() -> None:
    request = parse_request(
        {
            "action": "drain",
            "brokers": [2**31 - 1],
            "topics": ["t" * 249, "logs-[a-c]*"],
            "throttle": 1000,
        },
        now=NOW,
    )
    assert request.brokers == (2**31 - 1,)
    assert request.throttle_bytes_per_s == 1000


def test_a_slow_throttle_that_an_earlier_rehome_has_accepted_is_read() -> None:
    recorded = {"action": "rebalance", "throttle": 5, "window_end": "2020-01-01T00:00:00Z"}
    assert parse_request(recorded, recorded=True).throttle_bytes_per_s == 5


def test_a_throttle_is_one_kilobyte_per_second_at_least() -> None:
    for name in ("throttle", "throttle_min", "throttle_max"):
        assert parse_request({"action": "rebalance", name: 1000})
        with pytest.raises(InvalidRequestError, match=f"{name}=999 is less than 1000 bytes"):
            parse_request({"action": "rebalance", name: 999})


def test_of_many_problems_ten_are_shown_with_their_number() -> None:
    wrong = [{"topic": "t", "partition": -1, "replicas": [1]}] * 2500
    written = {"version": 1, "partitions": wrong}
    with pytest.raises(InvalidRequestError) as refused:
        parse_request({"action": "reassign", "reassignment": written}, now=NOW)
    assert len(refused.value.problems) == 2500
    text = str(refused.value)
    assert "Entry 9 of" in text
    assert "Entry 10 of" not in text
    assert "the first 10 of 2,500 problems" in text


def test_all_problems_are_listed_at_once() -> None:
    params = {"action": "drain", "speed": 1, "throttle": 0, "reassignment": "{", "seed": "x"}
    with pytest.raises(InvalidRequestError) as refused:
        parse_request(params, now=NOW)
    text = " ".join(refused.value.problems)
    for part in ("speed", "throttle=0", "not valid JSON", "seed='x'", "needs brokers"):
        assert part in text


def test_the_clock_decides_whether_a_window_has_passed_when_no_time_is_given() -> None:
    soon = datetime.now(timezone(timedelta(hours=-3))) + timedelta(minutes=5)
    parse_request({"action": "rebalance", "window_end": soon.isoformat()})
    with pytest.raises(InvalidRequestError, match="passed already"):
        parse_request({"action": "rebalance", "window_end": "2020-01-01T00:00:00Z"})
