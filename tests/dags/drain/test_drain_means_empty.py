"""A topic is created on a broker while it is drained: the run moves it away, too, or fails."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from rehome.domain.run.askers import Term
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.warehouse import PlanDirectory
from tests.dags.approval.answers import APPROVE, REJECT, Given, answered
from tests.dags.site import Site

DRAINED = 4


@pytest.fixture
def in_mid_run(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """Has something done once for each plan, when its first moves have started."""
    from rehome.operators.execute import StartReassignmentOperator

    def arrange(do: Callable[[], Any]) -> None:
        real = StartReassignmentOperator.step

        def step(self: StartReassignmentOperator, context: Any) -> None:
            real(self, context)
            do()

        monkeypatch.setattr(StartReassignmentOperator, "step", step)

    return arrange


def on_the_drained(site: Site, *topics: str) -> list[str]:
    found = site.gateway.current_topics(topics)
    return [name for name in topics if DRAINED in found[name].partitions[0].replicas]


def drain(site: Site, topic: str, **conf: Any) -> Any:
    """Of what the tests create: the brokers' own internal topics are shared with others."""
    return site.run(
        action="drain", brokers=[DRAINED], topics=[topic, "late*"], throttle=1_000_000, **conf
    )


def test_replicas_that_appear_on_a_drained_broker_are_moved_away_by_a_follow_up(
    site: Site, in_mid_run: Callable[[Callable[[], Any]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the caps that the cluster has by then, where the run that made the plan has none."""
    caps = {"default": {"replicas": 100_000}}
    topic, early = site.topics.create([[DRAINED, 1]]), site.topics.create([[1]], "late")
    site.topics.fill(topic, 500)
    late: list[str] = []

    def create_once() -> None:
        if not late:
            late.append(site.topics.create([[DRAINED]], "late"))
            monkeypatch.setenv("REHOME_CAPS", json.dumps(caps))

    assert drain(site, topic, dry_run=True).state == "success"
    (planned,) = site.ledger.plans()
    in_mid_run(create_once)
    run = drain(site, topic, plan_id=planned.plan_id, max_moves_per_broker=3)
    assert run.state == "success", run.log
    assert not on_the_drained(site, topic, early, *late)
    second, first = site.ledger.plans()
    assert second.plan_id == f"{first.plan_id}-follow_up"
    assert (first.state, second.state) == (PlanState.DONE, PlanState.DONE)
    assert [m.topic for m in site.ledger.moves(second.plan_id)] == late
    files = [PlanDirectory(plan.plan_dir) for plan in (first, second)]
    assert [of.read_json("request.json")["caps"] for of in files] == [{}, caps]
    made_with = [of.read_json("settings.json") for of in files]
    assert [values["caps"] for values in made_with] == [{}, caps]
    assert made_with[0]["of_run"] == made_with[1]["of_run"] == ["throttle"]
    assert EventKind.FOLLOWED_UP in {event.kind for event in site.ledger.events(first.plan_id)}
    directory = PlanDirectory(first.plan_dir)
    kept = directory.read_json("drained.json")
    assert (kept["as_planned"], kept["follow_up"]) == (True, second.plan_id)
    assert not site.ledger.throttles(open_only=True)


@pytest.mark.long
def test_replicas_that_appear_on_a_replaced_broker_go_to_its_replacement(
    site: Site, in_mid_run: Callable[[Callable[[], Any]], None]
) -> None:
    topic, early = site.topics.create([[DRAINED, 1]]), site.topics.create([[DRAINED]], "late")
    site.topics.fill(topic, 500)
    late: list[str] = []

    def create_once() -> None:
        if not late:
            late.append(site.topics.create([[1, DRAINED]], "late"))

    in_mid_run(create_once)
    run = site.run(
        action="replace",
        replacements={str(DRAINED): 3},
        topics=[topic, "late*"],
        ignore_racks=True,
        throttle=1_000_000,
    )
    assert run.state == "success", run.log
    found = site.gateway.current_topics([topic, early, *late])
    rows = {name: found[name].partitions[0].replicas for name in (topic, early, *late)}
    assert rows == {topic: (3, 1), early: (3,), late[0]: (1, 3)}
    second, first = site.ledger.plans()
    assert second.plan_id == f"{first.plan_id}-follow_up"
    assert [plan.action for plan in (first, second)] == ["replace"] * 2
    assert (first.state, second.state) == (PlanState.DONE, PlanState.DONE)
    assert [m.topic for m in site.ledger.moves(second.plan_id)] == late
    assert not site.ledger.throttles(open_only=True)


def test_a_follow_up_needs_an_approval_of_its_own_and_without_it_the_run_fails_with_the_list(
    site: Site,
    in_mid_run: Callable[[Callable[[], Any]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, _ = site.topics.create([[DRAINED, 1]]), site.topics.create([[1]], "late")
    site.topics.fill(topic, 500)
    late: list[str] = []
    in_mid_run(lambda: late.append(site.topics.create([[DRAINED]], "late")))
    asked = answered(
        monkeypatch, lambda asked: Given(APPROVE if len(asked.bodies) == 1 else REJECT)
    )
    run = drain(site, topic, approval=True)
    assert run.state == run.tasks["verdict"] == "failed", run.log
    second, first = site.ledger.plans()
    assert [first.plan_id in asked.bodies[0], second.plan_id in asked.bodies[1]] == [True, True]
    assert "one more plan in the same window" in asked.bodies[0]
    assert "one more plan in the same window" not in asked.bodies[1]
    assert second.terms_asked_by == {Term.FOLLOWED_UP: first.actor}
    assert (first.state, second.state) == (PlanState.DONE, PlanState.CANCELLED)
    assert f"{late[0]}-0 on broker {DRAINED} (assigned)" in run.log
    assert f"plan {second.plan_id} is cancelled: rejected" in run.log
    assert on_the_drained(site, *late) == late, "nothing of it was moved"
    report = PlanDirectory(first.plan_dir).read_text("report.html")
    assert "Not empty" in report
    assert late[0] in report


@pytest.mark.long
def test_replicas_that_appear_while_the_follow_up_runs_are_reported_and_the_run_fails(
    site: Site, in_mid_run: Callable[[Callable[[], Any]], None]
) -> None:
    topic, _ = site.topics.create([[DRAINED, 1]]), site.topics.create([[1]], "late")
    site.topics.fill(topic, 500)
    late: list[str] = []

    in_mid_run(lambda: late.append(site.topics.create([[DRAINED]], "late")))
    run = drain(site, topic)
    assert run.state == run.tasks["follow_up.drained"] == run.tasks["verdict"] == "failed", run.log
    second, first = site.ledger.plans()
    assert (first.state, second.state) == (PlanState.DONE, PlanState.DONE)
    assert len(late) == 2
    assert on_the_drained(site, topic, *late) == late[1:]
    kept = PlanDirectory(first.plan_dir).read_json("drained.json")
    assert [item["topic"] for item in kept["left"]] == late[1:]
    assert EventKind.DRAINED_NOT_EMPTY in {
        event.kind for event in site.ledger.events(first.plan_id)
    }
    assert "it appeared while the follow-up ran" in run.log
