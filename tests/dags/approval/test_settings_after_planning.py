"""Caps, broker sets and targets that change after a plan was made, and before it is carried out."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from sqlalchemy import delete

from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.ledger.base.approval_tables import RECORDED_FILES
from rehome.page.plan_view import PlanFollower
from rehome.warehouse import PlanDirectory
from tests.dags.approval.answers import APPROVE, REJECT, SEND_BACK, Answers, Given, answered
from tests.dags.clusters import state_of, to
from tests.dags.site import Site
from tests.plugins.mailbox import Reported

RATE = 5_000_000
Entry = Callable[..., None]


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Entry:
    """Writes what the clusters file has for the cluster."""
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))

    def write(**values: Any) -> None:
        content = {"clusters": {"main": {"connection": "kafka_default", **values}}}
        path.write_text(yaml.safe_dump(content))

    write()
    return write


def planned(site: Site, topic: str, **more: Any) -> dict[str, Any]:
    """A plan that a dry run has made; the parameters of a run that carries it out."""
    asked = {"action": "reassign", "reassignment": to(topic, {0: [3, 2]}), "throttle": RATE}
    tried = site.run(**asked, **more, dry_run=True)
    assert tried.state == "success", tried.log
    (plan,) = site.ledger.plans()
    return {**asked, "plan_id": plan.plan_id}


def found(site: Site) -> list[tuple[str, str, str]]:
    """What the last dry run of the only plan says of settings: severity, subject, message."""
    (plan,) = site.ledger.plans()
    tried = PlanDirectory(plan.plan_dir).read_json("dry_run.json")
    assert "settings" in tried["checks"]
    findings = [one for one in tried["findings"] if one["check"] == "settings"]
    return [(one["severity"], one["subject"], one["message"]) for one in findings]


def test_what_has_changed_since_the_plan_is_reported_and_the_plan_runs_as_it_was_made(
    site: Site, entry: Entry
) -> None:
    topic = site.topics.create([[1, 2]])
    entry(targets={"max_moves_per_broker": 3}, caps={"default": {"replicas": 900}})
    params = planned(site, topic)
    assert found(site) == []
    entry(targets={"max_moves_per_broker": 2}, caps={"default": {"replicas": 800}})
    run = site.run(**params)
    assert run.state == "success", run.log
    since = "has changed since the plan was made, from"
    assert found(site) == [
        ("warning", "caps.default.replicas", f"{since} 900 to 800"),
        ("warning", "targets.max_moves_per_broker", f"{since} 3 to 2"),
    ]
    assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (3, 2)


CAP = {"caps": {"brokers": {3: {"replicas": 0}}}}


@pytest.mark.parametrize(
    ("now", "broken", "also"),
    [
        pytest.param(
            {"caps": {"brokers": {3: {"replicas": 0}}}}, "Broker 3 would end", (), id="cap"
        ),
        pytest.param(
            {"broker_sets": [{"name": "fast", "topics": ["*"], "brokers": [1, 2, 4]}]},
            "would get a replica on broker 3, which is not of its broker set 'fast'",
            (),
            id="set",
            marks=pytest.mark.long,
        ),
        pytest.param(
            {"caps": {"default": {"disk_fraction": 0.000001}}},
            "Broker 3 would end with",
            ["disk"],
            id="disk",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_plan_that_breaks_a_limit_of_now_is_refused_and_changes_nothing(
    now: dict[str, Any], broken: str, also: Collection[str], site: Site, entry: Entry
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 100)
    before = state_of(site.gateway, [topic])
    params = planned(site, topic)
    entry(**now)
    run = site.run(**params)
    assert run.state == run.tasks["dry_run"] == "failed"
    errors = [message for severity, _, message in found(site) if severity == "error"]
    assert any(broken in message for message in errors), errors
    (plan,) = site.ledger.plans()
    findings = PlanDirectory(plan.plan_dir).read_json("dry_run.json")["findings"]
    refused_by = {one["check"] for one in findings if one["severity"] == "error"}
    assert refused_by == {"settings", *also}
    assert "If it is paused, cancel it. Then trigger a new run" in run.log
    assert plan.state is PlanState.FAILED
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


def test_a_plan_that_is_resumed_while_it_breaks_a_limit_stays_paused_and_says_what_to_do(
    site: Site, entry: Entry, reported: Reported
) -> None:
    topic = site.topics.create([[1, 2]])
    site.topics.fill(topic, 100)
    before = state_of(site.gateway, [topic])
    params = planned(site, topic)
    (plan,) = site.ledger.plans()
    site.ledger.approve(plan.plan_id, plan.plan_hash, "ann")
    for state in (PlanState.RUNNING, PlanState.PAUSED):
        site.ledger.transition(plan.plan_id, state, "pause requested")
    site.ledger.request_pause(plan.plan_id, "ann")
    entry(caps={"brokers": {3: {"replicas": 0}}})
    run = site.run(**params)
    assert run.state == run.tasks["dry_run"] == "failed"
    view = PlanFollower(site.ledger, plan.plan_id, 60).view(datetime.now(UTC))
    assert view.record.state is PlanState.PAUSED
    refused = view.account.resume_refused
    assert refused is not None
    assert refused.breaks_limits
    why, then = (
        "Broker 3 would end with",
        "If it is paused, cancel it. Then trigger a new run",
    )
    assert why in refused.error
    assert then in refused.remedy
    report = Path(plan.plan_dir.removeprefix("file://"), "report.html").read_text()
    for place in (run.log, run.note, report, reported.only("failed")["next_step"]):
        assert why in place, place
        assert then in place, place
        assert "Resume the plan, or cancel it" not in place
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


@pytest.mark.long
def test_limits_that_the_run_has_stated_itself_are_kept_and_not_those_of_the_cluster(
    site: Site, entry: Entry
) -> None:
    topic = site.topics.create([[1, 2]])
    params = planned(site, topic, caps={})
    entry(caps={"brokers": {3: {"replicas": 0}}})
    run = site.run(**params)
    assert run.state == "success", run.log
    assert found(site) == []


@pytest.mark.long
def test_a_plan_without_a_record_is_reported_as_not_known(site: Site, entry: Entry) -> None:
    """As an earlier version has made them."""
    topic = site.topics.create([[1, 2]])
    params = planned(site, topic)
    (plan,) = site.ledger.plans()
    PlanDirectory(plan.plan_dir).remove("settings.json")
    with site.ledger.writing() as connection:
        connection.execute(delete(RECORDED_FILES))
    entry(caps={"brokers": {3: {"replicas": 0}}})
    run = site.run(**params)
    assert run.state == "success", run.log
    ((severity, _, message),) = found(site)
    assert severity == "warning"
    assert "it is not known whether caps, broker sets or targets" in message


def test_a_clusters_file_that_cannot_be_read_refuses_with_what_to_do(
    site: Site, entry: Entry, tmp_path: Path
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    params = planned(site, topic)
    (tmp_path / "clusters.yaml").write_text("clusters: [")
    run = site.run(**params)
    assert run.state == "failed"
    assert "clusters.yaml cannot be used" in run.log
    assert "Correct the clusters file, which the setting clusters_file names." in run.log
    assert state_of(site.gateway, [topic]) == before


def test_a_target_that_changes_while_a_person_decides_is_asked_for_again_with_its_effect(
    monkeypatch: pytest.MonkeyPatch, site: Site, entry: Entry
) -> None:
    topic = site.topics.create([[1, 2]])
    entry(caps={"default": {"replicas": 900}})
    later = [800, 0]

    def by_ann(asked: Answers) -> Given:
        if later:
            entry(caps={"default": {"replicas": 900}, "brokers": {3: {"replicas": later.pop(0)}}})
        return Given(APPROVE if APPROVE in asked.names[-1] else REJECT)

    asked = answered(monkeypatch, by_ann)
    moved = to(topic, {0: [3, 2]})
    before = state_of(site.gateway, [topic])
    site.run(action="reassign", reassignment=moved, approval=True, throttle=RATE)
    first, second, third = asked.bodies
    assert "with the caps, broker sets and targets that the cluster has now" in first
    assert "`caps.brokers.3.replicas was not set, and is 800`" in second
    assert "1 warning" in second
    assert "`caps.brokers.3.replicas was 800, and is 0`" in third
    assert "1 error" in third
    assert asked.names[::2] == [[APPROVE, SEND_BACK, REJECT], [SEND_BACK, REJECT]]
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.CANCELLED
    assert state_of(site.gateway, [topic]) == before


def test_an_approval_lapses_when_a_target_changes_before_the_plan_starts(
    monkeypatch: pytest.MonkeyPatch, site: Site, entry: Entry
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    entry(targets={"max_moves_per_broker": 3})
    approve = type(importlib.import_module("dags.reassign_partitions").dag.get_task("approve"))
    really = approve.execute

    def and_then(self: Any, context: Any) -> Any:
        result = really(self, context)
        entry(targets={"max_moves_per_broker": 2})
        return result

    monkeypatch.setattr(approve, "execute", and_then)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), throttle=RATE)
    assert run.state == run.tasks["throttle"] == "failed"
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert "targets.max_moves_per_broker was 3, and is 2" in plan.cause
    assert EventKind.APPROVAL_LAPSED in [event.kind for event in site.ledger.events(plan.plan_id)]
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()
