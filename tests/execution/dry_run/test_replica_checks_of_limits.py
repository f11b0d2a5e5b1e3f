"""The dry run names brokers of limits that are not there, and keeps the caps of disks.

It says what was taken of a pasted text.
"""

from __future__ import annotations

from rehome.domain.kafka import Broker
from rehome.domain.request.parse_request import parse_request
from rehome.execution.dry_run.replica_checks import file_findings, limit_findings, rack_findings
from rehome.execution.dry_run.typed_finding import FoundKind, TypedFinding
from rehome.execution.policy_from_request import policy_for
from rehome.settings import Settings

ASKED = {"action": "repair_racks"}
LIMITED = parse_request(
    {
        "action": "rebalance",
        "broker_sets": [
            {"name": "fast", "topics": ["orders"], "brokers": [1, 2, 7]},
            {"name": "slow", "topics": ["audit"], "brokers": [1, 2]},
        ],
        "caps": {"default": {"disk_fraction": 0.8}, "brokers": {"2": {"disk_fraction": None}}},
    }
)


def test_a_set_that_names_a_broker_which_is_not_there_is_reported() -> None:
    found = list(limit_findings(LIMITED, (1, 2, 3)))
    assert found == [TypedFinding(FoundKind.LIMITS_OF_NO_BROKER, "broker set fast", brokers=(7,))]


def test_racks_that_count_for_other_than_one_may_think_are_named() -> None:
    racks = {1: "/a", 2: "b/1", 3: None, 4: "b/1", 5: "c"}
    brokers = [Broker(number, "h", 1, rack) for number, rack in racks.items()]
    found = list(rack_findings(LIMITED, brokers))
    assert found == [
        TypedFinding(FoundKind.NO_RACK, "broker 3", count=1),
        TypedFinding(FoundKind.RACK_WITHOUT_LEVELS, "rack b/1"),
    ]
    assert list(rack_findings(parse_request({**ASKED, "ignore_racks": True}), brokers)) == []
    assert list(rack_findings(LIMITED, [brokers[0], brokers[4]])) == []
    assert list(rack_findings(LIMITED, [Broker(1, "h", 1, None)])) == []


def test_a_pasted_proposal_is_said_to_have_been_taken() -> None:
    file = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}'
    printed = f"Proposed partition reassignment configuration\n{file}"
    asked = [
        parse_request({"action": "reassign", "reassignment": text}) for text in (printed, file)
    ]
    (found,), alone = (list(file_findings(request)) for request in asked)
    assert found == TypedFinding(FoundKind.PROPOSAL_TAKEN, "plan", count=1)
    assert alone == []


def test_disks_are_kept_as_free_as_their_caps_say_while_a_plan_runs() -> None:
    policy = policy_for(LIMITED, Settings())
    assert round(policy.kept_free(1), 9) == 0.2
    assert policy.kept_free(2) == Settings().min_free_disk_fraction
