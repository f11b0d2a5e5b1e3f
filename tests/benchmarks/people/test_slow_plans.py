"""Random clusters of `make bench-slow`."""

from __future__ import annotations

import pytest

from benchmarks.people.slow_plans import (
    LARGEST,
    REQUESTS,
    machine_s,
    random_cluster,
    requests,
    rows,
    summary,
)
from benchmarks.people_clusters import people

SMALL = 8
"""A seed of a cluster that takes few seconds."""


def test_random_clusters_are_of_all_kinds_and_within_their_sizes() -> None:
    clusters = [random_cluster(seed) for seed in range(60)]
    assert random_cluster(7) == clusters[7]
    assert {bool(one.racks) for one in clusters} == {True, False}
    assert {one.replicas for one in clusters} >= {1, 2, 3, 4, 5}
    assert min(one.count for one in clusters) < 6 < 60 < max(one.count for one in clusters)
    for one in clusters:
        assert one.replicas <= one.count - one.new
        assert sum(one.topics) * one.replicas <= LARGEST


def test_each_plan_of_a_cluster_has_a_row_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    quick = {name: REQUESTS[name] for name in ("drain", "expand", "balance_leaders")}
    monkeypatch.setattr("benchmarks.people.slow_plans.REQUESTS", quick)
    cluster = random_cluster(SMALL)
    plans = list(rows(range(SMALL, SMALL + 1)))
    asked = [name for name, _ in requests(cluster)]
    assert [plan["request"] for plan in plans] == asked == ["drain", "expand", "balance_leaders"]
    assert {plan["replicas"] for plan in plans} == {people(cluster).rows.size}
    assert max(plan["cpu_s"] for plan in plans) > 0
    assert "3 plans" in summary(plans, machine_s())
