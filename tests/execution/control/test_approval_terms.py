"""What an approval is of, and when it does not hold any more."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.request.request import OnWindowEnd
from rehome.domain.run.approval.questions import AnswerKind
from rehome.domain.run.approval_terms import Approval, Person, Terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.execution.control.approval import Lapse, lapses
from rehome.execution.control.refused import ApprovalLapsedError, refuse_lapsed
from rehome.ledger.store import Ledger
from tests.execution.control.approved_terms import (
    CHANGES,
    GIVEN,
    NOW,
    PLAN,
    TERMS,
)
from tests.ledger.people import approve_as


@pytest.mark.parametrize(("change", "lapse"), [(each[0], each[1]) for each in CHANGES])
def test_an_approval_is_of_a_plan_a_rate_a_window_and_its_company(
    change: dict[str, Any], lapse: Lapse
) -> None:
    refuse_lapsed("p1", GIVEN, TERMS, NOW)
    other = replace(TERMS, **change)
    assert lapses(GIVEN, other, NOW) == (lapse,)
    with pytest.raises(ApprovalLapsedError) as refused:
        refuse_lapsed("p1", GIVEN, other, NOW)
    assert refused.value.lapses == (lapse,)


def test_an_approval_expires_before_a_plan_starts_and_not_while_it_runs() -> None:
    last = GIVEN.expires_at - timedelta(seconds=1)
    assert not lapses(GIVEN, TERMS, last)
    assert lapses(GIVEN, TERMS, GIVEN.expires_at) == (Lapse.EXPIRED,)
    assert not lapses(GIVEN, TERMS, None)


def test_settings_of_the_cluster_count_before_a_plan_starts_and_not_while_it_runs() -> None:
    other = replace(TERMS, settings={"caps.default.replicas": 3})
    assert lapses(GIVEN, other, NOW) == (Lapse.SETTINGS,)
    assert not lapses(GIVEN, other, None)


def test_what_was_shown_counts_until_a_plan_begins_and_the_rest_of_a_plan_has_another_dry_run() -> (
    None
):
    other = replace(TERMS, evidence={"dry_run.json": "d" * 64})
    assert lapses(GIVEN, other, NOW) == (Lapse.EVIDENCE,)
    assert not lapses(GIVEN, other, NOW, begun=True)
    assert not lapses(GIVEN, other, None)


def test_an_approval_from_before_the_upgrade_counts_as_long_as_the_plan_runs_and_not_for_more() -> (
    None
):
    before = {
        name: value
        for name, value in GIVEN.to_json().items()
        if name not in ("question_id", "by_id", "effects", "evidence")
    }
    approval = Approval.from_json(before)
    assert lapses(approval, TERMS, NOW) == (Lapse.BEFORE_UPGRADE,)
    assert not lapses(approval, TERMS, None), "it runs"
    with pytest.raises(ApprovalLapsedError) as refused:
        refuse_lapsed("p1", approval, TERMS, NOW)
    assert refused.value.lapses == (Lapse.BEFORE_UPGRADE,)


def test_where_a_person_is_wanted_the_parameters_of_a_run_do_not_approve() -> None:
    given = replace(GIVEN, by="", by_person=False, by_id=None, question_id=None)
    assert not lapses(given, TERMS, NOW)
    assert lapses(given, TERMS, NOW, needs_person=True) == (Lapse.NO_PERSON,)
    with pytest.raises(ApprovalLapsedError) as refused:
        refuse_lapsed("p1", given, TERMS, NOW, needs_person=True)
    assert refused.value.lapses == (Lapse.NO_PERSON,)
    former = given.to_json() | {"by": "ann"}  # who had triggered the run
    assert Approval.from_json(former) == given


def test_settings_that_an_earlier_version_did_not_record_are_not_compared() -> None:
    unknown = replace(TERMS, settings=None)
    assert not lapses(GIVEN, unknown, NOW)
    assert not lapses(replace(GIVEN, terms=unknown), TERMS, NOW)
    earlier = GIVEN.to_json()
    del earlier["settings"]
    assert Approval.from_json(earlier).terms == unknown


def test_what_runs_may_spare_those_that_suffer_more_than_approved_but_not_less() -> None:
    """A policy that allows less by now lowers the bound with it."""
    gentler, harder = (replace(TERMS, least_rate_bytes_per_s=rate) for rate in (1, 2_000_001))
    assert not lapses(GIVEN, gentler, None)
    assert lapses(GIVEN, harder, None) == (Lapse.LEAST_RATE,)
    former = GIVEN.to_json()
    del former["least_rate_bytes_per_s"]
    before = Approval.from_json(former)
    assert not lapses(before, TERMS, None), "an earlier Rehome has begun it"
    assert lapses(before, TERMS, NOW) == (Lapse.LEAST_RATE,)


@pytest.mark.parametrize(
    ("own", "holds"),
    [
        (BrokerRates({3: 2_000_000}), True),
        (BrokerRates({3: 1_000_000, 4: 5_000_000}), True),
        (BrokerRates({3: 2_000_001}), False),
        (BrokerRates({3: 2_000_000}, {4: 5_000_001}), False),
        (BrokerRates(), False),  # broker 3 would send what the others do
    ],
)
def test_lower_rates_of_brokers_that_one_asks_for_need_no_other_approval(
    own: BrokerRates, holds: bool
) -> None:
    terms = replace(TERMS, rates_by_broker=own)
    found = lapses(GIVEN, terms, None, requested_rates_by_broker=own)
    assert found == (() if holds else (Lapse.RATES_BY_BROKER,))
    nobody = replace(GIVEN, by="", by_person=False)
    assert not lapses(nobody, terms, None, requested_rates_by_broker=own)


def test_an_approval_that_was_recorded_by_the_former_word_is_of_the_same_window() -> None:
    former = GIVEN.to_json() | {"on_window_end": "drain"}
    approval = Approval.from_json(former)
    assert not lapses(approval, TERMS, NOW)
    other = replace(TERMS, on_window_end=OnWindowEnd.CANCEL)
    assert lapses(approval, other, NOW) == (Lapse.WINDOW,)


def test_what_was_asked_for_since_may_be_slower_but_not_faster() -> None:
    assert not lapses(GIVEN, TERMS, NOW, requested_rate_bytes_per_s=1)
    found = lapses(GIVEN, TERMS, NOW, requested_rate_bytes_per_s=5_000_001)
    assert found == (Lapse.RATE,)


def test_what_no_one_was_asked_to_approve_may_be_asked_to_run_faster() -> None:
    """As `change_throttle` does in mid-run: tasks that are cleared after it go on."""
    given = replace(GIVEN, by_person=False)
    assert not lapses(given, TERMS, NOW, requested_rate_bytes_per_s=5_000_001)
    faster = replace(TERMS, rate_bytes_per_s=5_000_001)
    assert lapses(given, faster, NOW) == (Lapse.RATE,), "the run's own rate is another thing"


def test_a_plan_without_a_recorded_approval_is_refused() -> None:
    assert lapses(None, TERMS, NOW) == (Lapse.NEVER_GIVEN,)
    with pytest.raises(ApprovalLapsedError) as refused:
        refuse_lapsed("p1", None, TERMS, NOW)
    assert refused.value.lapses == (Lapse.NEVER_GIVEN,)


@pytest.mark.parametrize("terms", [TERMS, replace(TERMS, window_end=None, additional=True)])
def test_the_ledger_keeps_what_was_approved_and_until_when(terms: Terms, ledger: Ledger) -> None:
    ledger.create_plan(PLAN, {}, "file:///nowhere", "run-1", "test")
    assert ledger.plan("p1").approval is None
    with pytest.raises(PlanConflictError):
        ledger.approve("p1", PLAN.plan_hash, "ann", replace(terms, plan_hash="0" * 64))
    approve_as(ledger, "ann", "p1", terms, lasting_s=60, user_id="7")
    record = ledger.plan("p1")
    assert (record.state, record.approved_by) == (PlanState.APPROVED, "ann (id 7)")
    at = record.approved_at
    assert at is not None
    expires_at = at + timedelta(seconds=60)
    given = Approval(terms, "ann", True, at, expires_at, by_id="7", question_id=1)
    assert record.approval == given
    (asked,) = ledger.questions("p1")
    assert asked.answered is not None
    assert (asked.answered.answer, asked.answered.by) == (AnswerKind.APPROVED, Person("7", "ann"))
    event = ledger.events("p1")[-1]
    assert (event.kind, event.actor, event.detail) == (
        EventKind.APPROVED,
        "ann",
        "; ".join(terms.lines()),
    )


def test_a_later_approval_replaces_the_one_before_and_the_same_again_changes_nothing(
    ledger: Ledger,
) -> None:
    ledger.create_plan(PLAN, {}, "file:///nowhere", "run-1", "test")
    slower = replace(TERMS, rate_bytes_per_s=7)
    for terms in (TERMS, TERMS, slower):
        ledger.approve("p1", PLAN.plan_hash, "ann", terms, lasting_s=60)
    approval = ledger.plan("p1").approval
    assert approval is not None
    assert approval.terms == slower
    approved = [event for event in ledger.events("p1") if event.kind == EventKind.APPROVED]
    assert len(approved) == 2
