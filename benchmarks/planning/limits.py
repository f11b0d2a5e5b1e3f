"""What caps, broker sets and targets that have to be asked for cost: `make bench-limits`.

A cluster is planned without limits, with caps that no broker comes near, with caps that some and
that many exceed, with broker sets that many replicas lie outside of, and with caps and sets; with
targets for leader bytes in, potential bytes out and a minimum of leaders, with these and caps, and
with all of that. Each is planned once in one process; times are seconds of the processor. The first
case is planned with all of these, the others with the last three; so is the whole plan job of the
first case. Writes benchmarks/results/limits.json and a table in docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import document
from benchmarks.clusters import CASES, Instance, build
from benchmarks.planning.job import whole_job
from benchmarks.planning.plan import SIZES, prepared, where_and_when
from rehome.domain.actions import Action
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.request import ReassignmentRequest, request_to_params
from rehome.planning.limits.apply_limits import above_caps, apply_limits, outside_sets
from rehome.planning.rebalance.rebalance import plan_rebalance

RESULTS = Path(__file__).parents[1] / "results" / "limits.json"
PLAIN = ReassignmentRequest(Action.REBALANCE)
ASKED = ReassignmentRequest(
    Action.REBALANCE,
    tolerances={"leader_bytes_in": 0.05, "potential_bytes_out": 0.05},
    min_leaders={"t000000*": 1},
)
LIMITS: dict[str, tuple[float | None, bool, ReassignmentRequest]] = {
    "none": (None, False, PLAIN),
    "caps out of reach": (3.0, False, PLAIN),
    "caps that some exceed": (1.3, False, PLAIN),
    "caps that many exceed": (1.15, False, PLAIN),
    "sets": (None, True, PLAIN),
    "caps and sets": (1.3, True, PLAIN),
    "targets": (None, False, ASKED),
    "caps and targets": (1.3, False, ASKED),
    "caps, sets and targets": (1.3, True, ASKED),
}
"""Of the mean of all brokers, what a cap lets each hold; whether there are broker sets; and what is
asked for.
"""

HARDEST = ("none", "targets", "caps and targets", "caps, sets and targets")
"""Limits of the further cases, and of the whole job."""

JOB = "whole job"

COLUMNS = {
    "case": "case",
    "limits": "limits",
    "CPU s": "cpu_s",
    "of that without": "time_ratio",
    "GB copied": "copied_gb",
    "of that without ": "bytes_ratio",
    "replicas outside of their set before": "outside_before",
    "after": "outside_after",
    "caps broken": "broken_caps",
}


def caps_of(instance: Instance, room: float) -> BrokerCaps:
    """Every broker may hold so much of the mean."""
    arrays = instance.arrays
    brokers, replicas = len(arrays.brokers.ids), int((arrays.rows >= 0).sum())
    width = arrays.rows.shape[1]
    rates = {
        name: float(values.sum() * times / brokers * room)
        for name, values, times in (
            ("bytes_in", arrays.bytes_in, width),
            ("bytes_out", arrays.bytes_out, 1),
        )
        if values is not None
    }
    return BrokerCaps(
        default=BrokerLimits(
            replicas=int(replicas / brokers * room),
            leaders=int(len(arrays.rows) / brokers * room),
            **rates,
        )
    )


def sets_of(instance: Instance) -> tuple[BrokerSet, ...]:
    """Half of the brokers for two fifths of the topics, the others for two fifths as well."""
    ids, topics = instance.arrays.brokers.ids.tolist(), instance.arrays.topics
    return tuple(
        BrokerSet(name=name, topics=tuple(topics[start::5]), brokers=tuple(ids[start::2]))
        for start, name in enumerate(("even", "odd"))
    )


def measured(instance: Instance, name: str) -> dict[str, Any]:
    """Plan the cluster once."""
    room, sets, request = LIMITS[name]
    arrays = apply_limits(
        instance.arrays,
        caps_of(instance, room) if room else None,
        sets_of(instance) if sets else None,
    )
    began = time.process_time()
    layout = plan_rebalance(arrays, request).layout
    cpu_s = time.process_time() - began
    new = (layout.rows[:, :, None] != layout.origin[:, None, :]).all(axis=2)
    return {
        "limits": name,
        "cpu_s": round(cpu_s, 1),
        "copied_gb": round(int((new.sum(axis=1) * layout.size).sum()) / 1e9, 1),
        "outside_before": int(outside_sets(arrays, layout.origin).sum()),
        "outside_after": int(outside_sets(arrays, layout.rows).sum()),
        "broken_caps": len(above_caps(arrays, layout.origin, layout.rows)),
    }


def jobs(instance: Instance, replicas: int) -> Iterator[dict[str, Any]]:
    """Run the whole plan job on the first case: with each of the hardest limits, twice, in turn.
    The faster of both is kept.
    """
    with tempfile.TemporaryDirectory() as place:
        uri = prepared(CASES[0], *SIZES[replicas], place, disks=True)
        params = {name: request_to_params(_request(instance, name)) for name in HARDEST}
        took: dict[str, list[dict[str, Any]]] = {name: [] for name in HARDEST}
        for name in HARDEST * 2:
            of_run = tempfile.mkdtemp(dir=place)
            took[name].append(whole_job(uri, params[name], of_run))
        for name in HARDEST:
            found = min(took[name], key=lambda run: float(run["cpu_s"]))
            yield {
                "limits": name,
                "cpu_s": found["cpu_s"],
                "total_s": found["total_s"],
                "copied_gb": round(found["bytes_moved"] / 1e9, 1),
            }


def _request(instance: Instance, name: str) -> ReassignmentRequest:
    room, sets, request = LIMITS[name]
    return replace(
        request,
        caps=caps_of(instance, room) if room else None,
        broker_sets=sets_of(instance) if sets else None,
    )


def _beside(found: dict[str, Any], first: dict[str, Any]) -> dict[str, float]:
    """What is measured, as multiples of what is measured without limits."""
    return {
        "time_ratio": round(found["cpu_s"] / max(first["cpu_s"], 0.1), 2),
        "bytes_ratio": round(found["copied_gb"] / max(first["copied_gb"], 0.1), 2),
    }


def _in_all(results: list[dict[str, Any]]) -> list[str]:
    """Sentences: how much longer all cases take with limits than without."""
    lines = []
    planned = [row for row in results if not row["case"].endswith(JOB)]
    for name in HARDEST[1:]:
        ratios = [row["time_ratio"] for row in planned if row["limits"] == name]
        if ratios:
            lines.append(
                f"{len(ratios)} cases, {name}: {median(ratios):.1f} times the time without in the "
                f"median, {max(ratios):.1f} times at most."
            )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicas", type=int, choices=SIZES, default=1_000_000)
    parser.add_argument("--cases", nargs="+", default=[case.name for case in CASES])
    parser.add_argument("--limits", nargs="+", choices=LIMITS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results: list[dict[str, Any]] = []
    for case in (case for case in CASES if case.name in options.cases):
        instance = build(case, *SIZES[options.replicas])
        first: dict[str, Any] = {}
        for name in options.limits or (LIMITS if not results else HARDEST):
            found = measured(instance, name)
            first = first or found
            results.append(where_and_when() | {"case": case.name} | found | _beside(found, first))
            print(json.dumps(results[-1]), flush=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    if CASES[0].name in options.cases and not options.limits:
        runs = list(jobs(build(CASES[0], *SIZES[options.replicas]), options.replicas))
        case_name = f"{CASES[0].name}, {JOB}"
        results += [
            where_and_when() | {"case": case_name} | run | _beside(run, runs[0]) for run in runs
        ]
        options.out.write_text(json.dumps(results, indent=1) + "\n")
    lines = [*document.table(COLUMNS, results), "", *_in_all(results)]
    print(*lines, sep="\n")
    if options.out == RESULTS:
        made = results[0]
        where = f"Made {made['date'][:10]} on {made['cores']} cores shared with other work."
        document.put(document.DOCS / "benchmarks.md", "bench-limits", [where, "", *lines])


if __name__ == "__main__":
    main()
