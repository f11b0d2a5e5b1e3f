"""The report: true in every state, safe whatever names the cluster holds, whole in itself."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from rehome.account.standing import Tone
from rehome.account.words.figure_words import time_taken
from rehome.account.words.standing_words import status_of
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.resources import Resource
from rehome.domain.run.event_kind import OtherKind
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.records import ThrottleState
from rehome.reporting.data import ReportData
from rehome.reporting.plan_text import done_text, planned_note
from rehome.reporting.report import MOVES_SHOWN, render
from tests.reporting.pages import Page, page
from tests.reporting.reported_plans import (
    NO_ROOM,
    carried_out,
    dry_run_json,
    dry_run_only,
    failed_end,
    gates_json,
    good_end,
    moves,
    plan_of,
    throttle,
    with_evidence,
    with_files,
    with_record,
    with_throttles,
)

SECTIONS = ("brokers", "prediction", "moves", "dry-run", "gates", "throttles", "verification")


STATES = {
    "dry run": dry_run_only(),
    "refused": dry_run_only(NO_ROOM),
    "good end": good_end(),
    "failed end": failed_end(),
    "running": carried_out(PlanState.RUNNING, "", *[MoveState.ADMITTED] * 3),
    "paused": carried_out(PlanState.PAUSED, "window ended", *[MoveState.PENDING] * 3),
    "cancelled": carried_out(PlanState.CANCELLED, "asked to", *[MoveState.CANCELLED] * 3),
    "rolled back": carried_out(PlanState.ROLLED_BACK, "by plan-2", *[MoveState.DONE] * 3),
    "nothing to do": with_evidence(
        replace(good_end(), plan=replace(plan_of(*moves()), moves=()), moves={}), sums={}
    ),
}


@pytest.mark.parametrize("data", STATES.values(), ids=STATES.keys())
def test_every_state_has_every_section_and_says_what_is_left_and_what_to_do(
    data: ReportData,
) -> None:
    reported = page(data)
    assert {*SECTIONS, "events", "files"} <= set(reported.ids)
    status = status_of(data.account)
    assert status.headline in reported.text
    assert status.state_left in reported.text
    assert status.next_step in reported.text


@pytest.mark.parametrize("data", STATES.values(), ids=STATES.keys())
def test_the_file_needs_nothing_but_itself(data: ReportData) -> None:
    html = render(data)
    reported = Page(html)
    assert not re.search(r"https?://|//[a-z]|url\(|@import", html)
    assert not {"script", "link", "img", "iframe", "object", "base"} & set(reported.tags)
    assert all(re.fullmatch(r"#[\w-]+|[\w.]+", link) for link in reported.links)
    assert all(link[1:] in reported.ids for link in reported.links if link.startswith("#"))


def test_names_from_the_cluster_cannot_become_markup() -> None:
    # Kafka's topic names cannot hold these, error messages, racks and user names can.
    evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7 * 7 }}"
    data = failed_end()
    plan = plan_of(
        *[
            replace(item, causes=(MoveCause(CauseCode.OUTSIDE_SET, 4, name=evil),))
            for item in moves(topic=evil)
        ]
    )
    states = [MoveState.FAILED] * 3
    named = with_record(
        with_files(
            carried_out(PlanState.FAILED, evil, *states),
            tried=dry_run_json(replace(NO_ROOM, subject=evil, message=evil, remedy=evil)),
            verification={"ok": False, "partitions": 3, "problems": {evil: evil}},
        ),
        actor=evil,
        approved_by=evil,
    )
    reported = replace(
        named,
        plan=plan,
        moves={
            item.partition: replace(known, detail=evil)
            for item, known in zip(plan.moves, data.moves.values(), strict=True)
        },
        request={"action": evil, "topics": [evil], "brokers": [evil]},
        throttles=(throttle(ThrottleState.OWED, evil),),
        events=tuple(
            replace(e, kind=OtherKind(evil), detail=evil, actor=evil) for e in data.events
        ),
    )
    reported_page = page(reported)
    assert "script" not in reported_page.tags
    assert "img" not in reported_page.tags
    assert reported_page.text.count(evil) > 12
    assert "{{ 7 * 7 }}" in reported_page.text


def test_only_known_parameters_are_shown() -> None:
    data = dry_run_only()
    request = dict(data.request) | {"sasl.password": "hunter2", "topics": ["orders", "pay*"]}
    reported = page(replace(data, request=request)).text
    assert "hunter2" not in reported
    assert "orders, pay*" in reported
    assert "2 MB/s per broker" in reported


def test_a_dry_run_that_found_nothing_says_how_to_carry_the_plan_out() -> None:
    status = status_of(dry_run_only().account)
    assert dry_run_only().account.standing.tone is Tone.GOOD
    assert status.state_left == "Nothing was changed on the cluster."
    assert (
        status.next_step
        == "Run it as it is: on its page, or by control_reassignment with action run."
    )


def test_a_refused_plan_shows_each_finding_with_its_remedy() -> None:
    data = dry_run_only(NO_ROOM)
    reported = page(data).text
    assert data.account.standing.tone is Tone.BAD
    assert "The dry run refuses this plan: 1 error." in reported
    assert "too little room" in reported
    assert "Free disk." in reported


def test_what_is_not_possible_as_asked_is_listed_in_words() -> None:
    data = dry_run_only()
    missed = Infeasible(
        Subject(SubjectKind.RACK, "/a"), Obstacle.RACKS_FORCE_MORE, 4, 6, resource=Resource.REPLICAS
    )
    summary = replace(data.plan.summary, infeasible=(missed,))
    text = page(replace(data, plan=replace(data.plan, summary=summary))).text
    assert "Best that the cluster allows rack /a: number of replicas: even spread over" in text
    assert "Not reached" not in text
    assert "force more in this rack (wanted 4, nearest 6)" in text


def test_a_plan_is_called_good_only_when_it_was_verified() -> None:
    good = good_end()
    assert good.account.standing.tone is Tone.GOOD
    for verification in (None, {"ok": False, "partitions": 3, "problems": {"orders-0": "late"}}):
        account = with_files(good, verification=verification).account
        assert account.standing.tone is Tone.BAD
        assert status_of(account).label == "Not verified"


def test_a_replica_out_of_the_isr_is_a_finding_of_a_plan_that_ended_well() -> None:
    finding = "the replica on broker 1 is not in the ISR: the broker is not alive"
    proof = {"ok": True, "partitions": 3, "problems": {}, "findings": {"orders-0": finding}}
    data = with_files(good_end(), verification=proof)
    status = status_of(data.account)
    assert data.account.standing.tone is Tone.GOOD
    assert "1 partition has replicas out of the ISR." in status.state_left
    assert "check their brokers" in status.next_step
    reported = page(data).text
    assert f"orders-0 {finding}" in reported
    assert "all of them in the ISR" not in reported
    assert "all of them in the ISR" in page(good_end()).text


def test_a_drain_is_called_good_only_when_its_brokers_are_empty() -> None:
    empty = {
        "as_planned": True,
        "unpaid": [],
        "brokers": [4],
        "left": [],
        "unread": {"4": "it is not alive"},
        "follow_up": "plan-1-follow_up",
        "not_followed_up": None,
    }
    data = with_files(good_end(), drained=empty)
    assert data.account.standing.tone is Tone.GOOD
    reported = page(data).text
    assert "was moved away by plan plan-1-follow_up" in reported
    assert "The log dirs of broker 4 could not be read: it is not alive." in reported
    late = {"broker": 4, "topic": "late", "partition": 0, "where": "assigned", "log_dir": "/d"}
    unpaid = page(with_files(good_end(), drained=empty | {"unpaid": [late]}))
    assert "stays on the brokers to be drained, because the budget is spent" in unpaid.text
    left = empty | {"as_planned": False, "left": [late], "not_followed_up": "the window has ended"}
    data = with_files(good_end(), drained=left)
    status = status_of(data.account)
    assert (data.account.standing.tone, status.label) == (Tone.BAD, "Not empty")
    assert "Do not take the brokers away" in status.next_step
    silent = {"4": "REQUEST_TIMED_OUT (7)"}
    unread = with_files(data, drained=left | {"left": [], "unread": silent}).account
    status = status_of(unread)
    assert (unread.standing.tone, status.label) == (Tone.BAD, "Not proved")
    assert "what lies on the brokers to be drained could not be read" in status.headline
    in_dirs = with_files(good_end(), drained=left | {"log_dirs": ["4:/d"]})
    status = status_of(in_dirs.account)
    assert "1 replica was found in the log dirs to be emptied" in status.headline
    assert "Do not take the log dirs away" in status.next_step
    reported = page(data).text
    assert "late-0 on broker 4, assigned" in reported
    assert "Not moved away: the window has ended." in reported


def test_leaders_that_could_not_be_restored_are_named() -> None:
    assert "Preferred leaders" not in page(good_end()).text
    leaders = {
        "already": 7,
        "elected": ["orders-0"],
        "waiting": ["orders-1"],
        "refused": {"orders-2": "PREFERRED_LEADER_NOT_AVAILABLE (80)"},
    }
    reported = page(with_files(good_end(), leaders=leaders)).text
    assert "7 led already, 1 were elected, 1 are not in the ISR" in reported
    assert "orders-1 its preferred replica is not in the ISR" in reported
    assert "PREFERRED_LEADER_NOT_AVAILABLE (80)" in reported
    assert "leaders.json" in reported
    assert "could not be read" not in reported
    reported = page(with_files(good_end(), leaders=leaders | {"unread": ["orders-3"]})).text
    assert "1 were refused, 1 could not be read" in reported
    assert "orders-3 could not be read: who leads it is not known" in reported


def test_a_plan_without_moves_is_done_at_once() -> None:
    status = status_of(STATES["nothing to do"].account)
    assert STATES["nothing to do"].account.standing.tone is Tone.GOOD
    assert status.headline == "The cluster was already as asked: nothing had to move."


def test_a_plan_without_moves_does_not_claim_to_reach_what_it_does_not() -> None:
    data = STATES["nothing to do"]
    cap = Infeasible(Subject.of_broker(3), Obstacle.CAP, wanted=2.0, nearest=1.0)
    reached = replace(data.plan.summary, partitions=0)
    summary = replace(reached, infeasible=(cap,))
    limited = with_files(replace(data, plan=replace(data.plan, summary=summary)), summary=summary)
    assert "not reached" in status_of(limited.account).headline
    assert done_text(limited) == "Nothing was moved. The report says what is in the way."
    note = planned_note(limited.request, summary, limited.account.files.tried)
    assert note.endswith(": nothing can be moved, and what was asked for is not reached.")
    assert planned_note(data.request, reached, None).endswith("nothing has to change.")
    assert time_taken(limited.account) == time_taken(data.account) == ""


def test_an_owed_throttle_spoils_a_good_end_and_names_the_sweep() -> None:
    data = with_throttles(good_end(), throttle(ThrottleState.OWED, "broker 3 is dead"))
    status = status_of(data.account)
    assert data.account.standing.tone is Tone.BAD
    assert "1 throttle setting is pending cleanup" in status.headline
    assert "sweep_throttles" in status.next_step
    assert "broker 3 is dead" in page(data).text


def test_a_failed_end_says_what_moved_and_what_did_not() -> None:
    status = status_of(failed_end().account)
    assert "nothing moved for 600 s" in status.headline
    assert "1 of 3 moves are done" in status.state_left
    assert "1 partition is as before" in status.state_left
    assert "1 move failed" in status.state_left
    assert "action rollback and plan_id plan-1" in status.next_step


def test_problems_are_listed_first() -> None:
    reported = page(failed_end()).text
    reported = reported[reported.index("partition replicas size state why") :]
    first, second, third = (reported.index(f"orders-{number} ") for number in (1, 2, 0))
    assert first < second < third
    assert "refused by the controller" in reported


def test_the_eta_that_was_predicted_is_judged_when_the_plan_is_done() -> None:
    data = good_end()
    reported = tuple(replace(sample, eta_s=81.0) for sample in data.samples[:2]) + data.samples[2:]
    done = page(replace(data, samples=reported)).text
    assert "10–20 % 20–30 %" in done
    assert "−5 % +7 %" in done  # of the 85 s from the first sample to between the last two
    assert "as it was foretold" not in page(failed_end()).text


def test_bytes_that_did_not_move_are_not_counted_as_moved() -> None:
    assert "50 MB actual" in page(failed_end()).text


def test_of_a_plan_that_no_planner_has_made_the_racks_are_not_known() -> None:
    data = good_end()
    unknown = "spread over the racks, and how many bytes are copied between racks, is not known"
    assert unknown not in page(data).text
    summary = replace(data.plan.summary, rack_violations_before=None, rack_violations_after=None)
    text = page(replace(data, plan=replace(data.plan, summary=summary))).text
    assert unknown in text
    assert "as evenly as these allow" not in text


def test_a_failed_gate_shows_rows_and_remedy() -> None:
    reported = page(with_files(dry_run_only(), gates=gates_json(failed=True))).text
    assert "broker=3" in reported
    assert "3 rows in all" in reported
    assert "Find out why." in reported


@pytest.mark.slow
def test_a_large_plan_stays_readable_and_names_the_file_with_the_rest() -> None:
    plan = plan_of(*moves(count=20_000))
    html = render(replace(dry_run_only(), plan=plan, moves={}))
    assert len(html) < 400_000
    assert f"{20_000 - MOVES_SHOWN:,} moves more" in Page(html).text
