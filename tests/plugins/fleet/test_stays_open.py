"""Findings that stay open though what was started for them has ended: what people see of it."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.domain import clock
from include.domain.plan.infeasible import Infeasible, Obstacle, Subject
from include.domain.plan.move import Move
from include.domain.request.parse_request import parse_request
from include.domain.resources import Resource
from include.domain.run.states import PlanState
from include.ledger.store import Ledger
from include.page.findings import finding_lines
from include.warehouse import PlanDirectory
from include.watching.stays_open import RunOutcome, StaysOpen
from rehome import installation
from rehome.fleet import watch_runs
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, START, Change, Cluster
from tests.plugins.fleet.recorded import Rules, dead_for_half_an_hour, watch, without_broker

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
    if to is PlanState.DONE:
        ledger.approve("p1", plan.plan_hash, "watch")
        ledger.transition("p1", PlanState.RUNNING, "begun")
    ledger.transition("p1", to, "as planned")
    ledger.end_watch_start(start.dag_id, start.run_id, failed=False, plan_id="p1")


def seen(ledger: Ledger) -> StaysOpen | None:
    (finding,), (start,) = ledger.open_findings(CLUSTER), ledger.watch_starts(CLUSTER)
    return watch_runs.stays_open(ledger, finding, start)


@pytest.mark.parametrize(
    ("moves", "outcome", "reported"),
    [
        (
            (),
            RunOutcome.NOTHING_TO_MOVE,
            "the remedy cannot help, as its plan p1 has found nothing",
        ),
        (
            (move("t", 0, (1, 3), (1, 2)),),
            RunOutcome.NOT_ENOUGH,
            "the remedy could not do more, as its plan p1 is done",
        ),
    ],
)
def test_a_remedy_that_has_done_all_it_can_is_not_repeated_and_says_why_the_finding_stays_open(
    recorded: Cluster,
    rules: Rules,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    moves: tuple[Move, ...],
    outcome: RunOutcome,
    reported: str,
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=9)
    assert len(watch(*dead_for_half_an_hour(recorded))) == 1
    with installation.open_ledger() as ledger:
        assert seen(ledger) is None, "it has not ended"
        end(ledger, tmp_path, *moves)
        assert seen(ledger) is None, "no later snapshot has judged it"
        for minutes in range(10, 60, 10):
            capsys.readouterr()
            assert watch_later(recorded, minutes) == []
            log = capsys.readouterr().out
            assert "Nothing is started for dead_broker broker 3: The finding stays open" in log
            assert reported in log
            assert "the broker's cap is below its share" in log
            assert "4 more of this kind: broker" in log
            assert "healing has stopped" not in log
        assert len(ledger.watch_starts(CLUSTER)) == 1
        assert "healing_stopped" not in {alert.kind for alert in ledger.alerts()}
        found = seen(ledger)
        assert found is not None
        assert (found.outcome, found.plan_id, len(found.reasons)) == (outcome, "p1", 1)
        (finding,) = ledger.open_findings(CLUSTER)
        (line,) = finding_lines(
            [finding], ledger.watch_starts(CLUSTER), None, {finding.about: found}
        )
        assert line.stays_open is not None
        assert reported in line.stays_open.text
        watch_later(recorded, 60, None)
        assert ledger.open_findings(CLUSTER) == [], "it closes as any"


def test_what_ends_otherwise_is_told_apart(
    recorded: Cluster, rules: Rules, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules(policies={"dead_broker": "propose"})
    watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        plan = make_plan("p0", cluster_id=CLUSTER)
        ledger.create_plan(plan, {}, "file:///p0", start.run_id, "watch", None, start.dag_id)
        ledger.end_watch_start(start.dag_id, start.run_id, failed=True, plan_id="p0")
        assert watch_later(recorded, 10) == []
        assert "its proposal has failed, or nobody has answered it" in capsys.readouterr().out
        ledger.end_watch_start(start.dag_id, start.run_id, failed=False)
        assert watch_later(recorded, 20) == []
        assert "has ended without a plan that is done" in capsys.readouterr().out
        end(ledger, tmp_path, to=PlanState.CANCELLED)
        assert watch_later(recorded, 30) == []
        found: Any = seen(ledger)
        assert (found.outcome, found.plan_id) == (RunOutcome.UNKNOWN, "p1")


def test_a_heal_that_has_failed_is_tried_again(recorded: Cluster, rules: Rules) -> None:
    rules(policies={"dead_broker": "heal"})
    watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        ledger.end_watch_start(start.dag_id, start.run_id, failed=True)
        assert len(watch_later(recorded, 10)) == 1
