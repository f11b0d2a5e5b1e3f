"""Fresh snapshots are judged: the findings in the ledger, the log, and the alerts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from rehome import installation
from rehome.account.clusters.cluster_evidence import read_cluster
from rehome.domain.clock import utc_now
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.execution.access.open_windows import FixedWindow
from rehome.fleet import clusters, judged_snapshots, watched_through
from rehome.ledger.store import Ledger
from rehome.operators import assets
from rehome.operators.watch import AllJudgedOperator
from rehome.warehouse import taken_at_of
from rehome.watching.finding_text import text_of
from tests.e2e.webhook import Webhook
from tests.ledger.small_plans import make_plan, move
from tests.load_history.recorded import CLUSTER, START, Cluster
from tests.plugins.fleet.recorded import (
    CONNECTION,
    DEAD,
    WATCH_RUN,
    Rules,
    dead_for_half_an_hour,
    event,
    execute,
    known,
    open_kinds,
    watch,
    without_broker,
)
from tests.plugins.mailbox import Mailbox, Reported, alerts_to
from tests.quality.snapshots import Rows


@pytest.mark.slow
def test_a_broker_that_stays_away_is_a_finding_until_it_is_back(
    recorded: Cluster, rules: Rules
) -> None:
    uris = dead_for_half_an_hour(recorded)
    with installation.open_ledger() as ledger:
        assert read_cluster(ledger, CLUSTER, utc_now()).judged_at is None, "nothing is watched yet"
        assert watch(*uris[:2]) == []
        assert FindingKind.DEAD_BROKER not in open_kinds(ledger), "a restart is none"
        assert read_cluster(ledger, CLUSTER, utc_now()).judged_at is not None
        assert watch(uris[2]) == [], "an alert is sent, and no run is started"
        assert FindingKind.DEAD_BROKER in open_kinds(ledger)
        assert watch(recorded.snapshot(30)) == []
        assert FindingKind.DEAD_BROKER not in open_kinds(ledger)


@pytest.mark.slow
def test_a_snapshot_from_the_future_is_told_and_hides_nothing_of_the_present(
    recorded: Cluster, rules: Rules
) -> None:
    """The clock of a worker is ahead: neither watching nor planning goes by its snapshots."""
    rules(policies={"dead_broker": "heal"}, snapshots_to_close=1)
    ahead = (utc_now() - START + timedelta(hours=24)).total_seconds() / 60
    wrong = recorded.snapshot(ahead)
    assert watch(wrong) == []
    with installation.open_ledger() as ledger:
        [finding] = ledger.open_findings(CLUSTER)
        assert finding.kind is FindingKind.WRONG_CLOCK
        assert "One of the two clocks is wrong" in text_of(finding)
        assert ledger.newest_snapshot(CLUSTER) is None, "nothing is planned on it"
        assert len(watch(*dead_for_half_an_hour(recorded))) == 1, "it is healed all the same"
        watch(recorded.snapshot((utc_now() - START).total_seconds() / 60))
        assert FindingKind.WRONG_CLOCK not in open_kinds(ledger)
        newest = ledger.newest_snapshot(CLUSTER)
        assert newest is not None
        assert newest.taken_at < utc_now()


@pytest.mark.slow
def test_alerts_are_sent_of_a_finding_once(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "heal"}, heals_a_day=1, snapshots_to_open=1)

    def worse(rows: Rows) -> None:
        without_broker(rows)
        for row in rows.replicas:
            row["in_isr"] = row["in_isr"] and row["broker"] != DEAD

    with Webhook() as webhook, Mailbox() as mailbox:
        alerts_to(monkeypatch, webhook, mailbox)
        reported = Reported(webhook, mailbox)
        assert len(watch(*(recorded.snapshot(minutes, worse) for minutes in (0, 10, 20)))) == 1
        assert reported.kinds() == ["finding"], "one cause, one alert"
        alert = reported.only("finding")
        assert "Broker 3 is not alive and holds 6 replicas." in alert["text"]
        assert (alert["cluster_id"], alert["connection"]) == (CLUSTER, CONNECTION)
        assert alert["severity"] == "error", "though most findings are less"
        with installation.open_ledger() as ledger:
            open_now = open_kinds(ledger)
            assert FindingKind.UNDER_REPLICATED in open_now
            (start,) = ledger.watch_starts(CLUSTER)
            plan = make_plan("p1", cluster_id=CLUSTER)
            ledger.create_plan(plan, {}, "file:///p1", start.run_id, "watch", None, start.dag_id)
            ledger.approve("p1", plan.plan_hash, "watch")
            for state in (PlanState.RUNNING, PlanState.FAILED):
                ledger.transition("p1", state, "it has failed")
            ledger.end_watch_start(start.dag_id, start.run_id, failed=True, plan_id="p1")
            monkeypatch.setattr("rehome.watching.last_attempt.FIRST_WAIT", timedelta())
            watch(recorded.snapshot(30, worse), recorded.snapshot(40, worse))
            assert reported.kinds() == ["finding", "healing_stopped"]
            watch(recorded.snapshot(50))
            closed = {record.kind for record in ledger.alerts() if record.closed_at}
            assert closed == {"finding", "healing_stopped"}


@pytest.mark.slow
def test_leftover_throttles_alert_where_no_plan_was_made_as_no_sweep_goes_there(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(snapshots_to_open=1, snapshots_to_close=1)

    def throttled(rows: Rows) -> None:
        rows.brokers[0]["leader_throttled_rate"] = 5

    with Webhook() as webhook, Mailbox() as mailbox:
        alerts_to(monkeypatch, webhook, mailbox)
        reported = Reported(webhook, mailbox)
        watch(recorded.snapshot(0, throttled))
        assert "leader_throttled_rate" in reported.only("finding")["text"]
        with installation.open_ledger() as ledger:
            plan = make_plan("done", move("t", 0, (1, 2), (2, 1)), cluster_id=CLUSTER)
            ledger.create_plan(plan, {}, "file:///nowhere", "run", "ann")
            ledger.transition("done", PlanState.CANCELLED, "not needed")
            watch(recorded.snapshot(10), recorded.snapshot(20, throttled))
            assert FindingKind.LEFTOVER_THROTTLE in open_kinds(ledger)
        assert reported.kinds() == ["finding"], "the sweep alerts of it"


@pytest.mark.slow
def test_a_run_by_hand_judges_the_newest_snapshot_of_each_connection_that_there_is(
    recorded: Cluster, rules: Rules, caplog: pytest.LogCaptureFixture
) -> None:
    with installation.open_ledger() as ledger:
        ledger.record_connection(CONNECTION, CLUSTER)
        newest = known(recorded.snapshot(0))
        execute({})
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(newest)}
        ledger.record_connection("kafka_removed", CLUSTER)
        newest = known(recorded.snapshot(10))
        recorded.snapshot(11)  # no task has taken it
        execute({})
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(newest)}
        assert "no connection kafka_removed" in caplog.text


def test_a_cluster_that_cannot_be_judged_fails_the_task(recorded: Cluster, rules: Rules) -> None:
    rules(grace=1)
    with pytest.raises(AirflowException, match=CLUSTER):
        watch(recorded.snapshot(0))


def test_a_snapshot_whose_files_are_damaged_is_that_clusters_failure_alone(
    recorded: Cluster, rules: Rules
) -> None:
    uri = recorded.snapshot(0)
    for file in Path(uri.removeprefix("file://")).rglob("*.parquet"):
        file.write_bytes(b"not Parquet")
    with pytest.raises(AirflowException, match=CLUSTER):
        watch(uri)


@pytest.mark.slow
def test_a_cluster_that_cannot_be_judged_fails_the_run_also_when_another_starts_something(
    recorded: Cluster, rules: Rules
) -> None:
    rules(policies={"dead_broker": "propose"})
    uris = dead_for_half_an_hour(recorded)
    missing = event(uris[0].replace(f"={CLUSTER}/", "=elsewhere/"), "elsewhere")
    judged = AllJudgedOperator(task_id="all_judged")
    context: Any = {"dag_run": WATCH_RUN}
    events = [missing, *map(event, uris)]
    assert len(execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: events}})) == 1
    with pytest.raises(AirflowFailException, match="elsewhere"):
        judged.execute(context)
    execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: events[1:]}})
    judged.execute(context)


@pytest.mark.slow
def test_a_fault_that_nobody_has_thought_of_hides_no_other_cluster(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules(policies={"dead_broker": "propose"})
    uris = dead_for_half_an_hour(recorded)
    connection_for = watched_through.connection_for

    def fails_elsewhere(ledger: Ledger, cluster_id: str, through: str) -> object:
        if cluster_id == "elsewhere":
            raise OverflowError("date value out of range")
        return connection_for(ledger, cluster_id, through)

    monkeypatch.setattr(watched_through, "connection_for", fails_elsewhere)
    missing = event(uris[0].replace(f"={CLUSTER}/", "=elsewhere/"), "elsewhere")
    events = [missing, *map(event, uris)]
    assert len(execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: events}})) == 1
    with pytest.raises(AirflowFailException, match="elsewhere"):
        AllJudgedOperator(task_id="all_judged").execute({"dag_run": WATCH_RUN})


@pytest.mark.slow
@pytest.mark.parametrize(
    "forged",
    [
        {"uri": "http://127.0.0.1:1/snapshots/cluster=x/taken_at=20300101T000000.000000Z"},
        {"uri": "file:///etc/passwd"},
        {"uri": None},
        {"cluster_id": "another"},
        {"connection": "kafka_another"},
        {"cluster_id": ["a"], "connection": {"b": 1}, "uri": 7},
    ],
)
def test_an_event_that_names_what_no_task_has_taken_is_left_out(
    recorded: Cluster, rules: Rules, caplog: pytest.LogCaptureFixture, forged: dict[str, Any]
) -> None:
    """Users of Airflow may create events of assets."""
    true = event(recorded.snapshot(0))
    false = SimpleNamespace(extra={**event(recorded.snapshot(10)).extra, **forged})
    execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: [false, true]}})
    with installation.open_ledger() as ledger:
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(true.extra["uri"])}
    assert "no task is known to have taken so" in caplog.text
    execute({"triggering_asset_events": {assets.SNAPSHOTS_ASSET: [false]}})
    with installation.open_ledger() as ledger:
        assert ledger.watched_clusters() == {CLUSTER: taken_at_of(true.extra["uri"])}


@pytest.mark.parametrize(
    ("requests", "emptied"),
    [
        ([("drain", {"brokers": [3]})], {3}),
        ([("drain", {"brokers": [3], "topics": ["t"]})], set()),
        ([("replace", {"replacements": {"3": 4}})], {3}),
        ([("drain", {"brokers": [3]}), ("replace", {"replacements": {"5": 3}})], {5}),
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
    assert judged_snapshots.drained_brokers(ledger, "c1") == emptied


@pytest.mark.slow
def test_traffic_and_full_disks_are_judged_by_the_history(
    recorded: Cluster, rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REHOME_MIN_HISTORY_HOURS", "1")
    rules(snapshots_to_open=1, traffic_tolerance=0.1)

    def small(rows: Rows) -> None:
        for row in rows.log_dirs:
            row.update(total_bytes=10**9, usable_bytes=10**8)

    newest = [recorded.snapshot(minutes, small) for minutes in range(0, 130, 10)][-1]
    watch(newest)
    with installation.open_ledger() as ledger:
        assert not {FindingKind.IMBALANCE, FindingKind.DISK_FULL_SOON} & {*open_kinds(ledger)}
        recorded.roll_up()
        watch(recorded.snapshot(130, small))
        found = {(each.kind, each.subject) for each in ledger.open_findings(CLUSTER)}
    assert (FindingKind.IMBALANCE, "bytes_in") in found
    assert FindingKind.DISK_FULL_SOON in {kind for kind, _ in found}


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
    assert watched_through.rules_for("kafka_berlin").grace_s == 7
    assert watched_through.rules_for("kafka_oslo").grace_s == 1800
    noon = datetime(2030, 1, 1, 12, tzinfo=UTC)
    assert clusters.windows_through("kafka_oslo").each == ()
    windows = clusters.windows_through("kafka_berlin")
    assert windows.open_at(noon) is None
    in_both = noon.replace(hour=2, minute=45)
    opened, closes = noon.replace(hour=2, minute=30), noon.replace(hour=4, minute=30)
    assert windows.open_at(in_both) == FixedWindow(opened, closes)
