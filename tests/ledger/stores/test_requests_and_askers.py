"""Who has asked for the terms of a plan that are not its own: the ledger keeps it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import request_to_params
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.askers import PARAMETERS, Term
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.execution.control.resume import bounds_of, window_of
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger
from tests.ledger.small_plans import make_plan

REQUEST = parse_request({"action": "rebalance", "throttle": 10}, recorded=True)
NIGHT = "2030-01-01T03:00:00+00:00"


def create(ledger: Ledger, **params: Any) -> None:
    """A plan that ann has asked for, at 10 bytes per second unless otherwise stated."""
    request = request_to_params(REQUEST) | {"dry_run": True} | params
    ledger.create_plan(make_plan("p1"), request, "file:///p", "run-1", "ann")


def asked_by(ledger: Ledger) -> dict[Term, str]:
    return dict(ledger.plan("p1").terms_asked_by)


def taken_up(ledger: Ledger, by: str, run_id: str, rate: int | None = None, **params: Any) -> None:
    """Have a run of a person resume the plan, which has paused."""
    plan = ledger.plan("p1")
    if plan.state is PlanState.PLANNED:
        ledger.approve("p1", plan.plan_hash, "carl")
        ledger.claim("p1")
        ledger.transition("p1", PlanState.PAUSED, "a test")
    bounds = bounds_of(
        parse_request({"action": "rebalance", "throttle": rate or "auto", **params}, recorded=True)
    )
    who: dict[str, Any] = {"lease_s": 0, "rate_bytes_per_s": rate}
    ledger.take_up("p1", "dag", run_id, bounds, by, **who)


@pytest.mark.parametrize(
    ("throttle", "requests", "asker"),
    [
        (10, [], None),
        (10, [("carl", 9)], None),  # who approves may lower it
        (10, [("carl", 11)], "carl"),
        (10, [("carl", 9), ("dan", 10)], "dan"),
        (10, [("carl", 20), ("dan", 20)], "carl"),
        (10, [("carl", 20), ("dan", 15)], "carl"),
        (10, [("carl", 20), ("ann", 20)], "carl"),
        (10, [("carl", 20), ("ann", 15)], "ann"),  # as the plan's own
        ("auto", [("carl", 5)], "carl"),  # what Rehome finds may be less
    ],
)
def test_a_throttle_is_asked_for_by_who_has_raised_it(
    throttle: int | str, requests: list[tuple[str, int]], asker: str | None, ledger: Ledger
) -> None:
    create(ledger, throttle=throttle)
    for who, rate in requests:
        ledger.request_rate("p1", rate, who)
    assert asked_by(ledger).get(Term.RATE) == asker


def test_a_throttle_below_the_one_that_a_dry_run_has_found_is_not_asked_for(
    ledger: Ledger,
) -> None:
    create(ledger, throttle="auto")
    ledger.request_rate("p1", 5, "carl", found_bytes_per_s=6)
    assert asked_by(ledger) == {}
    ledger.request_rate("p1", 6, "dan", found_bytes_per_s=9)
    assert asked_by(ledger) == {Term.RATE: "dan"}, "5 was asked for"


def test_a_throttle_below_the_one_that_was_approved_is_not_asked_for(ledger: Ledger) -> None:
    """Rehome has found 50 bytes per second; who approved them lowers them, and may approve anew."""
    create(ledger, throttle="auto")
    plan_hash = ledger.plan("p1").plan_hash
    given: dict[str, Any] = {"by_person": True, "lasting_s": 60, "asked_by": "ann"}
    ledger.approve("p1", plan_hash, "carl", Terms(plan_hash, 50), **given)
    ledger.request_rate("p1", 20, "carl")
    assert asked_by(ledger) == {}
    ledger.claim("p1")
    ledger.transition("p1", PlanState.PAUSED, "a test")
    taken_up(ledger, "dan", "run-2", 20)
    assert asked_by(ledger) == {}
    ledger.request_rate("p1", 60, "carl")
    assert asked_by(ledger) == {Term.RATE: "carl"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rate", "params", "asked"),
    [
        (10, {}, set()),
        (9, {}, set()),
        (11, {}, {Term.RATE}),
        (None, {}, {Term.RATE}),
        (10, {"window_end": NIGHT}, {Term.WINDOW}),
        (10, {"on_window_end": "cancel"}, {Term.WINDOW}),
        (10, {"additional": True}, {Term.ADDITIONAL}),
        (None, {"unthrottled": True, "max_moves_per_broker": 2}, {Term.RATE, Term.UNTHROTTLED}),
        (10, {"max_moves_per_broker": 2}, set()),
    ],
)
def test_a_run_that_goes_on_asks_for_what_it_changes_and_the_next_one_for_what_that_changes(
    rate: int | None, params: dict[str, Any], asked: set[Term], ledger: Ledger
) -> None:
    create(ledger)
    taken_up(ledger, "dan", "run-2", rate, **params)
    assert asked_by(ledger) == dict.fromkeys(asked, "dan")
    taken_up(ledger, "eve", "run-3", rate, **params)
    assert asked_by(ledger) == dict.fromkeys(asked, "dan"), "as before"
    window = {"window_end": "2030-01-02T03:00:00+00:00"}
    taken_up(ledger, "eve", "run-4", rate, **{**params, **window})
    assert asked_by(ledger) == {**dict.fromkeys(asked, "dan"), Term.WINDOW: "eve"}


def test_who_goes_on_with_a_plan_by_the_present_word_asks_for_no_other_window(
    ledger: Ledger,
) -> None:
    create(ledger, on_window_end="drain")
    taken_up(ledger, "dan", "run-2", 10, on_window_end="finish")
    assert asked_by(ledger) == {}


def test_a_window_is_asked_for_by_who_has_handed_the_plan_over_to_it(ledger: Ledger) -> None:
    create(ledger)
    ledger.hand_over("p1", "dan")
    night = window_of(parse_request({"action": "rebalance", "window_end": NIGHT}))
    ledger.take_up("p1", "by_night", "n-1", night, "scheduled", lease_s=0, handed_over=True)
    assert ledger.plan("p1").request["window_end"] == NIGHT
    assert asked_by(ledger) == {Term.WINDOW: "dan"}


def test_who_runs_a_plan_that_was_handed_over_has_asked_for_no_window_or_another(
    ledger: Ledger,
) -> None:
    create(ledger)
    ledger.hand_over("p1", "dan")
    same = bounds_of(parse_request({"action": "rebalance", "throttle": 10}, recorded=True))
    ledger.take_up("p1", "reassign_partitions", "r-2", same, "eve", lease_s=0)
    assert asked_by(ledger) == {Term.WINDOW: "eve"}
    assert ledger.plan("p1").for_window_at is None, "a later window is another one"


def test_an_approval_keeps_who_had_asked_for_what_it_is_of(ledger: Ledger) -> None:
    create(ledger)
    ledger.request_rate("p1", 20, "carl")
    terms = Terms(ledger.plan("p1").plan_hash, 20)
    given: dict[str, Any] = {"by_person": True, "lasting_s": 60, "asked_by": "ann"}
    ledger.approve("p1", terms.plan_hash, "dora", terms, **given)
    ledger.request_rate("p1", 30, "eve")
    record = ledger.plan("p1")
    assert record.approval is not None
    assert record.approval.terms_asked_by == {Term.RATE: "carl"}
    assert record.terms_asked_by == {Term.RATE: "eve"}
    assert record.askers("bob").what == {
        "ann": ("the plan",),
        "bob": ("the run",),
        "eve": ("the throttle",),
    }


def test_a_follow_up_knows_who_has_asked_for_the_plan_that_it_follows_up(ledger: Ledger) -> None:
    others = {Term.FOLLOWED_UP: "zoe"}
    ledger.create_plan(make_plan("p1"), {}, "file:///p", "r", "ann", terms_asked_by=others)
    assert asked_by(ledger) == others
    assert ledger.plan("p1").askers("ann").what == {
        "ann": ("the plan",),
        "zoe": ("the plan that it follows up",),
    }


def test_a_throttle_that_is_refused_in_the_moment_of_the_request_is_not_recorded(
    ledger: Ledger,
) -> None:
    create(ledger)

    def refuse(record: PlanRecord) -> None:
        assert record.plan_id == "p1"
        raise PlanConflictError("a test")

    with pytest.raises(PlanConflictError, match="a test"):
        ledger.request_rate("p1", 20, "carl", check=refuse)
    assert ledger.plan("p1").requested_rate_bytes_per_s is None
    assert asked_by(ledger) == {}


def test_every_parameter_that_a_run_replaces_belongs_to_a_term() -> None:
    at = parse_request({"action": "rebalance"}, now=datetime(2030, 1, 1, tzinfo=UTC))
    assert set(bounds_of(at)) == {name for names in PARAMETERS.values() for name in names}
