"""Named scripts of what people ask for, and of what comes between: rates of single brokers, and
what other clients have in flight. See :mod:`world.cases`.
"""

from __future__ import annotations

from dataclasses import replace

from world.cases import MOVES, ONE, START
from world.others import RATES
from world.script import Blow, Config, Do, Plan, Script, Strike, Topic, Watch, What

OWN = (2, 400_000, None), (4, None, 300_000)
PLAN_BY_BROKER = Plan("A", MOVES, 1_000_000, own=OWN)


def _by_broker(*does: Do, configs: tuple[Config, ...] = ()) -> Script:
    return Script(1, 4, (ONE,), (PLAN_BY_BROKER,), configs, (START, *does), quiet_s=300.0)


RATES_BY_BROKER = _by_broker()
"""Two brokers have rates of their own, below the plan's; they are taken back without a trace."""

RATES_BY_BROKER_CHANGED = _by_broker(
    Do(20.0, "A", What.CHANGE_RATES, (None, ((4, 800_000, 2_000_000),))),
    Do(40.0, "A", What.CHANGE_RATES, (500_000, ())),
    Do(55.0, "A", What.CHANGE_MOVES, (1,)),
)
"""They change in mid-run, then no broker has one any more; then fewer moves run at once."""

RATES_BY_BROKER_LOWERED = replace(
    _by_broker(Do(20.0, "A", What.CHANGE_RATES, (None, ((2, 250_000, None), (4, None, 200_000))))),
    topics=(replace(ONE, size_bytes=150_000_000),),
    plans=(replace(PLAN_BY_BROKER, own=()),),
)
"""Two brokers get rates of their own in mid-copy, which goes on for minutes."""

RATES_BY_BROKER_KILLED = _by_broker(
    Do(18.0, "A", What.CHANGE_RATES, (None, ((3, None, 700_000),))),
    Do(18.5, "A", What.KILL),
    Do(40.0, "A", What.KILL),
    Do(60.0, "A", What.DELETE_RUN),
    Do(150.0, "A", What.SWEEP),
)
"""The run's processes die around a change, and then the run is deleted in mid-copy."""

RATES_BY_BROKER_OTHERS = _by_broker(
    Do(15.0, "admin", What.SET_RATE, (4, RATES[1], 200_000)),
    Do(30.0, "admin", What.DELETE_RATE, (2, RATES[0])),
    Do(45.0, "admin", What.DELETE_RATE, (None, RATES[0])),
    configs=(Config(False, "2", RATES[0], "5000000"), Config(False, "3", RATES[1], "600000")),
)
"""Another client has rates on two of the brokers, sets one on a third, and deletes ours."""

WIDE = Topic("t", ((1, 2, 3), (1, 2, 3)), 30_000_000, inflow=50_000, min_isr=2)
ALL_NEW = Plan("A", (("t", 0, (4, 5, 6)), ("t", 1, (4, 2, 6, 5))), 2_000_000, at_once=1)


def _in_steps(*does: Do) -> Script:
    return Script(1, 6, (WIDE,), (ALL_NEW,), (), (START, *does), quiet_s=400.0)


STEPS = _in_steps()
"""Each partition gets three new replicas, one at a time."""

STEPS_CANCELLED = _in_steps(Do(45.0, "A", What.CANCEL))
"""It is cancelled when some steps are done: the replicas of before come back, without a copy."""

STEPS_PAUSED = _in_steps(
    Do(30.0, "A", What.PAUSE), Do(32.0, "A", What.KILL), Do(120.0, "A", What.RESUME)
)
"""A pause lets moves that have begun end, with all of their steps."""

STEPS_PAST_WINDOW = Script(
    1, 6, (WIDE,), (replace(ALL_NEW, window_s=50.0),), (), (START,), quiet_s=400.0
)
"""The window ends between two steps."""

STEPS_CANCELLED_BY_OTHERS = _in_steps(
    Do(30.0, "admin", What.CANCEL_ALL, ("t",)),
    Do(60.0, "admin", What.REASSIGN, ("t", 1, (1, 2, 3))),
)
"""Another client cancels a step, and takes a partition back itself."""

STEPS_WHILE_BROKERS_DIE = _in_steps(
    Do(20.0, "fate", What.BROKER_KILLED, (2,)),
    Do(28.0, "fate", What.BROKER_KILLED, (5,)),
    Do(40.0, "A", What.KILL),
    Do(90.0, "fate", What.BROKER_STARTED, (5,)),
    Do(100.0, "A", What.CANCEL),
    Do(180.0, "fate", What.BROKER_STARTED, (2,)),
)
"""A broker of before and one of the next step are away, and then it is cancelled."""

STEPS_FORETOLD = Script(
    *(1, 4, (Topic("t", ((1, 3), (4, 1)), 120_000_000, inflow=200_000, min_isr=2),)),
    (Plan("A", (("t", 0, (2, 4, 1, 3)),), slots=1, at_once=1),),
    (Config(True, "t", "follower.replication.throttled.replicas", "0:4"),),
    (START,),
    quiet_s=400.0,
)
"""What a broker of a later step does not receive yet says nothing of how long the rest takes."""

NEVER_STARTED = Plan("A", (("t", 1, (2, 4)),), 1_000_000)
THEIRS = Do(5.0, "admin", What.REASSIGN, ("t", 0, (3, 2)))
"""A copy of 60 MB without a throttle; the brokers have a rate."""
SLOW = tuple(Config(False, str(broker), RATES[1], "600000") for broker in (1, 2, 3, 4))
LISTED = (Config(True, "t", "follower.replication.throttled.replicas", "*"),)


def _foreign(*does: Do) -> Script:
    configs = (*SLOW, *LISTED)
    return Script(1, 4, (ONE,), (NEVER_STARTED,), configs, (THEIRS, *does), quiet_s=300.0)


FOREIGN_CANCELLED = _foreign(
    Do(20.0, "A", What.CANCEL_FOREIGN, ("t",)), Do(40.0, "A", What.ANSWER, ("approve",))
)
"""A person has what another client has in flight cancelled."""

FOREIGN_REJECTED = _foreign(
    Do(20.0, "A", What.CANCEL_FOREIGN, ("t",)), Do(40.0, "A", What.ANSWER, ("reject",))
)
"""The person who is asked says no."""

IN_ORDER = (
    Do(1.0, "A", What.SNAPSHOT_THROUGH, ("kafka_default",)),
    Do(15.0, "admin", What.REASSIGN, ("t", 0, (2, 3))),
)
FOREIGN_CANCELLED_IN_ORDER = replace(
    FOREIGN_CANCELLED, does=(*IN_ORDER, *FOREIGN_CANCELLED.does[1:])
)
"""A snapshot from before shows in which order the replicas were: so they are again."""

AGAIN = Topic("u", ((3, 4),), 200_000_000)
BY_TOOL = Do(5.0, "admin", What.TOOL_EXECUTE, ("t", 0, (3, 2), 400_000))
BESIDE = Do(8.0, "admin", What.REASSIGN, ("u", 0, (4, 3, 2)))
RATES_OF_4 = tuple(Config(False, "4", key, "700000") for key in RATES)
FOREIGN_CLEANED = Script(
    *(1, 4, (ONE, AGAIN), (NEVER_STARTED,)),
    configs=(Config(True, "u", "follower.replication.throttled.replicas", "0:2"), *RATES_OF_4),
    does=(
        *(BY_TOOL, BESIDE, Do(20.0, "A", What.CANCEL_FOREIGN, ("t", True))),
        Do(40.0, "A", What.ANSWER, ("approve",)),
    ),
    quiet_s=300.0,
)
"""What Kafka's tool has set is taken away with what it has started, but for what slows down another
client's copy: the rates of brokers 2 and 3.
"""

FOREIGN_BESIDE_ANOTHER = _foreign(
    Do(8.0, "admin", What.REASSIGN, ("t", 1, (4, 2))),
    Do(20.0, "A", What.CANCEL_FOREIGN, ("t:0",)),
    Do(40.0, "A", What.ANSWER, ("approve",)),
)
"""Of two partitions in flight, one is chosen."""

FOREIGN_NOT_CLEANED = replace(
    FOREIGN_CLEANED,
    does=(BY_TOOL, Do(20.0, "A", What.CANCEL_FOREIGN, ("t",)), FOREIGN_CLEANED.does[-1]),
)
"""Nobody has asked for that: what others have set stays."""

FOREIGN_LISTED_AND_FOLLOWED = replace(
    _foreign(),
    does=(
        Do(2.0, "A", What.START, (0,)),
        Do(25.0, "admin", What.REASSIGN, ("t", 0, (3, 2))),
        Do(30.0, "A", What.LIST_FOREIGN, ("t",)),
        Do(34.0, "A", What.LIST_FOREIGN, ("",)),
        Do(40.0, "A", What.FOLLOW_FOREIGN, ("",)),
    ),
)
"""What another client has in flight beside a plan is listed, and followed to its end."""

FOREIGN_FOLLOWED_AND_CANCELLED = _foreign(
    Do(20.0, "A", What.FOLLOW_FOREIGN, ("t",)), Do(60.0, "admin", What.CANCEL_ALL, ("t",))
)
"""What is followed is cancelled by its owner."""

LISTINGS = tuple(Do(at, "A", What.LIST_FOREIGN, ("t",)) for at in (30.0, 60.0, 90.0))
FOREIGN_TARGET_DEAD = replace(
    _foreign(Do(10.0, "fate", What.BROKER_KILLED, (3,)), *LISTINGS), quiet_s=400.0
)
"""A copy to a broker that has died is listed: a cancel ends it."""

FOREIGN_WITHOUT_ORIGINALS = Script(
    *(1, 5, (Topic("t", ((1,),), 2_000_000),), (Plan("A", (("t", 0, (2,)),)),)),
    does=(
        Do(3.0, "fate", What.BROKER_KILLED, (5,)),
        Do(16.0, "admin", What.REASSIGN, ("t", 0, (4, 5))),
        Do(50.0, "fate", What.BROKER_STOPPED, (1,)),
        *(Do(at, "A", What.LIST_FOREIGN, ("",)) for at in (40.0, 75.0, 100.0)),
    ),
    quiet_s=400.0,
)
"""One of two new replicas is dead, the other one leads, and no replica of before is in sync: the
controller refuses a cancel.
"""

FOREIGN_KEPT_AWAY = Script(
    *(1, 4, (Topic("t", ((1, 2, 3),), 2_000_000),), (Plan("A", (("t", 0, (2,)),)),)),
    does=(
        Do(3.0, "fate", What.BROKER_KILLED, (2,)),
        Do(16.0, "admin", What.REASSIGN, ("t", 0, (1, 2))),
        *(Do(at, "A", What.LIST_FOREIGN, ("",)) for at in (30.0, 60.0)),
    ),
    quiet_s=400.0,
)
"""A partition is to have fewer replicas, and one that stays is dead."""

FOREIGN_SET_MEANWHILE = _foreign(
    Do(20.0, "A", What.CANCEL_FOREIGN, ("t",)),
    Do(35.0, "admin", What.REASSIGN, ("t", 0, (4, 2))),
    Do(40.0, "A", What.ANSWER, ("approve",)),
)
"""What is in flight is replaced by its owner before the person answers."""

FOREIGN_ADOPTED = _foreign(
    Do(20.0, "A", What.ADOPT_FOREIGN, ("t", 1_000_000)), Do(40.0, "A", What.ANSWER, ("approve",))
)
"""A person has it adopted: it ends as a plan, and no throttle is left."""

FOREIGN_ADOPTED_AND_CANCELLED = replace(
    FOREIGN_ADOPTED,
    does=(
        *IN_ORDER,
        *FOREIGN_ADOPTED.does[1:],
        Do(56.0, "A", What.CANCEL),
    ),
)
"""A person cancels it as a plan: the state of before is back, in its order."""

FOREIGN_ADOPTED_BESIDE_A_PLAN = _foreign(
    Do(2.0, "A", What.START, (0,)),
    Do(20.0, "A", What.ADOPT_FOREIGN, ("t:0", 1_000_000)),
    Do(40.0, "A", What.ANSWER, ("approve",)),
)
"""A plan of Rehome runs: nothing is adopted beside it."""

FOREIGN_ADOPTED_AND_KILLED = _foreign(
    Do(20.0, "A", What.ADOPT_FOREIGN, ("t", 1_000_000)),
    Do(40.0, "A", What.ANSWER, ("approve",)),
    Do(55.0, "A", What.LEDGER_AWAY, (30.0,)),
    Do(70.0, "admin", What.SET_RATE, (3, RATES[1], 200_000)),
)
"""While an adopted plan is followed, its ledger is away and another client lowers a rate."""

FOREIGN_ADOPTED_AND_PAUSED = _foreign(
    Do(20.0, "A", What.ADOPT_FOREIGN, ("t", 1_000_000)),
    Do(40.0, "A", What.ANSWER, ("approve",)),
    Do(52.0, "A", What.PAUSE),
    Do(58.0, "A", What.RESUME),
    Do(60.0, "A", What.PAUSE),
    Do(62.0, "A", What.KILL),
    Do(150.0, "A", What.RESUME),
)
"""An adopted plan is paused and resumed, and paused again while its processes die: it ends."""

FOREIGN_ADOPTED_PAST_WINDOW = replace(
    _foreign(
        Do(20.0, "A", What.ADOPT_FOREIGN, ("t", 1_000_000)),
        Do(40.0, "A", What.ANSWER, ("approve",)),
        Do(56.0, "A", What.DELETE_RUN),
        Do(150.0, "A", What.NEXT_WINDOW),
        Do(195.0, "A", What.ANSWER, ("approve",)),
        Do(300.0, "A", What.RESUME),
        Do(330.0, "A", What.ANSWER, ("approve",)),
    ),
    configs=(*(replace(each, value="150000") for each in SLOW), *LISTED),
    watches=(Watch("A", window_s=(180, 60), own_plan=False),),
    quiet_s=900.0,
)
"""An adopted plan whose run was deleted is handed over to a window, which ends in mid-copy; a
person resumes it then.
"""

FOREIGN_ADOPTED_RUN_DELETED = _foreign(
    Do(20.0, "A", What.ADOPT_FOREIGN, ("t", 1_000_000)),
    Do(40.0, "A", What.ANSWER, ("approve",)),
    Do(56.0, "A", What.DELETE_RUN),
    Do(150.0, "A", What.RESUME),
)
"""The run of an adopted plan is deleted in mid-copy, and a person resumes the plan in another."""

CRUISE_CONTROL_BESIDE = Script(
    *(1, 4, (ONE, Topic("u", ((3, 4),), 10_000_000), Topic("__CruiseControlMetrics", ((1,),)))),
    (Plan("A", MOVES, 1_000_000),),
    does=(START, Do(9.0, "admin", What.CRUISE_CONTROL, ("u", 0, (1, 4), 400_000))),
    quiet_s=300.0,
)
"""Cruise Control's topics are there: rates are set by broker, and its executor comes to its end."""

FOLLOWED_UP = Script(
    31,
    4,
    (Topic("t", ((3, 1, 4),), 120_000_000), Topic("u", ((3,), (4,)), 20_000_000)),
    (
        Plan("A", (), drains=(1,), tried_out=True, approval=True),
        Plan("B", (("u", 0, (1,)),), 5_000_000),
    ),
    does=(
        Do(1.4, "A", What.START, (0,)),
        Do(21.7, "A", What.ANSWER, ("approve",)),
        Do(36.4, "B", What.START, (1,)),
    ),
    quiet_s=400.0,
)
"""What has appeared on a drained broker is followed up, and each of the two plans is approved."""

LISTS_OF_A_LOST_LEDGER = Script(
    169,
    5,
    (Topic("t", ((3, 4), (4, 3), (2, 3)), 120_000_000, min_isr=2),),
    (Plan("A", (("t", 2, (2, 3, 5, 1)),), 1_000_000, slots=1, at_once=1),),
    does=(Do(14.9, "A", What.START, (0,)), Do(47.4, "A", What.LEDGER_NEW)),
    quiet_s=903.9,
    watches=(Watch("A", every_s=90, window_s=(240, 300), rate=5_000_000),),
)
"""Seed 169 with all plans in steps: a plan of the new ledger puts its items on the lists that have
those of the lost one, and takes its own back. What is left the sweep names.
"""

NEW_LEDGER_IN_MID_POLL = Script(
    276,
    5,
    (Topic("t", ((3, 5), (1, 4)), 120_000_000, min_isr=2),),
    (Plan("A", (("t", 1, (2, 1)),), 1_000_000, slots=1),),
    does=(Do(5.7, "A", What.START, (0,)), Do(43.6, "A", What.LEDGER_NEW)),
    quiet_s=400.0,
)
"""Seed 269: the ledger is replaced between a poll and what it records of a plan."""

EMPTIED_BY_A_LOST_LEDGER = Script(
    6469,
    3,
    (
        Topic("t", ((1, 2, 3), (1, 3, 2), (2, 3, 1)), 5_000_000, inflow=200_000),
        Topic("u", ((1, 3),), 120_000_000, inflow=200_000, min_isr=2),
        Topic("v", ((2, 3),), 20_000_000, inflow=50_000),
    ),
    (
        Plan("A", (("v", 0, (1, 3)),), 5_000_000, slots=2),
        Plan(
            *("B", (("v", 0, (1, 3)),), 5_000_000),
            slots=2,
            tried_out=True,
            approval=True,
            own=((1, 5_000_000, 5_000_000),),
        ),
    ),
    does=(
        Do(7.5, "A", What.START, (0,)),
        Do(11.5, "admin", What.CRUISE_CONTROL, ("u", 0, (3, 2), 500_000)),
        Do(39.9, "admin", What.CANCEL_ALL, ("t",)),
        Do(119.3, "A", What.LEDGER_NEW),
    ),
    strikes=(Strike("A", 562, Blow.ANSWER_LOST),),
    quiet_s=400.0,
)
"""Seed 6469: A has taken its items back, and its ledger is lost before the lists are deleted: they
are there with nothing in them, and the new ledger names them beside the mark.
"""

DRAINED_BESIDE_A_CORDON = Script(
    9129,
    4,
    (
        Topic("t", ((2,),), 5_000_000, inflow=200_000),
        Topic("u", ((4, 3), (4, 3)), 5_000_000),
        Topic("v", ((4,),), 60_000_000, inflow=200_000),
    ),
    (
        Plan("A", (), 1_000_000, drains=(3,), tried_out=True, cordons=True),
        Plan("B", (), 1_000_000, drains=(1,), tried_out=True),
    ),
    does=(Do(8.8, "A", What.START, (0,)), Do(33.4, "B", What.START, (1,))),
    quiet_s=400.0,
    one_run=("A", "B"),
)
"""Seed 9129: B is to drain a broker of a data centre while A has cordoned the other one of it. The
planner says so, and makes no plan that the gate refuses.
"""
