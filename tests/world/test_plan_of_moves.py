"""Plans that no planner has made."""

from __future__ import annotations

from rehome.domain.plan.plan_hash import seal
from tests.ledger.small_plans import move
from world.plan_of_moves import plan_of_moves


def test_its_summary_says_what_its_moves_copy() -> None:
    moves = [move("t", 0, (1, 2), (3, 4), 100), move("t", 1, (1, 2), (2, 1), 100)]
    plan = plan_of_moves("p", "c", moves, 5)
    assert plan.moves == tuple(moves)
    said = plan.summary
    assert (said.partitions, said.replica_moves, said.bytes_to_move) == (2, 2, 200)
    assert (said.plan_id, said.cluster_id, said.rate_bytes_per_s) == ("p", "c", 5)
    assert plan.plan_hash == seal(plan).plan_hash != ""
    assert plan.plan_hash != plan_of_moves("p", "c", moves[:1], 5).plan_hash
