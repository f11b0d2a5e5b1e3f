"""Named scripts of what runs by itself: what is found, promised, started and carried out."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from unittest.mock import patch

import pytest

from rehome.domain.actions import Action
from rehome.domain.run.findings import Severity
from rehome.domain.run.paused.paused_plan import NeedsPerson, Outlook, Why
from rehome.domain.run.states import PlanState
from rehome.domain.run.watched.finding import FindingRecord
from rehome.domain.run.watched.finding_kinds import FindingKind
from rehome.fleet import judged_snapshots, paused_plan
from rehome.ledger.store import Ledger
from world import cases_of_watching as cases
from world.airflow.shape import IN_WINDOW
from world.judge.judge import judge
from world.judge.promises import TakenUp
from world.outcome import run
from world.rehome.by_hand import CLUSTER
from world.rehome.watched_cluster import is_started
from world.running.outside import EPOCH
from world.script import Script
from world.stage import Stage

pytestmark = pytest.mark.slow

SCRIPTS = {name: each for name, each in vars(cases).items() if isinstance(each, Script)}
Found = TypeVar("Found")
Key = tuple[FindingKind, str]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_runs_by_itself_shows_nothing(name: str) -> None:
    assert run(SCRIPTS[name], traced=False).violations == ()


class Played:
    """A script that was played, and what its installation knew at some times."""

    def __init__(self, script: Script, **looks: tuple[float, Callable[[Ledger], Any]]) -> None:
        self.stage = stage = Stage(script)
        self.seen: dict[str, Any] = {}

        def look(name: str, what: Callable[[Ledger], Any]) -> None:
            self.seen[name] = what(stage.rehomes["A"].installation.ledger())

        for name, (at_s, what) in looks.items():
            stage.scheduler.spawn(f"A:{name}.look", lambda n=name, w=what: look(n, w), at_s)  # type: ignore[misc]
        try:
            stage.run()
            self.violations = judge(stage.seen()).violations
        finally:
            stage.end()

    @property
    def started(self) -> list[tuple[float, list[int]]]:
        """When each heal began, and of which brokers."""
        runs = self.stage.rehomes["A"].airflow.runs
        return [(run.began_at, run.conf["brokers"]) for run in runs if is_started(run)]

    def plan_of(self, action: Action, number: int = 0) -> Any:
        """The record of a plan in the end."""
        of_it = [each for each in self.stage.started if each.plan.plan_id in self.stage.records]
        records = [self.stage.records[each.plan.plan_id] for each in of_it]
        return [record for record in records if record.action == action][number]


def findings(ledger: Ledger) -> dict[Key, FindingRecord]:
    return {each.key: each for each in ledger.open_findings(CLUSTER)}


def test_a_rack_of_three_is_not_healed_into_two_and_each_of_its_brokers_says_why() -> None:
    played = Played(cases.RACK_AWAY, late=(850.0, findings))
    for broker in cases.OF_RACK_A:
        found = played.seen["late"][FindingKind.DEAD_BROKER, f"broker {broker}"]
        assert found.facts["domains_away"] == ["rack /a"]
    assert played.started == []


def test_a_broker_that_stays_away_when_its_rack_is_back_is_healed() -> None:
    played = Played(cases.RACK_BACK_BUT_FOR_ONE, away=(590.0, findings))
    assert (FindingKind.DEAD_BROKER, "broker 4") in played.seen["away"]
    ((began_at, brokers),) = played.started
    assert (brokers, began_at > 600.0) == ([4], True)
    assert played.plan_of(Action.FIX_OFFLINE_REPLICAS).state is PlanState.DONE


def waits_for(ledger: Ledger) -> Outlook | None:
    """What the plan waits for that was started first, as Airflow says at that moment."""
    first = min(ledger.plans(), key=lambda each: each.created_at)
    now = EPOCH + timedelta(seconds=300)
    return paused_plan.outlook(ledger, first, now, lambda _: False)


def never_fits() -> Played:
    looks = {"handed_over": (100.0, waits_for), "paused": (300.0, waits_for)}
    return Played(cases.NEVER_FITS, **looks)


def dry_run_of(played: Played, number: int) -> dict[tuple[str, str], str]:
    """Severities of what the dry run has found, by check and subject."""
    plan_id = played.stage.started[number].plan.plan_id
    files = played.stage.rehomes["A"].installation.warehouse.files
    (text,) = (each for uri, each in files.items() if uri.endswith(f"{plan_id}/dry_run.json"))
    found = json.loads(text)["findings"]
    return {(each["check"], each["subject"]): each["severity"] for each in found}


def test_a_plan_that_fits_into_no_window_is_named_and_keeps_neither_a_heal_nor_a_dry_run() -> None:
    played = never_fits()
    assert played.seen["handed_over"].stuck
    assert played.seen["paused"].stuck
    assert dry_run_of(played, 0)["window", "large-0"] == Severity.WARNING
    stuck, looked_at = (played.plan_of(Action.REASSIGN, number) for number in (0, 1))
    assert (stuck.state, stuck.ended_at < looked_at.ended_at) == (PlanState.CANCELLED, True)
    active = "active plan", stuck.plan_id
    assert dry_run_of(played, 1)[active] == Severity.WARNING
    ((began_at, brokers),) = played.started
    assert (brokers, 360.0 < began_at < 480.0) == ([4], True)
    assert played.plan_of(Action.FIX_OFFLINE_REPLICAS).state is PlanState.DONE


def test_where_nobody_notices_that_it_gets_nowhere_it_keeps_the_heal_waiting() -> None:
    with patch.object(paused_plan, "is_stuck", lambda *_: False):
        played = never_fits()
    assert not played.seen["paused"].stuck
    assert all(began_at > cases.NEVER_FITS.quiet_s for began_at, _ in played.started)


def test_a_plan_is_promised_only_to_a_window_that_there_is() -> None:
    none = Played(cases.NO_WINDOW, handed_over=(100.0, waits_for))
    assert none.seen["handed_over"] == NeedsPerson(Why.NO_WINDOW, handed_over=True)
    assert promised(none) == []
    paused = Played(cases.WINDOWS_PAUSED)
    assert set(promised(paused)) == {TakenUp(360.0)}, "what is asked when the DAG runs"
    record, runs = paused.plan_of(Action.REASSIGN), paused.stage.rehomes["A"].airflow.runs
    (carried_out,) = (run for run in runs if run.run_id == record.run_id)
    assert (carried_out.graph.dag_id, carried_out.began_at) == (IN_WINDOW, 360.0)
    assert record.state is PlanState.DONE


def promised(played: Played) -> list[TakenUp]:
    said = [claim for each in played.stage.statements for claim in each.claims]
    return [claim for claim in said if isinstance(claim, TakenUp)]


def test_a_clock_that_was_a_day_ahead_delays_a_heal_by_no_day() -> None:
    played = Played(cases.A_DAY_AHEAD)
    ((began_at, brokers),) = played.started
    assert (brokers, began_at < 70.0 + 600.0) == ([2], True)
    assert played.plan_of(Action.FIX_OFFLINE_REPLICAS).state is PlanState.DONE


def test_a_snapshot_of_tomorrow_is_a_finding_and_shows_nothing_else() -> None:
    then = FindingKind.WRONG_CLOCK, ""
    played = Played(cases.TAKEN_TOMORROW, then=(140.0, findings), later=(400.0, findings))
    assert then in played.seen["then"]
    assert then not in played.seen["later"]
    ((_, brokers),) = played.started
    assert brokers == [2]
    with patch.object(judged_snapshots, "CLOCKS_DIFFER", timedelta(days=2)):
        believed = Played(cases.TAKEN_TOMORROW, then=(140.0, findings))
    assert then not in believed.seen["then"]


def test_a_broker_that_comes_and_goes_is_found_as_such_and_not_healed() -> None:
    played = Played(cases.COMES_AND_GOES, then=(1300.0, findings))
    found = played.seen["then"][FindingKind.FLAPPING_BROKER, "broker 2"]
    assert found.facts["times"] > 3
    assert played.started == []
