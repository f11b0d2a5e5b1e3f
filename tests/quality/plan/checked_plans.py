"""Sound plans on small clusters, and ways to spoil one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache

from rehome.domain.actions import Action
from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.causes.move_cause import CauseCode, MoveCause
from rehome.domain.plan.figures import ResourceBalance
from rehome.domain.plan.infeasible import Infeasible, Obstacle, Subject, SubjectKind
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.request.param_types import TOPIC_SPREAD
from rehome.domain.request.request import ReassignmentRequest
from rehome.domain.resources import Resource
from rehome.quality.facts.gate_input import Checked
from rehome.quality.plan.broker_table import brokers_after
from tests.planning.clusters import Cluster, cluster
from tests.quality.plan.cases import (
    copied,
    planned,
    with_move,
    with_moves,
    with_summary,
)
from tests.quality.snapshots import SIZE_BYTES, Row, Rows

DRAIN = ReassignmentRequest(Action.DRAIN, brokers=(4,))
RAISE_FACTOR = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)
REBALANCE = ReassignmentRequest(Action.REBALANCE)
COUNTED = {"replicas": 0.05}
ENTRY = {"topic": "payments", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "/data/1"]}
REASSIGN = ReassignmentRequest(Action.REASSIGN, reassignment={"version": 1, "partitions": [ENTRY]})


def named(partition: int) -> TopicPartition:
    return TopicPartition("payments", partition)


# Partition n lies on brokers n % 4 + 1 and (n + 1) % 4 + 1; brokers 1 and 3 are in data centre 1,
# 2 and 4 in data centre 0. So 2, 3, 6, 7, 10 and 11 have a replica on broker 4, and it goes to 2.
@cache
def drained() -> Checked:
    return planned(Rows().snapshot(), DRAIN)


def drain(spoil: Callable[[Rows], object] | None = None) -> Checked:
    if spoil is None:
        return drained()
    rows = Rows()
    spoil(rows)
    return planned(rows.snapshot(), DRAIN)


def of_budget(checked: Checked, moves: int) -> Checked:
    """What the planner makes of the same request where it may copy so many replicas."""
    return planned(checked.snapshot, replace(checked.request, budget_moves=moves))


@cache
def rebalanced() -> Checked:
    """Broker 3 is new: it receives what the others have too much of."""
    return planned(crowded().snapshot(), REBALANCE)


def rebalance(**changes: object) -> Checked:
    """The same, asked for otherwise."""
    if not changes:
        return rebalanced()
    request = replace(REBALANCE, **changes)  # type: ignore[arg-type]
    return planned(crowded().snapshot(), request)


def claiming(subject: Subject, why: Obstacle) -> Checked:
    """A rebalance that states one more limit."""
    checked = rebalance()
    note = Infeasible(subject, why, 5_000, 6_000, resource=Resource.BYTES)
    return with_summary(checked, infeasible=(*checked.plan.summary.infeasible, note))


def emptied_donor() -> Checked:
    """An expansion that takes everything from one broker, with bands that allow it."""
    of = cluster([""] * 4, [(n % 3,) for n in range(30)], topic="payments")
    expand = ReassignmentRequest(
        Action.EXPAND, brokers=(3,), tolerance=0.2, tolerances={TOPIC_SPREAD: None}
    )
    made = planned(of.snapshot(), expand)
    taken = [replace(move(n, (0,), (3,)), size_bytes=100) for n in range(0, 24, 3)]
    spoilt = with_moves(made, [replace(one, current_log_dirs=("/data/0",)) for one in taken])
    anything = [
        replace(balance, low=(0,) * len(balance.low), high=(10**9,) * len(balance.high))
        for balance in spoilt.plan.summary.resources
    ]
    return with_summary(spoilt, resources=tuple(anything))


def of_leaders(
    partition: int,
    target: tuple[int, int],
    topic: str = "payments",
    named_broker: int | None = None,
) -> Checked:
    """Every broker is to lead six of 24 partitions and does, but for one move's other order."""
    made = with_move(rebalance(min_leaders={topic: 6}), named(partition), target=target)
    if named_broker is None:
        return made
    subject = Subject(SubjectKind.MIN_LEADERS, "payments", named_broker)
    note = Infeasible(subject, Obstacle.NO_MOVE, 6, 5, resource=Resource.LEADERS)
    return with_summary(made, infeasible=(note,))


def crowded() -> Cluster:
    """Three brokers hold everything, a fourth nothing; no racks."""
    rows = [(number % 3, (number + 1) % 3) for number in range(24)]
    disks = dict.fromkeys(range(4), (100_000, 90_000))
    return cluster([""] * 4, rows, SIZE_BYTES, topic="payments", disks=disks)


TRAFFIC_FREE: dict[str, float | None] = {"bytes_in": None, "bytes_out": None, "topic_spread": None}
BOTH = {"potential_bytes_out": 0.1, "leader_bytes_in": 0.1}


def hot() -> Cluster:
    """The same, where the traffic is that of the partitions on brokers 0 and 1."""
    of = crowded()
    rates = {p: 100.0 if p.partition % 3 == 0 else 1.0 for p in of.replicas}
    return replace(of, bytes_in=rates, bytes_out={p: 2 * rate for p, rate in rates.items()})


@cache
def evened_out() -> Checked:
    """What brokers would send if all replicas led, and what producers write, is evened out."""
    return planned(hot().snapshot(), replace(REBALANCE, tolerances=TRAFFIC_FREE | BOTH))


@cache
def unlimited() -> Checked:
    """Traffic may be uneven."""
    return planned(hot().snapshot(), replace(REBALANCE, tolerances=TRAFFIC_FREE))


def unheeded(resource: Resource) -> Checked:
    """A plan that knows nothing of a resource that its request asks for, but for its figures."""
    made = unlimited()
    asked = TRAFFIC_FREE | {resource.value: 0.1}
    checked = replace(made, request=replace(made.request, tolerances=asked))
    rows = brokers_after(checked).to_pylist()
    before, after = (tuple(row["computed"][at] for row in rows) for at in (-2, -1))
    stated = ResourceBalance(resource.value, True, None, before, after)
    return with_summary(checked, resources=(*made.plan.summary.resources, stated))


def other_traffic(resource: Resource, *, add: int | None) -> Checked:
    """The summary states more of a resource before the plan, or None of it at all."""
    made, kept = evened_out(), []
    for balance in made.plan.summary.resources:
        if balance.resource != resource:
            kept.append(balance)
        elif add is not None:
            kept.append(replace(balance, before=(balance.before[0] + add, *balance.before[1:])))
    return with_summary(made, resources=tuple(kept))


@cache
def tree() -> Checked:
    """Sixteen brokers, two in each rack of two in each room of two in each data centre; every
    partition has a replica in each rack. Broker 15 is drained, 14 is in its rack, too.
    """
    racks = [f"/dc{b // 8}/room{b // 4}/r{b // 2}" for b in range(16)]
    row = (0, 2, 4, 6, 8, 10, 12, 15)
    of = cluster(racks, [row], topic="payments")
    return planned(of.snapshot(), ReassignmentRequest(Action.DRAIN, brokers=(15,)))


def tree_with(*target: int) -> Checked:
    return with_move(tree(), named(0), target=target)


def reassign() -> Checked:
    return planned(Rows().snapshot(), REASSIGN)


def of_file(*replicas: int, resizes: bool = True) -> ReassignmentRequest:
    """The file of one entry, and whether it may give another number of replicas."""
    file = {"version": 1, "partitions": [{**ENTRY, "replicas": list(replicas), "log_dirs": None}]}
    return replace(REASSIGN, reassignment=file, allow_replication_factor_change=resizes)


def resized() -> Checked:
    """Partition 0 gets a third replica by the operator's own file."""
    return planned(Rows().snapshot(), of_file(1, 2, 3))


def shrunk_badly() -> Checked:
    """A file leaves partition 0 only the replica that is out of sync."""
    rows = Rows()
    rows.replica(0, 1)["in_isr"] = False
    made = with_move(planned(rows.snapshot(), of_file(1)), named(0), target=(2,))
    return replace(made, request=of_file(2))


def move(partition: int, current: tuple[int, ...], target: tuple[int, ...]) -> Move:
    causes, dirs = (MoveCause(CauseCode.REQUESTED),), ("/data/0",) * len(current)
    return Move(named(partition), current, target, SIZE_BYTES, MoveReason.DRAIN, causes, dirs)


def plus(checked: Checked, extra: Iterable[Move]) -> Checked:
    return with_moves(checked, (*checked.plan.moves, *extra))


def sent(checked: Checked, spoil: Callable[[list[Row]], object]) -> Checked:
    """The same with reassignment.json spoilt."""
    content = copied(checked.reassignment)
    spoil(content["partitions"])
    return replace(checked, reassignment=content)


def back(checked: Checked, spoil: Callable[[list[Row]], object]) -> Checked:
    """The same with rollback.json spoilt."""
    content = copied(checked.rollback)
    spoil(content["partitions"])
    return replace(checked, rollback=content)


def seen(checked: Checked, spoil: Callable[[Rows], object]) -> Checked:
    """The same plan, checked against another snapshot."""
    rows = Rows()
    spoil(rows)
    return replace(checked, snapshot=rows.snapshot())


def another_topic(rows: Rows) -> None:
    """A topic of one partition on the brokers of partition 2."""
    rows.topics.append(rows.topics[0] | {"topic": "audit", "partitions": 1})
    rows.replicas += [rows.replica(2, n) | {"topic": "audit", "partition": 0} for n in (0, 1)]


def internal_topic(rows: Rows) -> None:
    another_topic(rows)
    rows.topics[-1]["internal"] = True


def of_topics(request: ReassignmentRequest, spoil: Callable[[Rows], None]) -> Checked:
    """A plan for all topics, checked against a request for some."""
    rows = Rows()
    spoil(rows)
    everything = planned(rows.snapshot(), DRAIN)
    return replace(everything, request=request)


def copy_from_broker_4(rows: Rows) -> Checked:
    """Broker 4 gives as much as it takes, and has room for nothing."""
    rows.log_dir(4, "/data/0").update(usable_bytes=0)
    rows.log_dir(4, "/data/1").update(usable_bytes=0)
    made = planned(rows.snapshot(), REBALANCE)
    trade = (move(2, (3, 4), (3, 2)), move(0, (1, 2), (1, 4)))
    return with_moves(made, trade)


def without_leader(rows: Rows) -> None:
    rows.replica(2, 0)["is_leader"] = False


def in_flight(rows: Rows) -> None:
    rows.replica(2, 0)["adding"] = True


def cordoned(rows: Rows) -> None:
    for path in ("/data/0", "/data/1"):
        rows.log_dir(2, path)["cordoned"] = True


def small_disk(rows: Rows) -> None:
    rows.log_dir(2, "/data/0").update(usable_bytes=51_000)
    rows.log_dir(2, "/data/1").update(usable_bytes=50_000)


def small_disks(rows: Rows) -> None:
    """Room for what comes to broker 2, but in pieces that are smaller than a replica."""
    for path, headroom in (("/data/0", 3_900), ("/data/1", 1_700), ("/data/2", 500)):
        if path == "/data/2":
            rows.log_dirs.append(rows.log_dir(2, "/data/1") | {"log_dir": path})
        rows.log_dir(2, path).update(usable_bytes=50_000 + headroom)


def excluding(broker: int) -> Checked:
    return replace(drain(), request=replace(DRAIN, exclude_brokers=(broker,)))


def log_dir(path: str, spoil: Callable[[Rows], object] | None = None) -> Checked:
    return with_move(drain(spoil), named(2), target_log_dirs=("any", path))


def leaders_that_copy() -> Checked:
    made = planned(Rows().snapshot(), ReassignmentRequest(Action.BALANCE_LEADERS))
    return with_moves(made, [move(0, (1, 2), (1, 4))])


def unwell() -> Rows:
    """Broker 4 is dead; partition 2 was led from it alone, and has no leader. The log dir of broker
    2 in which partition 0 had a replica has failed.
    """
    rows = Rows()
    rows.broker(4).update(live=False, answered=False, error="gone")
    rows.log_dirs = [row for row in rows.log_dirs if row["broker"] != 4]
    rows.log_dir(2, "/data/1").update(offline=True, error="KAFKA_STORAGE_ERROR (56)")
    away: Row = {"in_isr": False, "log_dir": None, "size_bytes": None, "log_end_offset": None}
    for row in rows.replicas:
        partition, led = row["partition"], row["is_leader"]
        if row["broker"] == 4 or (row["broker"], partition) == (2, 0):
            row.update(away, is_leader=False)
            if led:
                rows.replica(partition, 1)["is_leader"] = True
    rows.replica(2, 0).update(is_leader=False, in_isr=False)
    return rows


def fixed() -> Checked:
    """Offline replicas get new homes, but for those of partition 2."""
    return planned(unwell().snapshot(), ReassignmentRequest(Action.FIX_OFFLINE_REPLICAS))


def lost_on_drained() -> Checked:
    """A drain of the dead broker: partition 2 has to stay."""
    return planned(unwell().snapshot(), DRAIN)


def lowered() -> Checked:
    """One replica of each partition is left; partition 0 has only its first one in sync."""
    rows = Rows()
    rows.replica(0, 1)["in_isr"] = False
    return planned(rows.snapshot(), replace(RAISE_FACTOR, replication_factor=1))


def led_out_of_sync() -> Checked:
    """Partition 0 is to be led by the replica that is out of sync."""
    rows = Rows()
    rows.replica(0, 1)["in_isr"] = False
    made = planned(rows.snapshot(), ReassignmentRequest(Action.BALANCE_LEADERS))
    return with_moves(made, [move(0, (1, 2), (2, 1))])


def raised() -> Checked:
    return planned(Rows().snapshot(), RAISE_FACTOR)


def repaired() -> Checked:
    """Two partitions that have both replicas in one data centre, and get them apart."""
    of = cluster(["/dc0", "/dc0", "/dc1", "/dc1"], [(0, 1), (1, 0), (0, 2)], topic="payments")
    return planned(of.snapshot(), ReassignmentRequest(Action.REPAIR_RACKS))


def allowing(checked: Checked, *, allow: bool = True) -> Checked:
    return replace(checked, plan=replace(checked.plan, allow_replication_factor_change=allow))


def heavier() -> Checked:
    """Broker 3 counts three times, but the plan has not heard of it."""
    return replace(rebalance(), request=replace(REBALANCE, weights={3: 3.0}))


def without_one(checked: Checked) -> Checked:
    """The first of the moves is left out."""
    return with_moves(checked, checked.plan.moves[1:])


def one_sided() -> Checked:
    """Three brokers give what they have too much of; broker 3 ends with less than its share."""
    return rebalance(one_sided=True, tolerances={"topic_spread": None}, tolerance=0.2)


def all_named(resource: Resource) -> tuple[Infeasible, ...]:
    return tuple(
        Infeasible(Subject.of_broker(broker), Obstacle.NO_MOVE, 9, 0, resource=resource)
        for broker in range(4)
    )


def left(partition: TopicPartition, why: Obstacle) -> Infeasible:
    """A note that a partition stays as it is."""
    return Infeasible(Subject.of_partition(partition), why, 1, 0)


def another_balance() -> Checked:
    made = drain()
    first, *rest = made.plan.summary.resources
    wrong = replace(first, after=(first.after[0] + 1, *first.after[1:]))
    return with_summary(made, resources=(wrong, *rest))
