"""Named scripts: what people have broken Rehome with, and what seeds have found, as short as it is.

Each says what it shows; ``tests/world/cases/test_cases.py`` says whether that is fixed.
"""

from __future__ import annotations

from world.others import LISTS, RATES
from world.script import Config, Do, Plan, Script, Topic, What

ONE = Topic("t", ((1, 2), (2, 3)), 60_000_000)
MOVES = (("t", 0, (3, 2)), ("t", 1, (2, 4)))
PLAN = Plan("A", MOVES, 1_000_000)
START = Do(1.0, "A", What.START, (0,))


def _script(*does: Do, configs: tuple[Config, ...] = (), order: int = 1) -> Script:
    return Script(order, 4, (ONE,), (PLAN,), configs, (START, *does), quiet_s=300.0)


TWO_REHOMES = Script(
    1,
    4,
    (ONE, Topic("u", ((1, 3),), 120_000_000)),
    (PLAN, Plan("B", (("u", 0, (4, 3)),), 500_000)),
    does=(START, Do(20.0, "B", What.START, (1,))),
    quiet_s=300.0,
)
"""B1: two Rehomes move on one cluster, and the first ends first."""

RATE_DELETED = _script(
    Do(20.0, "admin", What.DELETE_RATE, (None, RATES[0])),
    configs=(Config(False, "", RATES[0], "5000000"),),
)
"""B2: the owner of a default rate deletes it while ours is in its place."""

LIST_DELETED = _script(
    Do(20.0, "admin", What.DELETE_LIST, ("t", LISTS[0])),
    configs=(Config(True, "t", LISTS[0], "0:4"),),
)
"""B2: the owner of a list deletes it while ours is on it."""

LIST_DELETED_LATE = _script(
    Do(69.0, "admin", What.DELETE_LIST, ("t", LISTS[0])),
    configs=(Config(True, "t", LISTS[0], "0:4"),),
)
"""B2: the same when nothing is in flight any more that would need it."""

TOPIC_CREATED_AGAIN = _script(
    Do(20.0, "admin", What.DELETE_TOPIC, ("t",)),
    Do(21.0, "admin", What.CREATE_TOPIC, ("t",)),
    Do(22.0, "admin", What.SET_LIST, ("t", LISTS[0], "0:1,1:2")),
)
"""B3: a topic is deleted and created again in mid-move, and its new owner throttles a copy."""

TOPIC_DELETED = _script(Do(20.0, "admin", What.DELETE_TOPIC, ("t",)))
"""B11: a topic is deleted while its partitions move."""

LEDGER_RESTORED = _script(
    Do(15.0, "A", What.LEDGER_BACKED_UP),
    Do(16.0, "A", What.CHANGE_THROTTLE, (3_000_000,)),
    Do(45.0, "A", What.DELETE_RUN),
    Do(46.0, "A", What.LEDGER_RESTORED),
    Do(200.0, "A", What.CANCEL),
)
"""B4: the ledger is restored from before a change of the rate, then the plan is cancelled."""

NEVER_CANCELLED = Script(
    1,
    4,
    (Topic("t", ((1, 2),), 40_000_000),),
    (Plan("A", (("t", 0, (3, 4)),), 1_000_000),),
    does=(
        START,
        Do(25.0, "fate", What.BROKER_LOST, (4,)),
        Do(110.0, "fate", What.BROKER_LOST, (1,)),
        Do(120.0, "fate", What.BROKER_LOST, (2,)),
        Do(160.0, "A", What.CANCEL),
    ),
    quiet_s=300.0,
)
"""B6: a cancel that the controller refuses for good: no old replica is in sync any more."""

LEDGER_FROM_BEFORE = _script(
    Do(0.5, "A", What.LEDGER_BACKED_UP),
    Do(25.0, "A", What.DELETE_RUN),
    Do(26.0, "A", What.LEDGER_RESTORED),
)
"""B4: the ledger is restored from before the plan was made; its copies go on."""

TWO_CORDONS = Script(
    1,
    5,
    (
        Topic("t", ((3, 2),), 20_000_000),
        Topic("u", ((4, 1),), 200_000_000),
    ),
    (
        Plan("A", (), 1_000_000, drains=(3,), tried_out=True, cordons=True),
        Plan("B", (), 1_000_000, drains=(3, 4), tried_out=True, cordons=True),
    ),
    does=(START, Do(3.5, "B", What.START, (1,))),
    quiet_s=600.0,
)
"""B17: two Rehomes drain and cordon one broker; the first has done with it before the second."""

DAG_PAUSED = _script(Do(25.0, "A", What.PAUSE_DAG), Do(250.0, "A", What.UNPAUSE_DAG))
"""B7: the DAG is paused in mid-copy, and goes on later."""

OUTPACED = Script(
    1,
    4,
    (Topic("t", ((1, 2),), 60_000_000, 420_000),),
    (Plan("A", (("t", 0, (3, 2)),), 500_000),),
    does=(START,),
    quiet_s=400.0,
)
"""B9: producers write as much as the throttle lets through, until it becomes quiet."""

SLOWED = tuple(Do(12.0, "admin", What.SET_RATE, (broker, RATES[1], 100_000)) for broker in (3, 4))
"""What was to be in time is not: an admin lowers the rates of brokers that copy."""

PAUSED_AT_WINDOW_END = Script(
    1,
    4,
    (ONE,),
    (Plan("A", MOVES, 1_000_000, slots=2, window_s=150.0),),
    does=(
        START,
        *SLOWED,
        Do(25.0, "A", What.PAUSE_DAG),
        Do(35.0, "A", What.RESUME),
    ),
    quiet_s=300.0,
)
"""B7: the DAG is paused while the trigger watches: that keeps the window's end, and resume does not
say that the run goes on."""

PAUSED_BEFORE_WINDOW_END = Script(
    1,
    4,
    (Topic("t", ((1, 2),), 20_000_000), Topic("u", ((1, 2),), 300_000_000)),
    (Plan("A", (("t", 0, (3, 2)), ("u", 0, (1, 4))), 1_000_000, slots=2, window_s=800.0),),
    does=(START, Do(25.0, "A", What.PAUSE_DAG), *SLOWED[1:]),
    quiet_s=1000.0,
)
"""B7: the same, and the trigger has fired before: the sweep keeps the window's end."""

LATE_FOR_ITS_WINDOW = Script(
    1381,
    5,
    (Topic("v", ((4, 5), (5, 3), (5, 4)), 120_000_000, 200_000, deleted=2),),
    (Plan("A", (("v", 0, (5, 3)),), 1_000_000, slots=1, window_s=185),),
    does=(Do(5.0, "A", What.START, (0,)),),
    quiet_s=400.0,
)
"""Seeds 1381 and 1531: at its pace the last copy ends after the window, so it does not end then."""

RECORDS_DELETED = Script(
    1,
    4,
    (Topic("t", ((1, 2),), 300_000_000, deleted=290_000),),
    (Plan("A", (("t", 0, (3, 2)),), 100_000),),
    does=(START,),
    quiet_s=300.0,
)
"""B10: sizes on disk hold thirty times what a copy has to bring."""

GONE_AFTER_IT_FAILED = Script(
    596,
    3,
    (Topic("v", ((3, 2, 1), (2, 1, 3)), 120_000_000, deleted=1),),
    (Plan("A", (("v", 0, (2, 3, 1)), ("v", 1, (3, 1, 2))), 5_000_000, log_dirs=True),),
    does=(
        Do(10.5, "A", What.START, (0,)),
        Do(57.9, "fate", What.DISK_FILLED, (2, 1)),
        Do(281.1, "admin", What.DELETE_TOPIC, ("v",)),
    ),
    quiet_s=400.0,
)
"""B11, seed 596: a copy fails with its disk, the rest goes on; then the topic is deleted, and
nothing is left to be moved."""

CANCELLED_THEN_DELETED = _script(
    Do(17.4, "admin", What.CANCEL_ALL, ("t",)),
    Do(44.2, "admin", What.DELETE_TOPIC, ("t",)),
)
"""Seeds 908 and 2232: others cancel all of a plan, which fails; that was true when it ended,
whatever becomes of the topic."""

CORDON_OF_A_LOST_LEDGER = Script(
    1936,
    5,
    (
        Topic("t", ((2,),), 60_000_000, deleted=1),
        Topic("u", ((1, 4, 2), (3, 2, 5)), 60_000_000, deleted=1),
    ),
    (Plan("A", (), 1_000_000, slots=2, drains=(2,), tried_out=True, cordons=True),),
    does=(Do(13.6, "A", What.START, (0,)), Do(42.6, "A", What.LEDGER_NEW)),
    quiet_s=400.0,
)
"""Seed 1936: the ledger of a drain is lost; the new one names the cordon, whose mark it finds."""

LOG_DIR_FAILED = Script(
    1804,
    3,
    (Topic("t", ((2, 1), (2, 3), (2, 3)), 120_000_000, deleted=2),),
    (
        Plan(
            "A",
            (("t", 0, (1, 2)), ("t", 1, (3, 2)), ("t", 2, (2, 1))),
            1_000_000,
            slots=2,
            log_dirs=True,
        ),
    ),
    does=(Do(12.1, "A", What.START, (0,)), Do(13.6, "fate", What.LOG_DIR_FAILED, (3, 1))),
    quiet_s=400.0,
)
"""Seed 1804: a broker refuses one move after the other; each step asks it once."""

SENT_BACK_AND_CANCELLED = Script(
    976,
    6,
    (Topic("t", ((6, 4), (1, 2)), 120_000_000, deleted=2),),
    (Plan("A", (("t", 1, (4, 3)),), 1_000_000),),
    does=(
        Do(4.7, "A", What.START, (0,)),
        Do(23.0, "admin", What.REASSIGN, ("t", 1, (2, 3))),
    ),
    quiet_s=400.0,
)
"""Seed 976: an admin sends a copy elsewhere in such a way that it never ends; the person who
cancels it loses the order of replicas, and no Rehome does."""

SOURCE_LOST = Script(
    1,
    4,
    (Topic("t", ((1,),), 60_000_000),),
    (Plan("A", (("t", 0, (3,)),), 1_000_000),),
    does=(
        START,
        Do(20.0, "fate", What.BROKER_KILLED, (1,)),
        Do(30.0, "fate", What.BROKER_WIPED, (1,)),
    ),
    quiet_s=300.0,
)
"""B16: the only source of a copy returns empty."""

EMPTY_LIST_DELETED_LATE = _script(
    Do(69.0, "admin", What.DELETE_LIST, ("t", LISTS[1])),
    configs=(Config(True, "t", LISTS[1], ""),),
)
"""Seed 1655: a list was there with nothing in it, as Kafka's tool leaves one; its owner deletes it,
and our SUBTRACT makes it anew.
"""

LIST_FOUND_EMPTY = Script(
    1219,
    6,
    (Topic("t", ((3, 5), (5, 6)), 20_000_000, deleted=1),),
    (
        Plan("A", (("t", 1, (6, 2)),), window_s=378, tried_out=True),
        Plan("B", (("t", 1, (3, 2)),), 5_000_000, slots=1),
    ),
    does=(Do(15.4, "A", What.START, (0,)), Do(48.3, "B", What.START, (1,))),
    quiet_s=400.0,
)
"""Seed 1219: a Rehome finds a list empty, of which another one has just taken its last items."""

RATE_SET_UNSEEN = Script(
    2037,
    3,
    (Topic("t", ((1,), (1,), (1,)), 20_000_000, deleted=1),),
    (Plan("A", (("t", 2, (2,)),), slots=2), Plan("B", (("t", 1, (1,)),), 5_000_000, slots=2)),
    configs=(Config(False, "1", RATES[0], "20000000"),),
    does=(
        Do(3.4, "A", What.START, (0,)),
        Do(14.7, "admin", What.TOOL_EXECUTE, ("t", 1, (3,), 1_000_000)),
    ),
    quiet_s=400.0,
)
"""Seed 2037: Kafka's tool sets a broker's rate between our reading and our write of it: what was
read is put back, and said to be what was found.
"""

ITEMS_OF_A_LOST_LEDGER = Script(
    1113,
    4,
    (Topic("u", ((4, 3, 2), (4, 3, 1)), 120_000_000, deleted=2),),
    (
        Plan("A", (("u", 0, (2, 1, 3)),), 1_000_000),
        Plan("B", (("u", 1, (4, 1, 2)),), 5_000_000, slots=1, window_s=90),
    ),
    does=(
        Do(5.2, "A", What.START, (0,)),
        Do(32.4, "A", What.LEDGER_NEW),
        Do(76.9, "B", What.START, (1,)),
    ),
    quiet_s=400.0,
)
"""Seed 1113: a list has items of a Rehome whose ledger is lost; another one takes its own back."""

BEFORE_KEPT = Script(
    1014,
    5,
    (
        Topic("t", ((2, 5), (5, 2)), 5_000_000, deleted=1),
        Topic("u", ((2, 1), (1, 2), (1, 4)), 120_000_000, deleted=1),
        Topic("v", ((5, 4, 2), (2, 5, 1)), 120_000_000, 200_000, deleted=1),
    ),
    (
        Plan("A", (("u", 0, (3, 4)),), slots=1),
        Plan("B", (), slots=2, window_s=340, drains=(2,), tried_out=True),
    ),
    does=(
        Do(13.3, "A", What.START, (0,)),
        Do(43.1, "A", What.LEDGER_NEW),
        Do(52.3, "admin", What.SET_RATE, (None, RATES[1], 20_000_000)),
        Do(54.2, "admin", What.DELETE_TOPIC, ("u",)),
        Do(103.4, "B", What.START, (1,)),
    ),
    quiet_s=400.0,
)
"""Seed 1014: a lost ledger's mark needs a rate that another Rehome leaves. The mark of what others
want there stays: a person who settles the first mark needs it.
"""

WIPED_BEFORE_IT_MOVES = Script(
    161,
    4,
    (Topic("v", ((1,), (3,), (3,)), 120_000_000),),
    (Plan("A", (("v", 0, (2,)),), slots=1),),
    does=(
        Do(17.7, "A", What.START, (0,)),
        Do(26.3, "fate", What.BROKER_STOPPED, (1,)),
        Do(75.9, "fate", What.BROKER_WIPED, (1,)),
    ),
    quiet_s=400.0,
)
"""Seed 161: the only replica is lost after the plan was made, and before its move starts."""

LOG_DIRS_OF_A_LOST_BROKER = Script(
    112,
    3,
    (Topic("t", ((2, 3), (1, 3), (3, 2)), 60_000_000, min_isr=2),),
    (Plan("A", (("t", 2, (3, 2)),), window_s=179, log_dirs=True),),
    does=(Do(9.2, "A", What.START, (0,)), Do(53.0, "fate", What.BROKER_LOST, (3,))),
    quiet_s=400.0,
)
"""Seed 112: a plan is cancelled whose copies lie on a broker that is lost: none is in flight."""

RATE_LEFT_FOR_ANOTHER = Script(
    1780,
    6,
    (
        Topic("t", ((2,), (1,), (4,)), 20_000_000),
        Topic("u", ((6,),), 5_000_000),
    ),
    (
        Plan("A", (("t", 0, (6,)),), 5_000_000, slots=2),
        Plan("B", (("u", 0, (3,)),), 5_000_000, slots=1, window_s=157),
    ),
    does=(
        Do(2.1, "A", What.START, (0,)),
        Do(21.6, "fate", What.BROKER_KILLED, (6,)),
        Do(28.1, "B", What.START, (1,)),
        Do(33.7, "admin", What.DELETE_RATE, (None, RATES[1])),
        Do(83.6, "fate", What.BROKER_LOST, (2,)),
    ),
    quiet_s=400.0,
)
"""Seed 1780: B has set the rate last and has ended; A needs it still, and says so by its mark."""

SAME_MOVE_BY_OTHERS = Script(
    20102,
    6,
    (Topic("u", ((5,),), 120_000_000),),
    (Plan("A", (("u", 0, (6,)),), 1_000_000),),
    does=(
        Do(2.1, "A", What.START, (0,)),
        Do(22.0, "admin", What.REASSIGN, ("u", 0, (6,))),
        Do(40.0, "A", What.CANCEL),
    ),
    quiet_s=400.0,
)
"""Of seed 20102: another client asks for the move that A has in flight. Nothing shows that to A."""
