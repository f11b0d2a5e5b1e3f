"""What a paused plan waits for, by the ledger, the settings and Airflow."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from include.domain.run.states import PlanState
from include.ledger.store import Ledger
from include.ledger.stores.watched.starts import StartRecord
from include.watching.kinds import FindingKind, WatchPolicy
from include.watching.paused_plan import GoesOn, NeedsPerson, Outlook, ResumedBy, Why
from include.watching.refusal import Refusal, RefusedBy
from rehome import installation
from rehome.fleet import paused_plan, refused, watch_runs
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import CONNECTION, Rules, watch
from tests.quality.snapshots import Rows

RUN, DAG = "watch__1", "reassign_partitions"


@pytest.fixture(autouse=True)
def heals(recorded: Any, rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rules that heal, in a window of ten minutes that opened a minute ago."""
    rules(policies={"dead_broker": "heal"})
    opened = datetime.now(UTC) - timedelta(minutes=1)
    monkeypatch.setenv("REHOME_WINDOW_CRON", f"{opened.minute} {opened.hour} * * *")
    monkeypatch.setenv("REHOME_WINDOW_DURATION_S", "600")


def start(ledger: Ledger, run_id: str = RUN, **known: Any) -> None:
    at = datetime.now(UTC)
    about = (FindingKind.DEAD_BROKER, "broker 3", at)
    ledger.record_watch_start(
        StartRecord(DAG, run_id, CLUSTER, *about, WatchPolicy.HEAL, at, **known)
    )


def pause(ledger: Ledger, run_id: str = RUN) -> None:
    plan = make_plan("p1", move("t", 0, (1, 3), (1, 2)), cluster_id=CLUSTER)
    ledger.create_plan(plan, {}, "file:///nowhere", run_id, "watch", CONNECTION, DAG)
    ledger.approve("p1", plan.plan_hash, "watch")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        ledger.transition("p1", state, "the window has ended")


def found(
    ledger: Ledger,
    dags_paused: Collection[str] | None = ("rebalance_in_window",),
    ending: str = "",
    **ahead: float,
) -> Outlook | None:
    now = datetime.now(UTC) + timedelta(**ahead)
    return paused_plan.outlook(ledger, ledger.plan("p1"), now, dags_paused, ending=ending)


def test_a_heal_goes_on_in_the_next_window_also_while_the_run_that_has_paused_is_ending() -> None:
    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        for ended in (False, True):
            if ended:
                ledger.end_watch_start(DAG, RUN, failed=False, plan_id="p1")
            seen = found(ledger)
            assert isinstance(seen, GoesOn)
            assert seen.by is ResumedBy.WATCHING
            assert seen.opens_at is not None
            tomorrow = seen.opens_at - datetime.now(UTC)
            assert timedelta(hours=23) < tomorrow < timedelta(days=1)
        by_dag = found(ledger, ())
        assert isinstance(by_dag, GoesOn)
        assert (by_dag.by, by_dag.opens_at, by_dag.sure) == (
            ResumedBy.WINDOW_DAG,
            seen.opens_at,
            True,
        )
        in_task = found(ledger, None)
        assert isinstance(in_task, GoesOn)
        assert in_task.by is ResumedBy.WATCHING, "what is sure comes first"
        assert found(ledger, ["rebalance_in_window", "watch_clusters"]) == NeedsPerson(
            Why.WATCHING_PAUSED
        )
        assert found(ledger, ["rebalance_in_window", "collect_snapshots"]) == NeedsPerson(
            Why.WATCHING_PAUSED
        )


def test_the_run_that_was_started_since_goes_on_with_it() -> None:
    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        ledger.end_watch_start(DAG, RUN, failed=False, plan_id="p1")
        start(ledger, "watch__2", plan_id="p1")
        seen = found(ledger)
        assert isinstance(seen, GoesOn)
        assert (seen.by, seen.run_id) == (ResumedBy.RUN, "watch__2")


def test_the_run_that_is_ending_does_not_go_on_with_it() -> None:
    """Its own alert must not send people back to it."""
    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        start(ledger, "watch__2", plan_id="p1")
        seen = found(ledger, ending="watch__2")
        assert isinstance(seen, GoesOn)
        assert seen.by is ResumedBy.WATCHING


def test_each_dry_run_that_refuses_it_makes_it_wait_longer_and_counts_as_no_heal() -> None:
    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        ledger.end_watch_start(DAG, RUN, failed=False, plan_id="p1")
        for number, hours in ((2, 0.5), (3, 1), (4, 2)):
            run_id = f"watch__{number}"
            start(ledger, run_id, plan_id="p1")
            refusal = Refusal(RefusedBy.OF_PAUSED, ("no room",), "", "settings")
            ledger.record_refusal(DAG, run_id, refusal)
            ledger.end_watch_start(DAG, run_id, failed=True, plan_id="p1")
            starts = ledger.watch_starts(CLUSTER)
            heal = watch_runs.paused_heal(ledger, ledger.plan("p1"), starts)
            assert heal is not None
            assert starts[0].ended_at is not None
            assert heal.again_at == starts[0].ended_at + timedelta(hours=hours)
        assert refused.newest_refused(starts, FindingKind.DEAD_BROKER, "broker 3") is None
        assert len(watch_runs.counted(dict.fromkeys(starts, True))) == 1


def test_a_heal_does_not_go_on_by_itself_while_many_brokers_are_dead(recorded: Cluster) -> None:
    def dead(rows: Rows) -> None:
        for row in rows.brokers[:2]:
            row["live"] = False

    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        watch(*(recorded.snapshot(minutes, dead) for minutes in (0, 10, 20)))
        assert ledger.open_findings(CLUSTER)
        assert found(ledger) == NeedsPerson(Why.TOO_MANY_DEAD)


def test_a_plan_of_a_person_waits_for_rebalance_in_window_alone() -> None:
    with installation.open_ledger() as ledger:
        pause(ledger, "manual__1")
        seen = found(ledger, ())
        assert isinstance(seen, GoesOn)
        assert seen.by is ResumedBy.WINDOW_DAG
        assert found(ledger) == NeedsPerson(Why.WINDOW_DAG_PAUSED)
        in_task = found(ledger, None)
        assert isinstance(in_task, GoesOn)
        assert not in_task.sure


def test_a_person_is_needed_by_a_persons_pause_other_rules_or_policies(
    rules: Rules, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with installation.open_ledger() as ledger:
        start(ledger)
        pause(ledger)
        extra = {"bootstrap.servers": "b1:9092", "rehome.policy": {"actions": ["drain"]}}
        with monkeypatch.context() as patch:
            refusing = json.dumps({"conn_type": "kafka", "extra": extra})
            patch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", refusing)
            assert found(ledger) == NeedsPerson(Why.NOT_ALLOWED, "reassign")
        rules(policies={"dead_broker": "propose"})
        assert found(ledger) == NeedsPerson(Why.NOT_HEALED)
        broken = tmp_path / "clusters.yaml"
        broken.write_text("clusters: [")
        with monkeypatch.context() as patch:
            patch.setenv("REHOME_CLUSTERS_FILE", str(broken))
            unread = found(ledger)
            assert isinstance(unread, NeedsPerson)
            assert unread.why is Why.NOT_KNOWN
            assert "clusters.yaml" in unread.detail
        ledger.request_pause("p1", "ann")
        assert found(ledger) == NeedsPerson(Why.PAUSED_BY_PERSON)
        ledger.withdraw_pause("p1", "ann")
        ledger.transition("p1", PlanState.CANCELLED, "enough")
        assert found(ledger) is None
