"""balance_leaders: their number and, where it is known, their traffic; nothing is copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.people_clusters import People, people
from rehome.domain.actions import Action
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError
from rehome.planning.actions.balance_leaders import plan_leaders
from rehome.planning.leadership import leader_balance
from rehome.planning.model.arrays import ClusterArrays
from rehome.planning.result.outcome import Outcome

CASE = People("leaders", 6, rates=True, skew=0.4, topics=(12,) * 20)


def planned(arrays: ClusterArrays, **tolerances: float | None) -> Outcome:
    return plan_leaders(
        arrays, ReassignmentRequest(Action.BALANCE_LEADERS, tolerances=dict(tolerances))
    )


def led(outcome: Outcome, weight: np.ndarray | None = None) -> np.ndarray:
    """(B,) what each broker leads, over the mean."""
    load = np.bincount(outcome.layout.rows[:, 0], weight, CASE.brokers)
    over_mean: np.ndarray = load / load.mean()
    return over_mean


def test_brokers_lead_their_share_of_the_traffic_and_about_as_many_partitions() -> None:
    arrays = people(CASE)
    before = np.bincount(arrays.rows[:, 0], arrays.bytes_out, CASE.brokers)
    assert np.abs(before / before.mean() - 1).max() > 0.5
    made = planned(arrays)
    assert np.abs(led(made, arrays.bytes_out) - 1).max() <= 0.06
    assert np.abs(led(made) - 1).max() <= 0.1 + 1 / 40
    assert not made.infeasible
    assert not made.layout.incoming.any()
    assert (np.sort(made.layout.rows, axis=1) == np.sort(made.layout.origin, axis=1)).all()


def test_without_a_history_the_number_of_leaders_is_evened_out() -> None:
    arrays = replace(people(CASE), bytes_in=None, bytes_out=None)
    assert np.ptp(np.bincount(planned(arrays).layout.rows[:, 0])) <= 1


def test_who_wants_numbers_alone_says_so() -> None:
    arrays = people(CASE)
    made = planned(arrays, bytes_out=None)
    assert np.ptp(np.bincount(made.layout.rows[:, 0])) <= 1
    assert np.abs(led(made, arrays.bytes_out) - 1).max() > 0.06


def test_code_that_is_written_out_finds_what_the_general_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arrays = people(CASE)
    wanted = {"leader_bytes_in": 0.1, "leaders": 0.1}
    made = planned(arrays, **wanted)
    monkeypatch.setattr(leader_balance, "WRITTEN_OUT", 0)
    in_general = planned(arrays, **wanted)
    assert (made.layout.rows == in_general.layout.rows).all()
    assert (made.layout.rows != made.layout.origin).any()


def test_what_producers_write_into_leaders_is_balanced_on_request() -> None:
    arrays = people(CASE)
    made = planned(arrays, leader_bytes_in=0.1, bytes_out=None)
    assert np.abs(led(made, arrays.bytes_in) - 1).max() <= 0.11


def test_brokers_that_no_order_of_replicas_brings_to_their_share_are_named() -> None:
    arrays = people(replace(CASE, giant=0.0))
    assert arrays.bytes_out is not None
    rate = arrays.bytes_out.copy()
    rate[0] = rate.sum()
    made = planned(replace(arrays, bytes_out=rate))
    leader = int(made.layout.rows[0, 0])
    assert leader in {note.subject.broker for note in made.infeasible}


def test_planning_again_changes_no_leader() -> None:
    arrays = people(CASE)
    rows = planned(arrays).layout.rows
    again = planned(replace(arrays, rows=rows.copy(), leader=rows[:, 0].copy()))
    assert not len(again.layout.changed_partitions())


def test_tolerances_of_what_is_copied_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="copies nothing"):
        parse_request({"action": "balance_leaders", "tolerances": {"bytes_in": 0.1}})
