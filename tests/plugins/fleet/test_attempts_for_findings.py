"""The last attempt for a finding: what came of it, when another one starts, and what people see.

On real brokers: tests/dags/watching/test_heals_that_change_nothing.py.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain import clock
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject
from rehome.domain.plan.move import Move
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import Resource
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.fleet import attempts
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.notifiers.run_end import RehomeNotifier
from rehome.page.findings import finding_lines
from rehome.warehouse import PlanDirectory
from rehome.watching.last_attempt import Attempted, LastAttempt
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, START, Change, Cluster
from tests.plugins.fleet.recorded import (
    CONNECTION,
    DEAD,
    Rules,
    dead_for_half_an_hour,
    execute,
    known,
    watch,
    without_broker,
)

WHY = "Broker 3 is dead."

NOTES = tuple(
    Infeasible(
        Subject.of_broker(broker), Obstacle.CAP, wanted=2.0, nearest=1.0, resource=Resource.REPLICAS
    )
    for broker in range(5)
)


class Later:
    """The machine's clock, moved on."""

    def __init__(self, minutes: int) -> None:
        self.by = timedelta(minutes=minutes)

    def utc_now(self) -> datetime:
        return datetime.now(UTC) + self.by

    def monotonic_s(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        self.by += timedelta(seconds=seconds)

    def new_id(self) -> str:
        return uuid.uuid4().hex


def watch_later(
    recorded: Cluster, minutes: int, change: Change | None = without_broker
) -> list[dict[str, Any]]:
    """A snapshot so long after now, and a run of the task on it; by default the finding is there
    still.
    """
    with clock.replaced_by(Later(minutes)):
        since = (clock.utc_now() - START).total_seconds() / 60
        return watch(recorded.snapshot(since, change))


def end(ledger: Ledger, directory: Path, *moves: Move, to: PlanState = PlanState.DONE) -> None:
    """The newest run has ended well with a plan of these moves."""
    (start, *_) = ledger.watch_starts(CLUSTER)
    plan = make_plan("p1", *moves, cluster_id=CLUSTER)
    plan = replace(plan, moves=moves, summary=replace(plan.summary, infeasible=NOTES))
    files = PlanDirectory((directory / "p1").as_uri())
    files.save(plan, parse_request({"action": "rebalance"}))
    ledger.create_plan(plan, {}, files.uri, start.run_id, "watch", None, start.dag_id)
    if to in (PlanState.DONE, PlanState.FAILED):
        ledger.approve("p1", plan.plan_hash, "watch")
        ledger.transition("p1", PlanState.RUNNING, "begun")
    ledger.transition("p1", to, "as planned")
    failed = to is not PlanState.DONE
    ledger.end_watch_start(start.dag_id, start.run_id, failed=failed, plan_id="p1")


def seen(ledger: Ledger, minutes: float = 0) -> LastAttempt:
    now = datetime.now(UTC) + timedelta(minutes=minutes)
    found = attempts.last_attempts(ledger, ledger.watch_starts(CLUSTER), now)
    return found[FindingKind.DEAD_BROKER, f"broker {DEAD}"]


def refuse(ledger: Ledger, kind: CauseKind = CauseKind.GATE, *, plan_id: str | None = None) -> None:
    """The newest run has ended before it has changed anything."""
    (start, *_) = ledger.watch_starts(CLUSTER)
    cause = Cause(kind, WHY, "Nothing was changed.", "", datetime.now(UTC), "plan")
    ledger.record_cause(EndedRun(start.dag_id, start.run_id, cause))
    ledger.end_watch_start(start.dag_id, start.run_id, failed=True, plan_id=plan_id)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moves", "outcome", "reported"),
    [
        (
            (),
            Attempted.NOTHING_TO_MOVE,
            "The remedy cannot help, as plan p1 has found nothing",
        ),
        (
            (move("t", 0, (1, 3), (1, 2)),),
            Attempted.NOT_ENOUGH,
            "The remedy could not do more, as plan p1 is done",
        ),
    ],
)
def test_a_remedy_that_has_done_all_it_can_is_not_repeated_and_says_why_the_finding_stays_open(
    recorded: Cluster,
    rules: Rules,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    moves: tuple[Move, ...],
    outcome: Attempted,
    reported: str,
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=9)
    assert len(watch(*dead_for_half_an_hour(recorded))) == 1
    with installation.open_ledger() as ledger:
        assert seen(ledger).outcome is Attempted.UNDER_WAY
        end(ledger, tmp_path, *moves)
        for minutes in range(10, 60, 10):
            capsys.readouterr()
            assert watch_later(recorded, minutes) == []
            log = capsys.readouterr().out
            assert f"Nothing is started for dead_broker broker 3: {reported}" in log
            assert "the broker's cap is below its share" in log
            assert "4 more of this kind: broker" in log
            assert "healing has stopped" not in log
        assert len(ledger.watch_starts(CLUSTER)) == 1
        assert "healing_stopped" not in {alert.kind for alert in ledger.alerts()}
        found = seen(ledger)
        assert (found.outcome, found.plan_id, len(found.reasons)) == (outcome, "p1", 1)
        (finding,) = ledger.open_findings(CLUSTER)
        (line,) = finding_lines([finding], ledger.watch_starts(CLUSTER), {finding.key: found})
        assert line.attempt is not None
        assert reported in line.attempt.text
        watch_later(recorded, 60, None)
        assert ledger.open_findings(CLUSTER) == [], "it closes as any"


@pytest.mark.slow
def test_what_ends_otherwise_is_told_apart(recorded: Cluster, rules: Rules, tmp_path: Path) -> None:
    rules(policies={"dead_broker": "propose"})
    watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        assert seen(ledger, minutes=25 * 60).outcome is Attempted.FAILED, "its end is not known"
        ledger.end_watch_start(start.dag_id, start.run_id, failed=True)
        assert seen(ledger).outcome is Attempted.REFUSED
        end(ledger, tmp_path, to=PlanState.CANCELLED)
        assert seen(ledger).outcome is Attempted.NO_ANSWER, "of an earlier Rehome"
        refuse(ledger, CauseKind.NOT_APPROVED, plan_id="p1")
        assert seen(ledger).outcome is Attempted.REFUSED
        for attempt, kind, outcome in (
            (2, CauseKind.NO_ANSWER, Attempted.NO_ANSWER),
            (3, CauseKind.CANCELLED, Attempted.BY_PERSON),
        ):
            cause = Cause(kind, WHY, "", "", datetime.now(UTC), "plan", attempt)
            ledger.record_cause(EndedRun(start.dag_id, start.run_id, cause))
            assert seen(ledger).outcome is outcome


@pytest.mark.slow
def test_what_changed_nothing_is_tried_again_later_and_later_and_counts_as_no_heal(
    recorded: Cluster, rules: Rules, capsys: pytest.CaptureFixture[str]
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=1)
    watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        refuse(ledger)
        assert watch_later(recorded, 25) == []
        log = capsys.readouterr().out
        assert f"The last attempt has changed nothing: {WHY} It is not tried again" in log
        assert len(watch_later(recorded, 35)) == 1
        refuse(ledger)
        assert watch_later(recorded, 55) == []
        assert "changed nothing (2 times in a row)" in capsys.readouterr().out
        assert len(watch_later(recorded, 65)) == 1
        assert "healing_stopped" not in {alert.kind for alert in ledger.alerts()}


@pytest.mark.slow
def test_a_person_has_it_tried_again_at_once_by_a_run_of_its_own(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal"})
    (start,) = watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        refuse(ledger)
        known(recorded.snapshot(20, without_broker))
        ledger.record_connection(CONNECTION, CLUSTER)
        (again,) = execute({})
        assert again["trigger_run_id"] == f"{start['trigger_run_id']}__2"


@pytest.mark.slow
def test_a_heal_that_failed_in_the_middle_waits_as_well_and_counts(
    recorded: Cluster, rules: Rules, tmp_path: Path
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=1)
    watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        end(ledger, tmp_path, move("t", 0, (1, 3), (1, 2)), to=PlanState.FAILED)
        assert seen(ledger).outcome is Attempted.FAILED
        assert watch_later(recorded, 35) == []
        assert "healing_stopped" in {alert.kind for alert in ledger.alerts()}
        rules(policies={"dead_broker": "heal"}, heals_a_day=2)
        assert len(watch_later(recorded, 40)) == 1


@pytest.mark.slow
def test_the_alert_of_the_run_says_why_and_when_it_is_tried_again(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal"})
    (start,) = watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        refuse(ledger)
        run = SimpleNamespace(
            dag_id=start["trigger_dag_id"],
            run_id=start["trigger_run_id"],
            run_type="manual",
            run_after=datetime.now(UTC),
            conf=start["conf"],
        )
        RehomeNotifier("failed", makes_plan=True).notify({"dag_run": run, "params": start["conf"]})
        (alert,) = [each for each in ledger.alerts() if each.kind == "failed"]
    assert WHY in alert.alert["text"]
    assert "It is not tried again before" in alert.alert["next_step"]
    assert alert.alert["facts"]["ended_by"]["kind"] == "gate"
