"""How a cluster is another one than was planned on, in words."""

from __future__ import annotations

from rehome.domain.kafka import TopicPartition
from rehome.execution.observation.drifted import Drift, DriftKind
from rehome.execution.observation.words.drift_words import (
    broken_text,
    drift_text,
    drifted_text,
    not_known_text,
)


def test_each_drift_has_its_words() -> None:
    said = {kind: drift_text(Drift(kind, (3, 2), (1, 2))) for kind in DriftKind}
    assert len(set(said.values())) == len(DriftKind)
    assert said[DriftKind.REPLICAS] == "has replicas [3, 2], not [1, 2]"
    assert said[DriftKind.GONE] == "is gone"


def test_a_plan_that_does_not_fit_any_more_is_said_with_what_to_do() -> None:
    what, left, step = drifted_text("p", {TopicPartition("t", 0): Drift(DriftKind.GONE)})
    assert what == "The cluster has changed since plan p was made: t-0 is gone"
    assert "the approval has lapsed" in left
    assert step == "Trigger a new run: it plans with what is there now."
    what, _, step = broken_text("p", ["Broker 2 would end with 4.", "Broker 3, too."])
    assert what.endswith("left of plan p: Broker 2 would end with 4. Broker 3, too.")
    assert step.startswith("This plan cannot go on as it is. If it is paused, cancel it.")


def test_topics_that_brokers_do_not_agree_on_are_counted() -> None:
    assert not_known_text("p", ["t"])[0].endswith("the brokers do not agree on topic t")
    assert not_known_text("p", ["t", "u"])[0].endswith("do not agree on topics t, u")
