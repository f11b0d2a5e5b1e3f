"""Named scripts of actors that came later: channels of alerts that falter, two connections that
lead to one cluster, two entries that are for it, people who do not answer, runs that stay queued.
See :mod:`world.cases`.
"""

from __future__ import annotations

from dataclasses import replace

from world.cases import MOVES, ONE, PLAN, START
from world.others import LISTS, RATES
from world.rehome.channel import Answers
from world.rehome.two_entries import OTHER
from world.script import Blow, Config, Do, Plan, Script, Strike, Topic, Watch, What

LEFTOVERS = (Config(True, "t", LISTS[0], "0:4"), Config(False, "", RATES[0], "5000000"))


def _channel(how: Answers, *does: Do, quiet_s: float = 300.0) -> Script:
    falters = Do(3.0, "A", What.CHANNEL_FALTERS, (how.value, quiet_s))
    plan = replace(PLAN, approval=True)
    return Script(
        *(1, 4, (ONE,), (plan,), LEFTOVERS, (START, falters, *does)),
        quiet_s=quiet_s,
        channels=("A",),
    )


APPROVED = Do(80.0, "A", What.ANSWER, ("approve",))
SWEPT = tuple(Do(at_s, "A", What.SWEEP) for at_s in (60.0, 130.0, 220.0))

CHANNEL_LATE = _channel(Answers.LATE, *SWEPT, APPROVED)
"""A webhook answers after nine seconds."""

CHANNEL_NEVER = _channel(Answers.NEVER, *SWEPT, APPROVED)
"""It gives no answer, until the world becomes quiet."""

CHANNEL_REFUSES = _channel(Answers.REFUSES, *SWEPT, APPROVED)
"""It answers with an error of the server."""

CHANNEL_TWICE = _channel(Answers.TWICE, *SWEPT, APPROVED)
"""It takes each message, and its first answer is lost."""

CHANNEL_HANGS = _channel(
    Answers.HANGS,
    Do(100.0, "A", What.SWEEP),
    Do(400.0, "A", What.SWEEP),
    quiet_s=800.0,
)
"""A notifier never ends, and there are several alerts: each sweep waits for it once."""

FIRST = replace(PLAN, moves=MOVES[:1])
SECOND = Plan("A", MOVES[1:], 2_000_000, through=OTHER)


def _two(*does: Do, watches: tuple[Watch, ...] = ()) -> Script:
    plans = () if watches else (FIRST, SECOND)
    return Script(1, 5, (ONE,), plans, (), does, quiet_s=600.0, watches=watches)


TWO_CONNECTIONS = _two(
    START,
    Do(15.0, "A", What.SNAPSHOT_THROUGH, (OTHER,)),
    Do(20.0, "A", What.START, (1,)),
    Do(30.0, "A", What.SWEEP_THROUGH, (OTHER,)),
    Do(40.0, "A", What.KILL),
    Do(45.0, "A", What.SWEEP_THROUGH, (OTHER,)),
    Do(250.0, "A", What.START, (1,)),
)
"""A plan runs, and another connection leads to its cluster: through that it is swept, and a plan is
started twice, at first while the other one runs.
"""

TAKEN = Do(5.0, "A", What.SNAPSHOT_THROUGH, (OTHER,))
TWO_ENTRIES = _two(
    TAKEN,
    Do(12.0, "A", What.ENTRY_ADDED, (200,)),
    Do(20.0, "A", What.START, (0,)),
    Do(60.0, "A", What.START, (1,)),
    Do(250.0, "A", What.START, (1,)),
)
"""Two entries are for one cluster: no plan begins on it before one of them is gone."""

TWO_ENTRIES_IN_MID_RUN = _two(
    START,
    TAKEN,
    Do(22.0, "A", What.ENTRY_ADDED, (300,)),
    Do(30.0, "A", What.PAUSE),
    Do(35.0, "A", What.RESUME),
    Do(40.0, "A", What.KILL),
    Do(70.0, "A", What.CANCEL),
)
"""The second entry comes while a plan runs: it is paused, not resumed, and cancelled."""

TWO_ENTRIES_WATCHED = _two(
    Do(5.0, "fate", What.BROKER_LOST, (2,)),
    Do(10.0, "A", What.SNAPSHOT_THROUGH, (OTHER,)),
    Do(20.0, "A", What.ENTRY_ADDED, (350,)),
    watches=(Watch("A", every_s=60.0),),
)
"""A broker is dead while two entries are for its cluster: it is healed when one of them is gone."""

UNEVEN = Topic("t", ((1, 2), (1, 2), (1, 3), (2, 1)), 20_000_000)
NO_ANSWERS = Script(
    *(1, 5, (UNEVEN,), ()),
    quiet_s=900.0,
    watches=(Watch("A", window_s=(120, 120), later=((360, 120), (600, 120)), approval=True),),
)
"""Each window makes a plan that nobody approves: its question lapses with the window, which is
told, and the next window makes another one.
"""

ANSWERED_IN_THE_SECOND_WINDOW = replace(
    NO_ANSWERS, does=(Do(400.0, "A", What.ANSWER, ("approve",)),)
)
"""A person approves what the second window asks."""

LEFT_PAUSED = Script(
    *(1, 5, (UNEVEN,), (Plan("A", (("t", 0, (3, 4)), ("t", 1, (4, 5))), 500_000, slots=1),), ()),
    (
        START,
        Do(20.0, "A", What.ANSWER, ("approve",)),
        Do(40.0, "A", What.PAUSE),
        Do(112.0, "A", What.NEXT_WINDOW),
    ),
    quiet_s=900.0,
    watches=NO_ANSWERS.watches,
)
"""A plan that was paused waits for windows, and nobody answers in any of them."""

ONE_RUN_AT_A_TIME = replace(
    TWO_CONNECTIONS,
    plans=(FIRST, replace(SECOND, through="")),
    does=(
        START,
        Do(20.0, "A", What.START, (1,)),
        Do(25.0, "A", What.SWEEP),
        Do(25.5, "A", What.SWEEP),
        Do(40.0, "A", What.KILL),
    ),
    one_run=("A",),
)
"""Airflow lets one run of each DAG be active: a second plan waits until the first one has ended."""

QUEUED_BEHIND_A_QUESTION = Script(
    *(1, 5, (ONE,), (replace(FIRST, approval=True), replace(SECOND, through="")), ()),
    (
        START,
        Do(20.0, "A", What.START, (1,)),
        Do(60.0, "A", What.PAUSE),
        Do(90.0, "A", What.ANSWER, ("approve",)),
        Do(110.0, "A", What.PAUSE),
        Do(120.0, "A", What.RESUME),
    ),
    quiet_s=600.0,
    one_run=("A",),
)
"""A run waits behind one that asks people; that one is paused and resumed in a run of its own."""

TAKEN_OVER_AND_LEFT_BETWEEN = Script(
    2730,
    4,
    (Topic("u", ((4,), (2,)), 120_000_000),),
    (Plan("A", (("u", 0, (3,)),), 5_000_000, slots=2, window_s=278),),
    does=(
        Do(8.8, "A", What.START, (0,)),
        Do(27.8, "admin", What.REASSIGN, ("u", 0, (1,))),
        Do(50.7, "admin", What.CANCEL_ALL, ("u",)),
    ),
    strikes=(Strike("A", 305, Blow.REQUEST_LOST),),
    quiet_s=400.0,
)
"""Seed 2730: another client takes A's move over and cancels that; the partition stays on the
replicas of before and after, with nothing in flight."""

CLOCK_PUT_BACK_IN_MID_RUN = Script(
    2173,
    3,
    (Topic("t", ((3, 2), (1, 2)), 60_000_000, min_isr=2),),
    (
        Plan("A", (("t", 1, (2, 3)),), slots=1, own=((3, 1_000_000, None),)),
        Plan("B", (("t", 1, (2, 1)),), 1_000_000, slots=2, window_s=276),
    ),
    (Config(False, "", "follower.replication.throttled.rate", "500000"),),
    does=(
        Do(5.8, "A", What.START, (0,)),
        Do(29.6, "A", What.CLOCK_JUMPS, (-300,)),
        Do(54.8, "fate", What.BROKER_KILLED, (3,)),
    ),
    quiet_s=400.0,
)
"""Seed 2173: the clock is put back before A's plan went on; a broker that dies then is named."""

REPLACED_WITH_ALL_OF_ITS_REPLICAS = Script(
    9026,
    4,
    (Topic("u", ((2, 3),), 60_000_000),),
    (Plan("A", (("u", 0, (1, 4)),), 5_000_000, slots=2, at_once=1),),
    does=(Do(18.5, "A", What.START, (0,)), Do(33.3, "admin", What.REASSIGN, ("u", 0, (1, 3)))),
    quiet_s=400.0,
)
"""Seed 9026: another client begins 2, 3 to 1, 3 between A's last look and its first step, which is
to 2, 3, 1. The controller makes one of both: broker 2 still goes, and the order is A's.
"""

MOVED_BETWEEN_LOG_DIRS_BY_OTHERS = Script(
    9839,
    4,
    (Topic("t", ((3, 2), (4, 1), (1, 3)), 20_000_000),),
    (
        Plan("A", (), drains=(2,), tried_out=True, cordons=True),
        Plan("B", (("t", 0, (3, 2)), ("t", 1, (3, 4))), 1_000_000, log_dirs=True),
    ),
    does=(
        Do(9.8, "A", What.START, (0,)),
        Do(35.2, "A", What.KILL),
        Do(79.5, "B", What.START, (1,)),
    ),
    quiet_s=400.0,
)
"""Seed 9839: A's copy is whole, and its processes are dead, when B moves the new replica to another
log dir. What A says of its copy then is not about B's.
"""

BALANCED_WHILE_A_DISK_IS_FULL = Script(
    6179,
    4,
    (
        Topic("t", ((3, 4), (1, 2)), 60_000_000),
        Topic("u", ((3, 1), (3, 1), (4, 1)), 60_000_000, inflow=50_000),
        Topic("v", ((3, 1),), 5_000_000, min_isr=2),
    ),
    (Plan("A", (), 1_000_000, slots=2, drains=(2,), tried_out=True, cordons=True),),
    does=(Do(18.0, "A", What.START, (0,)), Do(22.3, "fate", What.DISK_FILLED, (2, 0))),
    watches=(
        Watch(
            *("W", "propose", 120, 150, (120, 120)),
            rate=1_000_000,
            later=((360, 120), (600, 120)),
            approval=True,
        ),
    ),
)
"""Seed 6179: a log dir of broker 2 has less free space than is to stay free. What windows plan goes
to its other one.
"""
