"""Of all connections that lead to a cluster, the strictest policy holds, and refusals name it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.domain.run.askers import Askers
from rehome.execution.access.cluster_policy import PaceAndApproval, differences, strictest
from rehome.execution.access.connection_policy import ConnectionPolicy, PolicyError
from rehome.execution.access.policy_refusals import PolicyAspect, PolicyDifference

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def policy(connection: str = "kafka_loose", **keys: Any) -> ConnectionPolicy:
    return ConnectionPolicy.parse(keys or None, connection)


def other(connection: str = "kafka_strict", **keys: Any) -> PaceAndApproval:
    return PaceAndApproval.of(policy(connection, **keys))


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        ({}, [{"approval": True}], {"approval": True, "own_approval": False}),
        (
            {"approval": True, "own_approval": True},
            [{"approval": True}],
            {"approval": True, "own_approval": False},
        ),
        # What nobody has to approve says nothing of who may.
        (
            {"approval": True, "own_approval": True},
            [{}],
            {"approval": True, "own_approval": True},
        ),
        ({}, [{"approval": True, "own_approval": True}], {"approval": True, "own_approval": True}),
        ({"unthrottled": True}, [{"unthrottled": True}], {"unthrottled": True}),
        ({"unthrottled": True}, [{"unthrottled": True}, {}], {"unthrottled": False}),
        ({}, [{"largest_throttle": 9}, {"largest_throttle": 5}], {"largest_throttle": 5}),
        ({"largest_throttle": 4}, [{"largest_throttle": 5}], {"largest_throttle": 4}),
    ],
)
def test_the_strictest_of_all_holds(
    own: dict[str, Any], others: list[dict[str, Any]], expected: dict[str, Any]
) -> None:
    found = strictest(policy(**own), [other(**each) for each in others])
    assert {name: getattr(found, name) for name in expected} == expected


def test_actions_and_windows_stay_the_connections_own() -> None:
    window = {"from": "2030-01-01T00:00:00Z", "until": "2030-01-02T00:00:00Z"}
    own = policy(actions=["drain"], windows=[window])
    found = strictest(own, [other(actions=["rebalance"], approval=True)])
    assert (found.actions, found.windows) == (own.actions, own.windows)


def test_a_refusal_names_the_connection_that_is_stricter() -> None:
    found = strictest(policy(), [other(approval=True, largest_throttle=5)])
    with pytest.raises(PolicyError, match=r"throttle, 5 .connection kafka_strict") as error:
        found.require("drain", 6, NOW)
    assert "the policies of all connections to the cluster changed" in str(error.value)
    for approver in (None, "ann"):
        with pytest.raises(PolicyError, match="connection kafka_strict, which leads to the same"):
            found.require_approver(approver, Askers("ann"))
    found.require_approver("ben", Askers("ann"))
    with pytest.raises(PolicyError, match=r"without a throttle .unthrottled. .connection kafka_s"):
        strictest(policy(unthrottled=True), [other()]).require("drain", None, NOW, unthrottled=True)


def test_a_policy_that_cannot_be_read_counts_as_the_strictest() -> None:
    for last, largest in (({"largest_throttle": 7}, 7), (None, None)):
        broken = PaceAndApproval.unreadable("kafka_broken", last)
        found = strictest(policy(unthrottled=True), [broken])
        assert (found.approval, found.own_approval, found.unthrottled) == (True, False, False)
        assert found.largest_throttle == largest
        with pytest.raises(PolicyError, match=r"kafka_broken.*cannot be read"):
            found.require_approver("ann", Askers("ann"))


def test_what_was_recorded_with_a_plan_holds_as_it_was() -> None:
    recorded = other(approval=True, largest_throttle=5).to_json()
    found = strictest(policy(), [PaceAndApproval.from_record(recorded)])
    with pytest.raises(PolicyError, match="kafka_strict said so when the plan was made"):
        found.require_approver("ann", Askers("ann"))


def test_where_connections_differ_is_said() -> None:
    assert not [*differences([other("a", approval=True), other("b", approval=True)])]
    first, second = differences(
        [
            other("a", approval=True, largest_throttle=5),
            other("b", approval=True, largest_throttle=5, own_approval=True),
            other("c", largest_throttle=6, approval=True),
        ]
    )
    assert first == PolicyDifference(PolicyAspect.APPROVAL, ((2, ("a", "c")), (1, ("b",))))
    assert second.aspect is PolicyAspect.LARGEST_THROTTLE
    assert second.connections == ((5, ("a", "b")), (6, ("c",)))
