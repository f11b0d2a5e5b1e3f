"""Runs that watching starts for findings: proposals, heals, and their outcome."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowFailException
from airflow.utils.session import create_session
from sqlalchemy import select

from rehome import installation
from rehome.domain.plan.move import Move
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval.questions import AnswerKind
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import STARTED_DAG
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.fleet import judged_snapshots, watch_runs
from rehome.ledger.store import Ledger
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.approval.approve import ApprovePlanOperator, lapses_at
from rehome.run.context import RunContext
from rehome.warehouse import read_snapshot
from rehome.watching.finding_text import text_of
from tests.dags.runs import fresh_dag, register, run_dag
from tests.ledger.people import answers_of, ask
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.fleet.recorded import (
    CONNECTION,
    DEAD,
    Rules,
    dead_for_half_an_hour,
    known,
    open_kinds,
    watch,
    without_broker,
)
from tests.quality.snapshots import Rows


@pytest.mark.slow
def test_nothing_is_rebalanced_while_a_broker_may_be_restarting(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"imbalance": "heal"}, balance_tolerance=0.01)
    full = [recorded.snapshot(minutes) for minutes in (10, 20)]
    assert watch(*full, recorded.snapshot(30, without_broker)) == []
    with installation.open_ledger() as ledger:
        assert FindingKind.IMBALANCE in open_kinds(ledger)
        (run,) = watch(recorded.snapshot(40))
    assert run["conf"]["action"] == "rebalance"


@pytest.mark.slow
def test_a_dead_broker_is_healed_while_a_proposal_waits_for_an_answer(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"imbalance": "propose", "dead_broker": "heal"}, balance_tolerance=0.01)
    (proposed,) = watch(*(recorded.snapshot(minutes) for minutes in (10, 20, 30)))
    assert proposed["conf"]["approval"]
    away = [recorded.snapshot(minutes, without_broker) for minutes in (40, 50, 60)]
    (healed,) = watch(*away)
    assert healed["conf"]["action"] == "fix_offline_replicas"
    assert watch(recorded.snapshot(70, without_broker)) == [], "that heals"


@pytest.mark.slow
def test_an_outage_of_a_data_centre_is_proposed_and_never_healed(
    recorded: Cluster, rules: Rules
) -> None:
    """Its brokers are a small part of all, and Kafka does not tell the racks of dead ones."""
    rules(policies={"dead_broker": "heal"})

    def without_data_centre(rows: Rows) -> None:
        for row in rows.brokers:
            if row["broker"] in (1, DEAD):
                row.update(live=False, rack=None, rack_path=[])

    watch(recorded.snapshot(0))
    assert watch(*(recorded.snapshot(each, without_data_centre) for each in (10, 20, 30))) == []
    with installation.open_ledger() as ledger:
        found = {each.subject: text_of(each) for each in ledger.open_findings(CLUSTER)}
        assert "Away as a whole: rack /dc1. Nothing is healed." in found["broker 3"]
        dead = read_snapshot(recorded.snapshot(40, without_data_centre))
        assert judged_snapshots.away_in(ledger, dead) == ["rack /dc1"]
        rules(policies={"dead_broker": "propose"})
        (proposed,) = watch(recorded.snapshot(50, without_data_centre))
    assert proposed["conf"]["approval"]


@pytest.mark.slow
def test_no_run_is_started_for_an_old_snapshot(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "propose"})
    uris = dead_for_half_an_hour(recorded)
    for uri in uris[:2]:
        assert watch(uri) == []
    monkeypatch.setenv("REHOME_MAX_SNAPSHOT_AGE_S", "3600")
    assert watch(uris[2]) == []
    with installation.open_ledger() as ledger:
        assert FindingKind.DEAD_BROKER in open_kinds(ledger)


def test_a_healing_run_that_never_ended_is_pending_for_a_day() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    start = StartRecord(
        STARTED_DAG, "run-1", "c1", FindingKind.DEAD_BROKER, "broker 3", now,
        WatchPolicy.HEAL, now, None,
    )  # fmt: skip
    assert watch_runs.is_pending(start, now + timedelta(hours=23))
    assert not watch_runs.is_pending(start, now + timedelta(hours=25))
    assert not watch_runs.is_pending(replace(start, ended_at=now, failed=False), now)


@pytest.mark.slow
def test_one_run_is_started_for_a_finding_and_is_written_down_first(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "propose"}, approval_s=3600)
    uris = dead_for_half_an_hour(recorded)
    (run,) = watch(*uris)
    conf = run["conf"]
    assert (conf["kafka_config_id"], conf["cluster_id"]) == (CONNECTION, CLUSTER)
    request = parse_request(conf)
    assert (request.action, request.brokers) == ("fix_offline_replicas", (DEAD,))
    assert request.approval
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        assert (start.dag_id, start.run_id) == (STARTED_DAG, run["trigger_run_id"])
        assert start.deadline == start.started_at + timedelta(hours=1)
        newest = run["trigger_run_id"]
        assert [again["trigger_run_id"] for again in watch(uris[2])] == [newest], "a retry"
        assert len(ledger.watch_starts(CLUSTER)) == 1
        assert watch(recorded.snapshot(30, without_broker)) == [], "it was answered"
        ledger.end_watch_start(start.dag_id, start.run_id, failed=True)
        assert watch(recorded.snapshot(40, without_broker)) == [], "a proposal is made once"


def test_the_dag_triggers_the_run_with_its_parameters(
    recorded: Cluster,
    rules: Rules,
    airflow_database: None,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules(policies={"dead_broker": "propose"})
    register(fresh_dag("reassign_partitions"))
    *first, newest = dead_for_half_an_hour(recorded)
    watch(*first)
    known(newest)
    with installation.open_ledger() as ledger:
        ledger.record_connection(CONNECTION, CLUSTER)
        run = run_dag(fresh_dag("watch_clusters"), {}, capsys, caplog)
        assert run.state == "success", run.log
        (start,) = ledger.watch_starts(CLUSTER)
    query = select(DagRun.conf).where(DagRun.dag_id == STARTED_DAG, DagRun.run_id == start.run_id)
    with create_session() as session:
        conf = session.scalar(query)
    assert conf is not None
    assert parse_request(conf).brokers == (DEAD,)


def test_a_proposal_that_is_not_answered_lapses(recorded: Cluster, rules: Rules) -> None:
    now, plan = datetime.now(UTC), make_plan("p1", move("t", 0, (1, 3), (2, 3)))
    start = StartRecord(
        STARTED_DAG, "run-1", "c1", FindingKind.DEAD_BROKER, "broker 3", now,
        WatchPolicy.PROPOSE, now, now + timedelta(hours=1),
    )  # fmt: skip
    run = SimpleNamespace(dag_id=start.dag_id, run_id=start.run_id, run_after=now)
    task = ApprovePlanOperator(task_id="approve")
    context: Any = {"params": {"plan_id": "p1"}, "dag_run": run, "task": task}
    context["ti"] = SimpleNamespace(id="ti-of-p1")  # as people.ask has it
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann")
        ask(ledger, "p1", Terms(plan.plan_hash, 1))
        assert lapses_at(RunContext(context), None) is None, "of a run that a person has triggered"
        ledger.record_watch_start(start)
        assert lapses_at(RunContext(context), None) == start.deadline
        assert lapses_at(RunContext(context), now) == now, "its window closes before"
        event = {"event": {"error": "late", "error_type": "timeout"}}
        with pytest.raises(AirflowFailException, match="Nothing was changed"):
            task.resume_execution("execute_complete", event, context)
        assert ledger.plan("p1").state is PlanState.CANCELLED
        assert answers_of(ledger, "p1") == [AnswerKind.LAPSED]


@pytest.mark.slow
@pytest.mark.parametrize(("ended", "failed"), [("failed", True), ("succeeded", False)])
def test_how_a_run_ends_that_watching_has_started_is_in_the_ledger(
    recorded: Cluster, rules: Rules, ended: str, failed: bool
) -> None:
    rules(policies={"dead_broker": "heal"})
    (heal,) = watch(*dead_for_half_an_hour(recorded))
    run = SimpleNamespace(
        dag_id=heal["trigger_dag_id"],
        run_id=heal["trigger_run_id"],
        run_type="manual",
        run_after=datetime.now(UTC),
    )
    context = {"dag_run": run, "params": heal["conf"]}
    with installation.open_ledger() as ledger:
        plan = make_plan(RunContext(context).plan_id, cluster_id=CLUSTER)
        ledger.create_plan(plan, {}, "file:///nowhere", run.run_id, "watch")
        RehomeNotifier(ended, makes_plan=True).notify(context)
        (start,) = ledger.watch_starts(CLUSTER)
    assert (start.failed, start.ended_at is not None) == (failed, True)
    assert start.plan_id == plan.plan_id


def end_with_a_plan(ledger: Ledger, *moves: Move, left: int | None = None, budget: int) -> None:
    """The newest start has ended well.

    :param left: bytes that would do all that was asked, if its budget did not pay for that.
    """
    (start, *_) = ledger.watch_starts(CLUSTER)
    plan = make_plan(start.run_id, *moves, cluster_id=CLUSTER)
    made = replace(plan, moves=moves, summary=replace(plan.summary, asked_bound_bytes=left))
    ledger.create_plan(made, {"budget_bytes": budget}, "file:///nowhere", start.run_id, "watch")
    ledger.approve(plan.plan_id, plan.plan_hash, "watch")
    for state in (PlanState.RUNNING, PlanState.DONE):
        ledger.transition(plan.plan_id, state, "as planned")
    ledger.end_watch_start(start.dag_id, start.run_id, failed=False, plan_id=plan.plan_id)


@pytest.mark.slow
@pytest.mark.parametrize("policy", ["heal", "propose"])
def test_a_plan_goes_on_with_what_a_budget_left_while_the_budget_pays_for_moves(
    recorded: Cluster,
    rules: Rules,
    policy: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules(policies={"dead_broker": policy}, budget_bytes=100)
    (run,) = watch(*dead_for_half_an_hour(recorded))
    assert parse_request(run["conf"]).budget_bytes == 100
    moves = [move("t", 0, (1, 3), (1, 2))]
    with installation.open_ledger() as ledger:
        end_with_a_plan(ledger, *moves, left=300, budget=100)
        (run,) = watch(recorded.snapshot(30, without_broker))
        assert parse_request(run["conf"]).brokers == (DEAD,)
        end_with_a_plan(ledger, left=200, budget=100)
        assert watch(recorded.snapshot(40, without_broker)) == []
        assert "larger than budget_bytes" in capsys.readouterr().out
        monkeypatch.setattr("rehome.watching.last_attempt.FIRST_WAIT", timedelta())
        assert len(watch(recorded.snapshot(50, without_broker))) == 1, "the wait is over"
        end_with_a_plan(ledger, *moves, budget=200)
        assert watch(recorded.snapshot(60, without_broker)) == [], "it has paid for all"
        assert len(ledger.watch_starts(CLUSTER)) == 3


@pytest.mark.slow
def test_heals_that_go_on_count_as_heals(recorded: Cluster, rules: Rules) -> None:
    rules(policies={"dead_broker": "heal"}, budget_bytes=100, heals_a_day=2)
    heals = watch(*dead_for_half_an_hour(recorded))
    with installation.open_ledger() as ledger:
        for minutes in (30, 40):
            assert len(heals) == 1
            end_with_a_plan(ledger, move("t", 0, (1, 3), (1, 2)), left=300, budget=100)
            heals = watch(recorded.snapshot(minutes, without_broker))
    assert heals == [], "no more today"


@pytest.mark.slow
def test_nothing_is_started_that_the_connection_does_not_allow(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"})
    extra = {"bootstrap.servers": "b1:9092", "rehome.policy": {"actions": ["rebalance"]}}
    connection = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection)
    assert watch(*dead_for_half_an_hour(recorded)) == []


@pytest.mark.slow
def test_where_the_connection_has_plans_approved_a_heal_is_proposed(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"}, approval_s=60)
    extra = {"bootstrap.servers": "b1:9092", "rehome.policy": {"approval": True}}
    connection = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection)
    (run,) = watch(*dead_for_half_an_hour(recorded))
    assert run["conf"]["approval"]
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        assert start.policy is WatchPolicy.PROPOSE
        assert start.deadline == start.started_at + timedelta(seconds=60)


@pytest.mark.slow
def test_a_snapshot_through_another_connection_is_judged_by_the_clusters_own_entry(
    recorded: Cluster, rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person's run has taken it. The setting says heal, and the file's entry says propose."""
    rules(policies={"dead_broker": "heal"})
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_OWN", '{"conn_type": "kafka"}')
    path.write_text(
        "clusters:\n"
        "  own:\n"
        "    connection: kafka_own\n"
        "    watch: {policies: {dead_broker: propose}, grace_s: 1200}\n"
    )
    uris = dead_for_half_an_hour(recorded)
    with installation.open_ledger() as ledger:
        assert watch(*uris) == [], "nothing is started for a cluster that the file leaves out"
        ledger.record_connection(CONNECTION, CLUSTER)
        ledger.record_connection("kafka_own", CLUSTER)
    (proposed,) = watch(recorded.snapshot(30, without_broker))
    assert proposed["conf"]["kafka_config_id"] == "kafka_own"
    assert proposed["conf"]["approval"]


@pytest.mark.slow
def test_a_run_that_is_to_heal_what_the_rules_no_longer_heal_is_refused(
    recorded: Cluster, rules: Rules
) -> None:
    """It has waited for its slot. On real brokers: test_heals_that_change_nothing.py."""
    rules(policies={"dead_broker": "heal"})
    (start,) = watch(*dead_for_half_an_hour(recorded))
    run = SimpleNamespace(dag_id=start["trigger_dag_id"], run_id=start["trigger_run_id"])
    by_ann = SimpleNamespace(dag_id=STARTED_DAG, run_id="manual__by_ann")
    with installation.open_ledger() as ledger:
        heal = watch_runs.heal_by(run, ledger)
        assert watch_runs.heal_by(by_ann, ledger) is None
    watch_runs.refuse_changed_rules(heal, CONNECTION)
    rules(policies={"dead_broker": "propose"})
    watch_runs.refuse_changed_rules(None, CONNECTION)
    with pytest.raises(watch_runs.HealOverError, match="no longer say heal for dead_broker"):
        watch_runs.refuse_changed_rules(heal, CONNECTION)


@pytest.mark.slow
def test_what_is_started_leaves_a_drained_broker_empty_while_that_is_alive(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "propose"})
    with installation.open_ledger() as ledger:
        for broker in (1, 9):
            plan = make_plan(f"drain-{broker}", cluster_id=CLUSTER)
            plan = replace(plan, action="drain")
            ledger.create_plan(plan, {"brokers": [broker]}, "file:///nowhere", "run-1", "ann")
            ledger.approve(plan.plan_id, plan.plan_hash, "ann")
            for state in (PlanState.RUNNING, PlanState.DONE):
                ledger.transition(plan.plan_id, state, "as planned")
    (start,) = watch(*dead_for_half_an_hour(recorded))
    assert start["conf"]["exclude_brokers"] == [1], "there is no broker 9 any more"
