"""Which replicas count as left on a drained broker."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.actions import Action
from rehome.domain.kafka import (
    Broker,
    BrokerError,
    ClusterDescription,
    LogDir,
    LogDirName,
    Partial,
    PartitionState,
    ReplicaOnDisk,
    TopicDescription,
    TopicPartition,
)
from rehome.domain.plan.move import MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.completion.drained import (
    Drained,
    LeftOver,
    Where,
    emptied_by,
    less_unpaid,
    read_drained,
    wait_until_drained,
)
from rehome.execution.completion.follow_up import NoFollowUp, why_no_follow_up
from rehome.execution.completion.words.end_words import (
    NOT_FOLLOWED_UP,
    drained_text,
    not_ended,
    still_there,
)
from tests.ledger.small_plans import make_plan, move

NOW = datetime(2030, 1, 1, tzinfo=UTC)
DRAIN = ReassignmentRequest(Action.DRAIN, brokers=(3,))
PLAN = make_plan("p", move("t", 0, (1, 3), (1, 2), 600), move("t", 1, (3, 1), (2, 1), 400))
FOUND = Drained((3,), (LeftOver(3, TopicPartition("new", 0), Where.ASSIGNED),))


TIMED_OUT = BrokerError(7, "REQUEST_TIMED_OUT")


class Seen:
    """Brokers that cannot be had in every combination: a fake of what they answer."""

    def __init__(self, *, on_disk: dict[str, int], assigned: dict[str, tuple[int, ...]]) -> None:
        self.live = {1, 2, 3}
        self.silent: set[int] = set()
        self.error: BrokerError | None = None
        self._on_disk = on_disk
        self._assigned = assigned

    def describe_cluster(self) -> ClusterDescription:
        brokers = {broker: Broker(broker, "sim", 0, None) for broker in self.live}
        return ClusterDescription("sim", None, brokers, None)

    def describe_log_dirs(self, brokers: list[int]) -> Partial[list[LogDir]]:
        replicas = {TopicPartition(name, 0): ReplicaOnDisk(1, 0, False) for name in self._on_disk}
        dirs = [
            LogDir(broker, "/d", None, None, None, self.error, replicas)
            for broker in brokers
            if broker in self._on_disk.values() and broker not in self.silent
        ]
        missing = {broker: TIMED_OUT for broker in brokers if broker in self.silent}
        return Partial(dirs, missing)

    def current_topics(self, names: Any) -> dict[str, TopicDescription]:
        assert names is None
        return {
            name: TopicDescription(
                name,
                name,
                name.startswith("__"),
                {0: PartitionState(replicas[0], replicas, frozenset(replicas))},
            )
            for name, replicas in self._assigned.items()
        }


def found(seen: Seen, request: ReassignmentRequest = DRAIN) -> Drained:
    return read_drained(OwnCluster.itself(cast(ClusterPort, seen)), request)


def test_metadata_and_log_dirs_both_count() -> None:
    seen = Seen(
        on_disk={"both": 3, "disk": 3, "hidden": 3},
        assigned={"both": (1, 3), "disk": (1, 2), "metadata": (3,), "else": (1, 2)},
    )
    left = {item.partition.topic: item for item in found(seen).left}
    assert {name: (item.where, item.log_dir) for name, item in left.items()} == {
        "both": (Where.ASSIGNED, "/d"),
        "metadata": (Where.ASSIGNED, ""),
        "disk": (Where.ON_DISK, "/d"),
        "hidden": (Where.HIDDEN, "/d"),
    }
    assert {item.partition.topic for item in found(seen).plannable} == {"both", "metadata"}


def test_a_broker_is_empty_only_where_nothing_is_found_and_what_was_not_read_is_reported() -> None:
    seen = Seen(on_disk={}, assigned={"t": (1, 2)})
    assert found(seen) == Drained((3,))
    seen.live = {1, 2}
    dead = found(seen)
    assert (dead.as_planned, dead.unread) == (True, {3: "it is not alive"})
    assert "only metadata was read" in drained_text(dead)
    failed = Seen(on_disk={"t": 3}, assigned={"t": (3, 1)})
    failed.error = BrokerError(56, "KAFKA_STORAGE_ERROR")
    assert found(failed).unread == {3: "/d: KAFKA_STORAGE_ERROR (56)"}


def test_a_live_broker_that_gives_no_answer_is_not_proved_to_be_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = Seen(on_disk={}, assigned={"t": (1, 2)})
    seen.silent = {3}
    unknown = found(seen)
    assert (unknown.left, unknown.as_planned, unknown.silent) == ((), False, frozenset({3}))
    assert "Broker 3 is not proved to be empty." in drained_text(unknown)
    assert why_no_follow_up(unknown, DRAIN, PLAN, NOW) is NoFollowUp.UNREAD
    kept = {"brokers": [3], "left": [], "unread": unknown.unread}
    why = "broker 3: REQUEST_TIMED_OUT (7)"
    assert still_there(kept) == f"What lies on broker 3 is not known: {why}."
    failed = not_ended(kept, NOT_FOLLOWED_UP[NoFollowUp.UNREAD])
    assert "what it was to empty is not proved to be empty" in failed
    assert "still there" not in failed, "nothing was found"

    def answers(_: float) -> None:
        seen.silent = set()

    monkeypatch.setattr("rehome.execution.completion.drained.sleep", answers)
    cluster = OwnCluster.itself(cast(ClusterPort, seen))
    assert wait_until_drained(cluster, DRAIN).as_planned, "it is asked again"


def test_what_a_budget_left_is_distinguished_from_what_appeared() -> None:
    stays, moved = TopicPartition("old", 0), TopicPartition("t", 0)
    seen = replace(FOUND, left=(*FOUND.left, LeftOver(3, stays, Where.ASSIGNED)))
    reported = less_unpaid(seen, PLAN, [(3, stays), (3, moved), (1, FOUND.left[0].partition)])
    assert (reported.left, reported.unpaid) == (FOUND.left, (LeftOver(3, stays, Where.ASSIGNED),))
    assert not reported.as_planned
    assert less_unpaid(replace(seen, left=seen.left[1:]), PLAN, [(3, stays)]).as_planned
    assert "not empty" in drained_text(reported)
    back = less_unpaid(
        replace(FOUND, left=(LeftOver(3, moved, Where.ASSIGNED),)), PLAN, [(3, moved)]
    )
    assert not back.as_planned, "the plan has moved it away: another client has brought it back"


EVACUATION = ReassignmentRequest(Action.EVACUATE_LOG_DIRS)


def test_log_dirs_that_no_one_could_read_are_not_called_empty() -> None:
    """Metadata does not say in which log dir a replica lies."""
    seen = Seen(on_disk={"t": 3}, assigned={"t": (3, 1)})
    named = replace(EVACUATION, log_dirs=(LogDirName(3, "/d"),))
    assert [item.partition.topic for item in found(seen, named).left] == ["t"]
    seen.live, why = {1, 2}, "it is not alive"
    gone = found(seen, named)
    assert (gone.left, gone.as_planned, gone.unread) == ((), False, {3: why})
    assert "not proved to be empty" in drained_text(gone)
    assert "only metadata" not in drained_text(gone)
    assert why_no_follow_up(gone, named, PLAN, NOW) is NoFollowUp.UNREAD
    kept = {"log_dirs": ["3:/d"], "brokers": [3], "left": [], "unread": gone.unread}
    assert still_there(kept) == f"What lies in log dir 3:/d is not known: broker 3: {why}."


def test_log_dirs_that_a_plan_has_emptied_are_checked_though_no_longer_cordoned() -> None:
    seen = Seen(on_disk={"new": 3}, assigned={"new": (3, 1)})
    moved = replace(
        move("t", 0, (1, 3), (1, 3)),
        reason=MoveReason.EVACUATE,
        current_log_dirs=("/a", "/d"),
        target_log_dirs=("any", "/e"),
    )
    emptied = emptied_by(make_plan("p", moved))
    assert emptied == {LogDirName(3, "/d")}
    own = OwnCluster.itself(cast(ClusterPort, seen))
    assert drained_text(read_drained(own, EVACUATION)) == "No log dir was to be emptied."
    assert read_drained(own, EVACUATION, emptied).left == (
        LeftOver(3, TopicPartition("new", 0), Where.ASSIGNED, "/d"),
    )
