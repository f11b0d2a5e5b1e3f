"""What watching starts on real brokers: proposed, approved or rejected, healed, closed, stopped.

All but the runs of the DAG is in `make test`: tests/plugins/fleet.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.run.states import PlanState
from rehome.operators.execute import StartReassignmentOperator
from rehome.warehouse import PlanDirectory
from tests.conftest import Topics
from tests.dags.watching.healed import EMPTY, Healed, held_by
from tests.plugins.mailbox import Reported

pytestmark = pytest.mark.long  # each run of the DAG, and each death of a broker, takes 10 s

DEAD = ("dead_broker", "broker 3")


def test_a_dead_broker_is_proposed_approved_healed_in_parts_and_closed(
    mortal: LocalCluster, watch: Callable[..., Healed], answered: Callable[[str], list[str]]
) -> None:
    """The budget pays for one of two partitions that have lost a replica."""
    seen = watch(mortal, policies={"dead_broker": "propose"}, budget_bytes=90_000)
    topics = Topics(mortal)
    topics.fill(topics.create([[3, 1], [1, 3], [2, 1]]), 60)
    seen.kill(3)
    assert seen.at(0, 10) == []
    asked = answered("Approve")
    for minutes in (20, 30):
        assert DEAD in seen.open() or minutes == 20
        (start,) = seen.at(minutes)
        run = seen.carry_out(start)
        assert run.state == "success", run.log
    assert len(asked) == 2
    second, first = seen.ledger.plans()
    for plan in (first, second):
        assert (plan.state, plan.approver) == (PlanState.DONE, "ann")
        assert (plan.action, plan.request["brokers"]) == ("fix_offline_replicas", [3])
        assert 0 < plan.bytes_total <= 90_000
    assert (first.cut_by_budget, second.cut_by_budget) == (True, False)
    assert DEAD in seen.open()
    seen.at(40)
    assert DEAD not in seen.open(), "it holds nothing any more"


def test_a_flapping_broker_opens_no_findings_and_closes_none(
    mortal: LocalCluster, watch: Callable[..., Healed], reported: Reported
) -> None:
    """It dies three times; each time it is away for less than the grace time."""
    seen = watch(mortal, policies={"dead_broker": "heal"}, snapshots_to_close=3)
    Topics(mortal).create([[3, 2], [4, 3], [1, 2]])
    minutes = iter(range(0, 200, 10))
    for _ in range(2):
        seen.kill(3)
        assert seen.at(next(minutes), next(minutes)) == []
        seen.restart(3)
        assert seen.at(next(minutes)) == []
        assert DEAD not in seen.open()
    assert reported.kinds() == []

    seen.kill(3)
    (start,) = seen.at(next(minutes), next(minutes), next(minutes))
    assert start["conf"]["action"] == "fix_offline_replicas"
    assert DEAD in seen.open()
    seen.restart(3)
    seen.at(next(minutes))
    assert DEAD in seen.open(), "two more have to show that it is back"
    seen.kill(3)
    seen.at(next(minutes))
    seen.restart(3)
    seen.at(next(minutes), next(minutes))
    assert DEAD in seen.open()
    seen.at(next(minutes))
    assert DEAD not in seen.open()
    assert len(seen.ledger.watch_starts(mortal.cluster_id)) == 1
    texts = [alert["text"] for alert in reported.webhook.reported]
    assert len([text for text in texts if "Broker 3 is not alive" in text]) == 1


def test_a_new_broker_is_proposed_to_be_filled_and_by_policy_it_is_filled(
    private_cluster: Callable[..., LocalCluster],
    watch: Callable[..., Healed],
    answered: Callable[[str], list[str]],
    reported: Reported,
) -> None:
    cluster = private_cluster(brokers=4)
    seen = watch(cluster, policies={"empty_broker": "propose"})
    topics = Topics(cluster)
    topic = topics.create([[1, 2], [2, 3], [3, 1], [1, 2], [2, 3], [3, 1]])
    topics.fill(topic, 500)
    assert seen.at(0, 10) == []
    (proposed,) = seen.at(20)
    assert EMPTY in seen.open()

    asked = answered("Reject")
    run = seen.carry_out(proposed)
    (plan,) = seen.ledger.plans()
    assert (plan.state, plan.action) == (PlanState.CANCELLED, "expand"), run.log
    assert plan.request["brokers"] == [4]
    assert PlanDirectory(plan.plan_dir).read_json("dry_run.json")["ok"]
    assert "| Fill broker 4 |" in asked[0]
    assert "| findings |" in asked[0]
    assert held_by(seen, topic, 4) == 0
    assert seen.at(30) == [], "a person has answered"

    other = topics.create([[4]])
    seen.at(40)
    assert EMPTY not in seen.open()
    topics.created.remove(topic)
    topics.delete_all()
    wait_until(lambda: other not in seen.gateway.describe_topics(), "the topic to be gone")
    seen.rules(policies={"empty_broker": "heal", "dead_broker": "heal"}, heals_a_day=1)
    assert seen.at(50, 60) == []
    (heals,) = seen.at(70)
    assert not heals["conf"]["approval"]
    run = seen.carry_out(heals, with_spark=True)
    assert run.state == "success", run.log
    assert len(asked) == 1, "no second approval was asked for"
    healed, _ = seen.ledger.plans()
    assert (healed.state, healed.approver) == (PlanState.DONE, None)
    assert held_by(seen, topic, 4) >= 2
    assert seen.at(80) == []
    assert EMPTY not in seen.open()
    assert not seen.ledger.throttles(open_only=True)

    seen.kill(4)
    assert seen.at(90, 100, 110) == []
    assert ("dead_broker", "broker 4") in seen.open()
    assert reported.kinds().count("healing_stopped") == 1


def test_healing_that_has_failed_twice_is_not_tried_again(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    reported: Reported,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A task that is killed whenever it is to copy to a new broker."""

    def killed(*_: Any) -> None:
        raise AirflowFailException("killed")

    monkeypatch.setattr(StartReassignmentOperator, "step", killed)
    monkeypatch.setattr("rehome.watching.last_attempt.FIRST_WAIT", timedelta())
    seen = watch(mortal, policies={"empty_broker": "heal"}, heals_a_day=2)
    topic = Topics(mortal).create([[1, 2], [2, 3], [3, 1]])
    (start,) = seen.at(0, 10, 20)
    for minute in (30, 40):
        run = seen.carry_out(start)
        assert run.state == "failed", run.log
        found = seen.at(minute)
        assert len(found) == (minute == 30)
        start = next(iter(found), start)
    first, second = seen.ledger.watch_starts(mortal.cluster_id)
    assert first.failed
    assert second.failed
    assert EMPTY in seen.open()
    assert held_by(seen, topic, 4) == 0
    assert reported.kinds().count("healing_stopped") == 1
