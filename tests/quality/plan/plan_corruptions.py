"""Each rule of the gate on plans, broken on purpose: what is spoiled, and which rules name it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rehome.domain.plan.figures import Weakened
from rehome.domain.request.request import SpreadOf
from rehome.domain.resources import Resource
from rehome.quality.facts.gate_input import Checked
from tests.quality.plan.action_corruptions import OF_ACTIONS
from tests.quality.plan.cases import (
    copied,
    with_move,
    with_summary,
)
from tests.quality.plan.checked_plans import (
    ENTRY,
    back,
    copy_from_broker_4,
    cordoned,
    drain,
    excluding,
    in_flight,
    led_out_of_sync,
    log_dir,
    lowered,
    move,
    named,
    of_leaders,
    other_traffic,
    plus,
    rebalance,
    seen,
    sent,
    small_disk,
    small_disks,
    tree_with,
    unheeded,
    without_leader,
)
from tests.quality.plan.destination_corruptions import OF_DESTINATIONS
from tests.quality.plan.limit_corruptions import OF_LIMITS
from tests.quality.plan.request_corruptions import OF_REQUESTS
from tests.quality.plan.rule_names import (
    AT_END,
    BYTES_STATED,
    CHECKED,
    COUNTS_STATED,
    DRAINED,
    EMPTY,
    FACTOR,
    FILES,
    GIVES_UP,
    HASH,
    HOMELESS,
    INTO_LEADERS,
    KEEPS_IN_SYNC,
    LEADER_IS_ABLE,
    LEAST_LED,
    LOADS_STATED,
    LOG_DIR,
    LOG_DIR_ROOM,
    MID_MOVE,
    NO_SOURCE,
    ON_DRAINED,
    ONLY_LIVE,
    POTENTIAL,
    SENT,
    SIZE,
    SPREAD,
    SPREAD_1,
    SPREAD_2,
    SPREAD_3,
    TWICE,
    WAY_BACK,
    WAY_BACK_DIRS,
    WEAKENED_STATED,
)
from tests.quality.snapshots import SIZE_BYTES, Rows

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
        {LOADS_STATED},
    ),
    "bytes into leaders that the summary leaves out": (
        lambda: other_traffic(Resource.LEADER_BYTES_IN, add=None),
        {LOADS_STATED},
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
        {"a target has at least one broker", FACTOR},
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
        {"an excluded broker gets no replica"},
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
        {"no partition that is being reassigned is moved"},
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
    "no reason": (lambda: with_move(drain(), named(2), causes=()), {"a move has a reason"}),
    "a negative size": (
        lambda: with_move(drain(), named(2), size_bytes=-1),
        {"a move has a size", SIZE, BYTES_STATED},
    ),
    "another size": (
        lambda: with_move(drain(), named(2), size_bytes=SIZE_BYTES // 2),
        {SIZE, BYTES_STATED},
    ),
    "a replica in sync is given up": (
        lambda: with_move(lowered(), named(0), target=(2,)),
        {KEEPS_IN_SYNC},
    ),
    "a leader out of sync": (led_out_of_sync, {LEADER_IS_ABLE}),
    # Log dirs
    "too few log dirs": (
        lambda: with_move(drain(), named(2), target_log_dirs=("any",)),
        {"the target has a log dir for each replica, or none at all"},
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
        {"the files have the version that Kafka reads"},
    ),
    # The summary
    "another hash": (
        lambda: with_summary(drain(), plan_hash="0" * 64),
        {HASH},
    ),
    "files that were not checked": (
        lambda: with_summary(drain(), files={"rollback.json": "0" * 64}),
        {"the summary has the digests of the checked files"},
    ),
    "a bound above the bytes": (
        lambda: with_summary(drain(), lower_bound_bytes=10**7),
        {"the lower bound is at most the bytes that are moved"},
    ),
    "other bytes": (lambda: with_summary(drain(), bytes_to_move=10**7), {BYTES_STATED}),
    "other copies": (lambda: with_summary(drain(), replica_moves=1), {COUNTS_STATED}),
    "other leaders": (lambda: with_summary(drain(), leader_changes=1), {COUNTS_STATED}),
    "other partitions": (lambda: with_summary(drain(), partitions=1), {COUNTS_STATED}),
    "weaker than it is": (
        lambda: with_summary(drain(), weakened=(Weakened(1, 1, 2, 1, 1, "t-0"),)),
        {WEAKENED_STATED},
    ),
    "weakened and not said": (
        lambda: with_summary(lowered(), weakened=()),
        {WEAKENED_STATED},
    ),
    "another load": (
        lambda: with_summary(
            drain(),
            brokers=tuple(
                replace(load, bytes_in=load.bytes_in + (load.broker == 2))
                for load in drain().plan.summary.brokers
            ),
        ),
        {LOADS_STATED},
    ),
    "a broker without a load": (
        lambda: with_summary(drain(), brokers=drain().plan.summary.brokers[1:]),
        {LOADS_STATED},
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
    **OF_REQUESTS,
    **OF_ACTIONS,
    **OF_LIMITS,
    **OF_DESTINATIONS,
}
