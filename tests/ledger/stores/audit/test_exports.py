"""What is exported may be removed; the ledger knows its exports from forged ones for good."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from rehome.domain.clock import utc_now
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.base.audit_entry import AuditEntry, AuditExport, Decided, Door
from rehome.ledger.store import Ledger
from tests.ledger.audit_rows import audit_of
from tests.ledger.set_clock import SetClock
from tests.ledger.small_plans import make_plan

SOON = timedelta(minutes=1)


def _decide(ledger: Ledger, *names: str) -> None:
    for name in names:
        ledger.add_audit(AuditEntry(Decided.CLEARED, Door.AIRFLOW_API, user_name=name))


def _exported(
    ledger: Ledger, until: datetime, since: datetime | None = None
) -> tuple[AuditExport, bytes]:
    file = io.BytesIO()
    return ledger.export_audit(file, "ann", since, until), file.getvalue()


def _names(ledger: Ledger) -> list[str | None]:
    return [row.user_name for row in audit_of(ledger)]


def test_an_export_has_every_row_of_its_time_a_json_object_a_line(
    ledger: Ledger, clock: SetClock
) -> None:
    _decide(ledger, "before")
    clock.pass_s(60)
    since = clock()
    _decide(ledger, "bob", "cid")
    ledger.add_event(EventKind.REQUEST, "an event", actor="bob", plan_id="p")
    until = clock()
    clock.pass_s(60)
    _decide(ledger, "after")
    export, file = _exported(ledger, until + timedelta(microseconds=1), since)
    head, *rows = (json.loads(line) for line in file.decode().splitlines())
    assert head["format"] == "rehome audit 1"
    assert head["ledger"] == ledger.ledger_id
    assert head["since"] == since.isoformat()
    assert [(row["table"], row.get("user_name") or row["actor"]) for row in rows] == [
        ("audit", "bob"),
        ("audit", "cid"),
        ("events", "bob"),
    ]
    assert datetime.fromisoformat(rows[0]["at"]) >= since
    assert (export.audit_rows, export.events_rows) == (2, 1)
    assert _names(ledger) == ["before", "bob", "cid", "after"]


def test_an_export_alone_removes_nothing_and_is_in_the_audit(ledger: Ledger) -> None:
    _decide(ledger, "bob", "cid")
    export, _ = _exported(ledger, utc_now() + SOON)
    assert ledger.keep_export(export) == 0
    assert [row.decision for row in audit_of(ledger)] == [Decided.CLEARED] * 2 + [Decided.EXPORTED]
    last = audit_of(ledger)[-1]
    assert (last.user_name, last.door) == ("ann", Door.CLI)
    assert last.detail["digest"] == export.digest
    assert ledger.audit_exports() == [export]


def test_what_an_export_covers_is_removed_and_the_export_itself_stays(ledger: Ledger) -> None:
    _decide(ledger, "bob", "cid")
    for number in range(3):
        ledger.add_event(EventKind.REQUEST, str(number))
    export, file = _exported(ledger, utc_now() + SOON)
    _decide(ledger, "later")
    ledger.add_event(EventKind.REQUEST, "later")
    assert ledger.keep_export(export, remove=True) == 2 + 3
    assert _names(ledger) == ["later", "ann"]
    assert [event.detail for event in ledger.events()] == ["later"]
    (kept,) = ledger.audit_exports()
    assert (kept.removes, kept.audit_rows, kept.events_rows) == (True, 2, 3)
    assert ledger.export_of(io.BytesIO(file)) == kept


def test_the_newest_row_stays_so_that_its_number_is_never_given_again(ledger: Ledger) -> None:
    ledger.add_event(EventKind.REQUEST, "0")
    ledger.add_event(EventKind.REQUEST, "1")
    export, _ = _exported(ledger, utc_now() + SOON)
    assert ledger.keep_export(export, remove=True) == 1
    assert [event.detail for event in ledger.events()] == ["1"]
    ledger.add_event(EventKind.REQUEST, "2")
    again, file = _exported(ledger, utc_now() + SOON)
    ids = [json.loads(line).get("event_id") for line in file.decode().splitlines()]
    assert ids == [None, None, 2, 3]
    assert again.events_rows == 2


def test_events_by_which_tasks_still_decide_stay(ledger: Ledger) -> None:
    """Of plans that have not ended, and of new partitions, which are no plan."""
    for plan_id in ("open", "over"):
        ledger.create_plan(make_plan(plan_id), {}, "file:///nowhere", "run", "rehome")
    ledger.transition("over", PlanState.CANCELLED, "enough")
    ledger.add_event(EventKind.ADDING_PARTITIONS, "", plan_id="new partitions")
    ledger.add_event(EventKind.REQUEST, "of no plan")
    export, _ = _exported(ledger, utc_now() + SOON)
    ledger.add_event(EventKind.REQUEST, "newest")
    ledger.keep_export(export, remove=True)
    assert [event.plan_id for event in ledger.events()] == [
        "open",
        "new partitions",
        None,
    ]


def test_two_exports_of_the_same_rows_do_not_both_remove_them(ledger: Ledger) -> None:
    _decide(ledger, "bob", "cid")
    until = utc_now() + SOON
    first, _ = _exported(ledger, until)
    second, _ = _exported(ledger, until, datetime.min.replace(tzinfo=until.tzinfo))
    ledger.keep_export(first, remove=True)
    before = _names(ledger)
    with pytest.raises(PlanConflictError, match="another export has removed"):
        ledger.keep_export(second, remove=True)
    assert _names(ledger) == before
    assert len(ledger.audit_exports()) == 1


@pytest.mark.parametrize(
    "forge",
    [
        lambda file: file.replace(b"bob", b"eve"),
        lambda file: file.rsplit(b"\n", 2)[0] + b"\n",
        lambda file: file + b"\n",
    ],
)
def test_a_file_that_was_changed_is_no_export_of_this_ledger(ledger: Ledger, forge: Any) -> None:
    _decide(ledger, "bob", "cid")
    export, file = _exported(ledger, utc_now() + SOON)
    ledger.keep_export(export, remove=True)
    assert ledger.export_of(io.BytesIO(file)) is not None
    assert ledger.export_of(io.BytesIO(forge(file))) is None
