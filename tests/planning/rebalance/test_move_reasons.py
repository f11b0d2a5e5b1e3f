"""Each move of a rebalance says which target it serves, on both sides."""

from __future__ import annotations

from dataclasses import replace

from rehome.domain.plan.causes.cause_text import why_text
from tests.planning.clusters import cluster
from tests.planning.planned import T, plan

SPREAD = [(0,), (0,), (1,), (1,)]


def test_a_move_for_bytes_names_what_both_brokers_held_of_their_shares() -> None:
    made = plan(cluster([""] * 2, [(0,)] * 4), action="rebalance")
    assert {why_text(move) for move in made.moves} == {
        "Broker 0 held 400 B of a share of 200 B; broker 1, which held 0 B of a share of 200 B, "
        "takes its place."
    }


def test_a_move_for_traffic_says_so() -> None:
    busy = dict(zip(T, [50.0, 50.0, 0.0, 0.0], strict=False))
    of = replace(cluster([""] * 2, SPREAD), bytes_in=busy)
    made = plan(of, action="rebalance", tolerance=0.6)
    assert len(made.moves) == 1
    assert why_text(made.moves[0]) == (
        "Broker 0 held 100 B/s taken in of a share of 50 B/s; broker 1, which held 0 B/s taken "
        "in of a share of 50 B/s, takes its place."
    )


def test_a_move_for_the_number_of_replicas_says_so() -> None:
    of = cluster([""] * 2, [(0,)] * 6, sizes=[0] * 6)
    made = plan(of, action="rebalance", tolerances={"replicas": 0.1})
    assert {why_text(move) for move in made.moves} == {
        "Broker 0 held 6 replicas of a share of 3 replicas; broker 1, which held 0 replicas of a "
        "share of 3 replicas, takes its place."
    }


def test_a_move_that_only_the_receiver_needs_says_that_the_giver_can_spare_it() -> None:
    of = cluster([""] * 5, [(b % 4,) for b in range(40)])
    made = plan(of, action="rebalance", tolerance=0.3)
    assert made.moves
    for move in made.moves:
        assert why_text(move) == (
            f"Broker 4, which held 0 B of a share of 800 B, takes the place of broker "
            f"{move.removing[0]}, which can spare it."
        )
