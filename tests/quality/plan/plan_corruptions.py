"""Each rule of the gate on plans, broken on purpose: what is spoiled, and which rules name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from include.domain.kafka import TopicPartition
from include.domain.plan.infeasible import Obstacle
from include.domain.plan.plan_hash import sealed
from include.domain.request.request import Action, ReassignmentRequest, SpreadOf
from include.domain.resources import Resource
from include.quality.facts.subject import Checked
from tests.quality.plan.action_corruptions import OF_ACTIONS
from tests.quality.plan.cases import (
    copied,
    with_move,
    with_moves,
    with_summary,
)
from tests.quality.plan.checked_plans import (
    COUNTED,
    DRAIN,
    ENTRY,
    REBALANCE,
    all_named,
    allowing,
    another_balance,
    another_topic,
    back,
    copy_from_broker_4,
    cordoned,
    drain,
    excluding,
    fixed,
    heavier,
    in_flight,
    internal_topic,
    leaders_that_copy,
    led_out_of_sync,
    left,
    log_dir,
    lost_on_drained,
    lowered,
    move,
    named,
    of_budget,
    of_leaders,
    of_topics,
    one_sided,
    other_traffic,
    plus,
    raised,
    reassign,
    rebalance,
    repaired,
    seen,
    sent,
    small_disk,
    small_disks,
    tree_with,
    unheeded,
    without_leader,
    without_one,
)
from tests.quality.plan.limit_corruptions import OF_LIMITS
from tests.quality.snapshots import SIZE_BYTES, Rows

SPREAD_1, SPREAD_2, SPREAD_3 = (
    f"replicas are spread over level {level} of the racks no worse than before"
    for level in (1, 2, 3)
)
TWICE = "a target names no broker twice"
ONLY_LIVE = "a target names live brokers only"
DRAINED = "no target names a drained broker"
EMPTY = "a drained broker ends empty, but for partitions without a leader that the summary names"
PAID_EMPTY = (
    "a drained broker keeps what the summary says that the budget leaves on it, and what has no "
    "leader"
)
ON_DRAINED = "a drain moves only what lies on its brokers"
WAY_BACK = "the way back leads to where the snapshot found the partition"
WAY_BACK_DIRS = "the way back leads to the log dirs where the snapshot found the replicas"
SENT = "what is sent is what was planned"
FILES = "a file lists what is planned, once, and nothing else"
MID_MOVE = "a broker's disk holds old and new copies at once"
AT_END = "a broker's disk holds what it has in the end"
HOMELESS = "each copy fits into a log dir"
LOG_DIR = "a log dir that is named can be used"
LOG_DIR_ROOM = "a log dir holds what is sent to it"
NO_SOURCE = "a copy has a live leader to come from"
SIZE = "a move is as large as the snapshot says"
FACTOR = "the replication factor stays"
FACTOR_FLAG = "the controller accepts another replication factor only where one is asked for"
HASH = "the hash is that of what the plan does"
CHECKED = "the plan is for the snapshot that was checked"
BYTES_TOLD = "the summary states the bytes that are moved"
COUNTS_TOLD = "the summary counts partitions, copies and leaders as they are"
LOADS_TOLD = "the summary states each broker's load before and after"
SCOPE = "only topics that the request is about are moved"
LEFT_OUT = "no partition that the request is about is left out"
UNPAID = "as many partitions are left out as the summary says that the budget leaves"
AS_ASKED = "a partition goes where the request's file says"
SPREAD = "a topic ends spread over brokers within tolerance, or is named"
SHARE = "a broker ends within tolerance of its share of bytes, or the summary states why not"
COUNT = "a broker ends within tolerance of its share of replicas, or the summary states why not"
POTENTIAL = (
    "a broker ends within tolerance of its share of potential bytes out, or the summary states why "
    "not"
)
INTO_LEADERS = (
    "a broker ends within tolerance of its share of bytes into leaders, or the summary states why "
    "not"
)
LEAST_LED = "each broker leads its minimum of a topic's partitions, or is named"
GIVES_UP = "no broker gives up leaders that min_leaders asks for"
BANDS = "a broker ends within the bands that the summary states, or is named"

TAKEN_ONLINE = "only offline replicas get new homes"
KEPT_OFFLINE = "no target keeps an offline replica"
KEEPS_IN_SYNC = "a partition that gives up replicas keeps those that are in sync"
LEADER_IS_ABLE = "a new preferred leader is in sync, or gets a copy"

CORRUPTIONS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    # Traffic that counts where it is asked for
    "potential bytes out that were not heeded": (
        lambda: unheeded(Resource.POTENTIAL_BYTES_OUT),
        {POTENTIAL},
    ),
    "bytes into leaders that were not heeded": (
        lambda: unheeded(Resource.LEADER_BYTES_IN),
        {INTO_LEADERS},
    ),
    "another figure of potential bytes out": (
        lambda: other_traffic(Resource.POTENTIAL_BYTES_OUT, add=1),
        {LOADS_TOLD},
    ),
    "bytes into leaders that the summary leaves out": (
        lambda: other_traffic(Resource.LEADER_BYTES_IN, add=None),
        {LOADS_TOLD},
    ),
    # Leaders
    "a broker without the leaders asked for": (
        lambda: of_leaders(0, (1, 3)),
        {LEAST_LED},
    ),
    "a broker without the leaders a pattern asks for": (
        lambda: of_leaders(0, (1, 3), "pay*"),
        {LEAST_LED},
    ),
    "leaders given up that are asked for": (
        lambda: of_leaders(9, (3, 0)),
        {LEAST_LED, GIVES_UP},
    ),
    "leaders of a topic that are not spread": (
        lambda: plus(
            rebalance(topic_spread_of=SpreadOf.LEADERS),
            [
                replace(move(n, (0, 1), (1, 0)), current_log_dirs=("/data/0", "/data/1"))
                for n in (12, 15)
            ],
        ),
        {SPREAD},
    ),
    "leaders given up, and the broker named": (
        lambda: of_leaders(9, (3, 0), named_broker=0),
        {GIVES_UP},
    ),
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
    "another number in sync": (
        lambda: with_move(drain(), named(2), in_sync=1),
        {"a move states how many replicas are in sync"},
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
    "a replica in sync is given up": (
        lambda: with_move(lowered(), named(0), target=(2,)),
        {KEEPS_IN_SYNC},
    ),
    "a leader out of sync": (led_out_of_sync, {LEADER_IS_ABLE}),
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
    "a disk too full in the end": (lambda: seen(drain(), small_disk), {MID_MOVE, AT_END, HOMELESS}),
    "a disk too full in mid-move": (lambda: copy_from_broker_4(Rows()), {MID_MOVE, HOMELESS}),
    "two small disks for a large replica": (lambda: seen(drain(), small_disks), {HOMELESS}),
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
        {HASH},
    ),
    "files that were not checked": (
        lambda: with_summary(drain(), files={"rollback.json": "0" * 64}),
        {"the summary names the files that were checked, to the byte"},
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
    "a replica that the budget pays for is left on a drained broker": (
        lambda: with_moves(of_budget(drain(), 6), drain().plan.moves[1:]),
        {PAID_EMPTY},
    ),
    "more stays on a drained broker than the summary says": (
        lambda: with_moves(of_budget(drain(), 4), of_budget(drain(), 4).plan.moves[1:]),
        {PAID_EMPTY},
    ),
    "a budget leaves a partition out that the summary is silent about": (
        lambda: with_summary(of_budget(raised(), 5), infeasible=()),
        {UNPAID},
    ),
    "a partition without a leader stays on a drained broker, and nobody says so": (
        lambda: with_summary(lost_on_drained(), infeasible=()),
        {EMPTY, SPREAD},
    ),
    "an online replica gets a new home": (
        lambda: with_move(fixed(), named(6), target=(1, 2)),
        {TAKEN_ONLINE},
    ),
    "an offline replica is kept": (
        lambda: with_move(fixed(), named(0), target=(2, 1)),
        {KEPT_OFFLINE, LEADER_IS_ABLE},
    ),
    "an offline replica is left, and nobody says so": (
        lambda: with_moves(fixed(), fixed().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "what could get a new home is only named": (
        lambda: with_summary(
            with_moves(fixed(), fixed().plan.moves[1:]),
            infeasible=(left(fixed().plan.moves[0].partition, Obstacle.NO_BROKER),),
        ),
        {LEFT_OUT},
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
    "a partition stays uneven": (
        lambda: with_moves(repaired(), repaired().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "the controller may allow it": (lambda: allowing(drain()), {FACTOR_FLAG, HASH}),
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
            plan=sealed(replace(rebalance().plan, action="expand")),
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
            plan=sealed(replace(leaders_that_copy().plan, action="move_log_dirs")),
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
    "weights that were not heeded": (heavier, {SHARE, SPREAD}),
    "a tolerance of replicas that was not heeded": (
        lambda: replace(heavier(), request=replace(heavier().request, tolerances=COUNTED)),
        {SHARE, COUNT, SPREAD},
    ),
    "a partition in flight excuses no broker": (
        lambda: with_summary(
            heavier(), infeasible=(left(TopicPartition("payments", 0), Obstacle.IN_FLIGHT),)
        ),
        {SHARE, SPREAD},
    ),
    "what is named for another resource is no excuse": (
        lambda: with_summary(heavier(), infeasible=all_named(Resource.REPLICAS)),
        {SHARE, SPREAD},
    ),
    "a broker outside its band": (lambda: without_one(rebalance()), {SHARE, BANDS}),
    "a broker outside its band, and others named": (
        lambda: with_summary(
            without_one(rebalance()),
            infeasible=(
                left(TopicPartition("payments", 0), Obstacle.IN_FLIGHT),
                *all_named(Resource.REPLICAS),
            ),
        ),
        {SHARE, BANDS},
    ),
    "too much, where only that counts": (lambda: without_one(one_sided()), {SHARE, BANDS}),
    "another balance": (another_balance, {LOADS_TOLD}),
    "a resource without a balance": (lambda: with_summary(drain(), resources=()), {LOADS_TOLD}),
    **OF_ACTIONS,
    **OF_LIMITS,
}
