"""What the gate lets a move do to the racks of its partition."""

from __future__ import annotations

import pytest

from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.plan.move_table import moves_table_with_facts
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_moves
from tests.quality.plan.checked_plans import move


@pytest.mark.parametrize(("target", "may"), [((0, 2, 3), True), ((0, 1, 3), False)])
def test_a_lower_factor_crowds_no_rack_within_a_rack(target: tuple[int, ...], may: bool) -> None:
    """One replica fewer is no reason for two others to share a rack."""
    before = (0, 2, 3, 1)
    of = cluster(["/a/x", "/a/x", "/a/y", "/b/z"], [before], topic="payments")
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)
    checked = with_moves(planned(of.snapshot(), request), [move(0, before, target)])
    (row,) = moves_table_with_facts(checked).to_pylist()
    assert (row["badly_after_2"] <= row["badly_at_most_2"]) == may
