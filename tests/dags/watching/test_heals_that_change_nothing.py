"""Heals on real brokers that have nothing to do, or whose plan is refused: what people are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.kafka.cluster import LocalCluster
from local.process.waiting import wait_until
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import PlanState
from rehome.ledger.base.records import PlanRecord
from tests.conftest import Topics
from tests.dags.clusters import state_of
from tests.dags.runs import Run
from tests.dags.watching.healed import EMPTY, Healed
from tests.plugins.mailbox import Reported

pytestmark = pytest.mark.long  # each run of the DAG, and each death of a broker, takes 10 s

DEAD, UNEVEN = ("dead_broker", "broker 3"), "imbalance"


def has_planned_nothing(seen: Healed, run: Run) -> PlanRecord:
    """The run has ended well with a plan that moves nothing, and its start is in the ledger so."""
    assert run.state == "success", run.log
    (plan,) = seen.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.DONE, "there was nothing to move")
    assert seen.ledger.move_sums(plan.plan_id) == {}
    assert seen.ledger.throttles(plan.plan_id) == []
    (begun,) = seen.ledger.watch_starts(plan.cluster_id)
    assert (begun.failed, begun.plan_id) == (False, plan.plan_id)
    return plan


def heal_of_a_returned_broker(
    mortal: LocalCluster, watch: Callable[..., Healed]
) -> tuple[Healed, str, dict[str, Any]]:
    """A watched cluster with a topic, and a heal that is to start; its broker 3 is back by then."""
    seen = watch(mortal, policies={"dead_broker": "heal"})
    topic = Topics(mortal).create([[3, 1], [1, 3], [2, 1]])
    seen.at(-10)  # the racks are known
    seen.kill(3)
    (start,) = seen.at(0, 10, 20)
    seen.restart(3)
    return seen, topic, start


def test_a_finding_that_is_over_before_its_heal_has_planned_is_no_failure(
    mortal: LocalCluster, watch: Callable[..., Healed], reported: Reported
) -> None:
    seen, topic, start = heal_of_a_returned_broker(mortal, watch)
    before = state_of(seen.gateway, [topic])
    run = seen.carry_out(start)
    has_planned_nothing(seen, run)
    assert state_of(seen.gateway, [topic]) == before
    assert run.note == (
        "Done. Replace offline replicas of broker 3: nothing has to change. "
        "Every partition is where it is to be: nothing was moved."
    )
    done = reported.only("done")
    assert "is done (there was nothing to move). Moves: none." in done["text"]
    assert "predicted" not in done["text"]
    assert seen.at(30) == []
    assert DEAD not in seen.open()


def test_a_heal_with_nothing_left_to_do_ends_well_and_its_finding_says_that_it_stays_open(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    reported: Reported,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What broker 4 was to take over is deleted."""
    seen = watch(mortal, policies={"empty_broker": "heal"})
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [2, 3], [3, 1]])
    (start,) = seen.at(0, 10, 20)
    topics.delete_all()
    wait_until(lambda: topic not in seen.gateway.describe_topics(), "the topic to be gone")
    run = seen.carry_out(start)
    plan = has_planned_nothing(seen, run)
    assert reported.kinds().count("done") == 1
    capfd.readouterr()
    after = (datetime.now(UTC) - seen.begun).total_seconds() / 60
    for minutes in (after, after + 1):
        assert seen.at(minutes) == [], "nothing is started again for it"
    assert EMPTY in seen.open()
    assert f"as plan {plan.plan_id} has found nothing to move" in capfd.readouterr().out


def test_a_heal_that_has_waited_until_the_rules_say_watch_changes_nothing(
    mortal: LocalCluster, watch: Callable[..., Healed], reported: Reported
) -> None:
    seen = watch(mortal, policies={"empty_broker": "heal"})
    topic = Topics(mortal).create([[1, 2], [2, 3], [3, 1]])
    (start,) = seen.at(0, 10, 20)
    seen.rules()
    before = state_of(seen.gateway, [topic])
    run = seen.carry_out(start)
    assert run.state == "failed", run.log
    assert "The watch rules no longer say heal for empty_broker broker 4" in run.log
    assert seen.ledger.plans() == []
    assert state_of(seen.gateway, [topic]) == before


def test_a_heal_copies_nothing_off_a_broker_that_was_back_and_is_away_again(
    mortal: LocalCluster, watch: Callable[..., Healed], reported: Reported
) -> None:
    """By the time that its run gets a slot, the broker is restarting."""
    seen, topic, start = heal_of_a_returned_broker(mortal, watch)
    assert seen.at(25) == []
    seen.kill(3)
    before = state_of(seen.gateway, [topic])
    run = seen.carry_out(start)
    assert run.state == "failed", run.log
    assert "Broker 3 is not alive, and may be restarting" in run.log
    assert seen.ledger.plans() == []
    assert state_of(seen.gateway, [topic]) == before
    assert cause_of(seen, start).kind is CauseKind.NOT_HEALED
    failed = reported.only("failed")
    assert "Broker 3 is not alive, and may be restarting" in failed["text"]
    assert "It is not tried again before" in failed["next_step"]


def test_a_heal_that_its_gate_refuses_is_told_with_the_reason_and_is_tried_again_after_a_wait(
    mortal: LocalCluster,
    watch: Callable[..., Healed],
    reported: Reported,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is rebalanced while a broker is dead, and nobody has asked to repair that."""
    seen = watch(mortal, policies={"imbalance": "heal"}, balance_tolerance=0.1)
    topics = Topics(mortal)
    topic = topics.create([[1, 2], [1, 2], [1, 2], [4, 1], [3, 2]])
    topics.fill(topic, 200)
    seen.at(-10)  # the racks are known
    seen.kill(3)
    (start,) = seen.at(0, 10, 20)
    assert start["conf"]["action"] == "rebalance"
    run = seen.carry_out(start, with_spark=True)
    assert run.state == "failed", run.log
    assert seen.ledger.plans() == []
    assert cause_of(seen, start).kind is CauseKind.GATE
    failed = reported.only("failed")
    assert "every broker whose load is balanced is alive" in failed["text"]
    assert "It is not tried again before" in failed["next_step"]
    assert seen.at(30, 40) == []
    assert len(seen.ledger.watch_starts(mortal.cluster_id)) == 1
    assert "healing_stopped" not in reported.kinds()
    seen.restart(3)
    monkeypatch.setattr("rehome.watching.last_attempt.FIRST_WAIT", timedelta())
    (again,) = seen.at(50)
    assert again["conf"]["action"] == "rebalance"


def cause_of(seen: Healed, start: dict[str, Any]) -> Cause:
    found = seen.ledger.cause_of(start["trigger_dag_id"], start["trigger_run_id"])
    assert found is not None
    return found
