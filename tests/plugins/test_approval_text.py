from __future__ import annotations

from rehome.operators.approve import approval_text
from tests.planning.clusters import cluster
from tests.planning.planned import plan
from tests.planning.stored_clusters import Stored


def test_moves_between_log_dirs_are_told_apart_from_what_crosses_the_network():
    of = Stored({(0, "/a"): {0: 100, 1: 100, 2: 100, 3: 100}, (0, "/b"): {}})
    text = approval_text(plan(of, action="move_log_dirs", rate=10).summary, "file:///w")
    assert "- 0 B to move" in text
    assert "- 2 replicas (200 B) move between log dirs of the brokers they are on" in text


def test_a_plan_without_moves_between_log_dirs_does_not_speak_of_them():
    drained = plan(cluster([""] * 3, [(0, 1)]), action="drain", brokers=[0], rate=10)
    text = approval_text(drained.summary, "file:///w")
    assert "- 100 B to move" in text
    assert "log dirs" not in text
