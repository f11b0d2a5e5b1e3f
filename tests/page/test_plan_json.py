"""What programs get of a plan is its account, in the words of the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome.account.account import account_of
from rehome.account.evidence import FilesRead, PlanEvidence
from rehome.account.known import Known, Source
from rehome.account.pace import PlanPace
from rehome.account.plan_bytes import byte_facts
from rehome.account.words import figure_words
from rehome.account.words.standing_words import status_of
from rehome.domain.clock import utc_now
from rehome.domain.run.causes.hurts import Hurt, HurtKind
from rehome.domain.run.paused.paused_plan import GoesOn
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.execution.access.connection_policy import ANYTHING
from rehome.ledger.base.paging import MoveFilter
from rehome.ledger.store import Ledger
from rehome.page.controls import offer
from rehome.page.plan_json import ForReader, moves_json, offer_json, plan_json
from rehome.page.plan_view import PlanFollower, PlanView
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

NOBODY = ForReader(controls=(), asking=None, poll_s=5.0)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A plan that runs, with one of its two moves done."""
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db", clock=SetClock()) as ledger:
        plan = make_plan("p1")
        ledger.create_plan(plan, {}, (tmp_path / "away").as_uri(), "run-1", "ann", "k", "dag")
        ledger.approve("p1", plan.plan_hash, "ann")
        ledger.acquire_lease("c1", "dag/run-1", 60)
        ledger.claim("p1")
        ledger.settle("p1", plan.moves[0].partition, MoveState.DONE)
        hurt = Hurt(HurtKind.OUTPACED, why="more is written than may be copied")
        ledger.record_hurts("p1", utc_now(), [hurt])
        yield ledger


@pytest.fixture
def view(ledger: Ledger) -> PlanView:
    return PlanFollower(ledger, "p1", 60.0).view(utc_now())


def test_figures_and_words_are_those_of_the_account(view: PlanView) -> None:
    found = plan_json(view, NOBODY)
    assert json.loads(json.dumps(found)) == found
    size = view.account.bytes
    assert {**found["bytes"], **byte_facts(size)} == found["bytes"]
    assert found["bytes"]["text"] == figure_words.in_place_text(size)
    assert found["pace"]["not_known"] == figure_words.rate_of(view.account.pace)[1]
    assert found["moves"]["by_state"] == {"pending": 1, "done": 1}
    assert (found["state"], found["ended"], found["headline"]) == (
        "running",
        False,
        view.status.headline,
    )


def test_what_depends_on_the_reader_is_theirs(view: PlanView) -> None:
    found = plan_json(view, ForReader((Control.CANCEL,), "approve", 5.0))
    assert (found["controls"], found["asking"]) == (["cancel"], "approve")


@pytest.mark.parametrize("state", [PlanState.PAUSED, PlanState.PLANNED])
def test_what_a_plan_waits_for_and_the_step_are_in_its_head(
    view: PlanView, state: PlanState
) -> None:
    assert plan_json(view, NOBODY)["waits"] is None
    opens, planned = utc_now() + timedelta(hours=1), state is PlanState.PLANNED
    record = replace(
        view.record,
        state=state,
        request={"dry_run": True},
        for_window_at=opens if planned else None,
    )
    evidence = PlanEvidence(
        record,
        files=FilesRead(tried={"ok": True}),
        outlook=GoesOn(opens, handed_over=planned),
    )
    waits = plan_json(replace(view, **_of(evidence)), NOBODY)
    assert f"{opens:%Y-%m-%d %H:%M} UTC" in waits["waits"]
    assert waits["headline"].startswith(waits["waits"])
    assert waits["next_step"] == waits["waits_next_step"]


def _of(evidence: PlanEvidence) -> dict[str, Any]:
    account = account_of(evidence, utc_now())
    return {"account": account, "status": status_of(account)}


def test_what_needs_attention_has_its_step_and_the_request_it_is_about(view: PlanView) -> None:
    found = plan_json(view, NOBODY)["attention"]
    assert [each["kind"] for each in found][: len(view.account.hurts)] == [
        hurt.kind for hurt in view.account.hurts
    ]
    (outpaced,) = (each for each in found if each["kind"] == HurtKind.OUTPACED)
    assert outpaced["control"] == Control.CHANGE_THROTTLE
    assert outpaced["next_step"]


def test_moves_are_those_of_the_table(view: PlanView, ledger: Ledger) -> None:
    page = ledger.move_page("p1", MoveFilter(), 0, 10)
    found = moves_json(view, page.lines, page.total)
    assert found["total"] == 2
    assert {each["state"] for each in found["moves"]} == {"done", "pending"}
    assert all(each["bytes_per_s"] is None and each["not_known"] for each in found["moves"])


def test_a_move_that_has_ended_within_the_minute_has_the_rate_that_its_row_has(
    view: PlanView, ledger: Ledger
) -> None:
    done, waits = ledger.move_page("p1", MoveFilter(), 0, 10).lines
    if done.state is not MoveState.DONE:
        done, waits = waits, done
    now, partition = utc_now(), done.move.partition
    pace = PlanPace(now, 7.0, {}, {}, {partition: 7.0}, frozenset())
    known = replace(view, account=replace(view.account, pace=Known(pace, now, Source.POLL)))
    found = moves_json(known, [done, waits], 2)["moves"]
    assert [(each["bytes_per_s"], bool(each["not_known"])) for each in found] == [
        (7.0, False),
        (None, True),
    ]


def test_an_offer_says_what_it_leads_to_or_why_it_is_refused(view: PlanView) -> None:
    found = offer_json(offer(view, Control.CANCEL, ANYTHING))
    assert found["effects"]
    assert found["refusal"] is None
    assert offer_json(offer(view, Control.RUN, ANYTHING))["refusal"]
