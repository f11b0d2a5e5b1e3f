"""Which rights ACLs give."""

from __future__ import annotations

import pytest

from world.kafka.acls import AclResource, Binding, Operation, allowed

ME = "User:me"
TOPIC, CLUSTER = AclResource.TOPIC, AclResource.CLUSTER


@pytest.mark.parametrize(
    ("binding", "operation", "name", "may"),
    [
        (Binding(ME, Operation.ALTER, TOPIC), Operation.ALTER, "a", True),
        (Binding(ME, Operation.ALTER, TOPIC), Operation.DESCRIBE, "a", True),
        (Binding(ME, Operation.ALTER, TOPIC), Operation.DESCRIBE_CONFIGS, "a", False),
        (Binding(ME, Operation.ALTER_CONFIGS, TOPIC), Operation.DESCRIBE_CONFIGS, "a", True),
        (Binding(ME, Operation.DESCRIBE, TOPIC), Operation.ALTER, "a", False),
        (Binding(ME, Operation.ALL, TOPIC, "a"), Operation.DELETE, "a", True),
        (Binding(ME, Operation.ALL, TOPIC, "a"), Operation.DELETE, "ab", False),
        (Binding(ME, Operation.ALL, TOPIC, "a", prefixed=True), Operation.DELETE, "ab", True),
        (Binding("User:you", Operation.ALL, TOPIC), Operation.DELETE, "a", False),
        (Binding("User:*", Operation.ALL, TOPIC), Operation.DELETE, "a", True),
        (Binding(ME, Operation.ALL, CLUSTER), Operation.DESCRIBE, "a", False),
    ],
)
def test_a_right_is_given(binding: Binding, operation: Operation, name: str, may: bool) -> None:
    assert allowed([binding], ME, operation, TOPIC, name) is may


def test_a_denial_wins_and_without_acls_nothing_is_allowed() -> None:
    given = Binding(ME, Operation.ALTER, CLUSTER)
    denied = Binding(ME, Operation.ALTER, CLUSTER, allow=False)
    assert allowed([given], ME, Operation.ALTER, CLUSTER)
    assert not allowed([given, denied], ME, Operation.ALTER, CLUSTER)
    assert allowed([given, denied], ME, Operation.DESCRIBE, CLUSTER)
    assert not allowed([], ME, Operation.DESCRIBE, CLUSTER)
