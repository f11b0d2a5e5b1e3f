"""The dry run names brokers of limits that are not there, and keeps the caps of disks.

It says what was taken of a pasted text.
"""

from __future__ import annotations

from include.domain.request.parse_request import parse_request
from include.domain.run.findings import Severity
from include.execution.dry_run.replica_checks import file_findings, limit_findings
from include.execution.policy_from_request import policy_for
from include.settings import Settings

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
    assert [finding.subject for finding in found] == ["broker set fast"]
    assert "broker 7" in found[0].message


def test_a_pasted_proposal_is_said_to_have_been_taken() -> None:
    file = '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1]}]}'
    printed = f"Proposed partition reassignment configuration\n{file}"
    asked = [
        parse_request({"action": "reassign", "reassignment": text}) for text in (printed, file)
    ]
    (found,), alone = (list(file_findings(request)) for request in asked)
    assert found.severity is Severity.INFO
    assert "the proposed one was taken, with 1 partition" in found.message
    assert alone == []


def test_disks_are_kept_as_free_as_their_caps_say_while_a_plan_runs() -> None:
    policy = policy_for(LIMITED, Settings())
    assert round(policy.kept_free(1), 9) == 0.2
    assert policy.kept_free(2) == Settings().min_free_disk_fraction
