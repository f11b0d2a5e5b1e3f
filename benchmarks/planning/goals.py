"""Cruise Control's goals, measured before and after a plan: `make bench-goals`.

Each measure is worked out from the rows alone, by code that shares nothing with the planner. Writes
benchmarks/results/goals.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks import document
from benchmarks.clusters import CASES, Case, Instance, build
from benchmarks.planning.judged import RESOURCES, Rows, judged, loads
from benchmarks.planning.limits import caps_of, sets_of
from benchmarks.planning.plan import ANYHOW, SIZES, request_of, solved, where_and_when
from benchmarks.planning.topics import uneven
from rehome.domain.actions import Action
from rehome.domain.request.request import ReassignmentRequest
from rehome.planning.limits.apply_limits import apply_limits
from rehome.planning.rebalance.rebalance import plan_rebalance

RESULTS = Path(__file__).parents[1] / "results" / "goals.json"
POLICIES = ("default", "strict")
LEAST, TOPICS = 1, 10
"""Leaders that every broker is to lead at least, of each of so many topics."""

CAP = 1.2
"""What a broker may hold at most, of the mean of all."""

ASKED = ReassignmentRequest(
    Action.REBALANCE,
    tolerances=ANYHOW | {"leader_bytes_in": 0.05, "potential_bytes_out": 0.05},
    min_leaders={"t000000?": LEAST},
)
"""What has to be asked for, on top of the defaults."""

GOALS = {
    "DiskUsageDistributionGoal": "bytes",
    "ReplicaDistributionGoal": "replicas",
    "NetworkInboundUsageDistributionGoal": "bytes_in",
    "LeaderReplicaDistributionGoal": "leaders",
    "NetworkOutboundUsageDistributionGoal": "bytes_out",
}
"""Cruise Control's goal → the resource whose share it is about."""

CAPACITIES = {
    "DiskCapacityGoal": "bytes",
    "ReplicaCapacityGoal": "replicas",
    "NetworkInboundCapacityGoal": "bytes_in",
    "NetworkOutboundCapacityGoal": "bytes_out",
}
"""Cruise Control's goal → the resource of which a broker may hold :data:`CAP` of the mean."""

COLUMNS = {"case": "case", "goal": "goal", "before": "before"} | {
    name: name for name in (*POLICIES, "asked")
}


def measured(instance: Instance, rows: Rows) -> dict[str, float | None]:
    """Goal → how far the furthest broker is from its share, as a part of it; or how many
    partitions, replicas, brokers or leaders break it. None where the instance knows no traffic.
    """
    found = judged(instance, rows, {})
    load = dict(zip(RESOURCES, loads(instance, rows), strict=True))
    deviation = {goal: found.deviation.get(name) for goal, name in GOALS.items()}
    potential, into_leaders = _network(instance, rows)
    return {
        "RackAwareGoal": _sharing_racks(instance, rows),
        "RackAwareDistributionGoal": found.violations,
        "BrokerSetAwareGoal": _outside_sets(instance, rows),
        "MinTopicLeadersPerBrokerGoal": _lacking(instance, rows),
        **{goal: _above(instance, load[name]) for goal, name in CAPACITIES.items()},
        **deviation,
        "TopicReplicaDistributionGoal": uneven(instance, rows),
        "PotentialNwOutGoal": _furthest(instance, potential),
        "LeaderBytesInDistributionGoal": _furthest(instance, into_leaders),
    }


def _sharing_racks(instance: Instance, rows: Rows) -> int:
    """Partitions with two replicas in one rack; a rack is a whole path."""
    paths = ["/".join(path) for path in instance.arrays.brokers.rack_paths]
    rack = np.unique(paths, return_inverse=True)[1]
    ordered = np.sort(rack[rows], axis=1)
    return int((ordered[:, 1:] == ordered[:, :-1]).any(axis=1).sum())


def _outside_sets(instance: Instance, rows: Rows) -> int:
    """Replicas that lie outside of their topic's broker set, of the sets of `make bench-limits`."""
    arrays, found = instance.arrays, 0
    for one in sets_of(instance):
        bound = rows[np.isin(arrays.topics, one.topics)[arrays.topic_of]]
        found += int((~np.isin(arrays.brokers.ids, one.brokers)[bound]).sum())
    return found


def within_sets(instance: Instance) -> Rows:
    """The rows of a rebalance by the default targets that has broker sets, too."""
    arrays = apply_limits(instance.arrays, None, sets_of(instance))
    return plan_rebalance(arrays, request_of("default")).layout.rows


def _lacking(instance: Instance, rows: Rows) -> int:
    """Leaders that brokers lack of the first topics, of :data:`LEAST` each."""
    live, topic_of = ~instance.drained, instance.arrays.topic_of
    lacking = 0
    for topic in range(TOPICS):
        led = np.bincount(rows[topic_of == topic, 0], minlength=len(live))[live]
        lacking += int(np.maximum(min(LEAST, led.sum() // live.sum()) - led, 0).sum())
    return lacking


def _above(instance: Instance, load: npt.NDArray[np.float64]) -> int:
    """Brokers that hold more than they may."""
    live = ~instance.drained
    return int((load[live] > CAP * load.sum() / live.sum()).sum())


def _network(
    instance: Instance, rows: Rows
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """(B,) bytes out per second if all replicas of a broker led, and (B,) bytes into leaders."""
    arrays, brokers = instance.arrays, len(instance.drained)
    partition, place = np.nonzero(rows >= 0)
    nothing = np.zeros(len(rows))
    out = nothing if arrays.bytes_out is None else arrays.bytes_out
    into = nothing if arrays.bytes_in is None else arrays.bytes_in
    return (
        np.bincount(rows[partition, place], out[partition], brokers).astype(float),
        np.bincount(rows[:, 0], into, brokers).astype(float),
    )


def _furthest(instance: Instance, load: npt.NDArray[np.float64]) -> float | None:
    """How far the furthest broker is from its share of the traffic, as a part of it."""
    if not load.any():
        return None
    live, size = ~instance.drained, instance.capacity[2]
    share = load.sum() * size[live] / size[live].sum()
    return round(float(np.abs(load[live] / share - 1).max()), 4)


def compared(case: Case, size: int) -> list[dict[str, Any]]:
    """A row per goal: before, and after each policy's plan."""
    instance = build(case, *SIZES[size])
    sides = {"before": measured(instance, instance.arrays.rows)}
    for policy in POLICIES:
        sides[policy] = measured(instance, solved(instance, policy).layout.rows)
    if not instance.drained.any():
        arrays = apply_limits(instance.arrays, caps_of(instance, CAP), ())
        sides["asked"] = measured(instance, plan_rebalance(arrays, ASKED).layout.rows) | {
            "BrokerSetAwareGoal": _outside_sets(instance, within_sets(instance))
        }
    return [
        {"size": size, "case": case.name, "goal": goal}
        | {name: sides[name][goal] if name in sides else None for name in list(COLUMNS)[2:]}
        for goal in sides["before"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, choices=SIZES, default=min(SIZES))
    parser.add_argument("--cases", nargs="+", default=["expansion", "drain", "skew", "rates"])
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = [
        where_and_when() | row
        for case in CASES
        if case.name in options.cases
        for row in compared(case, options.replicas)
    ]
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    lines = document.table(COLUMNS, results)
    print(*lines, sep="\n")
    if options.out == RESULTS:
        made = f"Made {results[0]['date'][:10]}, {options.replicas:,} replicas."
        document.put(document.DOCS / "benchmarks.md", "bench-goals", [made, "", *lines])


if __name__ == "__main__":
    main()
