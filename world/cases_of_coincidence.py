"""Named scripts in which two things happen at once, each found by one seed in hundreds."""

from __future__ import annotations

from world.others import LISTS, RATES
from world.script import Blow, Config, Do, Plan, Script, Strike, Topic, Watch, What

LEDGER_REPLACED_UNDER_A_CALL = Script(
    64032,
    4,
    (Topic("u", ((1, 4), (2, 1), (4, 2)), 120_000_000, inflow=200_000),),
    (
        Plan(
            *("A", (("u", 1, (1, 4)),)),
            slots=2,
            own=((1, 5_000_000, 500_000), (3, 500_000, 5_000_000)),
        ),
    ),
    does=(
        Do(4.9, "A", What.START, (0,)),
        Do(32.4, "A", What.MARK, ("success",)),
        Do(35.1, "A", What.LEDGER_NEW),
    ),
    quiet_s=400.0,
)
"""Seed 64032: the ledger is replaced while the call that empties a list is under way."""

CHANGED_WHILE_A_BROKER_WAS_SILENT = Script(
    64522,
    3,
    (Topic("t", ((3,), (3,), (3,)), 5_000_000),),
    (
        Plan("A", (("t", 0, (2,)),), slots=2),
        Plan("B", (("t", 1, (2,)),), 5_000_000, slots=1, own=((3, 500_000, 5_000_000),)),
    ),
    does=(
        Do(14.4, "A", What.START, (0,)),
        Do(16.2, "admin", What.SET_RATE, (3, RATES[1], 5_000_000)),
        Do(34.2, "admin", What.TOOL_EXECUTE, ("t", 0, (1,), 500_000)),
    ),
    strikes=(Strike("A", 142, Blow.BROKER_ANSWER_LOST),),
    quiet_s=400.0,
)
"""Seed 64517: one broker's answer is waited for, and another one's throttle changes meanwhile."""

PLANNED_BESIDE_ANOTHER_REHOME = Script(
    64995,
    4,
    (Topic("t", ((1,), (3,), (3,)), 120_000_000),),
    (Plan("A", (("t", 2, (1,)),), 1_000_000, slots=1),),
    does=(Do(11.4, "A", What.START, (0,)),),
    watches=(
        Watch(
            *("W", "propose"),
            every_s=120,
            grace_s=150,
            window_s=(120, 120),
            rate=5_000_000,
            later=((360, 120), (600, 120)),
            approval=True,
        ),
    ),
)
"""Seed 64995: the gate on a snapshot refuses to plan while another Rehome moves partitions."""

ONE_AFTER_THE_OTHER_STALLS = Script(
    65391,
    6,
    (Topic("t", ((4, 1),), 60_000_000, min_isr=2),),
    (Plan("A", (("t", 0, (3, 2)),), slots=1),),
    does=(
        Do(8.3, "A", What.START, (0,)),
        Do(40.5, "A", What.START, (0,)),
        Do(40.6, "fate", What.BROKER_LOST, (3,)),
        Do(148.7, "A", What.START, (0,)),
    ),
    watches=(
        Watch(
            "A",
            every_s=120,
            grace_s=150,
            window_s=(120, 180),
            rate=1_000_000,
            own_plan=False,
            later=((360, 180), (600, 180)),
            approval=True,
        ),
    ),
    one_run=("A",),
)
"""Seed 65391: of three runs that come to nothing, the last has its ten minutes, too."""

ASKED_WHILE_A_CHANNEL_HANGS = Script(
    66059,
    6,
    (
        Topic("t", ((2, 1, 6),), 120_000_000),
        Topic("u", ((5, 2, 3), (4, 2, 6), (4, 1, 6)), 5_000_000, inflow=200_000),
    ),
    (Plan("A", (("u", 2, (4, 3, 6)),), 1_000_000, slots=2),),
    does=(Do(193.3, "A", What.CHANNEL_FALTERS, ("hangs", 200)),),
    watches=(
        Watch(
            "A",
            every_s=120,
            grace_s=150,
            window_s=(120, 120),
            rate=1_000_000,
            later=((360, 120), (600, 120)),
            approval=True,
        ),
    ),
    channels=("A",),
)
"""Seed 66059: to alert people takes a minute, and the window does not end a minute later for it."""

TWO_PLANS_OF_ONE_MOVE = Script(
    66882,
    4,
    (Topic("t", ((4,), (4,)), 60_000_000, inflow=200_000),),
    (Plan("A", (("t", 0, (1,)),), 1_000_000, slots=1, approval=True),),
    (
        Config(True, "t", LISTS[1], "0:3"),
        Config(True, "t", LISTS[0], "0:3"),
    ),
    (
        Do(5.2, "A", What.START, (0,)),
        Do(7.0, "A", What.START, (0,)),
        Do(61.8, "A", What.ANSWER, ("approve",)),
        Do(78.4, "fate", What.BROKER_LOST, (4,)),
        Do(106.9, "A", What.LEDGER_RESTORED),
    ),
    (
        Strike("A", 593, Blow.BROKER_ANSWER_LOST),
        Strike("A", 584, Blow.BROKER_LOST),
    ),
    quiet_s=400.0,
    watches=(
        Watch(
            *("A", "propose"),
            every_s=90,
            heals_a_day=1,
            budget_bytes=100_000_000,
            own_plan=False,
        ),
    ),
)
"""Seed 66882: of two plans of one move, one ends before it has begun, and the other moves."""
