"""Heals that the end of a window has paused, on real brokers: the next window goes on with them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from include.domain.kafka import TopicPartition
from include.domain.run.event_kind import EventKind
from include.domain.run.states import MoveState, PlanState
from include.ledger.base.records import PlanRecord
from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from tests.conftest import Topics
from tests.dags.watching.healed import Healed, held_by
from tests.plugins.mailbox import Reported

pytestmark = pytest.mark.long  # each run of the DAG takes 10 s, and the next window a minute

EMPTY = ("empty_broker", "broker 4")
CRAWL, FAST = 10_000, 20_000_000
NEVER = "0 0 29 2 *"


@pytest.fixture
def paused(
    private_cluster: Callable[..., LocalCluster],
    watch: Callable[..., Healed],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Healed, PlanRecord, str]:
    """A heal of which nothing fits into its window, its plan, and its topic."""
    monkeypatch.setattr("include.watching.respond.HEAD_START", timedelta())
    cluster = private_cluster(brokers=4)
    seen = watch(cluster, policies={"empty_broker": "heal"}, largest_throttle=CRAWL)
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 3], [3, 1]] * 2)
    topics.fill(topic, 3000, size_bytes=10_000)
    opens(monkeypatch, datetime.now(UTC))
    (start,) = seen.at(0, 10, 20)
    run = seen.carry_out(start)
    assert run.state == "success", run.log
    (plan,) = seen.ledger.plans()
    assert plan.state is PlanState.PAUSED, run.log
    return seen, plan, topic


def opens(patch: pytest.MonkeyPatch, at: datetime) -> None:
    """One window of ten minutes, from the minute of this time on."""
    patch.setenv("REHOME_WINDOW_CRON", f"{at.minute} {at.hour} * * *")
    patch.setenv("REHOME_WINDOW_DURATION_S", "600")


def open_the_next(patch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    following = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    wait_until(lambda: datetime.now(UTC) >= following, "the next minute to begin", 120)
    opens(patch, following)


def test_the_next_window_goes_on_with_a_paused_heal_by_itself(
    paused: tuple[Healed, PlanRecord, str],
    reported: Reported,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen, plan, topic = paused
    seen.rules(policies={"empty_broker": "heal"}, largest_throttle=FAST)
    assert seen.at(30) == [], "the window that did not suffice is still open"
    monkeypatch.setenv("REHOME_WINDOW_CRON", NEVER)
    assert seen.at(40) == []
    seen.ledger.request_pause(plan.plan_id, "ann")
    open_the_next(monkeypatch)
    assert seen.at(50) == [], "a person's pause is a person's to end"
    seen.ledger.withdraw_pause(plan.plan_id, "ann")

    (start,) = seen.at(60)
    assert start["conf"]["plan_id"] == plan.plan_id
    assert seen.at(70) == [], "it has not ended"
    run = seen.carry_out(start)
    assert run.state == "success", run.log
    (healed,) = seen.ledger.plans()
    assert (healed.plan_id, healed.state) == (plan.plan_id, PlanState.DONE)
    assert healed.request["window_end"] == start["conf"]["window_end"]
    continued = [
        e.detail for e in seen.ledger.events(plan.plan_id) if e.kind == EventKind.CONTINUED
    ]
    assert continued == [f"reassign_partitions/{start['trigger_run_id']}"]
    assert held_by(seen, topic, 4) >= 2
    assert not seen.ledger.throttles(open_only=True)
    assert seen.at(80) == []
    assert EMPTY not in seen.open()
    assert [each.failed for each in seen.ledger.watch_starts(plan.cluster_id)] == [False, False]


def test_alerts_and_the_note_of_its_run_say_that_a_paused_heal_goes_on_by_itself(
    reported: Reported, paused: tuple[Healed, PlanRecord, str]
) -> None:
    seen, _, _ = paused
    (run,) = seen.carried_out
    next_step = reported.only("paused_at_window_end")["next_step"]
    assert "It goes on by itself when the next window opens, at " in next_step
    assert "watch_clusters starts a run with the first snapshot after" in next_step
    assert run.note.startswith(next_step.split(" Nothing.")[0])


def test_a_paused_heal_that_fits_no_more_is_given_up_for_a_new_one(
    paused: tuple[Healed, PlanRecord, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, plan, topic = paused
    left = seen.ledger.planned_moves(plan.plan_id, MoveState.PENDING)[0]
    other = TopicPartition(topic, left.partition.partition)
    swapped = list(reversed(left.current))
    assert not any(seen.gateway.alter_reassignments({other: swapped}).values())
    wait_until(
        lambda: list(_replicas(seen, other)) == swapped, "another client's reassignment to end"
    )
    open_the_next(monkeypatch)
    (start,) = seen.at(30)
    run = seen.carry_out(start)
    assert run.state == "failed"
    assert f"Plan {plan.plan_id} no longer fits the cluster" in run.log
    assert seen.ledger.plan(plan.plan_id).state is PlanState.CANCELLED
    (anew,) = seen.at(40)
    assert anew["conf"]["action"] == "expand"


def _replicas(seen: Healed, partition: TopicPartition) -> tuple[int, ...]:
    topic = seen.gateway.describe_topics([partition.topic])[partition.topic]
    return tuple(topic.partitions[partition.partition].replicas)
