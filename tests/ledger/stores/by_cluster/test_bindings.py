"""What connections and entries are bound to, and who has changed it; on SQLite and PostgreSQL."""

from __future__ import annotations

import pytest
from sqlalchemy import insert

from rehome.domain.clock import utc_now
from rehome.domain.run.event_kind import EventKind
from rehome.errors import PlanConflictError
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.base.authority_models import CONNECTIONS
from rehome.ledger.store import Ledger
from rehome.ledger.stores.by_cluster.bindings import Bound
from tests.ledger.audit_rows import audit_of


def told(ledger: Ledger, kind: EventKind) -> list[tuple[str | None, str, str]]:
    return [(e.cluster_id, e.actor, e.detail) for e in ledger.events() if e.kind == kind]


def test_a_connection_is_bound_to_where_it_led_first(ledger: Ledger) -> None:
    ledger.record_connection("kafka", "A", "snapshot of run r1")
    ledger.record_connection("kafka", "B")
    found = ledger.bindings()
    assert (found.connections, found.leads) == ({"kafka": "A"}, {"kafka": "B"})
    binding = ledger.binding(Bound.CONNECTION, "kafka")
    assert binding is not None
    assert (binding.bound_by, binding.read_by) == ("rehome", "snapshot of run r1")
    assert told(ledger, EventKind.BOUND) == [("A", "rehome", "connection kafka")]
    (left,) = told(ledger, EventKind.LEADS_ELSEWHERE)
    assert left == ("A", "rehome", "connection kafka leads to cluster B")


def test_what_an_earlier_version_has_seen_counts_as_the_first_use(ledger: Ledger) -> None:
    with ledger.writing() as connection:
        row = {"connection": "kafka", "cluster_id": "A", "seen_at": utc_now()}
        connection.execute(insert(CONNECTIONS).values(**row))
    ledger.record_connection("kafka", "B")
    assert ledger.bindings().connections == {"kafka": "A"}


def test_a_person_rebinds_a_connection_with_its_entry(ledger: Ledger) -> None:
    ledger.record_connection("kafka", "A")
    ledger.bind_entry("berlin", "A")
    ledger.bind_entry("berlin", "B")
    assert ledger.bindings().entries == {"berlin": "A"}, "the first use counts"
    with pytest.raises(PlanConflictError, match="leads to cluster A, not to cluster B"):
        ledger.rebind("kafka", "berlin", "B", "ann")
    ledger.record_connection("kafka", "B")
    ledger.rebind("kafka", "berlin", "B", "ann")
    found = ledger.bindings()
    assert (found.connections, found.entries) == ({"kafka": "B"}, {"berlin": "B"})
    of_ann = [each for each in told(ledger, EventKind.BOUND) if each[1] == "ann"]
    assert len(of_ann) == 4, "each, in the history of both clusters"
    assert ("B", "ann", "entry berlin, from cluster A") in of_ann
    rebound = [each for each in audit_of(ledger) if each.decision is Decided.REBOUND]
    assert [each.user_name for each in rebound] == ["ann", "ann"]
    assert rebound[1].detail == {"entry": "berlin", "from": "A", "to": "B"}
    ledger.rebind("kafka", "berlin", "B", "ben")
    assert not [each for each in told(ledger, EventKind.BOUND) if each[1] == "ben"]


def test_a_connection_that_is_gone_leads_nowhere_and_stays_bound(ledger: Ledger) -> None:
    ledger.record_connection("kafka", "A")
    ledger.record_policy("kafka", {"approval": True})
    assert ledger.last_policies("A") == {"kafka": {"approval": True}}
    ledger.forget_connection("kafka")
    ledger.forget_connection("kafka")
    assert (ledger.connections(), ledger.last_policies("A")) == ({}, {})
    assert told(ledger, EventKind.CONNECTION_GONE) == [
        ("A", "rehome", "connection kafka was removed")
    ]
    assert ledger.bindings().connections == {"kafka": "A"}
    (left,) = [each for each in audit_of(ledger) if each.decision is Decided.NO_LONGER_COUNTS]
    assert (left.cluster_id, left.detail["connection"]) == ("A", "kafka")


def test_the_racks_of_brokers_are_remembered(ledger: Ledger) -> None:
    ledger.note_racks("A", {1: "/dc0/r1", 2: ""})
    ledger.note_racks("A", {1: "/dc1/r1"})
    assert ledger.racks("A") == {1: "/dc1/r1", 2: ""}
    assert ledger.racks("B") == {}
