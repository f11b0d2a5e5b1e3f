"""Airflow's Clear of any task of a run that has a follow-up, or may get one.

As in ``test_clearing``: at each moment every task that had begun by then is carried out anew, and
the outcome is the same two plans carried on, or a clear refusal.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping

import pytest

from local.process.waiting import wait_until
from rehome.domain.run.states import PlanState
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.controller import give_up
from rehome.execution.throttle.set_up import clear_throttle
from tests.dags.clearing.cleared_tasks import (
    FOLLOW_UP,
    TASKS,
    WITH_FOLLOW_UP,
    ClearedRun,
    Outcome,
    reach,
)
from tests.dags.clusters import no_throttles, throttles_become
from tests.dags.site import Site

CARRIED_ON, REFUSED, SKIPPED, DEFERRED = Outcome
DRAINED, CRAWL, FAST = 4, 10_000, 50_000_000


class Moment(enum.StrEnum):
    """When tasks are cleared: after which of them, or what has become of the second plan."""

    NONE_NEEDED = "verdict, of a run that nothing follows up"
    PLANNED = "follow_up.dry_run"
    IN_FLIGHT = "follow_up.execute"
    DONE = "verdict"
    FAILED = "failed"


def every(*tasks: str, but: Mapping[str, Outcome] | None = None) -> dict[str, Outcome]:
    return dict.fromkeys(tasks, CARRIED_ON) | dict(but or {})


def until(last: str) -> tuple[str, ...]:
    return WITH_FOLLOW_UP[: WITH_FOLLOW_UP.index(last) + 1]


EXPECTED: Mapping[Moment, Mapping[str, Outcome]] = {
    Moment.NONE_NEEDED: {
        **dict.fromkeys(FOLLOW_UP, REFUSED),
        "follow_up.clear_throttle": CARRIED_ON,
        "follow_up.report": SKIPPED,
        **every(*TASKS),
    },
    Moment.PLANNED: every(*until("follow_up.dry_run")),
    Moment.IN_FLIGHT: every(*until("follow_up.progress"), but={"follow_up.progress": DEFERRED}),
    Moment.DONE: every(*WITH_FOLLOW_UP),
    Moment.FAILED: {
        **every(*until("drained")),
        **dict.fromkeys(FOLLOW_UP, REFUSED),
        **every("follow_up.clear_throttle", "follow_up.report", "report"),
        "verdict": REFUSED,
    },
}
OPEN = (Moment.PLANNED, Moment.IN_FLIGHT)


@pytest.fixture
def run(site: Site, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClearedRun]:
    reach(site.cluster, monkeypatch)
    topic = site.topics.create([[DRAINED, 1]])
    site.topics.fill(topic, 5)
    site.topics.create([[1]], "late")  # a pattern has to match something
    wanted = {"action": "drain", "brokers": [DRAINED], "topics": [topic, "late*"]}
    made = ClearedRun(site.ledger, {**wanted, "throttle": CRAWL})
    yield made
    for record in site.ledger.plans():
        if record.state.active:
            site.ledger.acquire_lease(record.cluster_id, record.driver, 0.0)
            own = OwnCluster.of_plan(site.gateway, record)
            give_up(record, site.ledger, own, "the test is over", record.driver, 60)
        clear_throttle(record.plan_id, site.ledger, site.gateway)


def bring_to(moment: Moment, run: ClearedRun, site: Site) -> None:
    if moment is Moment.NONE_NEEDED:
        run.through("restore_leaders")
        assert run.task("drained") is CARRIED_ON
        assert run.skips, "what would follow up"
        run.through("verdict", first="report")
        return
    run.through("restore_leaders")
    late = site.topics.create([[DRAINED]], "late")
    site.topics.fill(late, 1000, size_bytes=10_000)
    if moment is Moment.FAILED:
        run.through("follow_up.execute", first="drained")
        assert run.task("follow_up.clear_throttle") is CARRIED_ON
        assert run.follow_up().state is PlanState.FAILED
    elif moment is Moment.DONE:
        run.through("follow_up.execute", first="drained")
        site.ledger.request_rate(run.follow_up().plan_id, FAST, "ann")
        run.through("verdict", first="follow_up.progress")
    else:
        run.through(moment, first="drained")


# The tasks of both plans are cleared in flight; the simulator clears them at any other moment.
QUICK = {Moment.IN_FLIGHT}


@pytest.mark.parametrize(
    "moment",
    [
        pytest.param(
            moment, id=moment.name.lower(), marks=[pytest.mark.long] * (moment not in QUICK)
        )
        for moment in Moment
    ],
)
def test_whatever_is_cleared_both_plans_are_carried_on_or_a_refusal_is_clear(
    moment: Moment, run: ClearedRun, site: Site
) -> None:
    before = no_throttles(site.gateway, [])
    bring_to(moment, run, site)
    ledger = site.ledger
    plans = {plan.plan_id: ledger.planned_moves(plan.plan_id) for plan in ledger.plans()}
    states = {plan.plan_id: plan.state for plan in ledger.plans()}
    found: dict[str, Outcome] = {}
    for task_id in EXPECTED[moment]:
        found[task_id] = run.task(task_id)
        if found[task_id] is REFUSED:
            assert run.record().plan_id in run.reported, (task_id, run.reported)
            assert "Nothing was changed" not in run.reported, (task_id, run.reported)
        assert bool(run.skips) is (task_id == "drained" and moment not in (*OPEN, Moment.FAILED))
        now = {plan.plan_id: ledger.planned_moves(plan.plan_id) for plan in ledger.plans()}
        assert now == plans, task_id
    assert found == EXPECTED[moment], run.reported
    if moment in OPEN:
        _goes_on_to_its_end(run, moment)
    else:
        assert {plan.plan_id: plan.state for plan in ledger.plans()} == states
    throttles_become(site.gateway, [], before)
    assert not ledger.throttles(open_only=True)
    for plan_id in plans:
        starts = [start.partition for start in ledger.reassignments(plan_id)]
        assert len(set(starts)) == len(starts), "nothing is started twice"


def _goes_on_to_its_end(run: ClearedRun, moment: Moment) -> None:
    after = WITH_FOLLOW_UP[WITH_FOLLOW_UP.index(moment) + 1]
    if moment is Moment.PLANNED:
        run.through("follow_up.execute", first=after)
        after = "follow_up.progress"
    run.ledger.request_rate(run.follow_up().plan_id, FAST, "ann")
    run.through("verdict", first=after)
    assert {record.state for record in run.ledger.plans()} == {PlanState.DONE}


def test_a_follow_up_in_flight_is_carried_on_though_its_brokers_are_empty_by_now(
    run: ClearedRun, site: Site
) -> None:
    """`drained` is cleared in the moment in which the last copy arrives: nothing is skipped."""
    bring_to(Moment.IN_FLIGHT, run, site)
    assert run.task("follow_up.progress") is DEFERRED
    site.ledger.request_rate(run.follow_up().plan_id, FAST, "ann")
    assert run.task("follow_up.execute") is CARRIED_ON
    wait_until(lambda: not site.gateway.list_reassignments(), "the copy to arrive")
    assert run.task("drained") is CARRIED_ON
    assert not run.skips
    run.through("verdict", first="follow_up.snapshot")
    assert {record.state for record in run.ledger.plans()} == {PlanState.DONE}
    assert not site.ledger.throttles(open_only=True)
