"""Random sound clusters, and plans of every action on them: what no gate may refuse."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from rehome.domain.actions import ACTION_FACTS, Action, Trait
from rehome.domain.kafka import LogDirName, TopicPartition
from rehome.domain.request.limits import BrokerCaps, BrokerLimits, BrokerSet
from rehome.domain.request.parameters import USED_BY
from rehome.domain.request.request import ReassignmentRequest
from rehome.errors import InvalidRequestError
from rehome.planning.options import PlanOptions
from rehome.planning.rollback import rollback_plan
from rehome.quality.facts.gate_input import Checked
from rehome.quality.facts.unplannable import at_caps
from tests.planning.clusters import Cluster
from tests.quality.plan.cases import MIN_FREE, Broken, planned, with_files

ACTIONS = (
    Action.REBALANCE,
    Action.EXPAND,
    Action.DRAIN,
    Action.REPLACE,
    Action.SET_REPLICATION_FACTOR,
    Action.REPAIR_RACKS,
    Action.FIX_OFFLINE_REPLICAS,
    Action.BALANCE_LEADERS,
    Action.DEMOTE,
    Action.ELECT_PREFERRED,
    Action.EVACUATE_LOG_DIRS,
    Action.REASSIGN,
    Action.ROLLBACK,
)
DISK = (1_000_000, 900_000)
TIGHT = 0.106
"""Part of such a disk that may be full, a little more than is."""


def random_cluster(rng: Random, depth: int) -> Cluster:
    """Up to nine brokers in a tree of that depth; replica sets in no order at all."""
    brokers = [10 * number + 1 for number in range(rng.randint(3, 9))]
    racks = {b: "".join(f"/{rng.choice('abc')}" for _ in range(depth)) for b in brokers}
    hosts = brokers[: rng.randint(2, len(brokers))]
    topics = ["orders", "payments", "pay-audit", "__offsets"]
    partitions = [TopicPartition(topic, n) for topic in topics for n in range(rng.randint(1, 6))]
    return Cluster(
        racks=racks,
        replicas={p: rng.sample(hosts, rng.randint(1, min(4, len(hosts)))) for p in partitions},
        sizes={p: rng.choice([0, 1, 100, rng.randint(0, 5_000)]) for p in partitions},
        disks=dict.fromkeys(brokers, DISK) if rng.random() < 0.7 else None,
        internal=frozenset({"__offsets"}),
    )


def random_request(rng: Random, of: Cluster, action: Action, depth: int) -> ReassignmentRequest:
    """A request of this action, with whatever parameters it may have."""
    brokers = tuple(of.racks)
    request = ReassignmentRequest(action, seed=rng.randint(0, 9))
    if action in (Action.EVACUATE_LOG_DIRS, Action.REPLACE):
        return _of_single_ones(rng, brokers, request)
    if action not in (Action.REASSIGN, Action.ROLLBACK):
        topics = rng.choice([(), (), ("pay*",), ("orders", "__offsets")])
        request = replace(request, topics=topics)
    if action in (Action.DRAIN, Action.EXPAND, Action.DEMOTE):
        request = replace(request, brokers=tuple(rng.sample(brokers, 1)))
    if action is Action.SET_REPLICATION_FACTOR:
        request = replace(request, replication_factor=rng.randint(1, 4))
    if action is Action.REASSIGN:
        request = replace(request, reassignment=_file(rng, of))
    if action in (Action.REBALANCE, Action.EXPAND):
        request = replace(
            request,
            tolerance=rng.choice([0.02, 0.2]),
            tolerances=rng.choice([{}, {"replicas": 0.1}, {"leaders": 0.1}]),
            weights=rng.choice([{}, {brokers[0]: 2.0}]),
            one_sided=action is Action.REBALANCE and rng.random() < 0.2,
            exclude_topics=rng.choice([(), ("orders",), ("*audit",)]),
        )
    if Trait.PLACES_REPLICAS in ACTION_FACTS[action].traits:
        request = replace(
            request,
            budget_bytes=rng.choice([None, None, 3_000]),
            budget_moves=rng.choice([None, None, 2]),
        )
    if action is Action.REBALANCE and rng.random() < 0.3:
        request = replace(request, brokers=tuple(sorted(rng.sample(brokers, 2))))
    if action in (Action.REBALANCE, Action.DRAIN) and depth == 0 and rng.random() < 0.3:
        request = replace(request, exclude_brokers=(rng.choice(brokers),))
    return request


def _of_single_ones(
    rng: Random, brokers: tuple[int, ...], request: ReassignmentRequest
) -> ReassignmentRequest:
    """With a log dir to empty, or a broker and its replacement."""
    one, other = rng.sample(brokers, 2)
    if request.action is Action.EVACUATE_LOG_DIRS:
        return replace(request, log_dirs=(LogDirName(one, f"/data/{one}"),))
    topics = rng.choice([(), (), ("pay*",), ("orders", "__offsets")])
    return replace(request, replacements={one: other}, topics=topics)


def _file(rng: Random, of: Cluster) -> dict[str, object]:
    chosen = rng.sample(list(of.replicas), 2)
    entries = []
    for partition in chosen:
        replicas = rng.sample(list(of.racks), len(of.replicas[partition]))
        dirs = [rng.choice(["any", f"/data/{broker}"]) for broker in replicas]
        entry = {"topic": partition.topic, "partition": partition.partition, "replicas": replicas}
        entries.append(entry | ({"log_dirs": dirs} if rng.random() < 0.5 else {}))
    return {"version": 1, "partitions": entries}


def troubled(rng: Random, of: Cluster, request: ReassignmentRequest) -> Cluster:
    """Sometimes brokers are dead, log dirs have failed, replicas are out of sync, or a partition is
    being reassigned already.
    """
    if request.action in (Action.DEMOTE, Action.ELECT_PREFERRED):
        of = replace(of, leaders={p: rng.choice(row) for p, row in of.replicas.items()})
    if request.action is Action.FIX_OFFLINE_REPLICAS or rng.random() < 0.2:
        of = unwell(rng, of)
    if request.action is Action.DRAIN and rng.random() < 0.3:
        return replace(of, dead=frozenset(request.brokers))
    if request.action is Action.REBALANCE and rng.random() < 0.3:
        partition = rng.choice(list(of.replicas))
        return replace(of, adding=frozenset({(partition, of.replicas[partition][-1])}))
    return of


def unwell(rng: Random, of: Cluster) -> Cluster:
    """A broker may be dead, some log dirs have failed, and some replicas lag behind."""
    replicas = [(p, broker) for p, brokers in of.replicas.items() for broker in brokers]
    return replace(
        of,
        dead=frozenset(rng.sample(list(of.racks), rng.randint(0, 1))),
        failed=frozenset(rng.sample(replicas, min(len(replicas), rng.randint(0, 3)))),
        lagging=frozenset(rng.sample(replicas, min(len(replicas), rng.randint(0, 3)))),
    )


def limited(rng: Random, of: Cluster, request: ReassignmentRequest) -> ReassignmentRequest:
    """The request with caps and broker sets, of which some can be kept and some cannot."""
    brokers = list(of.racks)
    names = [("orders",), ("pay*",), ("__offsets", "orders"), ("*",)]
    sets = [
        BrokerSet(
            name=f"s{number}",
            topics=rng.choice(names),
            brokers=tuple(rng.sample(brokers, rng.randint(1, len(brokers)))),
            exclusive=rng.random() < 0.3,
        )
        for number in range(rng.randint(0, 2))
    ]
    held = Counter(broker for row in of.replicas.values() for broker in row)
    led = Counter(row[0] for row in of.replicas.values())
    default = BrokerLimits(
        replicas=rng.choice([None, max(held.values()), held.total() // len(brokers) + 2]),
        leaders=rng.choice([None, max(led.values()), led.total() // len(brokers) + 2]),
        disk_fraction=rng.choice([None, 0.9, TIGHT]),
    )
    own = {rng.choice(brokers): BrokerLimits(replicas=rng.randint(0, held.total()))}
    return replace(
        request,
        broker_sets=tuple(sets),
        caps=BrokerCaps(default=default, brokers=rng.choice([{}, own])),
    )


def towards(rng: Random, of: Cluster, request: ReassignmentRequest) -> ReassignmentRequest:
    """The request with some brokers as its destinations, if its action takes any."""
    emptied = {*request.emptied, *request.exclude_brokers}
    open_ones = [b for b in of.racks if b not in emptied]
    if request.action not in USED_BY["destinations"] or not open_ones:
        return request
    named = {*rng.sample(open_ones, rng.randint(1, len(open_ones)))}
    return replace(
        request,
        destinations=tuple(sorted(named | set(request.replacements.values()))),
        brokers=() if request.action is Action.REBALANCE else request.brokers,
        ignore_racks=rng.random() < 0.5,
    )


def partly_racked(rng: Random, of: Cluster) -> Cluster:
    """The same, and often some of the brokers have no rack."""
    without = rng.sample(list(of.racks), rng.choice([0, 1, 2]))
    return replace(of, racks={b: "" if b in without else rack for b, rack in of.racks.items()})


def sound_plans(
    count: int, seed: int, *, with_limits: bool = False, to_destinations: bool = False
) -> Iterator[tuple[str, Checked]]:
    """That many plans with their requests and snapshots, each action as often as the others."""
    made = 0
    while made < count:
        seed += 1
        rng, depth, action = Random(seed), seed % 4, ACTIONS[made % len(ACTIONS)]
        of = random_cluster(rng, depth)
        try:
            checked = _sound(rng, of, action, depth, with_limits, to_destinations)
        except InvalidRequestError:  # it contradicts the cluster, which is the planner's to say
            continue
        if checked.plan.moves or rng.random() < 0.1:
            made += 1
            kind = " with limits" * with_limits + " to destinations" * to_destinations
            yield f"{action}{kind} of seed {seed}", checked


def once_refused() -> Iterator[tuple[str, Checked]]:
    """Plans that the gate refused, for a reason of its own or of the planner's."""
    for action, seed in ((Action.REPLACE, 10_215), (Action.FIX_OFFLINE_REPLICAS, 11_278)):
        rng, depth = Random(seed), seed % 4
        checked = _sound(rng, random_cluster(rng, depth), action, depth)
        yield f"{action} of seed {seed}", checked


def _sound(
    rng: Random,
    of: Cluster,
    action: Action,
    depth: int,
    with_limits: bool = False,
    to_destinations: bool = False,
) -> Checked:
    if action is not Action.ROLLBACK:
        request = random_request(rng, of, action, depth)
        if with_limits:
            request = limited(rng, of, request)
        if to_destinations:
            of, request = partly_racked(rng, of), towards(rng, of, request)
        return planned(troubled(rng, of, request).snapshot(shuffle=seed_of(rng)), request)
    first = planned(of.snapshot(), random_request(rng, of, Action.DRAIN, depth)).plan
    snapshot = of.after(first).snapshot()
    back = rollback_plan(first, snapshot, PlanOptions(plan_id="p", min_free_disk_fraction=MIN_FREE))
    return with_files(snapshot, back, ReassignmentRequest(Action.ROLLBACK, plan_id="first"))


def seed_of(rng: Random) -> int:
    return rng.randint(0, 1_000)


def forgivable(checked: Checked, broken: Broken) -> bool:
    """Whether a plan is refused as it should be: replicas are spread worse, and caps or the
    destinations keep them off better brokers. As with full disks, an operator has to say what gives
    way.
    """
    request = checked.request
    limits = request.caps or (request.destinations and not checked.brings)
    if not broken.rule.startswith("replicas are spread over level") or not limits:
        return False
    named = [re.search(r"better \[([^]]*)\]", row) for row in broken.rows]
    better = {int(b) for found in named if found for b in found.group(1).split(",") if b.strip()}
    if request.destinations:
        return bool(better) and all(named) and better.isdisjoint(request.destinations)
    if request.action is Action.EVACUATE_LOG_DIRS:
        return True  # the broker that is emptied may be the better one
    tight = request.caps is not None and request.caps.default.disk_fraction == TIGHT
    return bool(better) and all(named) and (tight or better <= at_caps(checked))
