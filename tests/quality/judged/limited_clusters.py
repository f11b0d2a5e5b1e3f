"""Odd clusters with limits and harm: caps, broker sets, destinations, racks within racks, leaders
spread by topic, dead brokers and failed log dirs beside JBOD; every action.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import LOG_DIRS, Snapshot
from rehome.domain.actions import Action
from rehome.domain.request.parameters import USED_BY
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import Cluster
from tests.quality.judged.odd_clusters import TOPICS, odd_cluster, odd_params, odd_snapshot
from tests.quality.plan.cases import planned

_ACTIONS = [action for action in Action if action is not Action.ROLLBACK]
_DEEP = ("/a", "/a/x", "/a/x/1", "/a/x/2", "/a/y", "/b", "/b/z", "/b/z/3", "/c/v/4", "")


def limited_cluster(rng: Random) -> Cluster:
    """An odd cluster, often a tiny one, or with racks within racks; some are being reassigned."""
    of = odd_cluster(rng)
    if rng.random() < 0.3:
        of = _tiny(rng, of)
    if rng.random() < 0.4:
        few = rng.sample(_DEEP, rng.randint(2, len(_DEEP)))
        of = replace(of, racks={broker: rng.choice(few) for broker in of.racks})
    replicas = [(p, broker) for p, row in of.replicas.items() for broker in row]
    return replace(
        of,
        adding=frozenset(rng.sample(replicas, rng.choice([0, 0, 0, 1]))),
        lagging=frozenset(r for r in replicas if rng.random() < rng.choice([0, 0, 0.1])),
        leaders={p: rng.choice(row) for p, row in of.replicas.items() if rng.random() < 0.1},
        min_isr={topic: rng.randint(1, 3) for topic in TOPICS if rng.random() < 0.2},
    )


def _tiny(rng: Random, of: Cluster) -> Cluster:
    """A few of its brokers and partitions."""
    ids = sorted(rng.sample(list(of.racks), min(len(of.racks), rng.randint(1, 4))))
    some = rng.sample(list(of.replicas), rng.randint(1, 9))
    return replace(
        of,
        racks={broker: of.racks[broker] for broker in ids},
        replicas={p: rng.sample(ids, min(len(ids), len(of.replicas[p]))) for p in some},
        sizes={p: of.sizes[p] for p in some},
    )


def harmed(rng: Random, snapshot: Snapshot) -> Snapshot:
    """With dead brokers and failed log dirs, whose replicas are offline."""
    brokers, log_dirs = snapshot.brokers.to_pylist(), snapshot.log_dirs.to_pylist()
    dead = {row["broker"] for row in brokers if rng.random() < rng.choice([0, 0.1, 0.3])}
    places = [(row["broker"], row["log_dir"]) for row in log_dirs]
    failed = {place for place in places if rng.random() < rng.choice([0, 0.1])}
    for row in brokers:
        row["live"] = row["answered"] = row["live"] and row["broker"] not in dead
    for row in log_dirs:
        row["offline"] |= (row["broker"], row["log_dir"]) in failed
    replicas = snapshot.replicas.to_pylist()
    led = set()
    for row in sorted(replicas, key=lambda row: (not row["is_leader"], row["position"])):
        key, place = (row["topic"], row["partition"]), (row["broker"], row["log_dir"])
        if row["broker"] in dead or place in failed:
            row |= {"log_dir": None, "size_bytes": None, "in_isr": False}
        row["is_leader"] = row["in_isr"] and key not in led
        led |= {key} if row["is_leader"] else set()
    live_dirs = [row for row in log_dirs if row["broker"] not in dead]
    return replace(
        snapshot,
        brokers=pa.Table.from_pylist(brokers, snapshot.brokers.schema),
        log_dirs=pa.Table.from_pylist(live_dirs, LOG_DIRS),
        replicas=pa.Table.from_pylist(replicas, snapshot.replicas.schema),
    )


def limited_params(rng: Random, of: Cluster, action: Action) -> dict[str, Any]:
    """Odd parameters, and limits beside them."""
    params = odd_params(rng, of, action)
    ids = list(of.racks)
    some = sorted(rng.sample(ids, rng.randint(1, len(ids))))
    if action is Action.REASSIGN:
        params["reassignment"] = _file(rng, of)
        params["allow_replication_factor_change"] = rng.random() < 0.5
    if action is Action.REPLACE:
        shuffled = rng.sample(ids, len(ids))
        pairs = rng.randint(1, max(1, len(ids) // 2))
        params["replacements"] = {
            str(old): new for old, new in zip(shuffled[:pairs], shuffled[::-1], strict=False)
        }
    optional: dict[str, Any] = {
        "brokers": some,
        "destinations": some,
        "topic_spread_of": "leaders",
        "caps": _caps(rng, of),
        "broker_sets": _sets(rng, ids),
        "move_overhead_bytes": rng.choice([0, 1_000]),
        "min_leaders": {rng.choice(["orders", "*", "pay-*"]): rng.randint(1, 4)},
        "tolerances": {"topic_spread": rng.choice([0, 0.1, 0.5])},
        "effort": "thorough",
    }
    chances = {"caps": 0.3, "broker_sets": 0.4, "topic_spread_of": 0.5, "effort": 0.03}
    return params | {
        name: value
        for name, value in optional.items()
        if action in USED_BY.get(name, Action)
        and name not in params
        and rng.random() < chances.get(name, 0.15)
    }


def _file(rng: Random, of: Cluster) -> dict[str, Any]:
    some = rng.sample(list(of.replicas), min(len(of.replicas), 3))
    rows = {p: rng.sample(list(of.racks), min(len(of.racks), rng.randint(1, 3))) for p in some}
    entries = [
        {"topic": p.topic, "partition": p.partition, "replicas": row} for p, row in rows.items()
    ]
    return {"version": 1, "partitions": entries}


def _caps(rng: Random, of: Cluster) -> dict[str, Any]:
    """Caps near what brokers hold."""
    held = Counter(broker for row in of.replicas.values() for broker in row)
    led = Counter(row[0] for row in of.replicas.values())
    names = {
        "replicas": rng.choice([max(held.values()), held.total() // len(of.racks) + 2]),
        "leaders": rng.choice([max(led.values()), led.total() // len(of.racks) + 2]),
        "disk_fraction": rng.choice([0.9, 0.6, 0.3]),
        "bytes_in": 100_000.0,
        "bytes_out": 300_000.0,
    }
    limits = {name: value for name, value in names.items() if rng.random() < 0.4}
    own = {str(rng.choice(list(of.racks))): {"replicas": rng.randint(0, held.total())}}
    return {"default": limits, "brokers": rng.choice([{}, own])}


def _sets(rng: Random, ids: list[int]) -> list[dict[str, Any]]:
    """Up to three, of which some share brokers or keep others off."""
    names = [["orders"], ["pay-*"], ["__offsets", "orders"], ["*"], ["logs-?", "pay-in"]]
    return [
        {
            "name": f"s{number}",
            "topics": rng.choice(names),
            "brokers": sorted(rng.sample(ids, rng.randint(1, len(ids)))),
            "exclusive": rng.random() < 0.5,
        }
        for number in range(rng.randint(1, 3))
    ]


def limited_plans(seeds: range) -> Iterator[tuple[int, Checked]]:
    """Plans of these seeds, those that the planner does not refuse."""
    for seed in seeds:
        rng = Random(f"limited {seed}")
        of, action = limited_cluster(rng), _ACTIONS[seed % len(_ACTIONS)]
        snapshot = odd_snapshot(rng, of)
        if rng.random() < 0.3 or action is Action.FIX_OFFLINE_REPLICAS:
            snapshot = harmed(rng, snapshot)
        params = limited_params(rng, of, action)
        try:
            yield seed, planned(snapshot, parse_request(params))
        except InvalidRequestError:  # it contradicts the cluster
            continue
