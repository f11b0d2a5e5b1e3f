"""Named scripts that one seed in thousands has found. See :mod:`world.cases`."""

from __future__ import annotations

from world.others import LISTS, RATES
from world.script import Blow, Config, Do, Plan, Script, Strike, Topic, Watch, What

SET_BEFORE_IT_WAS_ASKED = Script(
    2427,
    6,
    (Topic("t", ((3, 1), (3, 6), (5, 2)), 20_000_000),),
    (Plan("A", (), 1_000_000, slots=2, drains=(1,), tried_out=True),),
    does=(
        Do(2.5, "A", What.START, (0,)),
        Do(15.6, "admin", What.TOOL_EXECUTE, ("t", 0, (5, 6), 5_000_000)),
    ),
    strikes=(Strike("A", 197, Blow.REQUEST_LOST),),
    quiet_s=400.0,
    one_run=("A",),
)
"""Seed 2427: the mark of A's lists is lost, and Kafka's tool sets the items that A wanted next."""

FILLED_UNDER_A_THROTTLE = Script(
    6906,
    3,
    (Topic("t", ((2, 3), (3, 2)), 20_000_000),),
    (Plan("A", (("t", 1, (2, 3)),), slots=1),),
    (
        Config(True, "t", LISTS[1], "1:2"),
        Config(False, "2", RATES[1], "500000"),
    ),
    (Do(11.0, "A", What.START, (0,)),),
    quiet_s=400.0,
)
"""Seed 6906: a follower has all that its leader has from the beginning, whatever slows it."""

TRIED_IN_TIME_TO_COME = Script(
    3756,
    4,
    (Topic("t", ((4, 2), (1, 2), (3, 1)), 120_000_000),),
    (Plan("A", (("t", 2, (1, 3)),), 5_000_000, slots=2),),
    does=(
        Do(52.1, "A", What.CLOCK_JUMPS, (300,)),
        Do(54.9, "admin", What.SET_RATE, (3, RATES[0], 1_000_000)),
        Do(187.9, "A", What.CHANNEL_FALTERS, ("hangs", 600)),
        Do(302.1, "A", What.SWEEP),
    ),
    quiet_s=400.0,
    channels=("A",),
)
"""Seed 3756: a channel has failed by a clock that is put back then; the next sweep tries again."""

HIDDEN_BETWEEN_TWO_STEPS = Script(
    8623,
    4,
    (Topic("t", ((4, 3), (3, 1), (4, 1)), 20_000_000, min_isr=2),),
    (Plan("A", (("t", 1, (2, 4)),), 5_000_000, window_s=150, at_once=1),),
    does=(
        Do(16.0, "A", What.START, (0,)),
        Do(48.3, "fate", What.RIGHTS_REVOKED, ("t", "ALL")),
    ),
    quiet_s=400.0,
    one_run=("A",),
)
"""Seed 8623: a plan's window ends when its partition is between two steps and cannot be read."""

LEADER_WIPED_BEFORE_A_HEAL = Script(
    2284,
    4,
    (Topic("t", ((4, 1), (2, 1)), 120_000_000),),
    (Plan("A", (), 5_000_000, slots=2, drains=(1,), tried_out=True),),
    does=(
        Do(17.2, "A", What.START, (0,)),
        Do(116.7, "fate", What.BROKER_LOST, (3,)),
        Do(219.9, "fate", What.BROKER_KILLED, (4,)),
        Do(222.9, "fate", What.BROKER_WIPED, (4,)),
    ),
    quiet_s=400.0,
    watches=(Watch("W", every_s=120, grace_s=150, heals_a_day=1, budget_bytes=30_000_000),),
)
"""Seed 2284: the last replica returns empty, and leads. A heal has nothing to copy of it."""

TARGET_LOST_WHILE_ITS_SOURCE_IS = Script(
    4399,
    4,
    (Topic("t", ((3,), (2,)), 20_000_000),),
    (
        Plan("A", (("t", 0, (3,)),)),
        Plan("B", (("t", 1, (2,)),), 1_000_000, slots=2, log_dirs=True),
    ),
    does=(
        Do(21.1, "fate", What.LOG_DIR_FAILED, (3, 0)),
        Do(115.4, "admin", What.CRUISE_CONTROL, ("t", 0, (1,), 20_000_000)),
        Do(117.2, "B", What.START, (1,)),
        Do(252.3, "fate", What.BROKER_LOST, (1,)),
    ),
    quiet_s=400.0,
    one_run=("A", "B"),
)
"""Seed 4399: another client's reassignment cannot end, nor be cancelled before its source is back.
B waits for it, and says so.
"""

LOST_PLAN_NEVER_ENDS = Script(
    1,
    4,
    (Topic("t", ((3,), (2,)), 20_000_000),),
    (Plan("A", (("t", 1, (1,)),), 1_000_000),),
    does=(
        Do(6.7, "A", What.START, (0,)),
        Do(7.2, "A", What.LEDGER_BACKED_UP),
        Do(37.8, "fate", What.BROKER_LOST, (1,)),
        Do(88.2, "A", What.LEDGER_RESTORED),
    ),
    quiet_s=400.0,
)
"""A ledger loses the plan whose copy can never end: what that relies on stays, and is named."""

HELD_BY_WHAT_NEVER_ENDS = Script(
    13638,
    5,
    (Topic("t", ((2, 4),), 20_000_000), Topic("u", ((5, 4, 3),), 120_000_000)),
    (
        Plan("A", (("t", 0, (3, 4)),), 1_000_000, slots=1),
        Plan("B", (("u", 0, (4, 1, 2)),), slots=1),
    ),
    does=(
        Do(5.0, "A", What.START, (0,)),
        Do(27.0, "fate", What.BROKER_LOST, (3,)),
        Do(63.5, "B", What.START, (1,)),
        Do(102.4, "A", What.DELETE_RUN),
    ),
    quiet_s=400.0,
)
"""A plan waits for the copy of another installation to a lost broker, whose run was deleted."""

ADOPTED_UNREAD = Script(
    16222,
    6,
    (Topic("t", ((6, 5),), 20_000_000, min_isr=2),),
    (
        Plan("A", (("t", 0, (6, 3)),), 5_000_000, slots=2),
        Plan("B", (("t", 0, (3, 4)),), 5_000_000, window_s=172),
    ),
    does=(
        Do(29.2, "fate", What.BROKER_LOST, (1,)),
        Do(31.8, "fate", What.RIGHTS_REVOKED, ("t", "ALL")),
        Do(45.0, "admin", What.REASSIGN, ("t", 0, (1, 4))),
        Do(48.4, "B", What.ADOPT_FOREIGN, ("t", 500_000)),
        Do(69.4, "B", What.ANSWER, ("approve",)),
    ),
    quiet_s=400.0,
)
"""What others have in flight is adopted while its topic may not be read: its id is not known."""

REPLACED_WHILE_A_MARK_IS_SENT = Script(
    19674,
    6,
    (Topic("u", ((5, 1, 2), (4, 3, 6)), 120_000_000),),
    (
        Plan("A", (("u", 1, (4, 5, 6)),), 5_000_000, slots=2, window_s=157),
        Plan("B", (("u", 1, (6, 1, 2)),), slots=2),
    ),
    (Config(False, "2", "leader.replication.throttled.rate", "500000"),),
    (
        Do(3.1, "B", What.START, (1,)),
        Do(12.1, "A", What.START, (0,)),
        Do(14.9, "B", What.LEDGER_NEW),
    ),
    (Strike("A", 50, Blow.ANSWER_LOST),),
    quiet_s=400.0,
    channels=("A", "B"),
)
"""Seed 19674: B's ledger is replaced while its mark of list items is under way to the brokers."""

LED_BY_A_NEW_REPLICA = Script(
    1973,
    4,
    (Topic("u", ((2, 3), (4, 1), (4, 2)), 5_000_000, min_isr=2),),
    (
        Plan("A", (("u", 0, (2, 3)),), 5_000_000, approval=True),
        Plan("B", (("u", 2, (1, 3)),), slots=2, own=((1, 500_000, None),), at_once=1),
    ),
    does=(
        Do(16.1, "B", What.START, (1,)),
        Do(33.4, "fate", What.BROKER_KILLED, (2,)),
        Do(48.8, "fate", What.BROKER_KILLED, (4,)),
    ),
    quiet_s=400.0,
)
"""A new replica comes to lead while the next is copied, and its broker has a rate of its own."""

SLOWED_AFTER_ITS_WINDOW = Script(
    18817,
    4,
    (Topic("t", ((1, 4),), 90_000_000),),
    (Plan("A", (("t", 0, (2, 3)),), 5_000_000, window_s=140, own=((3, None, 1_000_000),)),),
    does=(
        Do(1.1, "A", What.START, (0,)),
        Do(42.0, "fate", What.BROKER_KILLED, (1,)),
        Do(43.0, "fate", What.BROKER_KILLED, (4,)),
        Do(45.0, "A", What.CHANGE_RATES, (5_000_000, ((3, None, 200_000),))),
        Do(150.0, "A", What.CHANGE_RATES, (5_000_000, ((3, None, 50_000),))),
    ),
    quiet_s=500.0,
)
"""A lower rate is asked for when the window has ended, and the move cannot be cancelled."""

_LOWER = ((1, 1_000_000, 500_000), (2, 1_000_000, None))
RATE_OF_A_BROKER_THAT_IS_AWAY = Script(
    18817,
    3,
    (Topic("t", ((1,), (2,)), 20_000_000),),
    (Plan("A", (("t", 0, (2,)),), slots=2, window_s=96, own=((2, 1_000_000, 1_000_000),)),),
    does=(
        Do(1.1, "A", What.START, (0,)),
        Do(17.8, "fate", What.BROKER_KILLED, (1,)),
        Do(89.3, "A", What.CHANGE_RATES, (5_000_000, _LOWER)),
    ),
    quiet_s=400.0,
)
"""Seed 18817: a broker that is away is to have a rate of its own, which only it can take."""

STEP_OVER_ANOTHERS_MOVE = Script(
    18705,
    4,
    (Topic("t", ((3, 1),), 20_000_000, min_isr=2),),
    (
        Plan("A", (("t", 0, (2, 4)),), 5_000_000),
        Plan(
            *("B", (("t", 0, (4, 2, 3, 1)),), 1_000_000),
            slots=1,
            window_s=310,
            own=((2, 5_000_000, 5_000_000),),
            at_once=1,
        ),
    ),
    does=(Do(7.2, "B", What.START, (1,)), Do(7.8, "A", What.START, (0,))),
    quiet_s=400.0,
)
"""Two Rehomes move one partition within a second; the second one goes in steps."""

LIST_SET_BEHIND_A_LAG = Script(
    19789,
    6,
    (
        Topic("t", ((4,), (5,), (4,)), 60_000_000, inflow=200_000),
        Topic("u", ((6, 2),), 60_000_000, inflow=200_000),
        Topic("v", ((4, 6), (6, 5), (5, 2)), 5_000_000, inflow=50_000),
    ),
    (Plan("A", (), slots=1, drains=(5,), tried_out=True),),
    does=(
        Do(6.5, "A", What.START, (0,)),
        Do(168.1, "admin", What.TOOL_EXECUTE, ("t", 0, (3,), 1_000_000)),
    ),
    strikes=(Strike("A", 537, Blow.DEATH), Strike("A", 235, Blow.FAILURE)),
    quiet_s=400.0,
)
"""Seed 19788, in another order: lists of Kafka's tool that the broker we read from lacks still."""

ASKED_FOR_WHAT_GOES_ON = Script(
    14548,
    4,
    (Topic("u", ((1,), (1,)), 5_000_000),),
    (Plan("A", (("u", 1, (4,)),), 5_000_000, slots=1, window_s=68),),
    does=(
        Do(3.0, "A", What.START, (0,)),
        Do(19.2, "fate", What.BROKER_STOPPED, (1,)),
        Do(183.0, "admin", What.REASSIGN, ("u", 1, (4,))),
    ),
    quiet_s=400.0,
)
"""Another client asks for the target of a move whose cancel was refused: nothing shows that."""

GONE_BEHIND_A_FULL_DISK = Script(
    40028,
    6,
    (Topic("t", ((1, 6), (1, 4)), 60_000_000, inflow=200_000),),
    (Plan("A", (("t", 0, (1, 3)), ("t", 1, (4, 2))), slots=1),),
    (Config(False, "1", RATES[0], "5000000"),),
    (
        Do(5.6, "admin", What.DELETE_LIST, ("t", LISTS[1])),
        Do(12.4, "fate", What.BROKER_LOST, (3,)),
        Do(13.5, "A", What.START, (0,)),
        Do(33.1, "admin", What.SET_LIST, ("t", LISTS[1], "1:2")),
        Do(34.1, "fate", What.DISK_FILLED, (3, 1)),
        Do(49.7, "admin", What.CRUISE_CONTROL, ("t", 0, (6, 3), 500_000)),
        Do(95.2, "admin", What.DELETE_TOPIC, ("t",)),
    ),
    quiet_s=400.0,
)
"""Seed 40028: the topic of a move that waits for a disk is deleted, and nothing reads it again."""
