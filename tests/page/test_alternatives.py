"""What a plan's page offers in its place."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rehome.domain.plan.figures import TargetPrice
from rehome.domain.plan.summary import PlanSummary, summary_from_json, summary_to_json
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import request_to_params
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from rehome.page.alternatives import Instead, choices_of, params_instead
from tests.ledger.small_plans import make_plan
from tests.reporting.reported_plans import offered

NOW = datetime(2030, 1, 1, tzinfo=UTC)
COPIED, REPLICAS = 4_000_000_000, 12


@pytest.fixture
def summary() -> PlanSummary:
    """As its file holds it."""
    made = make_plan("p1").summary
    figures = {"bytes_to_move": COPIED, "replica_moves": REPLICAS, **offered(COPIED, REPLICAS)}
    return summary_from_json(summary_to_json(replace(made, **figures)))


@pytest.fixture
def record(tmp_path: Path) -> PlanRecord:
    request = {"action": "rebalance", "dry_run": True, "tolerances": {"leaders": 0.1}}
    request["window_end"] = "2029-12-31T23:00:00+00:00"
    asked = request_to_params(parse_request(request, now=datetime(2029, 1, 1, tzinfo=UTC)))
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.create_plan(make_plan("p1"), asked, tmp_path.as_uri(), "run-1", "ann")
        return ledger.plan("p1")


def test_budgets_and_targets_that_cost_something_are_offered(summary: PlanSummary) -> None:
    found = choices_of(summary)
    assert found is not None
    assert [choice.kind for choice in found.budgets] == [None, *[Instead.BUDGET] * 4, None]
    assert [choice.shown for choice in found.budgets] == [False] * 5 + [True]
    assert [(c.label, c.about, c.bytes_to_move, c.replica_moves) for c in found.relaxed] == [
        ("Without the replicas target", "about", COPIED // 2, 9),
        ("Without the topic spread target", "at most", COPIED - 10_000_000, 11),
    ]
    assert found.resources == ("bytes", "bytes_out")
    assert [corner[:2] for corner in found.corners[:: len(found.corners) - 1]] == [
        (0.0, 0.0),
        (100.0, pytest.approx(100 * (1 - 0.019 / 0.72), abs=0.01)),
    ]


def test_bytes_have_a_price_and_no_request_can_be_without_their_target(
    summary: PlanSummary,
) -> None:
    bytes_alone = replace(summary, prices=(TargetPrice("bytes", 1, 1, "solved"),))
    found = choices_of(bytes_alone)
    assert found is not None
    assert [(choice.kind, choice.value) for choice in found.relaxed] == [(None, "")]


def test_bytes_saved_in_a_cut_plan_pay_for_moves_that_its_budget_had_cut_off(
    summary: PlanSummary,
) -> None:
    found = choices_of(replace(summary, asked_bound_bytes=2 * COPIED))
    assert found is not None
    assert {(c.about, c.bytes_to_move, c.replica_moves) for c in found.relaxed} == {
        ("at most", COPIED, None)
    }


def test_a_plan_without_either_offers_nothing() -> None:
    assert choices_of(make_plan("p1").summary) is None


def test_a_choice_asks_for_the_same_with_one_difference(
    summary: PlanSummary, record: PlanRecord
) -> None:
    budget = params_instead(record, summary, Instead.BUDGET, str(COPIED // 4), NOW)
    without = params_instead(record, summary, Instead.WITHOUT, "topic_spread", NOW)
    assert budget is not None
    assert without is not None
    asked, relaxed = (parse_request(params, now=NOW) for params in (budget, without))
    first = parse_request({k: v for k, v in record.request.items() if k != "window_end"})
    assert asked == replace(first, budget_bytes=COPIED // 4), "its window has closed"
    assert relaxed == replace(first, tolerances={"leaders": 0.1, "topic_spread": None})


@pytest.mark.parametrize(
    ("kind", "value"),
    [(Instead.BUDGET, "17"), (Instead.BUDGET, "0"), (Instead.WITHOUT, "leaders")],
)
def test_what_is_not_offered_is_not_asked_for(
    kind: Instead, value: str, summary: PlanSummary, record: PlanRecord
) -> None:
    assert params_instead(record, summary, kind, value, NOW) is None
