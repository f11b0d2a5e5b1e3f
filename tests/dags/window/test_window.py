"""Maintenance windows: moves that do not fit into one go on in the next."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome.clusters.watch_rules import WatchRules
from rehome.domain.clock import utc_now
from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.askers import STARTED_DAG, Term
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.domain.run.watched.finding import Seen
from rehome.domain.run.watched.finding_kinds import FindingKind, WatchPolicy
from rehome.ledger.stores.watched.starts import StartRecord
from rehome.timetables.maintenance_window import MaintenanceWindowTimetable, window_of
from rehome.warehouse import PlanDirectory, Warehouse
from rehome.watching.open_and_close import after_snapshot
from spark_jobs import plan as plan_job
from spark_jobs.gated_plan import read_request
from tests.dags.clearing.cleared_tasks import ClearedRun, Outcome, reach
from tests.dags.clusters import no_throttles, throttles_become
from tests.dags.runs import started_by_the_schedule
from tests.dags.site import Site
from tests.ledger.small_plans import make_plan, move
from tests.plugins.mailbox import Reported

DAG = "rebalance_in_window"
CRAWL, FAST = 10_000, 20_000_000


@pytest.fixture(autouse=True)
def paused(site: Site) -> None:
    """The DAG is paused, as it is where nobody has unpaused it: another test may have made it, with
    settings by which it is not.
    """
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session

    with create_session() as session:
        dag = session.get(DagModel, DAG)
        if dag is not None:
            dag.is_paused = True


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Windows of ten minutes, or of another time, that open by a cron expression."""

    def opens(cron: str, seconds: int = 600) -> None:
        monkeypatch.setenv("REHOME_WINDOW_CRON", cron)
        monkeypatch.setenv("REHOME_WINDOW_DURATION_S", str(seconds))

    return opens


def test_moves_that_do_not_fit_into_a_window_go_on_in_the_next(
    window: Callable[[str], None], site: Site, reported: Reported
) -> None:
    small, large = site.topics.create([[4]]), site.topics.create([[4]])
    site.topics.fill(small, 5)
    site.topics.fill(large, 1000, size_bytes=10_000)
    before = no_throttles(site.gateway, [small, large])
    drain = {"action": "drain", "brokers": [4], "topics": [small, large]}
    now = utc_now()
    window(f"{now.minute} {now.hour} * * *")  # the next one opens tomorrow
    first = site.run(dag=DAG, throttle=CRAWL, **drain)
    assert first.state == "success", first.log
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.PAUSED, first.log
    assert plan.cause == "what is left does not fit into the window"
    states = {p.topic: record.state for p, record in site.ledger.moves(plan.plan_id).items()}
    assert states == {small: MoveState.DONE, large: MoveState.PENDING}
    throttles_become(site.gateway, [small, large], before)

    assert "paused_at_window_end" in reported.kinds()
    paused = reported.only("paused_at_window_end")
    assert (paused["plan_id"], paused["state"]) == (plan.plan_id, "paused")
    assert "1 done, 1 pending" in paused["text"]
    assert "It goes on when the next window opens, at " in paused["next_step"]
    assert "if rebalance_in_window is unpaused" in paused["next_step"]
    assert "No window resumes it, because rebalance_in_window is paused in Airflow" in first.note

    window("* * * * *")
    then = site.run(dag=DAG, throttle=FAST, **drain)
    assert then.state == "success", then.log
    assert reported.kinds()[-1] == reported.only("done")["kind"]
    assert [(p.plan_id, p.state) for p in site.ledger.plans()] == [(plan.plan_id, PlanState.DONE)]
    assert [
        e.detail for e in site.ledger.events(plan.plan_id) if e.kind == EventKind.CONTINUED
    ] == [f"{DAG}/{then.run_id}"]
    for topic in (small, large):
        assert 4 not in site.gateway.describe_topics([topic])[topic].partitions[0].replicas
    assert len(site.ledger.reassignments(plan.plan_id)) == 2, "nothing is moved twice"
    throttles_become(site.gateway, [small, large], before)


@pytest.mark.long
def test_a_plan_that_was_made_until_its_window_closed_is_for_the_next_one(
    window: Callable[..., None], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = site.topics.create([[4]])
    before = no_throttles(site.gateway, [topic])
    drain = {"action": "drain", "brokers": [4], "topics": [topic]}
    planned = plan_job.main

    def plan_for_long(arguments: Sequence[str]) -> int:
        closes = read_request(arguments[list(arguments).index("--request") + 1]).window_end
        assert closes is not None
        wait_until(lambda: utc_now() >= closes, "the window to close", 240)
        return planned(arguments)

    window("* * * * *", utc_now().second + 60)  # one is open at any time
    with monkeypatch.context() as patched:
        patched.setattr(plan_job, "main", plan_for_long)
        late = site.run(dag=DAG, throttle=FAST, **drain)
    assert late.state == "success", late.log
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.PAUSED, "the window has ended")
    assert not site.ledger.reassignments(plan.plan_id)
    throttles_become(site.gateway, [topic], before)

    window("* * * * *")
    then = site.run(dag=DAG, throttle=FAST, **drain)
    assert then.state == "success", then.log
    assert [(p.plan_id, p.state) for p in site.ledger.plans()] == [(plan.plan_id, PlanState.DONE)]


def test_a_waiting_plan_that_fits_no_more_is_given_up_for_a_new_one(
    window: Callable[[str], None], tmp_path: Path, site: Site
) -> None:
    topic = site.topics.create([[4]])
    site.topics.fill(topic, 5)
    drain = {"action": "drain", "brokers": [4], "topics": [topic]}
    old = make_plan("old", move(topic, 0, (1,), (2,)), cluster_id=site.cluster.cluster_id)
    directory = Warehouse((tmp_path / "warehouse").as_uri()).plan("old")
    directory.save(old, parse_request(drain))
    site.ledger.create_plan(old, drain, directory.uri, "last-night", "test")
    site.ledger.approve("old", old.plan_hash, "test")
    site.ledger.claim("old")
    site.ledger.transition("old", PlanState.PAUSED, "the window has ended")
    window("* * * * *")

    site.ledger.request_pause("old", "ann")
    refused = site.run(dag=DAG, **drain)
    assert refused.state == "failed"
    assert "Plan old is paused on this cluster (run last-night)" in refused.log
    assert site.ledger.plan("old").state is PlanState.PAUSED, (
        "a person's pause is a person's to end"
    )

    site.ledger.withdraw_pause("old", "ann")
    run = site.run(dag=DAG, **drain)
    assert run.state == "success", run.log
    new, given_up = site.ledger.plans()
    assert (given_up.plan_id, given_up.state) == ("old", PlanState.CANCELLED)
    assert f"{topic}-0 has replicas [4], not [1]" in given_up.cause
    assert new.state is PlanState.DONE
    assert 4 not in site.gateway.describe_topics([topic])[topic].partitions[0].replicas


@pytest.mark.parametrize("state", [PlanState.PLANNED, PlanState.PAUSED], ids=["handed", "paused"])
def test_a_plan_that_breaks_a_cap_of_now_is_given_up_for_a_new_one(
    state: PlanState, window: Callable[[str], None], site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = site.topics.create([[4, 1]])
    drain = {"action": "drain", "brokers": [4], "topics": [topic], "throttle": FAST}
    assert site.run(**drain, dry_run=True).state == "success"
    (planned,) = site.ledger.plans()
    plan_id = planned.plan_id
    if state is PlanState.PLANNED:
        asked = {"plan_id": plan_id, "action": "next_window"}
        assert site.run(dag="control_reassignment", **asked).state == "success"
    else:
        site.ledger.approve(plan_id, planned.plan_hash, "test")
        site.ledger.claim(plan_id)
        site.ledger.transition(plan_id, PlanState.PAUSED, "the window has ended")
    ((capped,),) = (move.adding for move in PlanDirectory(planned.plan_dir).load().moves)
    monkeypatch.setenv("REHOME_CAPS", json.dumps({"brokers": {str(capped): {"replicas": 0}}}))
    window("* * * * *")
    run = site.run(dag=DAG, **drain)
    assert run.state == "success", run.log
    new, given_up = site.ledger.plans()
    assert (given_up.plan_id, given_up.state) == (plan_id, PlanState.CANCELLED)
    assert f"Broker {capped} would end with" in given_up.cause
    assert new.state is PlanState.DONE
    replicas = site.gateway.describe_topics([topic])[topic].partitions[0].replicas
    assert not {4, capped} & {*replicas}


def test_a_window_carries_out_the_plan_that_was_handed_over_to_it(
    window: Callable[[str], None], site: Site, reported: Reported, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was planned, whatever the window's own parameters are; what has changed is given up.
    Where windows make no plan of their own, the next one has nothing to do.
    """
    monkeypatch.setenv("REHOME_WINDOW_OWN_PLAN", "false")
    topics = [site.topics.create([[4, 1]]), site.topics.create([[4, 1]])]
    plans = []
    for topic in topics:
        drain = {"action": "drain", "brokers": [4], "topics": [topic], "throttle": FAST}
        assert site.run(**drain, dry_run=True).state == "success"
        plans.append(site.ledger.plans()[0])
        asked = site.run(
            dag="control_reassignment", plan_id=plans[-1].plan_id, action="next_window"
        )
        assert (asked.state, asked.tasks["start"]) == ("success", "skipped"), asked.log
    moved = TopicPartition(topics[0], 0)
    assert not any(site.gateway.alter_reassignments({moved: [2, 1]}).values())
    wait_until(
        lambda: (
            site.gateway.describe_topics([topics[0]])[topics[0]].partitions[0].replicas == (2, 1)
        ),
        "another client's move to end",
    )
    window("* * * * *")
    started_by_the_schedule(monkeypatch)
    run = site.run(dag=DAG, throttle=CRAWL)
    assert run.state == "success", run.log
    changed, chosen = (site.ledger.plan(plan.plan_id) for plan in plans)
    assert changed.state is PlanState.CANCELLED
    assert f"{moved} has replicas [2, 1]" in changed.cause
    assert (chosen.state, chosen.plan_hash) == (PlanState.DONE, plans[1].plan_hash), run.log
    assert chosen.dag_id == DAG
    assert [change.target_bytes_per_s for change in site.ledger.rate_changes(chosen.plan_id)] == [
        FAST
    ]
    assert chosen.request["window_end"] is not None
    assert run.tasks["drained"] == "success", "it is a drain, though the window would rebalance"
    assert len(site.ledger.plans()) == 2, "no plan of the window's own"
    assert 4 not in site.gateway.describe_topics([topics[1]])[topics[1]].partitions[0].replicas

    told = reported.kinds()
    idle = site.rehome({"bootstrap.servers": "127.0.0.1:1"}, dag=DAG)
    assert idle.state == "success", idle.log
    assert idle.tasks["snapshot"] == "success"
    assert {state for task, state in idle.tasks.items() if task != "snapshot"} == {"skipped"}
    assert idle.note.startswith("Nothing to do: no plan waits for this window."), idle.log
    assert reported.kinds() == told
    assert len(site.ledger.plans()) == 2


def test_a_window_has_one_plan_and_keeps_to_what_that_was_plan_settings(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is cleared, and however many windows it takes."""
    reach(site.cluster, monkeypatch)
    topic, cluster_id = site.topics.create([[4, 1], [4, 1]]), site.cluster.cluster_id
    asked = {"action": "drain", "brokers": [4], "throttle": FAST, "dry_run": True}
    for partition, plan_id in enumerate(("gone", "first", "second")):
        plan = make_plan(plan_id, move(topic, partition % 2, (4, 1), (2, 1)), cluster_id=cluster_id)
        directory = Warehouse((tmp_path / "warehouse").as_uri()).plan(plan_id)
        if plan_id != "gone":
            directory.save(plan, parse_request(asked))
        site.ledger.create_plan(plan, asked, directory.uri, "a-dry-run", "ann")
        site.ledger.hand_over(plan_id, "dan")

    def waiting() -> list[str]:
        return [plan.plan_id for plan in site.ledger.handed_over(cluster_id)]

    nightly = MaintenanceWindowTimetable(window_of("* * * * *", timedelta(hours=1)))
    night = ClearedRun(site.ledger, {"action": "rebalance", "throttle": CRAWL}, window=nightly)
    for _ in range(2):
        assert night.task("snapshot") is Outcome.CARRIED_ON, night.reported
        assert site.ledger.taken_up_by("reassign_partitions", night.run_id) == "first"
        assert waiting() == ["second"]
    assert site.ledger.plan("gone").state is PlanState.CANCELLED, "its files are"
    night.task("follow_up.snapshot")
    assert waiting() == ["second"], "a follow-up takes up no other plan"

    for state in (PlanState.PLANNED, PlanState.APPROVED):
        after = replace(night, run_id=f"after-it-failed-while-{state}")
        assert after.task("snapshot") is Outcome.CARRIED_ON, after.reported
        assert site.ledger.taken_up_by("reassign_partitions", after.run_id) == "first"
        assert night.task("snapshot") is Outcome.REFUSED, "its plan is another run's by now"
        night = after
        site.ledger.approve("first", site.ledger.plan("first").plan_hash, "ann")

    site.ledger.claim("first")
    site.ledger.transition("first", PlanState.PAUSED, "the window has ended")
    next_night = replace(night, run_id="the-next-night")
    assert next_night.task("snapshot") is Outcome.CARRIED_ON, next_night.reported
    record = site.ledger.plan("first")
    assert (record.run_id, record.request["throttle"]) == ("the-next-night", FAST)
    assert record.terms_asked_by == {Term.WINDOW: "dan"}, "who has handed it over"
    assert waiting() == ["second"]


def test_a_paused_plan_that_gets_nowhere_makes_way_for_a_heal_that_was_handed_over(
    tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as one whose question nobody answers, night after night."""
    reach(site.cluster, monkeypatch)
    monkeypatch.setenv("REHOME_WATCH_RULES", json.dumps({"policies": {"dead_broker": "heal"}}))
    ledger, cluster_id, now = site.ledger, site.cluster.cluster_id, utc_now()
    topic = site.topics.create([[4, 1], [4, 1]])
    asked = {"action": "drain", "brokers": [4], "throttle": FAST, "dry_run": True}
    for partition, (plan_id, run_id) in enumerate({"mine": "r1", "heal": "watch__1"}.items()):
        plan = make_plan(plan_id, move(topic, partition, (4, 1), (2, 1)), cluster_id=cluster_id)
        directory = Warehouse((tmp_path / "warehouse").as_uri()).plan(plan_id)
        directory.save(plan, parse_request(asked))
        by = run_id, "ann", "kafka_default", STARTED_DAG
        ledger.create_plan(plan, asked, directory.uri, *by)
    about = cluster_id, FindingKind.DEAD_BROKER, "broker 99"
    ledger.record_watch_start(
        StartRecord(STARTED_DAG, "watch__1", *about, now, WatchPolicy.HEAL, now, None)
    )
    ledger.hand_over("heal", "watching")
    ledger.approve("mine", ledger.plan("mine").plan_hash, "ann")
    ledger.claim("mine")
    ledger.transition("mine", PlanState.PAUSED, "the window has ended")
    at_once = WatchRules(snapshots_to_open=1, grace_s=0)
    seen = [Seen(*about[1:], {})]
    for at in (now - timedelta(minutes=1), now):
        ledger.follow_findings(
            cluster_id, at, after_snapshot(seen, at_once, longest_gap=timedelta(hours=1))
        )

    nightly = MaintenanceWindowTimetable(window_of("* * * * *", timedelta(hours=1)))
    night = ClearedRun(ledger, {"action": "rebalance", "throttle": CRAWL}, window=nightly)
    assert night.task("snapshot") is Outcome.CARRIED_ON, night.reported
    assert ledger.taken_up_by("reassign_partitions", night.run_id) == "heal"
    given_up = ledger.plan("mine")
    assert (given_up.state, given_up.started_at is None) == (PlanState.CANCELLED, False)
    assert "it makes way for a heal" in given_up.cause


def test_a_run_by_hand_outside_of_windows_is_refused(
    window: Callable[[str], None], site: Site
) -> None:
    window("0 0 29 2 *")
    run = site.run(dag=DAG)
    assert run.state == "failed"
    assert "window_end" in run.log
    assert "has passed already" in run.log
    assert not site.ledger.plans()
