"""Heals whose plan is refused: why is said, and the same is not planned again for nothing.

On real brokers: tests/dags/watching/test_heals_that_change_nothing.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from include.domain.run.askers import STARTED_DAG
from include.ledger.store import Ledger
from include.ledger.stores.watched.starts import StartRecord
from include.page.findings import finding_lines
from include.watching.kinds import FindingKind
from include.watching.refusal import RefusedBy
from rehome import installation
from rehome.fleet import refused, watch_runs
from rehome.notifiers.run_end import RehomeNotifier
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import CONNECTION, DEAD, Rules, execute, known, watch
from tests.quality.snapshots import Rows

WHY = "it does not hold that every broker whose load is balanced is alive: broker 3"
ASK = {"grace_s": 1200, "failures_to_stop": 1, "heals_a_day": 2}


def at_rest(rows: Rows) -> None:
    """A broker is dead, and nobody writes."""
    for row in rows.brokers:
        row["live"] = row["broker"] != DEAD
    for row in rows.replicas:
        row["size_bytes"] = 1_000_000


def changed(rows: Rows) -> None:
    at_rest(rows)
    rows.replicas[0]["in_isr"] = False


@pytest.fixture
def opened(recorded: Cluster, rules: Rules) -> list[dict[str, Any]]:
    """The run that is started for a dead broker."""
    rules(policies={"dead_broker": "heal"}, **ASK)
    return watch(*(recorded.snapshot(minutes, at_rest) for minutes in (0, 10, 20)))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What has changed is planned again at once."""
    monkeypatch.setattr("include.watching.refusal.FIRST_WAIT", timedelta())


def refuse(
    start: dict[str, Any],
    uri: str,
    by: RefusedBy = RefusedBy.GATE,
    *reasons: str,
    repeats: bool = True,
) -> None:
    """The run makes no plan by a snapshot, and ends."""
    run = SimpleNamespace(
        dag_id=STARTED_DAG,
        run_id=start["trigger_run_id"],
        run_type="manual",
        run_after=datetime.now(UTC),
        conf=start["conf"],
    )
    refused.record(run, CONNECTION, by, reasons or (WHY,), uri, repeats=repeats)
    RehomeNotifier("failed", makes_plan=True).notify({"dag_run": run, "params": start["conf"]})


def starts(ledger: Ledger) -> list[StartRecord]:
    return ledger.watch_starts(CLUSTER)


def test_a_refused_heal_is_not_started_again_while_snapshots_show_the_same(
    recorded: Cluster, opened: list[Any], at_once: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    with installation.open_ledger() as ledger:
        for minutes in range(30, 80, 10):
            capsys.readouterr()
            assert watch(recorded.snapshot(minutes, at_rest)) == []
            log = capsys.readouterr().out
            assert f"its plan was refused by its gate, because {WHY}." in log
            assert "Nothing was changed" in log
        assert len(starts(ledger)) == 1
        (again,) = watch(recorded.snapshot(90, changed))
        assert again["conf"]["action"] == "fix_offline_replicas"
        refuse(again, recorded.snapshot(95, changed))
        assert watch(recorded.snapshot(100, changed)) == []
        assert "by its gate (2 times in a row), because" in capsys.readouterr().out


def test_what_was_refused_changed_nothing_and_stops_no_other_healing(
    recorded: Cluster, opened: list[Any], at_once: None
) -> None:
    (start,) = opened
    with installation.open_ledger() as ledger:
        for number in range(4):
            refuse(start, recorded.snapshot(25 + 20 * number, at_rest))
            (start,) = watch(recorded.snapshot(35 + 20 * number, changed))
        assert "healing_stopped" not in {alert.kind for alert in ledger.alerts()}
        ledger.end_watch_start(STARTED_DAG, start["trigger_run_id"], failed=True)
        assert watch(recorded.snapshot(200, at_rest)) == []
        assert "healing_stopped" in {alert.kind for alert in ledger.alerts()}


def test_what_keeps_changing_is_planned_again_later_and_later(
    recorded: Cluster, opened: list[Any]
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    assert watch(recorded.snapshot(30, changed)) == [], "not within half an hour"


@pytest.mark.parametrize("by", [RefusedBy.DRY_RUN, RefusedBy.CRASHED_GATE])
def test_what_other_things_than_the_snapshot_may_have_refused_is_planned_again_after_a_while(
    recorded: Cluster, opened: list[Any], at_once: None, by: RefusedBy
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest), by)
    assert len(watch(recorded.snapshot(30, at_rest))) == 1


def test_a_refusal_for_the_age_of_a_snapshot_does_not_outlast_it(
    recorded: Cluster, opened: list[Any], at_once: None
) -> None:
    """A heal of a cluster at rest would never be planned again."""
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest), repeats=False)
    assert len(watch(recorded.snapshot(30, at_rest))) == 1


def test_a_drained_broker_that_is_switched_off_before_the_run_plans_ends_the_hold(
    recorded: Cluster, opened: list[Any], at_once: None
) -> None:
    """The run was told to leave it empty, and its planner did not know it any more."""
    (start,) = opened
    start["conf"]["exclude_brokers"] = [4]
    refuse(start, recorded.snapshot(25, at_rest), RefusedBy.PLANNER, "Unknown broker 4.", "No 5.")
    with installation.open_ledger() as ledger:
        (alert,) = [each for each in ledger.alerts() if each.kind == "failed"]
        assert "because Unknown broker 4; No 5. " in f"{alert.alert['text']} "
    (again,) = watch(recorded.snapshot(30, at_rest))
    assert "exclude_brokers" not in again["conf"]
    refuse(again, recorded.snapshot(35, at_rest), RefusedBy.PLANNER, "No room.")
    assert watch(recorded.snapshot(40, at_rest)) == [], "now it is the same"


def test_what_cannot_be_recorded_hides_no_refusal(
    recorded: Cluster, opened: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: object) -> str:
        raise pa.ArrowInvalid("not a Parquet file")

    monkeypatch.setattr("include.cluster.snapshot.layout_digest.layout_digest", fails)
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    with installation.open_ledger() as ledger:
        assert [(start.refusal, start.failed) for start in starts(ledger)] == [(None, True)]


def test_a_proposal_that_failed_before_its_plan_was_made_is_made_again_later_and_later(
    recorded: Cluster,
    rules: Rules,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nobody has seen it, so that nobody could answer."""
    rules(policies={"dead_broker": "propose"}, **ASK)
    (start,) = watch(*(recorded.snapshot(minutes, at_rest) for minutes in (0, 10, 20)))
    with installation.open_ledger() as ledger:
        ledger.end_watch_start(STARTED_DAG, start["trigger_run_id"], failed=True)
        capsys.readouterr()
        assert watch(recorded.snapshot(30, at_rest)) == []
        log = capsys.readouterr().out
        assert "the run that was to propose a plan has failed before it made one" in log
        assert "It is not planned again before" in log
        assert "unless the settings change" not in log
        monkeypatch.setattr("include.watching.refusal.FIRST_WAIT", timedelta())
        (again,) = watch(recorded.snapshot(40, at_rest))
        ledger.end_watch_start(STARTED_DAG, again["trigger_run_id"], failed=True)
        found = refused.newest_refused(starts(ledger), FindingKind.DEAD_BROKER, f"broker {DEAD}")
        assert found is not None
        assert found.in_a_row == 2


def test_a_proposal_that_nobody_has_answered_is_not_made_again(
    recorded: Cluster, rules: Rules, at_once: None
) -> None:
    rules(policies={"dead_broker": "propose"}, **ASK)
    (start,) = watch(*(recorded.snapshot(minutes, at_rest) for minutes in (0, 10, 20)))
    run_id = start["trigger_run_id"]
    with installation.open_ledger() as ledger:
        plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
        ledger.create_plan(plan, {}, "file:///nowhere", run_id, "watch", CONNECTION, "dag")
        ledger.end_watch_start(STARTED_DAG, run_id, failed=True, plan_id="p1")
        assert watch(recorded.snapshot(30, at_rest)) == []
        assert refused.newest_refused(starts(ledger), FindingKind.DEAD_BROKER, "broker 3") is None


def test_changed_settings_and_a_person_have_it_planned_again_at_once(
    recorded: Cluster, opened: list[Any], rules: Rules
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    rules(policies={"dead_broker": "heal"}, **ASK, largest_throttle=7)
    (again,) = watch(recorded.snapshot(30, at_rest))
    refuse(again, recorded.snapshot(35, at_rest))
    newest = recorded.snapshot(40, at_rest)
    assert watch(newest) == []
    with installation.open_ledger() as ledger:
        ledger.record_connection(CONNECTION, CLUSTER)
        (asked,) = execute({})
        refuse(asked, known(recorded.snapshot(40, at_rest)))
        (once_more,) = execute({})
        assert once_more["trigger_run_id"] == f"{asked['trigger_run_id']}__2", "a run of its own"
        assert starts(ledger)[0].run_id == once_more["trigger_run_id"]


@pytest.mark.parametrize("seed", ["1", "2"])
def test_settings_are_the_same_in_every_process(
    recorded: Cluster, opened: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, seed: str
) -> None:
    """A set has another order in each: what was refused would be started again and again."""
    path = tmp_path / "clusters.yaml"
    actions = "[drain, rebalance, expand, repair_racks, fix_offline_replicas, demote]"
    path.write_text(
        "clusters:\n"
        "  main:\n"
        f"    connection: {CONNECTION}\n"
        f"    policy: {{actions: {actions}}}\n"
        '    windows: [{cron: "0 1 * * *", hours: 2}]\n'
        "    targets: {exclude_topics: [a, b], effort: thorough}\n"
    )
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    program = f"from rehome.fleet import refused; print(refused.settings_digest({CONNECTION!r}))"
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    there = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert there.stdout.split()[-1] == refused.settings_digest(CONNECTION)


def test_the_alert_and_the_page_say_why_and_what_comes_next(
    recorded: Cluster, opened: list[Any]
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    with installation.open_ledger() as ledger:
        (alert,) = [each for each in ledger.alerts() if each.kind == "failed"]
        text, next_step = alert.alert["text"], alert.alert["next_step"]
        assert "No plan was made; nothing was changed." in text
        assert f"its plan was refused by its gate, because {WHY}." in text
        assert "trigger watch_clusters by hand" in next_step
        assert "not before snapshots show a changed cluster" in next_step
        findings, all_starts = ledger.open_findings(CLUSTER), starts(ledger)
        staying = watch_runs.staying_open(ledger, findings, all_starts)
        (line,) = finding_lines(findings, all_starts, None, staying)
    assert line.stays_open is not None
    assert (line.stays_open.reasons, line.stays_open.next_step) == ((WHY,), next_step)


def test_a_refused_run_that_is_cleared_and_makes_a_plan_is_no_refused_one(
    recorded: Cluster, opened: list[Any]
) -> None:
    (start,) = opened
    refuse(start, recorded.snapshot(25, at_rest))
    run = SimpleNamespace(dag_id=STARTED_DAG, run_id=start["trigger_run_id"])
    with installation.open_ledger() as ledger:
        refused.withdraw(run, ledger)
        assert starts(ledger)[0].refusal is None


def test_of_a_run_that_a_person_has_triggered_nothing_is_recorded(
    recorded: Cluster, opened: list[Any]
) -> None:
    run = SimpleNamespace(dag_id=STARTED_DAG, run_id="manual__by_ann")
    refused.record(run, CONNECTION, RefusedBy.GATE, (WHY,), recorded.snapshot(25, at_rest))
    with installation.open_ledger() as ledger:
        assert [start.refusal for start in starts(ledger)] == [None]
