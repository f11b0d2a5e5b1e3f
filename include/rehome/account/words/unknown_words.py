"""Why something is not known, in words."""

from __future__ import annotations

from collections.abc import Mapping

from rehome.account.known import NotKnown

WHY_UNKNOWN: Mapping[NotKnown, str] = {
    NotKnown.NOT_RECORDED: "nothing was recorded, by an earlier version of Rehome, or because no "
    "poll had read the copies",
    NotKnown.NOT_POLLED: "no poll has read the cluster yet",
    NotKnown.NOT_TRIED: "no dry run has tried the plan out yet",
    NotKnown.NEVER_ENDS: "the plan would never end as things stand: see the findings of its dry "
    "run",
    NotKnown.BROKER_DEAD: "moves wait for a broker that is not alive",
    NotKnown.LEADERLESS: "moves wait for partitions that have no leader",
    NotKnown.OUTPACED: "producers write more than the throttle lets through",
    NotKnown.HELD: "the plan is held back, and nothing starts meanwhile",
    NotKnown.NOT_RUNNING: "the plan does not run",
    NotKnown.ONE_POLL: "there was one poll so far, and nothing to compare it with",
    NotKnown.OLD_POLL: "the newest poll is more than a minute old",
    NotKnown.NOTHING_COMES: "no copy has gained anything of late, or producers write more than the "
    "throttle lets through",
    NotKnown.AFTER_WINDOW: "not all ends before the window closes",
    NotKnown.PAST: "the predicted end has passed, and no poll has predicted another since",
    NotKnown.BROKER_SILENT: "the broker that sends this copy, or the one that receives it, did not "
    "answer the newest poll",
    NotKnown.NO_SNAPSHOT: "there is no snapshot yet: collect_snapshots takes them",
    NotKnown.NOT_JUDGED: "watch_clusters has judged no snapshot of this cluster yet",
    NotKnown.SIZES_UNREAD: "a broker has not said how full its disks are",
}
"""After "not known:"."""
