"""What the report says in sentences: what was asked, done, how long it took, what went wrong."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from rehome.account.words.figure_words import time_taken
from rehome.domain.configs import ConfigResource
from rehome.domain.run.event_kind import EventKind, OtherKind
from rehome.domain.run.flows import RateChange, RateReason
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import Event, SetBy, ThrottleState
from rehome.reporting.charts.rate_chart import rate_picture
from rehome.reporting.data import ReportData
from rehome.reporting.plan_text import asked_for, done_text, ended_note, planned_note
from tests.reporting.pages import page
from tests.reporting.reported_plans import (
    MB,
    START,
    carried_out,
    dry_run_only,
    failed_end,
    good_end,
    throttle,
    with_evidence,
    with_files,
    with_record,
    with_throttles,
)


def ended_after(seconds: float) -> ReportData:
    return with_record(good_end(), ended_at=START + timedelta(seconds=seconds))


def test_what_was_asked_for_is_reported_with_its_bounds_and_people() -> None:
    data = good_end()
    request = {
        "action": "drain",
        "brokers": [4],
        "topics": ["orders", "pay*"],
        "throttle": 2 * MB,
        "window_end": "2026-03-02T05:00:00+00:00",
        "preset": "drain_gently",
    }
    approved = with_record(replace(data, request=request), approved_by="bob")
    assert asked_for(approved) == (
        "Drain broker 4, only orders, pay*, at 2 MB/s per broker and direction, with nothing in "
        "flight after 2026-03-02 05:00 UTC, by the preset drain gently. asker asked for it, bob "
        "approved it."
    )
    tried_first = replace(data, request={"action": "drain", "brokers": [4], "dry_run": True})
    assert "first as a dry run." in asked_for(tried_first)
    assert "at the rate that brokers can spare" in asked_for(replace(data, request={}))


@pytest.mark.parametrize(
    ("seconds", "reported"),
    [
        (100, "It took 1 min 40 s; predicted was 1 min 28 s to 2 min 5 s: as predicted."),
        (150, ": longer than predicted by 25 s (20 %)."),
        (66, ": shorter than predicted by 22 s (25 %)."),
    ],
)
def test_the_time_is_reported_with_how_far_it_is_outside_of_the_range(
    seconds: int, reported: str
) -> None:
    data = ended_after(seconds)
    assert time_taken(data.account).endswith(reported)
    assert time_taken(data.account) in page(data).text


def test_the_note_is_one_sentence_before_the_plan_starts_and_says_the_end_afterwards() -> None:
    planned = dry_run_only()
    sentence = planned_note(planned.request, planned.plan.summary, planned.account.files.tried)
    assert sentence.startswith("Drain broker 4: ")
    assert sentence.endswith("1 min 28 s to 2 min 5 s at 2 MB/s per broker.")
    note = ended_note(ended_after(100), "Done", "Nothing.")
    assert note.startswith("Done. ")
    assert "3 of 3 partitions moved. A fresh read proves it." in note
    assert "Next: Trigger a new run." in ended_note(failed_end(), "Failed", "Trigger a new run.")


def test_nothing_is_said_to_have_moved_before_the_start() -> None:
    assert done_text(dry_run_only()) == "Nothing was moved."
    assert time_taken(dry_run_only().account) == ""


def test_what_a_fresh_read_has_shown_is_said_of_places_and_of_data() -> None:
    lost = {"orders-0": "messages are lost"}
    proof = {"ok": False, "partitions": 3, "problems": {}, "lost": lost, "data_unknown": {}}
    sentence = done_text(with_files(failed_end(), verification=proof))
    assert sentence.endswith("replicas where the plan says, but messages of 1 partition lost.")
    differs = {**proof, "problems": {"orders-1": "still in flight"}}
    assert done_text(with_files(failed_end(), verification=differs)).endswith(
        "A fresh read differs."
    )


def test_a_proof_is_announced_only_where_it_is_to_come() -> None:
    unproved = with_files(good_end(), verification=None)
    for data, text in (
        (unproved, "Nothing was verified yet."),
        (failed_end(), "Nothing was verified."),
    ):
        assert done_text(data).endswith(text)
        assert text in page(data).text


def test_what_failed_what_others_did_and_what_was_not_cancelled_are_exceptions() -> None:
    stuck = Event(
        START, "rehome", EventKind.NOT_CANCELLED, "orders-2: REQUEST_TIMED_OUT (7)", "plan-1", "c1"
    )
    states = (MoveState.FAILED, MoveState.SUPERSEDED, MoveState.ADMITTED)
    reassigned = replace(stuck, kind=EventKind.REASSIGNED_MEANWHILE, detail="pay-3 to brokers 1, 4")
    data = carried_out(PlanState.FAILED, "asked to", *states)
    reported = page(replace(data, events=(*data.events, stuck, reassigned))).text
    reported = reported[reported.index("what where why at") :]
    assert "failed orders-0 refused by the controller" in reported
    assert "taken over by another client orders-1" in reported
    assert "not cancelled orders-2: REQUEST_TIMED_OUT (7)" in reported
    assert "reassigned by another client meanwhile pay-3 to brokers 1, 4" in reported
    other = replace(stuck, kind=OtherKind("moved to the moon"), detail="all of it")
    of_another_version = page(replace(data, events=(*data.events, other))).text
    assert "moved to the moon all of it" in of_another_version
    owed = with_throttles(good_end(), throttle(ThrottleState.OWED, "broker 3 is dead"))
    assert "follower.replication.throttled.rate broker 3 is dead" in page(owed).text
    assert "None: no move failed" in page(good_end()).text
    assert "None so far" in page(dry_run_only()).text


def test_each_configuration_is_shown_with_when_and_how_its_state_is_known() -> None:
    cleared = replace(throttle(ThrottleState.CLEARED), changed_at=START + timedelta(minutes=3))
    theirs = replace(
        throttle(ThrottleState.CLEARED), resource=ConfigResource.broker(2), set_by=SetBy.OTHERS
    )
    reported = page(with_throttles(good_end(), cleared, theirs)).text
    assert "cleared 2026-03-01 22:03:00 read back from the cluster: as it was found" in reported
    assert "another client's value is set there: left alone" in reported


def test_changes_of_the_rate_are_marked_where_they_are_with_the_number_of_their_line() -> None:
    def at(seconds: int, reason: RateReason) -> RateChange:
        when = START + timedelta(seconds=seconds)
        return RateChange(when, MB, MB, MB, reason, "because", 0.5 * MB)

    rates = (
        at(0, RateReason.SET_UP),
        at(1, RateReason.RAISED),
        at(2, RateReason.STRAIN),
        at(50, RateReason.RECOVERY),
    )
    delivered = tuple((START + timedelta(seconds=s), 0.5 * MB) for s in range(0, 101, 10))
    data = replace(with_evidence(good_end(), rates=rates), delivered=delivered)
    picture = rate_picture(data)
    assert picture is not None
    # The governor's own change has no space next to the first; what others suffer always shows.
    assert [(mark.number, mark.tone, mark.labelled) for mark in picture.marks] == [
        (1, "person", True),
        (3, "strain", False),
        (4, "strain", True),
    ]
    assert picture.marks[2].percent == pytest.approx(50)
    assert "4 22:00:50" in page(data).text
