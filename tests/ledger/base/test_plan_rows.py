"""Rows of plans as values."""

from __future__ import annotations

import pytest

from rehome.domain.run.askers import Term
from rehome.errors import PlanConflictError
from rehome.ledger.base.plan_rows import record_of, select_plan, unknown_plan
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan


def test_a_row_is_the_plan_that_was_recorded(ledger: Ledger) -> None:
    plan = make_plan("p1")
    asked = {Term.RATE: "ann"}
    ledger.create_plan(plan, {"a": 1}, "file:///p1", "r", "bob", terms_asked_by=asked)
    with ledger.reading() as connection:
        row, none = select_plan(connection, "p1"), select_plan(connection, "p2")
    assert none is None
    assert row is not None
    record = record_of(row)
    assert record == ledger.plan("p1")
    assert (record.plan_hash, record.request) == (plan.plan_hash, {"a": 1})
    assert (record.terms_asked_by, record.refused_cancels, record.approval) == (asked, {}, None)


def test_a_plan_that_is_not_there_is_named() -> None:
    error = unknown_plan("p2")
    assert isinstance(error, PlanConflictError)
    with pytest.raises(PlanConflictError, match="knows no plan 'p2'"):
        raise error
