"""What another client begins while throttles are read keeps its own."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rehome.domain.configs import ConfigChange, ConfigResource
from rehome.domain.kafka import OngoingReassignment, TopicPartition
from rehome.domain.run.foreign.foreign_request import ForeignAction
from rehome.execution.foreign import clean_throttles as module
from rehome.execution.foreign.named import NamedReassignment, NamedReassignments
from rehome.execution.throttle.foreign import ForeignThrottle, ForeignThrottles
from rehome.execution.throttle.keys import FOLLOWER_RATE, FOLLOWER_REPLICAS

CANCELLED, LATER = TopicPartition("t", 0), TopicPartition("t", 1)
MOVING = OngoingReassignment((3, 2, 1), (3,), (1,))
ASKED = NamedReassignments(
    "c", ForeignAction.CANCEL, (NamedReassignment(CANCELLED, "", MOVING),), clean_throttles=True
)
ON_3 = ForeignThrottle(ConfigResource.broker(3), FOLLOWER_RATE, "9")
OF_1 = ForeignThrottle(ConfigResource.broker(1), FOLLOWER_RATE, "9")
LISTED = ForeignThrottle(ConfigResource.topic("t"), FOLLOWER_REPLICAS, "0:3,1:3")


@pytest.mark.parametrize(("begins", "kept"), [(False, set()), (True, {ON_3.resource})])
def test_a_reassignment_that_begins_after_its_throttle_was_read_keeps_it(
    monkeypatch: pytest.MonkeyPatch, begins: bool, kept: set[ConfigResource]
) -> None:
    ongoing: dict[TopicPartition, OngoingReassignment] = {}
    changed: list[ConfigChange] = []

    def read(*_: object) -> ForeignThrottles:
        """Another client has set its throttle, and starts right after."""
        if begins:
            ongoing[LATER] = OngoingReassignment((3, 2, 4), (3,), (4,))
        return ForeignThrottles((ON_3, OF_1, LISTED))

    def alter(changes: Sequence[ConfigChange]) -> dict[ConfigResource, None]:
        changed.extend(changes)
        return {change.resource: None for change in changes}

    monkeypatch.setattr(module, "foreign_throttles", read)
    cluster: Any = SimpleNamespace(list_reassignments=lambda: dict(ongoing), alter_configs=alter)
    ledger: Any = None
    module.clean_throttles(ASKED, [CANCELLED], ledger, cluster)
    every = {ON_3.resource, OF_1.resource, LISTED.resource}
    assert {change.resource for change in changed} == every - kept
    assert [c.value for c in changed if c.resource == LISTED.resource] == ["0:3"]
