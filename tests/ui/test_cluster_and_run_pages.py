"""The pages of clusters and of runs: what they show, and that runs lead to their plans."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape

from local.process.waiting import wait_until
from rehome.account.clusters.troubles import TroubleKind
from rehome.account.words.trouble_words import trouble_text
from rehome.alerts.alert import Alert
from rehome.alerts.kinds import AlertKind
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.configs import ConfigResource
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.execution.throttle.keys import LEADER_RATE
from rehome.ledger.base.records import ThrottleEntry
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ui.routes import cluster_pages
from rehome.warehouse import PlanDirectory
from rehome.watching.open_and_close import after_snapshot
from tests.reporting.reported_plans import gates_json
from tests.ui.site import EVIL, Site, snapshot_of, staying_open

Client = Callable[[str], TestClient]


def test_a_ledger_that_is_away_is_named(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    assert isinstance(site.ledger, Ledger)
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}")
    answer = client("viewer").get("")
    assert answer.status_code == 503
    assert "The ledger cannot be opened" in answer.text


def test_a_finding_that_stays_open_says_why_and_its_plan_names_all_that_it_does_not_reach(
    client: Client, site: Site
) -> None:
    snapshot_of(site)
    staying_open(site, "nothing")
    text = client("viewer").get("clusters/test").text
    assert "The last attempt has changed nothing: it does not hold that every" in text
    assert "it does not hold that every live broker answered: broker 3" in text
    assert "It is not tried again before" in text
    assert "as plan nothing has found nothing to move, because" in text
    assert "below its share (wanted 2 TB, nearest 1 TB); " in text
    assert "4 more of this kind: broker" in text
    text = client("viewer").get("plans/nothing").text
    assert "5 targets not reached" in text
    reason = "below its share (wanted 2 TB, nearest 1 TB); 4 more of this kind:"
    assert text.count(reason) == 2, "the head names the first reason, the list all"
    head, _, rest = text.partition("Nothing can be moved, and what was asked for is not reached. ")
    assert reason not in head
    assert reason in rest.partition("<")[0]
    assert "was as asked" not in text
    assert "already as asked" not in text
    assert "predicted" not in text
    fleet = client("viewer").get("clusters").text
    assert "1 broker not alive, 2 findings, 40 partitions under-replicated" in fleet


def test_the_page_of_clusters_explains_windows_that_overlap_and_settings_by_which_none_opens(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    windows = '[{cron: "0 1 * * *", hours: 4}, {cron: "0 3 * * *", hours: 4}]'
    path = tmp_path / "clusters.yaml"
    path.write_text(f"clusters: {{main: {{connection: kafka_prod, windows: {windows}}}}}")
    with monkeypatch.context() as patched:
        patched.setenv("REHOME_CLUSTERS_FILE", str(path))
        assert (
            "clusters.main.windows: [0] and [1] overlap, first at"
            in client("viewer").get("clusters").text
        )
    monkeypatch.setenv("REHOME_WINDOW_CRON", "0 0 30 2 *")
    assert "which has no date: such a window never opens" in client("viewer").get("clusters").text


def test_a_cluster_shows_its_brokers_and_what_was_not_well(client: Client, site: Site) -> None:
    assert "No snapshots yet" in client("viewer").get("clusters").text
    snapshot_of(site)
    site.ledger.record_connection("kafka_prod", "test")
    reported = client("viewer").get("clusters").text
    for shown in (
        "clusters/test",
        "kafka_prod",
        "3 of 4",
        "1 broker not alive",
        "40 partitions under-replicated",
    ):
        assert shown in reported
    text = client("viewer").get("clusters/test").text
    assert "40 partitions were under-replicated" in text
    assert "Broker 2 was not alive" in text
    assert text.index("/dc0/r0") < text.index("/dc0/r1") < text.index("/dc1/r0")
    assert "There was no plan for this cluster yet." in text
    assert "Not known: watch_clusters has judged no snapshot of this cluster yet" in text
    seen = Seen(FindingKind.UNDER_MIN_ISR, "", {"count": 2, "partitions": ["<b>-0", "t-1"]})
    at = datetime(2030, 1, 1, tzinfo=UTC)
    site.ledger.follow_findings(
        "test", at, after_snapshot([seen], WatchRules(), longest_gap=timedelta(hours=1))
    )
    text = client("viewer").get("clusters/test").text
    assert "2 partitions below min.insync.replicas: &lt;b&gt;-0, t-1." in text
    assert '<span class="severity error">Under min ISR' in text
    assert "1 finding" in client("viewer").get("clusters").text
    assert client("viewer").get("clusters/unknown").status_code == 404
    assert "could not be sent" not in text
    left = Alert(AlertKind.FOREIGN_LEFTOVERS, "test", "", cluster_id="test").to_raise(60)
    (due,) = site.ledger.raise_alerts([left])
    site.ledger.record_sent(due, "", {"mail": "", "chat": "it answers 503"})
    text = client("viewer").get("clusters/test").text
    assert "foreign_leftovers could not be sent through chat: it answers 503" in text
    site.ledger.raise_alerts([], [left.key])
    assert "could not be sent" not in client("viewer").get("clusters/test").text


def test_the_list_of_clusters_and_the_page_of_one_say_the_same(client: Client, site: Site) -> None:
    """Settings that are owed were on the page alone, beside a list with "nothing seen"."""
    snapshot_of(site)
    plan = site.plan("p1", cluster_id="test")
    rate = ConfigResource.broker(1)
    entry = ThrottleEntry("p1", "test", rate, LEADER_RATE, ("100",), None, "")
    site.ledger.journal_throttles([entry])
    site.run(plan)
    site.end(plan)
    ((line,), _, _) = cluster_pages.lines(site.ledger)
    kinds = [each.kind for each in line.account.troubles]
    assert TroubleKind.OWED in kinds
    listed, page = (client("viewer").get(each).text for each in ("clusters", "clusters/test"))
    assert "1 throttle setting of ended plans" in listed
    for trouble in line.account.troubles:
        assert escape(trouble_text(trouble)[0]) in page


def test_a_cluster_describes_what_any_client_has_in_flight(client: Client, site: Site) -> None:
    snapshot_of(site)
    assert "Reassignments in flight" not in client("viewer").get("clusters/test").text
    orders = [TopicPartition("orders", number) for number in (7, 9)]
    snapshot_of(site, "busy", adding=frozenset({(orders[0], 3), (orders[1], 2)}))
    text = client("viewer").get("clusters/busy").text
    _, _, found = text.partition("Reassignments in flight</h2>")
    for shown in ("orders-7", "another client", "since when is not known", "adds broker 3"):
        assert shown in found
    assert "It cannot end: it adds a replica on broker 2, which is not alive" in found
    assert '/dags/foreign_reassignments" data-airflow>Follow, cancel or adopt' in found
    assert found.count("cannot end</span>") == 1


def test_a_cluster_shows_its_brokers_before_and_after_a_plan(client: Client, site: Site) -> None:
    snapshot_of(site)
    plan = site.plan("p1", cluster_id="test")
    site.plan("p2", cluster_id="another")
    viewer = client("viewer")
    text = viewer.get("clusters/test").text
    assert "Gates of the newest plan" in text
    assert "On the snapshot: passed" in text
    assert "Preferred leaders" not in text
    text = viewer.get("clusters/test", params={"plan": "p1"}).text
    (load,) = (load for load in plan.summary.brokers if load.broker == 4)
    assert load.replicas_before > load.replicas_after == 0
    assert f'{load.replicas_before} <span aria-label="to">→</span> 0' in text
    assert viewer.get("clusters/test", params={"plan": "p2"}).status_code == 404
    assert viewer.get("clusters/test", params={"plan": "p3"}).status_code == 404


def test_a_run_that_was_refused_before_its_plan_says_why(client: Client, site: Site) -> None:
    from rehome.run.context import run_digest

    viewer, address = client("viewer"), "runs/reassign_partitions/manual__2030-01-01T00:00:00+00:00"
    assert "No plan yet" in viewer.get(address).text
    of_another_dag = viewer.get("runs/control_reassignment/manual__1").text
    assert "Nothing is changed meanwhile" not in of_another_dag
    assert "every 2s" not in of_another_dag
    digest = run_digest("reassign_partitions", "manual__2030-01-01T00:00:00+00:00")
    directory = PlanDirectory((site.warehouse / f"plans/20300101T000000Z-drain-{digest}").as_uri())
    directory.write_json("gates.json", list(gates_json(failed=True)))
    failure = {"kind": "refused", "message": "The gate refuses the snapshot.", "details": [EVIL]}
    directory.write_json("failure.json", failure)
    text = viewer.get(address).text
    assert "The gate refuses the snapshot." in text
    assert "On the snapshot: refused" in text
    assert "No plan was made; nothing was changed." in text
    assert "<img" not in text


def test_a_run_that_ended_before_it_had_a_plan_has_a_page_that_says_why(
    client: Client, site: Site
) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    cause = Cause(CauseKind.NO_JAVA, f"No Java {EVIL}.", "Nothing moved.", "Set it up.", at, "plan")
    site.ledger.record_cause(EndedRun("reassign_partitions", "manual__3", cause))
    text = client("viewer").get("runs/reassign_partitions/manual__3").text
    for said in ("No plan was made", "No Java", "Nothing moved.", "Set it up.", "<b>plan</b>"):
        assert said in text
    assert "<img" not in text
    assert "No plan yet" not in text


def test_the_run_that_made_a_plan_shows_it_when_another_one_carries_it_out(
    client: Client, site: Site
) -> None:
    from rehome.run.context import run_digest

    dag_id, run_id = "reassign_partitions", "manual__2030-01-01T00:00:00+00:00"
    plan_id = f"20300101T000000Z-drain-{run_digest(dag_id, run_id)}"
    site.plan(plan_id, dry_run=True)
    site.ledger.take_up(plan_id, dag_id, "control__2", {}, "ann", lease_s=60)
    for run in (run_id, "control__2"):
        answer = client("viewer").get(f"runs/{dag_id}/{run}", follow_redirects=False)
        assert answer.headers["location"].endswith(f"/plans/{plan_id}")
        report = client("viewer").get(f"reports/{dag_id}/{run}", follow_redirects=False)
        assert report.headers["location"].endswith(f"/files/{plan_id}/report.html")
    assert "No plan yet" in client("viewer").get(f"reports/{dag_id}/manual__9").text


def test_the_pictures_of_dags_are_served_to_those_who_are_logged_in(client: Client) -> None:
    picture = client("viewer").get("flows/reassign_partitions.svg")
    assert picture.headers["content-type"].startswith("image/svg+xml")
    assert "clear_throttle" in picture.text
    assert client("viewer").get("flows/another.svg").status_code == 404


def test_a_plan_of_a_run_that_this_ledger_does_not_know_is_reported(
    client: Client, site: Site
) -> None:
    from rehome.run.context import run_digest

    digest = run_digest("reassign_partitions", "manual__1")
    directory = PlanDirectory((site.warehouse / f"plans/20300101T000000Z-drain-{digest}").as_uri())
    directory.write_json("summary.json", {})
    text = client("viewer").get("runs/reassign_partitions/manual__1").text
    assert "this ledger does not know it" in text


def test_what_hurts_a_plan_stands_in_the_order_of_what_to_do_until_it_is_over(
    client: Client, site: Site
) -> None:
    plan = site.plan("p1")
    site.run(plan, flying=2)
    site.poll(plan, 0)
    dead = Hurt(HurtKind.DEAD_BROKERS, (2,), 8)
    room = Hurt(HurtKind.WAITS_FOR_ROOM, (5,), why=f"too little space {EVIL}")
    site.ledger.record_hurts("p1", site.clock(), [room, dead])
    text = client("viewer").get("plans/p1").text
    first = "Broker 2 is not alive. 8 moves of the plan need it."
    assert 0 < text.index(first) < text.index("too little space")
    assert "<img" not in text
    site.ledger.record_hurts("p1", site.clock(), [])
    site.poll(plan, 1)
    page = client("viewer")
    wait_until(lambda: first not in page.get("plans/p1").text, "the page after the next poll")


def test_a_next_step_links_to_the_button_where_there_is_one(client: Client, site: Site) -> None:
    plan = site.plan("p1")
    site.run(plan, done=1)
    site.end(plan, PlanState.FAILED, "nothing moved")
    admin, viewer = (client(role).get("plans/p1").text for role in ("admin", "viewer"))
    link = '<a href="/rehome/plans/p1" hx-get="/rehome/plans/p1/controls/roll_back"'
    assert "roll back what moved." in admin
    assert link in admin
    assert "action rollback and plan_id p1" not in admin
    assert "action rollback and plan_id p1" in viewer
    assert link not in viewer
