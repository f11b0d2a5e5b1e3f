"""Each hard rule on a plan is seen to hold, and to break by corruptions that it alone names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from include.cluster.model import TopicPartition
from include.planning.plan import Move, MoveReason
from include.planning.request import Action, ReassignmentRequest
from include.quality.checked import Checked
from include.quality.gates import check_plan, frame_of
from include.quality.plan_rules import plan_rules
from include.quality.request_rules import rack_rule_name
from include.quality.results import GateResult
from tests.planning.clusters import Cluster, cluster
from tests.quality.cases import (
    Broken,
    broken_by,
    copied,
    planned,
    with_move,
    with_moves,
    with_summary,
)
from tests.quality.clean import sound_plans
from tests.quality.snapshots import SIZE_BYTES, Row, Rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DRAIN = ReassignmentRequest(Action.DRAIN, brokers=(4,))
RAISE_FACTOR = ReassignmentRequest(Action.SET_REPLICATION_FACTOR, replication_factor=3)
REBALANCE = ReassignmentRequest(Action.REBALANCE)
ENTRY = {"topic": "payments", "partition": 0, "replicas": [3, 2], "log_dirs": ["any", "/data/1"]}
REASSIGN = ReassignmentRequest(Action.REASSIGN, reassignment={"version": 1, "partitions": [ENTRY]})

SPREAD_1, SPREAD_2, SPREAD_3 = (rack_rule_name(level) for level in (1, 2, 3))
TWICE = "a target names no broker twice"
ONLY_LIVE = "a target names live brokers only"
DRAINED = "no target names a drained broker"
EMPTY = "a drained broker ends empty"
ON_DRAINED = "a drain moves only what lies on its brokers"
WAY_BACK = "the way back leads to where the snapshot found the partition"
WAY_BACK_DIRS = "the way back leads to the log dirs where the snapshot found the replicas"
SENT = "what is sent is what was planned"
FILES = "a file lists what is planned, once, and nothing else"
MID_MOVE = "a broker's disk holds old and new copies at once"
AT_END = "a broker's disk holds what it has in the end"
LOG_DIR = "a log dir that is named can be used"
LOG_DIR_ROOM = "a log dir holds what is sent to it"
NO_SOURCE = "a copy has a live leader to come from"
SIZE = "a move is as large as the snapshot says"
FACTOR = "the replication factor stays"
FACTOR_FLAG = "the controller is told to accept another replication factor only where one is asked"
CHECKED = "the plan is for the snapshot that was checked"
BYTES_TOLD = "the summary tells the bytes that are moved"
COUNTS_TOLD = "the summary counts partitions, copies and leaders as they are"
LOADS_TOLD = "the summary tells each broker's load as it is and as it will be"
SCOPE = "only topics that the request is about are moved"
LEFT_OUT = "no partition that the request names is left out"
AS_ASKED = "a partition goes where the request's file says"
SHARE = "a broker ends within tolerance of its share, or the summary tells why not"


def named(partition: int) -> TopicPartition:
    return TopicPartition("payments", partition)


# Partition n lies on brokers n % 4 + 1 and (n + 1) % 4 + 1; brokers 1 and 3 are in data centre 1,
# 2 and 4 in data centre 0. So 2, 3, 6, 7, 10 and 11 have a replica on broker 4, and it goes to 2.
def drain(spoil: Callable[[Rows], object] = lambda _: None) -> Checked:
    rows = Rows()
    spoil(rows)
    return planned(rows.snapshot(), DRAIN)


def rebalance(**changes: object) -> Checked:
    """Broker 3 is new: it receives what the others have too much of."""
    request = replace(REBALANCE, **changes)  # type: ignore[arg-type]
    return planned(crowded().snapshot(), request)


def crowded() -> Cluster:
    """Three brokers hold everything, a fourth nothing; no racks."""
    rows = [(number % 3, (number + 1) % 3) for number in range(24)]
    disks = dict.fromkeys(range(4), (100_000, 90_000))
    return cluster([""] * 4, rows, SIZE_BYTES, topic="payments", disks=disks)


def tree() -> Checked:
    """Sixteen brokers, two in each rack of two in each room of two in each data centre; every
    partition has a replica in each rack. Broker 15 is drained, 14 is beside it in its rack.
    """
    racks = [f"/dc{b // 8}/room{b // 4}/r{b // 2}" for b in range(16)]
    row = (0, 2, 4, 6, 8, 10, 12, 15)
    of = cluster(racks, [row], topic="payments")
    return planned(of.snapshot(), ReassignmentRequest(Action.DRAIN, brokers=(15,)))


def tree_with(*target: int) -> Checked:
    return with_move(tree(), named(0), target=target)


def reassign() -> Checked:
    return planned(Rows().snapshot(), REASSIGN)


def move(partition: int, current: tuple[int, ...], target: tuple[int, ...]) -> Move:
    why = "Made up for a test."
    dirs = ("/data/0",) * len(current)
    return Move(named(partition), current, target, SIZE_BYTES, MoveReason.DRAIN, why, dirs)


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


def excluding(broker: int) -> Checked:
    return replace(drain(), request=replace(DRAIN, exclude_brokers=(broker,)))


def log_dir(path: str, spoil: Callable[[Rows], object] = lambda _: None) -> Checked:
    return with_move(drain(spoil), named(2), target_log_dirs=("any", path))


def leaders_that_copy() -> Checked:
    made = planned(Rows().snapshot(), ReassignmentRequest(Action.BALANCE_LEADERS))
    return with_moves(made, [move(0, (1, 2), (1, 4))])


def raised() -> Checked:
    return planned(Rows().snapshot(), RAISE_FACTOR)


def allowing(checked: Checked) -> Checked:
    return replace(checked, plan=replace(checked.plan, allow_replication_factor_change=True))


def heavier() -> Checked:
    """Broker 3 counts three times, but the plan has not heard of it."""
    return replace(rebalance(), request=replace(REBALANCE, weights={3: 3.0}))


CORRUPTIONS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    # Targets
    "a broker twice": (
        lambda: with_move(drain(), named(2), target=(3, 3)),
        {TWICE, SPREAD_1, SPREAD_2},
    ),
    "no broker": (
        lambda: with_move(drain(), named(2), target=()),
        {"a target names a broker", FACTOR},
    ),
    "an unknown broker": (
        lambda: with_move(drain(), named(2), target=(3, 9)),
        {ONLY_LIVE},
    ),
    "a dead broker": (
        lambda: with_move(
            drain(lambda rows: rows.brokers.append(rows.broker(2) | {"broker": 5, "live": False})),
            named(2),
            target=(3, 5),
        ),
        {ONLY_LIVE},
    ),
    "a drained broker": (
        lambda: with_move(drain(), named(2), target=(4, 3)),
        {DRAINED, EMPTY, SPREAD_2},
    ),
    "an excluded broker": (
        lambda: excluding(2),
        {"an excluded broker receives nothing"},
    ),
    "a broker that takes nothing": (
        lambda: seen(drain(), cordoned),
        {"a copy goes to a broker that takes replicas", MID_MOVE, AT_END},
    ),
    "level 1 of the racks": (lambda: tree_with(0, 2, 4, 6, 8, 10, 12, 1), {SPREAD_1}),
    "level 2 of the racks": (lambda: tree_with(0, 2, 4, 6, 8, 10, 12, 11), {SPREAD_2}),
    "level 3 of the racks": (lambda: tree_with(0, 2, 4, 6, 8, 10, 12, 13), {SPREAD_3}),
    "another replication factor": (
        lambda: with_move(drain(), named(2), target=(3, 2, 1)),
        {FACTOR},
    ),
    "no leader to copy from": (
        lambda: seen(drain(), without_leader),
        {NO_SOURCE},
    ),
    "a partition that is being reassigned": (
        lambda: seen(drain(), in_flight),
        {"a partition that is being reassigned is left alone"},
    ),
    "a partition that does not exist": (
        lambda: plus(drain(), [move(99, (3, 4), (3, 2))]),
        {"a move is of a partition that exists", NO_SOURCE, SIZE, WAY_BACK, WAY_BACK_DIRS},
    ),
    "a partition twice": (
        lambda: plus(drain(), [drain().plan.moves[0]]),
        {"a partition is moved once", FILES, EMPTY},
    ),
    "nothing changes": (
        lambda: plus(drain(), [move(0, (1, 2), (1, 2))]),
        {"a move changes something", ON_DRAINED},
    ),
    "no reason": (lambda: with_move(drain(), named(2), why=" "), {"a move says why"}),
    "a negative size": (
        lambda: with_move(drain(), named(2), size_bytes=-1),
        {"a move has a size", SIZE, BYTES_TOLD},
    ),
    "another size": (
        lambda: with_move(drain(), named(2), size_bytes=SIZE_BYTES // 2),
        {SIZE, BYTES_TOLD},
    ),
    # Log dirs
    "too few log dirs": (
        lambda: with_move(drain(), named(2), target_log_dirs=("any",)),
        {"log dirs are aligned with the target"},
    ),
    "an unknown log dir": (lambda: log_dir("/data/9"), {LOG_DIR}),
    "an offline log dir": (
        lambda: log_dir("/data/1", lambda rows: rows.log_dir(2, "/data/1").update(offline=True)),
        {LOG_DIR},
    ),
    "a cordoned log dir": (
        lambda: log_dir("/data/1", lambda rows: rows.log_dir(2, "/data/1").update(cordoned=True)),
        {LOG_DIR},
    ),
    "a full log dir": (
        lambda: log_dir("/data/1", lambda rows: rows.log_dir(2, "/data/1").update(usable_bytes=9)),
        {LOG_DIR_ROOM},
    ),
    # Disks
    "a disk too full in the end": (lambda: seen(drain(), small_disk), {MID_MOVE, AT_END}),
    "a disk too full in mid-move": (lambda: copy_from_broker_4(Rows()), {MID_MOVE}),
    # The way back, and Kafka's files
    "a row is missing in the rollback": (
        lambda: back(drain(), lambda entries: entries.pop()),
        {WAY_BACK, WAY_BACK_DIRS},
    ),
    "the rollback has another order": (
        lambda: back(drain(), lambda entries: entries[0]["replicas"].reverse()),
        {WAY_BACK},
    ),
    "the rollback has another log dir": (
        lambda: back(drain(), lambda entries: entries[0].update(log_dirs=["/data/0", "/data/1"])),
        {WAY_BACK_DIRS},
    ),
    "the move starts elsewhere": (
        lambda: with_move(drain(), named(2), current=(4, 3)),
        {WAY_BACK},
    ),
    "another target is sent": (
        lambda: sent(drain(), lambda entries: entries[0].update(replicas=[3, 1])),
        {SENT},
    ),
    "another log dir is sent": (
        lambda: sent(drain(), lambda entries: entries[0].update(log_dirs=["any", "/data/1"])),
        {SENT},
    ),
    "a partition is not sent": (lambda: sent(drain(), lambda entries: entries.pop()), {SENT}),
    "what was not planned is sent": (
        lambda: sent(drain(), lambda entries: entries.append(ENTRY)),
        {FILES},
    ),
    "a partition is sent twice": (
        lambda: sent(drain(), lambda entries: entries.append(entries[0])),
        {FILES},
    ),
    "a file of another version": (
        lambda: replace(drain(), rollback=copied(drain().rollback) | {"version": 2}),
        {"the files are of the version that Kafka reads"},
    ),
    # The summary
    "another hash": (
        lambda: with_summary(drain(), plan_hash="0" * 64),
        {"the hash is that of the moves"},
    ),
    "a bound above the bytes": (
        lambda: with_summary(drain(), lower_bound_bytes=10**7),
        {"the lower bound is not above what is moved"},
    ),
    "other bytes": (lambda: with_summary(drain(), bytes_to_move=10**7), {BYTES_TOLD}),
    "other copies": (lambda: with_summary(drain(), replica_moves=1), {COUNTS_TOLD}),
    "other leaders": (lambda: with_summary(drain(), leader_changes=1), {COUNTS_TOLD}),
    "other partitions": (lambda: with_summary(drain(), partitions=1), {COUNTS_TOLD}),
    "another load": (
        lambda: with_summary(
            drain(),
            brokers=tuple(
                replace(load, bytes_in=load.bytes_in + (load.broker == 2))
                for load in drain().plan.summary.brokers
            ),
        ),
        {LOADS_TOLD},
    ),
    "a broker without a load": (
        lambda: with_summary(drain(), brokers=drain().plan.summary.brokers[1:]),
        {LOADS_TOLD},
    ),
    "another snapshot": (lambda: with_summary(drain(), snapshot="cluster=other"), {CHECKED}),
    "another cluster": (
        lambda: replace(drain(), plan=replace(drain().plan, cluster_id="other")),
        {CHECKED},
    ),
    "another action": (
        lambda: replace(drain(), plan=replace(drain().plan, action="rebalance")),
        {CHECKED},
    ),
    # What was asked for
    "another topic": (
        lambda: of_topics(replace(DRAIN, topics=("payments",)), another_topic),
        {SCOPE},
    ),
    "an internal topic that only a pattern meets": (
        lambda: of_topics(replace(DRAIN, topics=("*",)), internal_topic),
        {SCOPE},
    ),
    "an excluded topic": (
        lambda: replace(rebalance(), request=replace(REBALANCE, exclude_topics=("pay*",))),
        {SCOPE},
    ),
    "a replica is left on a drained broker": (
        lambda: with_moves(drain(), drain().plan.moves[1:]),
        {EMPTY},
    ),
    "a drain moves something else": (
        lambda: plus(drain(), [move(0, (1, 2), (3, 2))]),
        {ON_DRAINED},
    ),
    "another factor than asked for": (
        lambda: with_move(raised(), named(0), target=raised().plan.moves[0].target[:2]),
        {"the replication factor is the one asked for", "a move changes something"},
    ),
    "a partition keeps its old factor": (
        lambda: with_moves(raised(), raised().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "the controller is told to allow it": (lambda: allowing(drain()), {FACTOR_FLAG}),
    "another target than asked for": (
        lambda: with_move(reassign(), named(0), target=(3, 4)),
        {AS_ASKED},
    ),
    "another log dir than asked for": (
        lambda: with_move(reassign(), named(0), target_log_dirs=()),
        {AS_ASKED},
    ),
    "what was asked for is left out": (lambda: with_moves(reassign(), []), {LEFT_OUT}),
    "a broker that was not named takes": (
        lambda: replace(rebalance(), request=replace(REBALANCE, brokers=(0, 1, 2))),
        {"only the brokers of the request give and take", SHARE},
    ),
    "an expansion into another broker": (
        lambda: replace(
            rebalance(),
            request=ReassignmentRequest(Action.EXPAND, brokers=(2,)),
            plan=replace(rebalance().plan, action="expand"),
        ),
        {"only the brokers of the request give and take"},
    ),
    "a balance of leaders that copies": (
        leaders_that_copy,
        {"leaders are balanced by order alone"},
    ),
    "a move between log dirs that leaves its broker": (
        lambda: replace(
            leaders_that_copy(),
            request=ReassignmentRequest(Action.MOVE_LOG_DIRS),
            plan=replace(leaders_that_copy().plan, action="move_log_dirs"),
        ),
        {"a move between log dirs stays on its broker"},
    ),
    "too many bytes for the budget": (
        lambda: replace(rebalance(), request=replace(REBALANCE, budget_bytes=SIZE_BYTES)),
        {"no more bytes are copied than the budget allows"},
    ),
    "too many moves for the budget": (
        lambda: replace(rebalance(), request=replace(REBALANCE, budget_moves=1)),
        {"no more replicas are copied than the budget allows"},
    ),
    "weights that were not heeded": (heavier, {SHARE}),
}


@pytest.fixture(scope="module")
def broken(spark: SparkSession) -> dict[str, list[Broken]]:
    """What each corruption breaks, and what the plans that it started from do."""
    sound = {"sound drain": drain(), "sound rebalance": rebalance(), "sound tree": tree()}
    sound |= {"sound factor": raised(), "sound reassign": reassign()}
    sound |= {f"sound {name}": checked for name, checked in sound_plans(64, seed=0)}
    spoilt = {name: corrupt() for name, (corrupt, _) in CORRUPTIONS.items()}
    return broken_by(spark, sound | spoilt)


def test_sound_plans_pass(broken: dict[str, list[Broken]]) -> None:
    assert {name: what for name, what in broken.items() if name.startswith("sound") and what} == {}


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_is_caught_by_the_rules_that_name_it(
    name: str, broken: dict[str, list[Broken]]
) -> None:
    assert {item.rule for item in broken[name]} == CORRUPTIONS[name][1]


def test_every_rule_has_a_corruption_that_breaks_it() -> None:
    requests = [corrupt().request for corrupt, _ in CORRUPTIONS.values()]
    rules = {rule.name for request in requests for rule in plan_rules(request, rack_levels=3)}
    assert rules == {name for _, names in CORRUPTIONS.values() for name in names}


def test_the_row_that_breaks_a_rule_is_shown_with_what_is_wrong(
    broken: dict[str, list[Broken]],
) -> None:
    shown = {
        case: [row for item in broken[case] if item.rule == rule for row in item.rows]
        for case, rule in {
            "an unknown broker": ONLY_LIVE,
            "a disk too full in mid-move": MID_MOVE,
            "an unknown log dir": LOG_DIR,
            "what was not planned is sent": FILES,
        }.items()
    }
    assert shown == {
        "an unknown broker": ["topic payments, partition 2, target [3, 9], not_live [9]"],
        "a disk too full in mid-move": ["broker 4, arriving_bytes 1000, room_bytes 0"],
        "an unknown log dir": ["topic payments, partition 2, unusable_log_dirs ['2:/data/9']"],
        "what was not planned is sent": [
            "file reassignment.json, topic payments, partition 0, times_listed 1"
        ],
    }


@pytest.mark.long
def test_no_sound_plan_is_refused(spark: SparkSession) -> None:
    broken = broken_by(spark, dict(sound_plans(1_000, seed=10_000)))
    assert {name: what for name, what in broken.items() if what} == {}


def test_rows_behind_an_empty_chunk_are_seen(spark: SparkSession) -> None:
    """A table read from several files has one where a file was empty."""
    rows = pa.table({"topic": ["a"], "target": [[1]]})
    assert frame_of(spark, pa.concat_tables([rows, rows[:0], rows])).count() == 2


def test_a_plan_without_moves_passes(spark: SparkSession) -> None:
    made = planned(Rows().snapshot(), ReassignmentRequest(Action.REPAIR_RACKS))
    assert made.plan.moves == ()
    assert gate(spark, made).passed


def gate(spark: SparkSession, checked: Checked) -> GateResult:
    return check_plan(
        spark,
        checked.snapshot,
        checked.plan,
        checked.request,
        reassignment=checked.reassignment,
        rollback=checked.rollback,
        min_free_disk_fraction=checked.min_free,
    )
