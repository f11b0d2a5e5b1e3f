"""Where no mark of ours is, what was set before may be another Rehome's: a person settles it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.domain import clock
from rehome.domain.run.states import PlanState
from rehome.execution.dry_run.cluster_state import read_cluster
from rehome.execution.dry_run.rates.rates_found import find_rates
from rehome.execution.dry_run.throttle_checks import throttle_findings
from rehome.execution.dry_run.typed_finding import FoundKind
from rehome.execution.throttle.clear import UNMARKED, Cleared, clear_throttle, sweep
from rehome.execution.throttle.keys import FOLLOWER_RATE, LEADER_RATE, RATE_KEYS
from rehome.execution.throttle.set_up import set_up_throttle
from rehome.ledger.base.records import SetBy
from tests.execution.throttle.ownership.box import DEFAULT, Box
from tests.ledger.small_plans import move

RATES = (LEADER_RATE, FOLLOWER_RATE)


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    made = Box(tmp_path)
    for topic in "ab":
        made.model.actions.create_topic(topic, [(1, 2)])
    with clock.replaced_by(made):
        made.sleep(1)
        yield made
    made.close()


def begin(box: Box, site: str, rate: int) -> None:
    plan = box.approved(site, f"plan-{site}", move(site, 0, (1, 2), (3, 2)))
    set_up_throttle(plan, box.ledger(site), box.own, rate)
    box.sleep(1)


def end(box: Box, site: str) -> Cleared:
    ledger, plan_id = box.ledger(site), f"plan-{site}"
    ledger.transition(plan_id, PlanState.FAILED, "enough")
    done = clear_throttle(plan_id, ledger, box.own)
    box.sleep(1)
    return done


def test_where_brokers_refuse_marks_a_rate_that_had_none_before_it_is_deleted(box: Box) -> None:
    box.refused = "rehome."
    begin(box, "a", 5_000_000)
    assert box.holds(DEFAULT, LEADER_RATE) == "5000000"
    assert end(box, "a").owed == ()
    assert [box.holds(DEFAULT, key) for key in RATES] == [None, None]


def test_where_brokers_refuse_marks_a_rate_from_before_is_not_put_back(box: Box) -> None:
    box.refused = "rehome."
    box.set(DEFAULT, LEADER_RATE, "90000000")
    begin(box, "a", 5_000_000)
    done = end(box, "a")
    assert [(e.key, e.prior_value, e.detail) for e in done.owed] == [
        (LEADER_RATE, "90000000", UNMARKED)
    ]
    assert box.holds(DEFAULT, LEADER_RATE) == "5000000"
    assert [e.detail for e in sweep(box.ledger("a"), box.own).owed] == [UNMARKED]
    box.set(DEFAULT, LEADER_RATE, "70000000")
    settled = sweep(box.ledger("a"), box.own)
    assert [e.set_by for e in settled.cleared] == [SetBy.OTHERS]
    assert box.holds(DEFAULT, LEADER_RATE) == "70000000"
    assert box.ledger("a").throttles(open_only=True) == []


@pytest.mark.slow
def test_two_rehomes_whose_brokers_refuse_marks_leave_no_rate_unnamed(box: Box) -> None:
    """The second one takes the first one's rate for another client's, which it has replaced."""
    box.refused = "rehome."
    begin(box, "a", 5_000_000)
    begin(box, "b", 2_000_000)
    assert end(box, "a").owed == ()
    done = end(box, "b")
    assert {(e.key, e.prior_value, e.detail) for e in done.owed} == {
        (key, "5000000", UNMARKED) for key in RATES
    }


def test_marks_that_somebody_deletes_are_no_proof_any_more(box: Box) -> None:
    box.set(DEFAULT, LEADER_RATE, "90000000")
    begin(box, "a", 5_000_000)
    for name in box.marks:
        box.set(DEFAULT, name, None)
    done = end(box, "a")
    assert [(e.key, e.detail) for e in done.owed] == [(LEADER_RATE, UNMARKED)]
    assert box.holds(DEFAULT, FOLLOWER_RATE) is None


@pytest.mark.slow
def test_two_rehomes_with_marks_leave_what_was_there_before(box: Box) -> None:
    box.set(DEFAULT, LEADER_RATE, "90000000")
    begin(box, "a", 5_000_000)
    begin(box, "b", 2_000_000)
    assert end(box, "a").owed == ()
    assert [box.holds(DEFAULT, key) for key in RATES] == ["2000000", "2000000"]
    assert end(box, "b").owed == ()
    assert [box.holds(DEFAULT, key) for key in RATE_KEYS] == ["90000000", None, None]
    assert box.marks == set()


@pytest.mark.parametrize(("marked", "found"), [(True, ["the brokers' default"]), (False, [])])
def test_the_dry_run_says_which_rates_will_not_be_put_back(
    box: Box, marked: bool, found: list[str]
) -> None:
    def warned() -> list[str]:
        now = read_cluster(plan, box.own)
        findings = throttle_findings(
            *(plan, box.own, now, 5_000_000, find_rates(plan, box.own, now, 5_000_000)),
            ours={},
            marked=marked,
        )
        return [f.subject for f in findings if f.kind is FoundKind.RATE_NOT_PUT_BACK]

    plan = box.approved("a", "plan", move("a", 0, (1, 2), (3, 2)))
    box.set(DEFAULT, LEADER_RATE, "90000000")
    assert warned() == []
    box.refused = "rehome."
    assert warned() == found
    box.set(DEFAULT, LEADER_RATE, None)
    assert warned() == []
