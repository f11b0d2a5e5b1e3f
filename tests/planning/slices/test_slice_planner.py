"""Plans put together from slices keep the rules that plans of whole clusters keep."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.infeasible_text import obstacle_text
from rehome.domain.plan.summary import PlanSummary
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import Action, ReassignmentRequest
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.planning.slices import slice_steps
from rehome.planning.slices.slice_planner import OVERLAID
from tests.examples import examples
from tests.planning.clusters import Cluster, cluster
from tests.planning.large import large_snapshot
from tests.planning.planner.test_plan_properties import (
    REQUESTS,
    check_drain,
    check_hard_rules,
    check_repair,
    check_replication_factor,
    check_tolerance,
    fits,
)
from tests.planning.rebalance.test_copy_sources import skewed
from tests.planning.slices.in_process import plan_sliced
from tests.planning.strategies import clusters

SOME = examples(20)
COUNTS = st.integers(1, 3)


def sliced(of: Cluster, request: ReassignmentRequest, count: int = 2):
    return plan_sliced(of.snapshot(), request, count, rate_bytes_per_s=10)


@SOME
@given(of=clusters(), request=REQUESTS, count=COUNTS)
def test_hard_rules_hold_whatever_is_asked(of, request, count):
    assume(fits(of, request) and request.action in OVERLAID)
    check_hard_rules(of, request, sliced(of, request, count))


@SOME
@given(of=clusters(), drained=st.sets(st.integers(0, 6), min_size=1, max_size=3), count=COUNTS)
def test_a_drain_empties_its_brokers_and_copies_the_fewest_bytes(of, drained, count):
    request = ReassignmentRequest(Action.DRAIN, brokers=tuple(sorted(drained & set(of.racks))))
    assume(request.brokers and fits(of, request))
    check_drain(of, request, sliced(of, request, count))


@SOME
@given(of=clusters(), replicas=st.integers(1, 4), count=COUNTS)
def test_racks_are_repaired_and_replication_factors_set(of, replicas, count):
    check_repair(of, sliced(of, ReassignmentRequest(Action.REPAIR_RACKS), count))
    assume(replicas <= len(of.racks))
    request = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=replicas)
    check_replication_factor(of, replicas, sliced(of, request, count))


@SOME
@given(of=clusters(), tolerance=st.sampled_from([0.02, 0.1, 0.3]), count=COUNTS)
def test_a_rebalance_is_within_tolerance_or_names_every_broker_that_is_not(of, tolerance, count):
    request = ReassignmentRequest(Action.REBALANCE, tolerance=tolerance)
    check_tolerance(of, tolerance, sliced(of, request, count))


def with_rates(snapshot):
    size = snapshot.replicas.column("size_bytes").to_numpy()
    table = snapshot.replicas
    for name, part in (("bytes_in_per_s", 0.001), ("bytes_out_per_s", 0.0031)):
        table = table.append_column(name, pa.array(size * part))
    return replace(snapshot, replicas=table)


STRICT = {"tolerances": {"replicas": 0.1, "leaders": 0.1}}


@pytest.mark.parametrize(
    ("params", "new", "over"),
    [
        ({"action": "rebalance"}, 0.2, 1.05),
        pytest.param({"action": "rebalance"} | STRICT, 0.2, 1.10, marks=pytest.mark.long),
        pytest.param({"action": "rebalance"}, 0.0, 1.15, marks=pytest.mark.long),
        ({"action": "drain", "brokers": [0, 20]}, 0.0, 1.0),
    ],
    ids=["expansion", "strict", "skew", "drain"],
)
def test_slices_reach_what_the_whole_reaches_for_hardly_more_bytes(params, new, over):
    snapshot, request = with_rates(large_snapshot(3_000, 30, new=new)), parse_request(params)
    whole = make_plan(snapshot, request, PlanOptions(plan_id="p")).summary
    summary = plan_sliced(snapshot, request, 4).summary
    print(f"{summary.bytes_to_move / whole.bytes_to_move:.4f} x the bytes of the whole's plan")
    led = [item for item in summary.infeasible if item.obstacle is Obstacle.NO_LEADER_CHANGE]
    assert len(led) == len(summary.infeasible)
    assert len(led) <= len(whole.infeasible) + 4  # leaders of heavy partitions pass in one slice
    assert summary.rack_violations_after == 0
    assert [b.size_bytes_before for b in summary.brokers] == [
        b.size_bytes_before for b in whole.brokers
    ]
    assert sum(b.replicas_after for b in summary.brokers) == 9_000
    assert summary.lower_bound_bytes <= summary.bytes_to_move <= whole.bytes_to_move * over


def test_an_expansion_in_slices_fills_the_new_broker_alone():
    of = cluster([""] * 4, [(0,)] * 60 + [(1,)] * 40 + [(2,)] * 20)
    made = sliced(of, parse_request({"action": "expand", "brokers": [3]}), 3)
    assert {broker for move in made.moves for broker in move.adding} == {3}
    assert made.summary.brokers[3].size_bytes_after == 3000
    assert made.summary.infeasible == ()
    assert made.moves[0].why == (
        "Broker 0 held 6 kB of a share of 3.5 kB; broker 3, which held 0 B of a share of 3 kB, "
        "takes its place."
    )
    assert sliced(of.after(made), parse_request({"action": "expand", "brokers": [3]})).moves == ()


@pytest.mark.parametrize("one_sided", [False, True])
def test_brokers_may_hold_little_where_only_too_much_counts(one_sided):
    """Within 20 % of 30 replicas each: broker 3 lacks some, the others have too many."""
    of = cluster([""] * 4, [(0,)] * 42 + [(1,)] * 39 + [(2,)] * 39)
    params = {"action": "rebalance", "tolerance": 0.2, "one_sided": one_sided}
    summary = sliced(of, parse_request(params), 3).summary
    assert max(load.replicas_after for load in summary.brokers) <= 36
    assert (summary.brokers[3].replicas_after < 24) == one_sided
    assert summary.infeasible == ()


def test_a_budget_holds_over_all_slices():
    of = cluster([""] * 4, [(0,)] * 80 + [(1,)] * 48 + [(2,)] * 32 + [(3,)] * 32)
    made = sliced(of, parse_request({"action": "rebalance", "budget_moves": 9}), 3)
    assert 6 <= made.summary.replica_moves <= 9
    assert any("movement budget" in obstacle_text(item) for item in made.summary.infeasible)


def test_a_slice_gets_the_disk_that_the_others_leave():
    """One large partition fits on broker 2 only when its slice may have all of the free disk."""
    of = cluster(
        ["", "", ""],
        [(0,), (0,), (0,)],
        [900, 10, 10],
        disks={0: (2_000, 0), 1: (2_000, 50), 2: (2_000, 1_000)},
    )
    made = sliced(of, parse_request({"action": "drain", "brokers": [0]}), 3)
    assert made.moves[0].target == (2,)
    assert len(made.moves) == 3
    too_large = replace(of, sizes=dict.fromkeys(of.sizes, 900))
    with pytest.raises(InvalidRequestError, match="disk space"):
        sliced(too_large, parse_request({"action": "drain", "brokers": [0]}), 3)


@pytest.mark.parametrize("count", [2, 3, 4])
def test_slices_together_fill_no_disk(count):
    """Each alone would put all it has on the emptiest broker, which has room for two."""
    of = cluster(
        [""] * 3,
        [(0,)] * 8 + [(2,)] * 4,
        30,
        disks={0: (2_000, 0), 1: (2_000, 70), 2: (2_000, 1_000)},
    )
    for params in ({"action": "drain", "brokers": [0]}, {"action": "rebalance", "tolerance": 0.2}):
        made = sliced(of, parse_request(params), count)
        assert made.moves
        assert made.summary.brokers[1].bytes_in <= 70
        assert made.summary.brokers[0].bytes_in == 0


def test_slices_read_copies_from_near_leaders_where_replicas_are_alike(monkeypatch):
    asked = parse_request({"action": "rebalance", "tolerance": 0.05})

    def planned() -> list[PlanSummary]:
        return [sliced(skewed(1, replicas), asked).summary for replicas in (2, 3)]

    found = planned()
    monkeypatch.setattr(slice_steps, "prefer_sources", lambda problem: None)
    plain = planned()
    across, without = (sum(one.bytes_across_racks for one in some) for some in (found, plain))
    assert across < 0.97 * without
    for one, other in zip(found, plain, strict=True):
        assert one.bytes_to_move <= 1.01 * other.bytes_to_move
        assert len(one.infeasible) <= len(other.infeasible)


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"action": "drain", "brokers": [9]}, "Unknown broker 9"),
        ({"action": "rebalance", "topics": ["x*"]}, "No topic matches"),
        ({"action": "drain", "brokers": [0]}, "hidden"),
    ],
)
def test_what_the_cluster_contradicts_is_refused(params, problem):
    of = cluster([""] * 3, [(0, 1), (1, 0), (1, 2)])
    if problem == "hidden":
        of = replace(of, hidden_topics=("secret",))
    with pytest.raises(InvalidRequestError, match=problem):
        sliced(of, parse_request(params), 2)
