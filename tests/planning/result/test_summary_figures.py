"""What a plan says of itself: bound, makespan, balance per resource, links between racks."""

from __future__ import annotations

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.figures import Link, ResourceBalance
from rehome.domain.plan.plan import Plan
from rehome.planning.result.summary_figures import RACKS_SHOWN
from tests.planning.clusters import Cluster, cluster
from tests.planning.planned import ROWS, THREE_RACKS, plan

ZONES = ["/a/r0", "/a/r1", "/b/r0", "/b/r1"]


def resource(made: Plan, name: str) -> ResourceBalance:
    return next(item for item in made.summary.resources if item.resource == name)


def with_rates(of: Cluster) -> Cluster:
    """Bytes in and out of partition n: n + 1 and twice that per second."""
    rates = {name: number + 1.0 for number, name in enumerate(of.replicas)}
    twice = {name: 2 * rate for name, rate in rates.items()}
    return Cluster(
        of.racks, of.replicas, of.sizes, of.disks, of.dead, bytes_in=rates, bytes_out=twice
    )


def test_the_ratio_to_the_bound_is_what_is_moved_over_the_least_possible() -> None:
    made = plan(cluster(THREE_RACKS, ROWS), action="drain", brokers=[0])
    assert made.summary.ratio_to_bound == 1.0
    of = cluster([""] * 2, [(0,)] * 3, sizes=[60, 60, 60])
    made = plan(of, action="rebalance")
    assert made.summary.ratio_to_bound == pytest.approx(
        made.summary.bytes_to_move / made.summary.lower_bound_bytes, abs=1e-4
    )
    assert plan(cluster([""] * 2, [(0,), (1,)]), action="rebalance").summary.ratio_to_bound == 1.0


def test_no_execution_is_faster_than_the_busiest_brokers_bytes_at_the_whole_rate() -> None:
    of = cluster([""] * 4, [(0, 1), (0, 2), (0, 3)], sizes=[50, 70, 20])
    made = plan(of, action="set_replication_factor", replication_factor=3, rate=10, efficiency=0.5)
    assert max(load.bytes_out for load in made.summary.brokers) == 140  # all lie on leader 0
    assert made.summary.makespan_bound_s == pytest.approx(14)
    assert made.summary.predicted_s == pytest.approx(28)
    unknown = plan(of, action="set_replication_factor", replication_factor=3)
    assert unknown.summary.makespan_bound_s is None


@pytest.mark.slow
def test_every_resource_is_reported_before_and_after_with_its_band() -> None:
    of = with_rates(cluster([""] * 3, [(0,)] * 6))
    made = plan(of, action="rebalance", tolerances={"replicas": 0.4, "leaders": 0.5})
    stored = resource(made, "bytes")
    assert (stored.before, stored.after) == ((600, 0, 0), (200, 200, 200))
    assert (stored.low, stored.high, stored.tolerance) == ((196,) * 3, (204,) * 3, 0.02)
    assert resource(made, "replicas").low == (1, 1, 1)
    assert resource(made, "replicas").high == (3, 3, 3)
    assert resource(made, "bytes_in").before == (21, 0, 0)
    assert sum(resource(made, "bytes_out").after) == 42
    assert resource(made, "leaders").tolerance == 0.5
    for item in made.summary.resources:
        inside = zip(item.low, item.after, item.high, strict=True)
        assert all(low <= load <= high for low, load, high in inside) or made.summary.infeasible


def test_a_resource_without_a_tolerance_has_no_band() -> None:
    made = plan(with_rates(cluster([""] * 3, [(0,)] * 6)), action="drain", brokers=[0])
    assert {item.low for item in made.summary.resources} == {()}
    assert resource(made, "bytes_in").known
    assert resource(made, "bytes_in").after[0] == 0


@pytest.mark.slow
def test_a_plan_says_which_loads_it_was_made_by() -> None:
    of = cluster([""] * 3, [(0,)] * 6)
    by = plan(of, action="rebalance").summary.planned_by
    assert by == "bytes only; bytes in per second and bytes out per second not known: no history"
    by = plan(with_rates(of), action="rebalance").summary.planned_by
    assert by == "bytes, bytes in per second and bytes out per second"
    free = {"bytes_in": None, "bytes_out": None}
    assert plan(with_rates(of), action="rebalance", tolerances=free).summary.planned_by == (
        "bytes only"
    )
    assert "number of replicas" in plan(of, action="drain", brokers=[0]).summary.planned_by


def test_bytes_between_racks_are_those_from_the_leaders_to_the_new_replicas() -> None:
    of = cluster(ZONES, [(0, 2)], sizes=[70])
    made = plan(of, action="drain", brokers=[2])
    assert made.moves[0].target == (0, 3)
    assert made.summary.links == (Link("/a/r0", "/b/r1", 70),)
    assert made.summary.bytes_across_racks == 70
    made = plan(of, action="drain", brokers=[0])
    assert made.summary.links == (Link("/a/r0", "/a/r1", 70),)
    assert made.summary.bytes_across_racks == 0


def test_without_racks_there_are_no_links() -> None:
    made = plan(cluster([""] * 3, [(0,)] * 6), action="rebalance")
    assert (made.summary.links, made.summary.bytes_across_racks) == ((), 0)


def test_links_of_many_racks_are_reported_a_level_further_up() -> None:
    racks = [f"/z{number % 2}/r{number}" for number in range(RACKS_SHOWN + 2)]
    rows = [(0, 1)] * 4
    made = plan(cluster(racks, rows), action="drain", brokers=[0])
    assert {link.source for link in made.summary.links} <= {"/z0", "/z1"}
    assert sum(link.size_bytes for link in made.summary.links) == made.summary.bytes_to_move


def test_a_copy_is_read_from_the_current_leader() -> None:
    made = plan(
        cluster(ZONES, [(0, 2)], sizes=[70], dead=frozenset({0})), action="drain", brokers=[0]
    )
    assert made.by_partition[TopicPartition("t", 0)].adding == (1,)
    assert made.summary.links == (Link("/b/r0", "/a/r1", 70),)  # broker 2 leads
