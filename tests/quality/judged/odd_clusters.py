"""Random clusters and requests as people have them: JBOD, disks of unequal size, racks of one
broker or of none, ids with gaps, traffic known in part; every action with any of its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa

from rehome.cluster.snapshot.model import Snapshot
from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.request.parameters import USED_BY
from rehome.domain.request.parse_request import parse_request
from rehome.errors import InvalidRequestError
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import Cluster
from tests.planning.jbod import with_disks
from tests.quality.plan.cases import planned
from tests.quality.plan.clean import unwell

TOPICS = ("orders", "pay-in", "pay-out", "logs-0", "logs-1", "logs-2", "__offsets")
RACKS: Mapping[str, Callable[[Random, int], str]] = {
    "none": lambda rng, n: "",
    "even": lambda rng, n: f"/{'abc'[n % 3]}",
    "uneven": lambda rng, n: f"/{rng.choice('aaab')}",
    "one each": lambda rng, n: f"/r{n}",
    "partly": lambda rng, n: rng.choice(["", "/a", "/b"]),
    "nested": lambda rng, n: f"/dc{n % 2}/{'xyz'[n % 3]}",
}
TOLERANCES = ("replicas", "leaders", "bytes_in", "bytes_out", "leader_bytes_in", "topic_spread")


def odd_cluster(rng: Random) -> Cluster:
    """Two to fourteen brokers, of which the last ones may hold nothing."""
    ids = sorted(rng.sample(range(40), rng.randint(2, 14)))
    racks = RACKS[rng.choice(list(RACKS))]
    hosts = ids[: rng.choice([len(ids), rng.randint(1, len(ids))])]
    counts = {topic: rng.choice([1, 2, 3, 6, 12, 40]) for topic in TOPICS}
    factors = {topic: min(rng.choice([1, 2, 3, 3, 5]), len(hosts)) for topic in TOPICS}
    partitions = [TopicPartition(topic, n) for topic in TOPICS for n in range(counts[topic])]
    empty, spread = rng.choice([0, 0.1, 0.9]), rng.choice([0.0, 1.0, 2.0])
    sizes = {
        p: 0 if rng.random() < empty else int(1_000 * rng.lognormvariate(0, spread))
        for p in partitions
    }
    if rng.random() < 0.2:
        sizes[rng.choice(partitions)] = sum(sizes.values())
    return Cluster(
        racks={broker: racks(rng, n) for n, broker in enumerate(ids)},
        replicas={p: rng.sample(hosts, factors[p.topic]) for p in partitions},
        sizes=sizes,
        internal=frozenset({"__offsets"}),
    )


def odd_snapshot(rng: Random, of: Cluster) -> Snapshot:
    """With log dirs of unequal size, some cordoned, and rates of some partitions; or unwell."""
    if rng.random() < 0.3:
        return unwell(rng, of).snapshot()
    held = dict.fromkeys(of.racks, 0)
    for p, row in of.replicas.items():
        for broker in row:
            held[broker] += of.size_of(p)
    full, count = rng.choice([0.1, 0.6, 0.95]), rng.randint(1, 5)
    least = int(max(held.values()) / full) + 10
    disks = {}
    for broker in of.racks:
        totals = [least * rng.choice([1, 1, 2, 4]) + n for n in range(count)]
        disks[broker] = {f"/d{n}": (total, total - held[broker]) for n, total in enumerate(totals)}
    dirs = [(broker, path) for broker, mine in disks.items() for path in mine]
    snapshot = with_disks(of, disks, cordoned=rng.sample(dirs, rng.choice([0, 0, 1, count])))
    if rng.random() < 0.5:
        return snapshot
    known = {p: rng.lognormvariate(8, 2) for p in of.replicas if rng.random() < 0.9}
    table, replicas = snapshot.replicas, snapshot.replicas.to_pylist()
    for name in ("bytes_in_per_s", "bytes_out_per_s"):
        rates = [known.get(TopicPartition(row["topic"], row["partition"])) for row in replicas]
        table = table.append_column(name, pa.array(rates, pa.float64()))
    return replace(snapshot, replicas=table)


def odd_params(rng: Random, of: Cluster, action: Action) -> dict[str, Any]:
    """An action with what it needs, and any of the parameters that it takes."""
    ids = list(of.racks)
    some = rng.sample(ids, rng.randint(1, max(1, len(ids) // 3)))
    params: dict[str, Any] = {"action": action.value}
    if action in (Action.DRAIN, Action.EXPAND, Action.DEMOTE):
        params["brokers"] = ids[-len(some) :] if action is Action.EXPAND else some
    if action is Action.REPLACE:
        params["replacements"] = {str(ids[0]): ids[-1]}
    if action is Action.SET_REPLICATION_FACTOR:
        params["replication_factor"] = rng.randint(1, 5)
    if action is Action.EVACUATE_LOG_DIRS:
        params["log_dirs"] = [f"{rng.choice(ids)}:/d0"]
    optional: dict[str, Any] = {
        "topics": rng.choice([["pay-*"], ["orders", "__offsets"], ["logs-?"]]),
        "exclude_topics": rng.choice([["orders"], ["logs-*"]]),
        "exclude_brokers": some,
        "weights": {str(broker): rng.choice([0.25, 4]) for broker in some},
        "budget_bytes": rng.choice([1, 3_000, 100_000]),
        "budget_moves": rng.randint(1, 20),
        "tolerance": rng.choice([0, 0.1, 0.3]),
        "tolerances": {n: rng.choice([0, 0.1, None]) for n in rng.sample(TOLERANCES, 2)},
        "min_leaders": {"orders": rng.randint(1, 3)},
        "one_sided": True,
        "ignore_racks": True,
        "seed": rng.randint(1, 9),
        "dry_run": True,
    }
    params |= {
        name: value
        for name, value in optional.items()
        if action in USED_BY.get(name, Action) and rng.random() < 0.2
    }
    if action is Action.DRAIN and "topic_spread" not in params.get("tolerances", {}):
        params.pop("tolerances", None)
    return params


def odd_plans(seeds: range) -> Iterator[tuple[int, Checked]]:
    """Plans of these seeds, those that the planner does not refuse."""
    actions = [a for a in Action if a not in (Action.REASSIGN, Action.ROLLBACK)]
    for seed in seeds:
        rng = Random(f"odd {seed}")
        of, action = odd_cluster(rng), actions[seed % len(actions)]
        snapshot, params = odd_snapshot(rng, of), odd_params(rng, of, action)
        try:
            yield seed, planned(snapshot, parse_request(params))
        except InvalidRequestError:  # it contradicts the cluster
            continue
