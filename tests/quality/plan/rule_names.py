"""Names of the rules of the gate on plans."""

from __future__ import annotations

SPREAD_1, SPREAD_2, SPREAD_3 = (
    f"replicas are spread over level {level} of the racks no worse than before"
    for level in (1, 2, 3)
)
TWICE = "a target names no broker twice"
ONLY_LIVE = "a target names live brokers only"
DRAINED = "no target names a drained broker"
EMPTY = "a drained broker ends empty, except for partitions without a leader that the summary names"
PAID_EMPTY = (
    "a drained broker keeps only replicas that the summary names: left by the budget, or without a "
    "leader"
)
ON_DRAINED = "a drain moves only replicas of its brokers"
WAY_BACK = "the rollback file restores the replicas of the snapshot"
WAY_BACK_DIRS = "the rollback file restores the log dirs of the snapshot"
SENT = "the reassignment file has the planned targets"
FILES = "the files list each planned partition once and no other"
MID_MOVE = "a broker's disk has space for old and new replicas at once"
AT_END = "a broker's disk has space for its replicas after the plan"
HOMELESS = "each copy fits into a log dir"
LOG_DIR = "a target log dir exists, is online and not cordoned"
LOG_DIR_ROOM = "a log dir has space for the replicas that are sent to it"
NO_SOURCE = "a copy has a live leader to come from"
SIZE = "a move is as large as the snapshot says"
FACTOR = "the replication factor does not change"
FACTOR_FLAG = "the controller may change the replication factor only if the request asks for that"
HASH = "the plan's hash matches its contents"
CHECKED = "the plan is for the snapshot that was checked"
BYTES_STATED = "the summary states the bytes that are moved"
WEAKENED_STATED = (
    "the summary names every partition that ends in fewer racks or with fewer replicas"
)
COUNTS_STATED = "the summary has the true numbers of partitions, copies and leader changes"
LOADS_STATED = "the summary states each broker's load before and after"
SCOPE = "only topics of the request are moved"
LEFT_OUT = "no partition of the request is left out"
UNPAID = "the summary has the true number of partitions that the budget leaves"
AS_ASKED = "a partition goes to the replicas of the request's file"
SPREAD = "a topic ends spread over brokers within tolerance, or the summary names it"
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
LEAST_LED = "each broker leads min_leaders partitions of a topic, or the summary names it"
GIVES_UP = "no broker loses leaders that min_leaders asks for"
BANDS = "a broker ends within the bands that the summary states, or the summary names it"

TAKEN_ONLINE = "only offline replicas are moved"
KEPT_OFFLINE = "no target keeps an offline replica"
KEEPS_IN_SYNC = "a partition that gives up replicas keeps those that are in sync"
LEADER_IS_ABLE = "a new preferred leader is in sync, or gets a copy"
CHANGES_NOTHING = "a move changes something"
DEMOTED_FIRST = "no target prefers a demoted broker as leader"
DEMOTES_ONLY = "a demotion changes only partitions that its brokers lead"
ELECTED = "a preferred leader that is to be elected is in sync"
ASTRAY = (
    "a replica of a replaced broker goes to its replacement, in the same position, or the summary "
    "names it"
)
DISTURBED = "a replacement leaves all other replicas unchanged"
EVACUATES_ONLY = "an evacuation moves only replicas in its log dirs"
KEPT_INSIDE = "a partition leaves every log dir that is evacuated"
INTO_EVACUATED = "no copy goes into a log dir that is evacuated"
COULD_STAY = "a replica leaves its broker only if no other log dir of that broker has space"
ONLY_LED = "an election leaves replicas and their order as they are"
OF_ITS_SET = "a copy goes to a broker of its topic's broker set"
ENDS_IN_SET = "a partition ends on brokers of its broker set, or the summary names it"
WITHIN_CAPS = "a broker ends within its caps, or holds no more than before"
HAS_A_CAUSE = "what the plan calls a limit of the cluster has a cause"
NAMED_ABOVE = "the summary names each broker that stays above a cap"
TO_DESTINATION = "a new replica goes to a destination"
ENDS_THERE = "what a rebalance brings to destinations ends there, or the summary names it"
