"""Who decided what is in the audit, in the transaction that does it, whatever a request named."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from rehome.domain.clock import utc_now
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.ledger.base.audit_entry import AuditEntry, Decided, Door
from rehome.ledger.base.audit_tables import AUDIT
from rehome.ledger.base.records import EndReason
from rehome.ledger.store import Ledger
from rehome.ledger.stores.audit.entries import LONGEST_DETAIL, LONGEST_TEXT
from tests.ledger.audit_rows import audit_of
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan


def test_an_entry_is_read_as_it_was_written(ledger: Ledger, clock: SetClock) -> None:
    entry = AuditEntry(
        Decided.XCOM_WRITTEN,
        Door.AIRFLOW_API,
        user_id="7",
        user_name="Ann Ö",
        address="10.0.0.7",
        plan_id="p",
        dag_id="reassign_partitions",
        run_id="manual__1",
        task_id="approve",
        cluster_id="c",
        detail={"key": "terms", "status": 200, "brokers": [1, 2]},
    )
    before = clock()
    ledger.add_audit(entry)
    ledger.add_audit(AuditEntry(Decided.TRIGGERED, Door.SCHEDULE))
    first, second = audit_of(ledger)
    for name in AuditEntry.__dataclass_fields__:
        assert getattr(first, name) == getattr(entry, name)
    assert before <= first.at <= clock()
    assert (second.user_id, second.address, second.plan_id, second.detail) == (None, None, None, {})
    assert first.number < second.number


def test_decisions_about_a_plan_are_in_the_audit_with_who_has_made_them(ledger: Ledger) -> None:
    plan = make_plan("p1")
    terms = Terms(plan.plan_hash, 7)
    ledger.create_plan(plan, {}, "file:///nowhere", "run-1", "ann", dag_id="reassign")
    ledger.approve("p1", plan.plan_hash, "bob", terms, by_person=True, lasting_s=60)
    ledger.add_event(EventKind.APPROVAL_SENT_BACK, "slower", actor="bob", plan_id="p1")
    ledger.request_rate("p1", 5, "cid")
    ledger.hand_over("p1", "cid")
    ledger.claim("p1")
    ledger.request_pause("p1", "cid")
    ledger.withdraw_pause("p1", "dan")
    ledger.take_up("p1", "windows", "run-2", {}, "eve", lease_s=60)
    ledger.request_cancel("p1", "fay")
    found = [row for row in audit_of(ledger) if row.plan_id == "p1"]
    assert [(row.decision, row.user_name, row.run_id) for row in found] == [
        (Decided.PLANNED, "ann", "run-1"),
        (Decided.APPROVED, "bob", "run-1"),
        (Decided.SENT_BACK, "bob", None),
        (Decided.THROTTLE, "cid", "run-1"),
        (Decided.HAND_OVER, "cid", "run-1"),
        (Decided.PAUSE, "cid", "run-1"),
        (Decided.PAUSE_WITHDRAWN, "dan", "run-1"),
        (Decided.CONTINUED, "eve", "run-2"),
        (Decided.CANCEL, "fay", "run-2"),
    ]
    assert {row.door for row in found} == {Door.TASK}
    assert {row.address for row in found} == {None}
    assert found[1].detail["plan_hash"] == plan.plan_hash
    assert found[3].detail == {"rate_bytes_per_s": 5}


def test_who_has_rejected_a_plan_is_in_the_audit_and_who_cancels_it_otherwise_is_not(
    ledger: Ledger,
) -> None:
    for plan_id, reason in (("rejected", EndReason.REJECTED), ("cancelled", None)):
        ledger.create_plan(make_plan(plan_id), {}, "file:///nowhere", "run", "ann")
        ledger.transition(plan_id, PlanState.CANCELLED, "", "bob", reason)
    assert [(row.decision, row.user_name, row.plan_id) for row in audit_of(ledger)] == [
        (Decided.PLANNED, "ann", "rejected"),
        (Decided.REJECTED, "bob", "rejected"),
        (Decided.PLANNED, "ann", "cancelled"),
    ]


def test_what_rehome_does_by_itself_is_no_decision(ledger: Ledger) -> None:
    plan = make_plan("p1")
    terms = Terms(plan.plan_hash, 7)
    ledger.create_plan(plan, {}, "file:///nowhere", "run", "rehome")
    ledger.approve("p1", plan.plan_hash, "rehome", terms, by_person=False, lasting_s=60)
    assert audit_of(ledger) == []


def test_what_a_request_has_named_never_keeps_it_out_of_the_audit(ledger: Ledger) -> None:
    deep: object = "end"
    for _ in range(50):
        deep = [deep]
    ledger.add_audit(
        AuditEntry(
            Decided.REFUSED,
            Door.PAGE,
            user_name="n" * 10_000,
            address="a" * 10_000,
            plan_id="p\0\ud800",
            detail={
                "long": "x" * 10_000,
                "nul\0": "\0\ud800",
                "deep": deep,
                "large": 10**5000,
                "none": math.nan,
                "far": -math.inf,
                "object": datetime(2030, 1, 1, tzinfo=UTC),
                "plain": [True, None, 7, 0.5],
            },
        )
    )
    (row,) = audit_of(ledger)
    assert row.user_name is not None
    assert len(row.user_name) == 250
    assert row.user_name.endswith("…")
    assert row.plan_id == "p�?"
    assert len(row.detail["long"]) == LONGEST_TEXT
    assert row.detail["nul�"] == "�?"
    assert "end" not in str(row.detail["deep"])
    assert row.detail["large"] == "int left out"
    assert row.detail["none"] == row.detail["far"] == "float left out"
    assert row.detail["object"] == "2030-01-01 00:00:00+00:00"
    assert row.detail["plain"] == [True, None, 7, 0.5]


def test_a_detail_that_is_too_large_says_only_how_large_it_was(ledger: Ledger) -> None:
    many = {f"key {number}": number for number in range(10_000)}
    ledger.add_audit(AuditEntry(Decided.REFUSED, Door.PAGE, detail=many))
    (row,) = audit_of(ledger)
    assert row.detail["left_out_characters"] > LONGEST_DETAIL
    assert len(row.detail) == 1


def test_what_another_version_has_written_is_kept_as_it_stands(ledger: Ledger) -> None:
    with ledger.writing() as connection:
        connection.execute(
            AUDIT.insert().values(at=utc_now(), decision="blessed", door="window", detail={})
        )
    (row,) = audit_of(ledger)
    assert (row.decision, row.door) == ("blessed", "window")
