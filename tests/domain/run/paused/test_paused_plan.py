"""What a paused plan waits for: by facts alone, and in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rehome.domain.run.paused.paused_plan import (
    DagState,
    GoesOn,
    NeedsPerson,
    Outlook,
    RefusedResume,
    Why,
    outlook,
)
from rehome.domain.run.paused.paused_text import handed_over_text, paused_text

NOW = datetime(2030, 1, 2, 12, tzinfo=UTC)
OPENS = datetime(2030, 1, 3, 1, tzinfo=UTC)


def of(dag: DagState = DagState.RUNS, now: datetime = NOW, *, by_person: bool = False) -> Outlook:
    return outlook(OPENS, dag, now, by_person=by_person)


def test_the_next_window_takes_it_up_where_its_dag_runs() -> None:
    assert of() == GoesOn(OPENS)
    words = paused_text(of())
    assert words.text == (
        "The end of the window has paused this plan. It goes on by itself when the next window "
        "opens, at 2030-01-03 01:00 UTC: rebalance_in_window takes it up."
    )
    assert words.next_step.startswith("Nothing.")


@pytest.mark.parametrize("dag", [DagState.RUNS, DagState.NOT_KNOWN])
def test_what_gets_nowhere_in_windows_is_said_to_with_ways_out(dag: DagState) -> None:
    """Alerts cannot ask Airflow whether a DAG is paused."""
    words = paused_text(outlook(OPENS, dag, NOW, stuck=True))
    assert "No move of it could end in that window" in words.text
    assert words.next_step.startswith("Raise the plan's throttle")
    assert "by itself" not in words.text


def test_what_fits_into_no_window_is_no_promise_when_it_is_handed_over() -> None:
    found = outlook(OPENS, DagState.RUNS, NOW, stuck=True, handed_over=True)
    words = paused_text(found)
    assert "carries the plan out" not in words.text
    assert "starts no move of it" in words.text
    assert "higher throttle" in words.text


def test_what_becomes_of_a_plan_that_is_handed_over_is_as_it_is_now() -> None:
    said = [handed_over_text(each) for each in (of(), of(DagState.NOT_KNOWN))]
    opens = "The window that opens at 2030-01-03 01:00 UTC carries the plan out"
    assert said == [f"{opens}.", f"{opens}, if rebalance_in_window is unpaused."]
    assert handed_over_text(of(DagState.PAUSED)) == (
        "No window takes the plan up, because rebalance_in_window is paused in Airflow. Unpause "
        "rebalance_in_window."
    )
    none = handed_over_text(outlook(None, DagState.RUNS, NOW))
    assert none == (
        "No window takes the plan up, because its cluster has no windows, or none of them opens "
        "again."
    )


def test_what_is_not_known_of_a_dag_is_no_promise() -> None:
    found = of(DagState.NOT_KNOWN)
    assert found == GoesOn(OPENS, sure=False)
    words = paused_text(found)
    assert "if rebalance_in_window is unpaused" in words.text
    assert "by itself" not in words.text


def test_a_window_that_is_open_by_now_is_said_to_be() -> None:
    now = OPENS + timedelta(minutes=1)
    assert of(now=now) == GoesOn(OPENS, is_open=True)
    assert "that has been open since 2030-01-03 01:00 UTC" in paused_text(of(now=now)).text


@pytest.mark.parametrize(
    ("dag", "why", "said"),
    [
        (DagState.PAUSED, Why.WINDOW_DAG_PAUSED, "rebalance_in_window is paused in Airflow"),
        (DagState.NONE, Why.NO_WINDOW_DAG, "no rebalance_in"),
    ],
)
def test_what_needs_a_person_says_why_and_what_to_do(dag: DagState, why: Why, said: str) -> None:
    found = of(dag)
    assert found == NeedsPerson(why)
    words = paused_text(found)
    assert said in words.text
    assert "by itself" not in words.text
    assert "control_reassignment" in words.next_step


def test_a_persons_pause_is_a_persons_and_without_a_window_nothing_goes_on() -> None:
    assert of(by_person=True) == NeedsPerson(Why.PAUSED_BY_PERSON)
    none = outlook(None, DagState.RUNS, NOW, by_person=False)
    assert none == NeedsPerson(Why.NO_WINDOW)


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
    ("refused", "by_person", "next_step"),
    [
        (BREAKS, True, "Plan again."),
        (DEAD, True, "Start it. Resume the plan, or cancel it, with control_"),
        (
            BREAKS,
            False,
            "Nothing: the next window's run cancels the plan if the plan still breaks a limit.",
        ),
        (
            DEAD,
            False,
            "Start it. Once that is fixed, the next window resumes the plan by itself. To go "
            "on before, resume it with control_reassignment.",
        ),
    ],
)
def test_why_the_last_run_did_not_go_on_with_it_is_said_with_what_to_do(
    refused: RefusedResume, by_person: bool, next_step: str
) -> None:
    words, without = (paused_text(of(by_person=by_person), each) for each in (refused, None))
    assert words.next_step.startswith(next_step)
    assert words.text.startswith(without.text)
    assert "was refused by its dry run: " + refused.error in words.text
    assert ("and 1 other error" in words.text) is (refused is BREAKS)
