"""Fresh snapshots are judged: findings in the ledger, and runs that are to be started for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.models.dagrun import DagRun
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from airflow.utils.session import create_session
from sqlalchemy import select

from include.domain.plan.move import Move
from include.domain.request.parameters import parse_request
from include.domain.run.states import PlanState
from include.ledger.store import Ledger
from include.ledger.stores.watched.starts import StartRecord
from include.warehouse import taken_at_of
from include.watching.kinds import FindingKind, WatchPolicy
from rehome import assets, installation, run_context
from rehome.fleet import watching
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.approve import ApprovePlanOperator, time_left
from rehome.operators.watch import NOT_JUDGED, AllJudgedOperator, WatchClustersOperator
from rehome.ui import fleet
from tests.dags.runs import fresh_dag, register, run_dag
from tests.e2e.webhook import Webhook
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, Cluster
from tests.plugins.mailbox import Mailbox, Told, told_by
from tests.quality.snapshots import Rows

DEAD = 3
CONNECTION = "kafka_default"
Rules = Callable[..., None]


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    monkeypatch.setenv("REHOME_WINDOW_DURATION_S", str(24 * 3600.0 - 1))
    monkeypatch.setenv("REHOME_WINDOW_CRON", "0 0 * * *")
    monkeypatch.setenv("REHOME_MAX_SNAPSHOT_AGE_S", "1e9")  # they are of a day long ago
    connection = {"conn_type": "kafka", "extra": {"bootstrap.servers": "b1:9092"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(connection))
    return Cluster((tmp_path / "warehouse").as_uri())


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    def give(**given: Any) -> None:
        base = {"grace_s": 1200, "snapshots_to_close": 1, "balance_tolerance": 1.0}
        monkeypatch.setenv("REHOME_WATCH_RULES", json.dumps({**base, **given}))

    give()
    return give


def without_broker(rows: Rows) -> None:
    for row in rows.brokers:
        if row["broker"] == DEAD:
            row["live"] = False


def event(uri: str, cluster_id: str = CLUSTER) -> SimpleNamespace:
    taken_at = taken_at_of(uri).isoformat()
    about = {"cluster_id": cluster_id, "connection": CONNECTION, "uri": uri, "taken_at": taken_at}
    return SimpleNamespace(extra=about)


def watch(*uris: str) -> list[dict[str, Any]]:
    """One run of the task on these snapshots."""
    return execute({"triggering_asset_events": {assets.SNAPSHOTS: [*map(event, uris)]}})


def execute(context: Mapping[str, Any]) -> list[dict[str, Any]]:
    task = WatchClustersOperator(task_id="watch")
    return task.execute({**context, "task": task})


def dead_for_half_an_hour(cluster: Cluster) -> list[str]:
    """Snapshots of which the third opens the finding."""
    return [cluster.snapshot(minutes, without_broker) for minutes in (0, 10, 20)]


def open_kinds(ledger: Ledger) -> list[FindingKind]:
    return [each.kind for each in ledger.open_findings(CLUSTER)]


def test_a_broker_that_stays_away_is_a_finding_until_it_is_back(
    cluster: Cluster, rules: Rules
) -> None:
    uris = dead_for_half_an_hour(cluster)
    with installation.open_ledger() as ledger:
        assert fleet.open_findings(ledger) == {}, "nothing is watched yet"
        assert watch(*uris[:2]) == []
        assert FindingKind.DEAD_BROKER not in open_kinds(ledger), "a restart is none"
        assert fleet.open_findings(ledger) == {CLUSTER: len(open_kinds(ledger))}
        assert watch(uris[2]) == [], "an alert is sent, and no run is started"
        assert FindingKind.DEAD_BROKER in open_kinds(ledger)
        assert watch(cluster.snapshot(30)) == []
        assert FindingKind.DEAD_BROKER not in open_kinds(ledger)


def test_people_are_told_of_a_finding_once(
    cluster: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=1, snapshots_to_open=1)

    def worse(rows: Rows) -> None:
        without_broker(rows)
        for row in rows.replicas:
            row["in_isr"] = row["in_isr"] and row["broker"] != DEAD
        rows.brokers[0]["leader_throttled_rate"] = 5

    with Webhook() as webhook, Mailbox() as mailbox:
        told_by(monkeypatch, webhook, mailbox)
        told = Told(webhook, mailbox)
        assert len(watch(*(cluster.snapshot(minutes, worse) for minutes in (0, 10, 20)))) == 1
        assert told.kinds() == ["finding"], "one cause, one alert"
        alert = told.only("finding")
        assert "Broker 3 is not alive and holds 6 replicas." in alert["text"]
        assert (alert["cluster_id"], alert["connection"]) == (CLUSTER, CONNECTION)
        assert alert["severity"] == "error", "though most findings are less"
        with installation.open_ledger() as ledger:
            open_now = open_kinds(ledger)
            assert {FindingKind.UNDER_REPLICATED, FindingKind.LEFTOVER_THROTTLE} <= {*open_now}
            (start,) = ledger.watch_starts(CLUSTER)
            ledger.end_watch_start(start.dag_id, start.run_id, failed=True)
            watch(cluster.snapshot(30, worse), cluster.snapshot(40, worse))
            assert told.kinds() == ["finding", "healing_stopped"]
            watch(cluster.snapshot(50))
            closed = {record.kind for record in ledger.alerts() if record.closed_at}
            assert closed == {"finding", "healing_stopped"}


def test_a_run_by_hand_judges_the_newest_snapshot_of_each_connection_that_there_is(
    cluster: Cluster, rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    with installation.open_ledger() as ledger:
        ledger.record_connection(CONNECTION, CLUSTER)
        newest = cluster.snapshot(0)
        execute({})
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(newest)}
        ledger.record_connection("kafka_removed", CLUSTER)
        newest = cluster.snapshot(10)
        execute({})
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(newest)}
        assert "no connection kafka_removed" in caplog.text


def test_a_cluster_that_cannot_be_judged_fails_the_task(cluster: Cluster, rules: Rules) -> None:
    rules(grace=1)
    with pytest.raises(AirflowException, match=CLUSTER):
        watch(cluster.snapshot(0))


def test_a_snapshot_whose_files_are_damaged_is_that_clusters_failure_alone(
    cluster: Cluster, rules: Rules
) -> None:
    uri = cluster.snapshot(0)
    for file in Path(uri.removeprefix("file://")).rglob("*.parquet"):
        file.write_bytes(b"not Parquet")
    with pytest.raises(AirflowException, match=CLUSTER):
        watch(uri)


def test_a_cluster_that_cannot_be_judged_fails_the_run_also_when_another_starts_something(
    cluster: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "propose"})
    uris = dead_for_half_an_hour(cluster)
    missing = event(uris[0].replace(CLUSTER, "elsewhere"), "elsewhere")
    pushed: dict[str, Any] = {}
    context: Any = {
        "triggering_asset_events": {assets.SNAPSHOTS: [missing, *map(event, uris)]},
        "ti": SimpleNamespace(
            xcom_push=pushed.__setitem__, xcom_pull=lambda task_ids, key: pushed.get(key)
        ),
    }
    assert len(execute(context)) == 1
    assert pushed == {NOT_JUDGED: ["elsewhere"]}
    with pytest.raises(AirflowFailException, match="elsewhere"):
        AllJudgedOperator(task_id="all_judged", watch="watch").execute(context)
    pushed.clear()
    AllJudgedOperator(task_id="all_judged", watch="watch").execute(context)


def test_an_old_snapshot_starts_nothing(
    cluster: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "propose"})
    uris = dead_for_half_an_hour(cluster)
    for uri in uris[:2]:
        assert watch(uri) == []
    monkeypatch.setenv("REHOME_MAX_SNAPSHOT_AGE_S", "3600")
    assert watch(uris[2]) == []
    with installation.open_ledger() as ledger:
        assert FindingKind.DEAD_BROKER in open_kinds(ledger)


def test_a_healing_run_that_never_ended_has_failed_a_day_later() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    start = StartRecord(
        watching.STARTED_DAG, "run-1", "c1", FindingKind.DEAD_BROKER, "broker 3", now,
        WatchPolicy.HEAL, now, None,
    )  # fmt: skip
    assert not watching.has_failed(start, now + timedelta(hours=23))
    assert watching.has_failed(start, now + timedelta(hours=25))
    ended = replace(start, ended_at=now, failed=False)
    assert not watching.has_failed(ended, now + timedelta(hours=25))


@pytest.mark.parametrize(
    ("requests", "emptied"),
    [
        ([("drain", {"brokers": [3]})], {3}),
        ([("drain", {"brokers": [3], "topics": ["t"]})], set()),
        ([("replace", {"replacements": {"3": 4}})], {3}),
        ([("drain", {"brokers": [3, 4]}), ("expand", {"brokers": [3]})], {4}),
        ([("drain", {"brokers": [3]}), ("rebalance", {})], set()),
        ([("drain", {"brokers": [3]}), ("rebalance", {"exclude_brokers": [3]})], {3}),
        ([("drain", {"brokers": [3]}), ("rebalance", {"brokers": [1, 2]})], {3}),
    ],
)
def test_brokers_that_are_meant_to_be_empty(
    requests: list[tuple[str, dict[str, Any]]], emptied: set[int]
) -> None:
    plans = [
        SimpleNamespace(created_at=at, state=PlanState.DONE, action=action, request=request)
        for at, (action, request) in enumerate(requests)
    ]
    ledger: Any = SimpleNamespace(plans=lambda _: plans)
    assert watching.drained(ledger, "c1") == emptied


def test_one_run_is_started_for_a_finding_and_is_written_down_first(
    cluster: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "propose"}, approval_s=3600)
    uris = dead_for_half_an_hour(cluster)
    (run,) = watch(*uris)
    conf = run["conf"]
    assert (conf["kafka_config_id"], conf["cluster_id"]) == (CONNECTION, CLUSTER)
    request = parse_request(conf)
    assert (request.action, request.brokers) == ("fix_offline_replicas", (DEAD,))
    assert request.approval
    with installation.open_ledger() as ledger:
        (start,) = ledger.watch_starts(CLUSTER)
        assert (start.dag_id, start.run_id) == (watching.STARTED_DAG, run["trigger_run_id"])
        assert start.deadline == start.started_at + timedelta(hours=1)
        newest = run["trigger_run_id"]
        assert [again["trigger_run_id"] for again in watch(uris[2])] == [newest], "a retry"
        assert len(ledger.watch_starts(CLUSTER)) == 1
        assert watch(cluster.snapshot(30, without_broker)) == [], "it was answered"
        ledger.end_watch_start(start.dag_id, start.run_id, failed=True)
        assert watch(cluster.snapshot(40, without_broker)) == [], "a proposal is made once"


def test_the_dag_triggers_the_run_with_its_parameters(
    cluster: Cluster,
    rules: Rules,
    airflow_database: None,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    rules(policies={"dead_broker": "propose"})
    register(fresh_dag("reassign_partitions"))
    watch(*dead_for_half_an_hour(cluster)[:2])
    with installation.open_ledger() as ledger:
        ledger.record_connection(CONNECTION, CLUSTER)
        run = run_dag(fresh_dag("watch_clusters"), {}, capsys, caplog)
        assert run.state == "success", run.log
        (start,) = ledger.watch_starts(CLUSTER)
    query = select(DagRun.conf).where(
        DagRun.dag_id == watching.STARTED_DAG, DagRun.run_id == start.run_id
    )
    with create_session() as session:
        conf = session.scalar(query)
    assert conf is not None
    assert parse_request(conf).brokers == (DEAD,)


def test_a_proposal_that_nobody_answers_lapses(cluster: Cluster, rules: Rules) -> None:
    now, plan = datetime.now(UTC), make_plan("p1", move("t", 0, (1, 3), (2, 3)))
    start = StartRecord(
        watching.STARTED_DAG, "run-1", "c1", FindingKind.DEAD_BROKER, "broker 3", now,
        WatchPolicy.PROPOSE, now, now + timedelta(hours=1),
    )  # fmt: skip
    run = SimpleNamespace(dag_id=start.dag_id, run_id=start.run_id, run_after=now)
    task = ApprovePlanOperator(task_id="approve")
    context: Any = {"params": {"plan_id": "p1"}, "dag_run": run, "task": task}
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann")
        assert time_left(context) is None, "of a run that a person has triggered"
        ledger.record_watch_start(start)
        left = time_left(context)
        assert left is not None
        assert timedelta(minutes=59) < left <= timedelta(hours=1)
        with pytest.raises(AirflowFailException, match="Nothing was changed"):
            task.execute_complete(context, {"error": "late", "error_type": "timeout"})
        assert ledger.plan("p1").state is PlanState.CANCELLED


@pytest.mark.parametrize(("ended", "failed"), [("failed", True), ("succeeded", False)])
def test_how_a_run_ends_that_watching_has_started_is_in_the_ledger(
    cluster: Cluster, rules: Rules, ended: str, failed: bool
) -> None:
    rules(policies={"dead_broker": "heal"})
    (started,) = watch(*dead_for_half_an_hour(cluster))
    run = SimpleNamespace(
        dag_id=watching.STARTED_DAG,
        run_id=started["trigger_run_id"],
        run_type="manual",
        run_after=datetime.now(UTC),
    )
    context = {"dag_run": run, "params": started["conf"]}
    with installation.open_ledger() as ledger:
        plan = make_plan(run_context.plan_id_of(context), cluster_id=CLUSTER)
        ledger.create_plan(plan, {}, "file:///nowhere", run.run_id, "watch")
        RehomeNotifier(ended, makes_plan=True).notify(context)
        (start,) = ledger.watch_starts(CLUSTER)
    assert (start.failed, start.ended_at is not None) == (failed, True)
    assert start.plan_id == plan.plan_id


def test_healing_is_tried_again_until_it_has_failed_too_often(
    cluster: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "heal"})
    (run,) = watch(*dead_for_half_an_hour(cluster))
    request = parse_request(run["conf"])
    assert not request.approval
    assert request.window_end is not None, "it ends with the window that is open"
    with installation.open_ledger() as ledger:
        for minutes in (30, 40):
            assert watch(cluster.snapshot(minutes, without_broker)) == [], "it has not ended"
            (newest, *_) = ledger.watch_starts(CLUSTER)
            assert newest.policy is WatchPolicy.HEAL
            ledger.end_watch_start(newest.dag_id, newest.run_id, failed=True)
            started = watch(cluster.snapshot(minutes + 5, without_broker))
            assert len(started) == (minutes == 30), "the second failure stops healing"


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


@pytest.mark.parametrize("policy", ["heal", "propose"])
def test_what_a_budget_leaves_is_gone_on_with_while_it_pays_for_something(
    cluster: Cluster, rules: Rules, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rules(policies={"dead_broker": policy}, budget_bytes=100)
    (run,) = watch(*dead_for_half_an_hour(cluster))
    assert parse_request(run["conf"]).budget_bytes == 100
    moves = [move("t", 0, (1, 3), (1, 2))]
    with installation.open_ledger() as ledger:
        end_with_a_plan(ledger, *moves, left=300, budget=100)
        (run,) = watch(cluster.snapshot(30, without_broker))
        assert parse_request(run["conf"]).brokers == (DEAD,)
        end_with_a_plan(ledger, left=200, budget=100)
        assert watch(cluster.snapshot(40, without_broker)) == []
        assert "larger than budget_bytes" in capsys.readouterr().out
        rules(policies={"dead_broker": policy}, budget_bytes=200)
        assert len(watch(cluster.snapshot(50, without_broker))) == 1, "the budget has grown"
        end_with_a_plan(ledger, *moves, budget=200)
        assert watch(cluster.snapshot(60, without_broker)) == [], "it has paid for all"
        assert len(ledger.watch_starts(CLUSTER)) == 3


def test_heals_that_go_on_count_as_heals(cluster: Cluster, rules: Rules) -> None:
    rules(policies={"dead_broker": "heal"}, budget_bytes=100, heals_a_day=2)
    started = watch(*dead_for_half_an_hour(cluster))
    with installation.open_ledger() as ledger:
        for minutes in (30, 40):
            assert len(started) == 1
            end_with_a_plan(ledger, move("t", 0, (1, 3), (1, 2)), left=300, budget=100)
            started = watch(cluster.snapshot(minutes, without_broker))
    assert started == [], "no more today"


def test_nothing_is_started_that_the_connection_does_not_allow(
    cluster: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"})
    extra = {"bootstrap.servers": "b1:9092", "rehome.policy": {"actions": ["rebalance"]}}
    connection = json.dumps({"conn_type": "kafka", "extra": extra})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection)
    assert watch(*dead_for_half_an_hour(cluster)) == []


def test_windows_are_those_of_the_clusters_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "clusters.yaml"
    path.write_text(
        "clusters:\n"
        "  berlin:\n"
        "    connection: kafka_berlin\n"
        '    windows: [{cron: "0 1 * * *", hours: 2}, {cron: "30 2 * * *", hours: 2}]\n'
        "    watch: {grace_s: 7}\n"
        "  oslo: {connection: kafka_oslo}\n"
    )
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    assert watching.rules_for("kafka_berlin").grace_s == 7
    assert watching.rules_for("kafka_oslo").grace_s == 1800
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert watching.window_of("kafka_oslo", noon) == (False, None)
    assert watching.window_of("kafka_berlin", noon) == (True, None)
    in_both = noon.replace(hour=2, minute=45)
    assert watching.window_of("kafka_berlin", in_both) == (True, noon.replace(hour=4, minute=30))


def test_traffic_and_full_disks_are_judged_by_the_history(
    cluster: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "1")
    rules(snapshots_to_open=1, traffic_tolerance=0.1, disk_days=30)

    def small(rows: Rows) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**9, usable_bytes=10**8)

    newest = [cluster.snapshot(minutes, small) for minutes in range(0, 130, 10)][-1]
    watch(newest)
    with installation.open_ledger() as ledger:
        assert not {FindingKind.IMBALANCE, FindingKind.DISK_FULL_SOON} & {*open_kinds(ledger)}
        cluster.roll_up()
        watch(cluster.snapshot(130, small))
        found = {(each.kind, each.subject) for each in ledger.open_findings(CLUSTER)}
    assert (FindingKind.IMBALANCE, "bytes_in") in found
    assert FindingKind.DISK_FULL_SOON in {kind for kind, _ in found}
