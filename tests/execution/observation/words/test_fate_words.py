"""What has become of a move, in words."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import ReplicaId
from rehome.execution.observation.words import fate_words

REPLICA = ReplicaId("t", 0, 3)


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (fate_words.unreadable_text("t", "no right"), "topic t cannot be read: no right"),
        (fate_words.gone_text(topic=True), "topic does not exist any more"),
        (fate_words.gone_text(topic=False), "partition does not exist any more"),
        (fate_words.reassigned_text((3, 2)), "another client is reassigning it to [3, 2]"),
        (fate_words.replaced_text((3,), (1,)), "its replicas are [3], not [1]"),
        (fate_words.log_dir_unknown_text(REPLICA), "log dir on broker 3 is not known"),
        (
            fate_words.stopped_text(REPLICA, "/d1"),
            "nothing copies it to /d1 on broker 3 any more: another client has taken that back, or "
            "the log dir has failed",
        ),
        (
            fate_words.taken_text(REPLICA, "/d1", arrived=True),
            "another client has moved it to /d1 on broker 3",
        ),
        (
            fate_words.taken_text(REPLICA, "/d1", arrived=False),
            "another client is moving it to /d1 on broker 3",
        ),
    ],
)
def test_each_fate_has_its_words(said: str, text: str) -> None:
    assert said == text
