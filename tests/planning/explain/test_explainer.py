"""Explanations name the rule or the target behind a decision, from the plan's files alone."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.cause_text import why_text
from rehome.domain.plan.infeasible_text import obstacle_text
from rehome.domain.request.parse_request import parse_request
from rehome.domain.resources import Resource
from rehome.errors import InvalidRequestError
from rehome.load_history.known_rates import Demands, LoadHistory
from rehome.planning.explain.explainer import Explainer
from rehome.planning.explain.explanation import PartitionExplained, Verdict
from rehome.planning.explain.text import broker_text, partition_text
from rehome.planning.options import PlanOptions
from rehome.planning.planner import make_plan
from rehome.warehouse import Warehouse
from spark_jobs import explain as command
from tests.load_history.recorded import START
from tests.load_history.recorded import Cluster as RecordedCluster
from tests.planning.clusters import Cluster, cluster
from tests.planning.jbod import with_disks
from tests.planning.planned import THREE_RACKS, T, both
from tests.planning.result.test_summary_figures import with_rates
from tests.quality.snapshots import Rows


def explainer(of: Cluster, **params: Any) -> Explainer:
    request = parse_request(params)
    snapshot = of.snapshot()
    return Explainer(snapshot, request, make_plan(snapshot, request, PlanOptions(plan_id="p")))


def verdicts(found: PartitionExplained) -> dict[int, Verdict]:
    (copy,) = found.copies
    return {choice.broker: choice.verdict for choice in copy.choices}


CROWDED = replace(
    cluster(
        [*THREE_RACKS, "/r0", "/r0", "/r0", "/r0"],
        [(0, 2, 4)],
        disks={b: (1000, 50 if b == 7 else 900) for b in range(10)},
        cordoned=frozenset({6}),
    ),
    dead=frozenset({8}),
)


def test_every_other_place_of_a_replica_is_reported_with_what_forbids_it() -> None:
    found = explainer(CROWDED, action="drain", brokers=[0], exclude_brokers=[9]).partition(T[0])
    assert found.move is not None
    assert found.move.target == (1, 2, 4) or set(found.move.target) == {1, 2, 4}
    assert verdicts(found) == {
        0: Verdict.HOLDS_ONE,
        1: Verdict.CHOSEN,
        2: Verdict.HOLDS_ONE,
        3: Verdict.RACKS,
        4: Verdict.HOLDS_ONE,
        5: Verdict.RACKS,
        6: Verdict.TAKES_NONE,
        7: Verdict.DISK,
        8: Verdict.GONE,
        9: Verdict.TAKES_NONE,
    }
    assert found.copies[0].source == 0


def test_places_that_would_miss_a_target_and_places_that_would_do_as_well_are_distinguished() -> (
    None
):
    of = cluster([""] * 4, [(0,)] * 9 + [(1,)] * 6 + [(2,)] * 3 + [(3,)] * 6)
    asked = explainer(of, action="rebalance")
    moved = [name for name in of.replicas if asked.partition(name).move]
    assert len(moved) == 3
    assert verdicts(asked.partition(moved[0])) == {
        0: Verdict.HOLDS_ONE,
        1: Verdict.OUTSIDE,
        2: Verdict.CHOSEN,
        3: Verdict.OUTSIDE,
    }
    (copy,) = asked.partition(moved[0]).copies
    outside = [c for c in copy.choices if c.verdict is Verdict.OUTSIDE]
    assert {c.resource for c in outside} == {Resource.BYTES}
    assert [c.excess for c in outside] == pytest.approx([(700 - 612) / 600] * 2)
    of = cluster([""] * 4, [(0,)] * 9 + [(1,)] * 5 + [(2,)] * 5 + [(3,)] * 5)
    loose = explainer(of, action="rebalance", tolerance=0.2)
    moved = [name for name in of.replicas if loose.partition(name).move]
    assert list(verdicts(loose.partition(moved[0])).values()).count(Verdict.POSSIBLE) == 2


def test_what_keeping_a_replica_would_have_meant_is_reported() -> None:
    of = cluster([""] * 2, [(0,)] * 4)
    asked = explainer(of, action="rebalance")
    found = asked.partition(next(name for name in of.replicas if asked.partition(name).move))
    (held,) = found.replica_explanations
    assert held.leaves
    assert held.load == ((Resource.BYTES, 300, 196, 204),)
    text = partition_text(found)
    assert "If it kept its replica, broker 0 would end with: 300 B, above its band" in text
    assert found.move is not None
    assert f"Why: {why_text(found.move)}" in text


@pytest.mark.parametrize(
    ("of", "params", "reason"),
    [
        (
            cluster([""] * 2, [(0,)] * 10, adding=frozenset({(T[3], 0)})),
            {"action": "rebalance"},
            "it was being reassigned already",
        ),
        (
            both(cluster([""] * 2, [(0,)] * 4), cluster([""] * 2, [(0,)] * 2, topic="other")),
            {"action": "rebalance", "exclude_topics": ["t"]},
            "its topic is not in the scope of the request, or is excluded",
        ),
        (
            cluster([""] * 3, [(0, 1)] * 4, dead=frozenset({1})),
            {"action": "drain", "brokers": [2]},
            "one of its replicas was on a broker that was not live, or in a failed log dir",
        ),
        (
            cluster([""] * 3, [(0,)] * 4),
            {"action": "drain", "brokers": [0], "budget_moves": 3},
            "the movement budget does not pay for more",
        ),
        (
            cluster([""] * 3, [(0,)] * 4),
            {"action": "set_replication_factor", "replication_factor": 2, "budget_moves": 3},
            "the movement budget does not pay for more",
        ),
        (
            cluster(["/a", "/a", "/b"], [(0, 1)] * 4),
            {"action": "repair_racks", "budget_moves": 3},
            "the movement budget does not pay for more",
        ),
        (
            cluster([""] * 3, [(0, 1)] * 4, dead=frozenset({0})),
            {"action": "drain", "brokers": [0], "budget_moves": 3},
            "the movement budget does not pay for more",
        ),
        (
            cluster(["/a", "/a", "/b"], [(0, 1)] * 4, disks=dict.fromkeys(range(3), (1000, 0))),
            {"action": "repair_racks"},
            "the brokers that would spread it more evenly over the racks have no disk space for it",
        ),
        (cluster([""] * 2, [(0,), (1,)] * 4), {"action": "rebalance"}, ""),
    ],
)
def test_a_partition_that_stays_has_the_reason(
    of: Cluster, params: dict[str, Any], reason: str
) -> None:
    found = explainer(of, **params).partition(T[3])
    assert found.move is None
    assert found.barred == reason
    assert (reason or "Nothing asks for it") in partition_text(found)


@pytest.mark.slow
def test_a_broker_is_explained_by_loads_and_bands_and_replicas_given_and_received() -> None:
    of = with_rates(cluster([""] * 3, [(0,)] * 6))
    found = explainer(of, action="rebalance", exclude_brokers=[2]).broker(0)
    loads = {resource: rest for resource, *rest in found.loads}
    assert loads[Resource.BYTES] == [600, 600 - 100 * len(found.gives), 294, 306]
    assert loads[Resource.REPLICAS][2:] == [None, None]
    assert {move.adding for move in found.gives} == {(1,)}
    assert found.receives == ()
    other = explainer(of, action="rebalance", exclude_brokers=[2]).broker(2)
    assert any("it is excluded" in obstacle_text(item) for item in other.infeasible)
    text = broker_text(other)
    assert "OUTSIDE" in text
    assert "what keeps it outside in bytes" in text


def test_a_balanced_broker_says_that_no_band_needs_more() -> None:
    text = broker_text(explainer(cluster([""] * 2, [(0,)] * 4), action="rebalance").broker(1))
    assert "bytes: 0 B → 200 B (band 196 B to 204 B, inside)" in text
    assert "receives 2 replicas, 200 B, the largest:" in text
    assert "it ends inside all its bands" in text
    drained = explainer(cluster([""] * 2, [(0,)] * 4), action="drain", brokers=[0]).broker(0)
    assert "the action asks for no more" in broker_text(drained)


def test_long_lists_are_cut_short() -> None:
    of = cluster([""] * 40, [(0,)] * 4, sizes=[0] * 4)
    (found,) = explainer(of, action="drain", brokers=[0], topics=["t"]).partition(T[0]).copies
    assert len(found.choices) == 40
    text = partition_text(explainer(of, action="drain", brokers=[0]).partition(T[0]))
    assert "28 more" in text
    assert len(text) < 1000


def test_another_snapshot_is_refused() -> None:
    of = cluster([""] * 2, [(0,)])
    request, snapshot = parse_request({"action": "rebalance"}), of.snapshot()
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    with pytest.raises(InvalidRequestError, match="not on cluster=other"):
        Explainer(replace(snapshot, cluster_id="other"), request, plan)


@pytest.fixture
def plan_uri(tmp_path: Path) -> str:
    of, warehouse = with_rates(cluster([""] * 2, [(0,)] * 4)), Warehouse(tmp_path.as_uri())
    params = {"action": "rebalance", "window_end": "2999-01-01T00:00:00Z"}
    request, snapshot = parse_request(params), of.snapshot()
    warehouse.write_snapshot(snapshot)
    directory = warehouse.plan("p")
    directory.save(make_plan(snapshot, request, PlanOptions(plan_id="p")), request)
    expired = directory.read_json("request.json") | {"window_end": "2001-01-01T00:00:00+00:00"}
    directory.write_json("request.json", expired)
    return directory.uri


@pytest.mark.slow
def test_the_command_needs_the_warehouse_alone(
    plan_uri: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--plan", plan_uri, "--partition", "t-0", "--partition", "t-3", "--broker", "1"]
    assert command.main(asked) == 0
    said = capsys.readouterr().out
    assert "t-0 (100 B per replica)" in said
    assert "t-3 (100 B per replica)" in said
    assert "Broker 1\n  bytes: 0 B → " in said
    assert command.main(["--plan", plan_uri, "--prices"]) == 0
    priced = capsys.readouterr().out
    assert "What each target costs" in priced
    assert "  bytes: " in priced


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--partition", "t-9"], "Unknown partition t-9"),
        (["--partition", "orders"], "'orders' is no partition: write topic-number"),
        (["--broker", "7"], "Unknown broker 7"),
        (["--broker", "1", "--snapshot", "file:///nowhere"], "snapshot.json does not exist"),
    ],
)
def test_the_command_reports_what_does_not_exist(
    plan_uri: str, capsys: pytest.CaptureFixture[str], arguments: list[str], problem: str
) -> None:
    assert command.main(["--plan", plan_uri, *arguments]) == command.CANNOT
    assert problem in capsys.readouterr().err


def test_rates_that_came_from_elsewhere_are_not_judged() -> None:
    of = with_rates(cluster([""] * 2, [(0,)] * 4))
    request, snapshot = parse_request({"action": "rebalance"}), of.snapshot()
    plan = make_plan(snapshot, request, PlanOptions(plan_id="p"))
    bare = cluster([""] * 2, [(0,)] * 4).snapshot()
    assert set(Explainer(bare, request, plan).unmeasured_resources()) == {
        Resource.BYTES_IN,
        Resource.BYTES_OUT,
    }
    assert Explainer(snapshot, request, plan).unmeasured_resources() == ()
    held = Explainer(bare, request, plan).partition(TopicPartition("t", 0)).replica_explanations
    assert {resource for item in held for resource, *_ in item.load} == {Resource.BYTES}


@pytest.mark.slow
def test_traffic_is_judged_by_the_history_that_the_plan_was_made_by(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded = RecordedCluster(tmp_path.as_uri())
    for number in range(5):
        recorded.snapshot(20 * number)
    recorded.roll_up()
    snapshot = replace(Rows().snapshot(), taken_at=START + timedelta(minutes=81))
    recorded.warehouse.write_snapshot(snapshot)
    rated = LoadHistory.read(recorded.warehouse, snapshot, Demands(min_hours=1.0)).with_rates(
        snapshot
    )
    request = parse_request({"action": "rebalance", "tolerance": 0.9})
    made = make_plan(rated, request, PlanOptions(plan_id="p"))
    directory = recorded.warehouse.plan("p")
    directory.save(made, request)
    moved = next(move.partition for move in made.moves if move.adding)
    asked = ["--plan", directory.uri, "--partition", str(moved)]
    assert command.main(asked) == 0
    bare = capsys.readouterr().out
    assert "does not have them per partition: bytes in per second" in bare
    history = ["--history", recorded.warehouse.uri, "--min-history-hours", "1"]
    assert command.main([*asked, *history]) == 0
    judged = capsys.readouterr().out
    assert "Not judged" not in judged
    assert "B/s" in judged.split("If it kept")[1]


def test_a_demotion_says_why_a_partition_keeps_its_leader() -> None:
    of = cluster([""] * 3, [(0, 1), (0,), (1, 0)])
    explained = explainer(of, action="demote", brokers=[0])
    texts = [partition_text(explained.partition(T[number])) for number in range(3)]
    assert "Why: Broker 0 is demoted; broker 1 has its data in sync and leads it." in texts[0]
    assert "no broker that is not demoted has a replica of it in sync" in texts[1]
    assert "It could not move: no broker that is demoted leads it, or is preferred to." in texts[2]


def test_an_evacuation_says_why_a_partition_stays() -> None:
    of = cluster([""] * 2, [(0, 1), (1, 0), (0, 1)])  # partition n lies in log dir n % 2
    two = {"/d0": (10_000, 5_000), "/d1": (10_000, 5_001)}
    snapshot = with_disks(of, {0: two, 1: two})
    request = parse_request({"action": "evacuate_log_dirs", "log_dirs": ["0:/d0"]})
    about = Explainer(snapshot, request, make_plan(snapshot, request, PlanOptions(plan_id="p")))
    assert "It could not move: none of its replicas lay in a log dir" in partition_text(
        about.partition(T[1])
    )


def test_a_broker_without_its_minimum_of_leaders_says_what_keeps_it_from_them() -> None:
    of = cluster([""] * 3, [(0,), (1,), (1,)], topic="t")
    about = explainer(of, action="balance_leaders", min_leaders={"t": 1})
    lacking, well = (broker_text(about.broker(broker)) for broker in (2, 0))
    assert "not possible: topic t on broker 2" in lacking
    assert lacking.endswith("what keeps it from its minimum of leaders is named above.")
    assert "min_leaders" not in well
    assert "minimum" not in well
    few = explainer(
        cluster([""] * 3, [(0,), (1,)], topic="t"), action="balance_leaders", min_leaders={"t": 1}
    )
    assert "too few partitions" in broker_text(few.broker(2))


def test_a_cap_and_a_broker_set_are_reported_as_what_forbids_a_place() -> None:
    of = cluster([""] * 6, [(0, 1), (1, 2), (3, 2)])
    limits = {
        "broker_sets": [{"name": "fast", "topics": ["t"], "brokers": [0, 1, 2, 3, 4]}],
        "caps": {"brokers": {"3": {"replicas": 1}}},
    }
    found = explainer(of, action="drain", brokers=[0], **limits).partition(T[0])
    assert verdicts(found) == {
        0: Verdict.HOLDS_ONE,
        1: Verdict.HOLDS_ONE,
        2: Verdict.POSSIBLE,
        3: Verdict.CAP,
        4: Verdict.CHOSEN,
        5: Verdict.SET,
    }


def test_a_partition_that_its_broker_set_cannot_hold_is_named() -> None:
    of = cluster([""] * 3, [(0, 1)])
    sets = [{"name": "one", "topics": ["t"], "brokers": [2]}]
    found = explainer(of, action="repair_racks", broker_sets=sets).partition(T[0])
    assert "broker set" in found.barred
