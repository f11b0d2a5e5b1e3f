"""What a paused plan waits for: by facts alone, and in words."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from include.watching.kinds import FindingKind, WatchPolicy
from include.watching.paused_plan import (
    DagState,
    GoesOn,
    NeedsPerson,
    Outlook,
    PausedFacts,
    RefusedResume,
    ResumedBy,
    Why,
    WindowOpening,
    outlook,
)
from include.watching.paused_text import paused_text
from include.watching.respond import HEAD_START, Heal, PausedHeal
from include.watching.rules import WatchRules

PAUSED_AT = datetime(2030, 1, 2, 5, tzinfo=UTC)
NOW = PAUSED_AT + timedelta(hours=7)
OPENS = NOW + timedelta(hours=13)
WINDOW = WindowOpening(OPENS, OPENS + timedelta(hours=4))
LATER = WindowOpening(OPENS + timedelta(days=1), OPENS + timedelta(days=1, hours=4))
HEALING = WatchRules(policy=WatchPolicy.HEAL)
HEAL = PausedHeal("p1", "rebalance", FindingKind.DISK_FULL_SOON, "broker 3", PAUSED_AT)

BY_HAND = PausedFacts(
    paused_at=PAUSED_AT,
    by_person=False,
    heal=None,
    windows=[WINDOW, LATER],
    window_dag=DagState.RUNS,
    watched=True,
    run_id="",
    heals=[],
    refused=lambda _: False,
)
HEALS = replace(BY_HAND, heal=HEAL, window_dag=DagState.PAUSED)


def of(facts: PausedFacts, now: datetime = NOW, rules: WatchRules = HEALING) -> Outlook:
    return outlook(facts, rules, now)


def test_watching_goes_on_with_a_heal_when_the_next_window_has_been_open_for_some_time() -> None:
    at = OPENS + HEAD_START
    assert of(HEALS) == GoesOn(ResumedBy.WATCHING, at, OPENS)
    words = paused_text(of(HEALS))
    assert words.text == (
        "Paused by the end of the window. It goes on by itself when the next window opens, at "
        "2030-01-03 01:00 UTC: watch_clusters starts a run with the first snapshot after "
        "2030-01-03 01:05 UTC."
    )
    assert words.label == "goes on by itself at 2030-01-03 01:00 UTC"
    assert words.next_step.startswith("Nothing.")


def test_watching_goes_on_later_with_what_a_dry_run_has_refused() -> None:
    again_at = OPENS + timedelta(hours=1)
    facts = replace(HEALS, heal=replace(HEAL, again_at=again_at))
    assert of(facts) == GoesOn(ResumedBy.WATCHING, again_at, OPENS)
    too_late = replace(HEALS, heal=replace(HEAL, again_at=WINDOW.ends))
    assert of(too_late) == GoesOn(ResumedBy.WATCHING, LATER.begins + HEAD_START, LATER.begins)


def test_rebalance_in_window_goes_on_with_any_plan_where_it_runs_and_comes_first() -> None:
    for facts in (BY_HAND, replace(HEALS, window_dag=DagState.RUNS)):
        found = of(facts)
        assert found == GoesOn(ResumedBy.WINDOW_DAG, OPENS, OPENS)
        assert "at 2030-01-03 01:00 UTC: rebalance_in_window takes it up" in paused_text(found).text


def test_what_is_not_known_of_a_dag_is_no_promise_and_comes_after_what_is_sure() -> None:
    facts = replace(BY_HAND, window_dag=DagState.NOT_KNOWN)
    words = paused_text(of(facts))
    assert "if rebalance_in_window is unpaused" in words.text
    assert "by itself" not in words.text
    healing = of(replace(HEALS, window_dag=DagState.NOT_KNOWN))
    assert isinstance(healing, GoesOn)
    assert healing.by is ResumedBy.WATCHING


def test_the_window_that_did_not_suffice_does_not_count() -> None:
    still_open = WindowOpening(PAUSED_AT - timedelta(hours=4), PAUSED_AT + timedelta(hours=9))
    found = of(replace(HEALS, windows=[still_open, WINDOW]))
    assert found == GoesOn(ResumedBy.WATCHING, OPENS + HEAD_START, OPENS)


def test_in_a_window_that_is_open_watching_goes_on_and_rebalance_in_window_has_had_its_turn() -> (
    None
):
    now = OPENS + timedelta(hours=1)
    found = of(replace(HEALS, window_dag=DagState.RUNS), now)
    assert found == GoesOn(ResumedBy.WATCHING, now, OPENS, is_open=True)
    assert "that has been open since 2030-01-03 01:00 UTC" in paused_text(found).text
    assert of(BY_HAND, now) == GoesOn(ResumedBy.WINDOW_DAG, LATER.begins, LATER.begins)


def test_a_cluster_that_has_no_windows_by_now_needs_none() -> None:
    found = of(replace(HEALS, windows=None, window_dag=DagState.NONE))
    assert found == GoesOn(ResumedBy.WATCHING, NOW)
    assert "without a window" in paused_text(found).text


def test_the_circuit_breaker_delays_a_heal_until_it_lets_one_start() -> None:
    at = [OPENS + timedelta(minutes=m) - timedelta(days=1) for m in (0, 90)]
    heals = [Heal(began, failed_at=began) for began in at]
    found = of(replace(HEALS, heals=heals))
    until = OPENS  # one of two failures is a day old
    assert found == GoesOn(ResumedBy.WATCHING, OPENS + HEAD_START, OPENS, stopped_until=until)
    stricter = HEALING.model_copy(update={"failures_to_stop": 1})
    until = OPENS + timedelta(minutes=90)
    assert of(replace(HEALS, heals=heals), rules=stricter) == GoesOn(
        ResumedBy.WATCHING, until, OPENS, stopped_until=until
    )
    words = paused_text(of(replace(HEALS, heals=heals), rules=stricter))
    assert "until 2030-01-03 02:30 UTC none starts" in words.text
    assert "the first snapshot after 2030-01-03 02:30 UTC" in words.text
    forever = HEALING.model_copy(update={"failures_to_stop": 0})
    assert of(HEALS, rules=forever) == NeedsPerson(Why.HEALING_STOPPED)


def test_a_run_that_has_begun_is_named() -> None:
    found = of(replace(HEALS, run_id="watch__1"))
    assert found == GoesOn(ResumedBy.RUN, NOW, run_id="watch__1")
    assert "Run watch__1 was started to go on with it" in paused_text(found).text


@pytest.mark.parametrize(
    ("facts", "rules", "why", "said"),
    [
        (replace(HEALS, by_person=True), HEALING, Why.PAUSED_BY_PERSON, "A person has paused it"),
        (HEALS, WatchRules(), Why.NOT_HEALED, "no longer say heal"),
        (replace(HEALS, watched=False), HEALING, Why.WATCHING_PAUSED, "watch_clusters, or"),
        (replace(HEALS, dead_fraction=0.5), HEALING, Why.TOO_MANY_DEAD, "brokers are not alive"),
        (replace(HEALS, domains_away=["rack /r1"]), HEALING, Why.DOMAIN_AWAY, "of rack /r1"),
        (replace(HEALS, windows=[]), HEALING, Why.NO_WINDOW, "no coming window is long enough"),
        (
            replace(HEALS, windows=[WindowOpening(OPENS, OPENS + HEAD_START)]),
            HEALING,
            Why.NO_WINDOW,
            "no coming window is long enough",
        ),
        (
            replace(HEALS, refused=lambda at: at == OPENS + HEAD_START),
            HEALING,
            Why.NOT_ALLOWED,
            "the connection's policy does not allow rebalance",
        ),
        (
            replace(BY_HAND, window_dag=DagState.PAUSED),
            HEALING,
            Why.WINDOW_DAG_PAUSED,
            "rebalance_in_window is paused in Airflow",
        ),
        (replace(BY_HAND, window_dag=DagState.NONE), HEALING, Why.NO_WINDOW_DAG, "no rebalance_in"),
        (replace(BY_HAND, windows=[]), HEALING, Why.NO_WINDOW, "no coming window is long enough"),
    ],
)
def test_what_needs_a_person_says_why_and_what_to_do(
    facts: PausedFacts, rules: WatchRules, why: Why, said: str
) -> None:
    found = of(facts, rules=rules)
    assert isinstance(found, NeedsPerson)
    assert found.why is why
    words = paused_text(found)
    assert said in words.text
    assert "by itself" not in words.text + words.label
    assert "control_reassignment" in words.next_step


@pytest.mark.parametrize("why", Why)
def test_every_reason_has_words(why: Why) -> None:
    words = paused_text(NeedsPerson(why, "clusters.yaml cannot be used."))
    assert words.text.endswith(".")
    assert ".." not in words.text
    assert "{" not in words.text


BREAKS = RefusedResume(
    "plan: Broker 3 would end with 2 replicas", "Plan again.", 1, breaks_limits=True
)
DEAD = RefusedResume("broker 3: is not alive", "Start it")


@pytest.mark.parametrize(
    ("refused", "facts", "next_step"),
    [
        (BREAKS, replace(HEALS, by_person=True), "Plan again."),
        (DEAD, replace(HEALS, by_person=True), "Start it. Resume it, or cancel it, with control_"),
        (BREAKS, HEALS, "Nothing: the next run gives it up if it still breaks a limit. Or plan ag"),
        (
            DEAD,
            HEALS,
            "Start it. Then it goes on by itself, or resume it with control_reassignment.",
        ),
    ],
)
def test_why_the_last_run_did_not_go_on_with_it_is_said_with_what_to_do(
    refused: RefusedResume, facts: PausedFacts, next_step: str
) -> None:
    words, without = (paused_text(of(facts), each) for each in (refused, None))
    assert words.next_step.startswith(next_step)
    assert words.text.startswith(without.text)
    assert "was refused by its dry run: " + refused.error in words.text
    assert ("and 1 other error" in words.text) is (refused is BREAKS)
    running = of(replace(HEALS, run_id="watch__1"))
    assert paused_text(running, refused) == paused_text(running), "it tries again"
