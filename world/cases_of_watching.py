"""Named scripts of what runs by itself: a rack that is away, a plan that fits into no window,
windows that do not come, a clock that is a day ahead, a broker that comes and goes. See
:mod:`world.cases`.
"""

from __future__ import annotations

from dataclasses import replace

from world.airflow.shape import IN_WINDOW
from world.cases import START
from world.script import Do, Plan, Script, Topic, Watch, What

DAY_S = 86_400
RACKS = ("/a", "/b", "/c") * 4
"""Of twelve brokers: four are in each."""
SPREAD = Topic("t", tuple((n, n + 1, n + 2) for n in range(1, 11)), 5_000_000)
OF_RACK_A = (1, 4, 7, 10)

RACK_AWAY = Script(
    *(1, 12, (SPREAD,), ()),
    does=tuple(
        Do(60.0 + broker / 10, "fate", What.BROKER_KILLED, (broker,)) for broker in OF_RACK_A
    ),
    quiet_s=900.0,
    watches=(Watch("A"),),
    racks=RACKS,
)
"""Four brokers of twelve are dead, which are one of three racks: nothing is healed into the two
that are left.
"""

RACK_BACK_BUT_FOR_ONE = Script(
    *(1, 12, (SPREAD,), ()),
    does=(
        *RACK_AWAY.does,
        Do(61.5, "fate", What.BROKER_LOST, (4,)),
        *(Do(600.0, "fate", What.BROKER_STARTED, (broker,)) for broker in (1, 7, 10)),
    ),
    quiet_s=1200.0,
    watches=(Watch("A"),),
    racks=RACKS,
)
"""The rack comes back but for one broker: what that one held is healed."""

LARGE = Topic("large", ((1, 2),), 400_000_000)
SMALL = Topic("t", ((4, 2), (2, 4), (1, 5)), 5_000_000)
WINDOWS = ((120, 120), (360, 120), (600, 120), (840, 120))
HANDED_OVER = Plan("A", (("large", 0, (3, 1)),), 500_000, tried_out=True, dry_run=True)
NEVER_FITS = Script(
    *(1, 6, (LARGE, SMALL)),
    (HANDED_OVER, replace(HANDED_OVER, moves=(("t", 2, (1, 6)),))),
    does=(
        START,
        Do(60.0, "A", What.NEXT_WINDOW),
        Do(250.0, "fate", What.BROKER_LOST, (4,)),
        Do(400.0, "A", What.START, (1,)),
    ),
    quiet_s=1200.0,
    watches=(Watch("A", window_s=WINDOWS[0], later=WINDOWS[1:], own_plan=False),),
)
"""A plan whose copy takes longer than any window is handed over. A broker dies: it is healed in a
window in which that plan can do nothing, as before; and a dry run is made meanwhile.
"""

NO_WINDOW = Script(
    *(1, 6, (LARGE, SMALL), (HANDED_OVER,)),
    does=(START, Do(60.0, "A", What.NEXT_WINDOW)),
    quiet_s=300.0,
    watches=(Watch("A"),),
)
"""A plan is handed over to the windows of a cluster that has none."""

WINDOWS_PAUSED = Script(
    *(1, 6, (LARGE, SMALL), (replace(HANDED_OVER, moves=(("t", 2, (1, 6)),)),)),
    does=(
        START,
        Do(30.0, "A", What.PAUSE_DAG, (IN_WINDOW,)),
        Do(60.0, "A", What.NEXT_WINDOW),
        Do(300.0, "A", What.UNPAUSE_DAG, (IN_WINDOW,)),
        Do(320.0, "A", What.NEXT_WINDOW),
    ),
    quiet_s=600.0,
    watches=NEVER_FITS.watches,
)
"""The DAG of the windows is paused when a plan is handed over to them, and is not when that is
asked for again.
"""

WATCHED = Script(
    *(1, 5, (Topic("t", ((1, 2), (2, 3), (3, 4)), 5_000_000),), ()),
    quiet_s=900.0,
    watches=(Watch("A"),),
)
DIES = Do(70.0, "fate", What.BROKER_LOST, (2,))
A_DAY_AHEAD = replace(
    WATCHED,
    does=(
        DIES,
        Do(100.0, "A", What.CLOCK_JUMPS, (DAY_S,)),
        Do(150.0, "A", What.CLOCK_JUMPS, (0,)),
    ),
)
"""A broker is dead, and a snapshot is taken and judged by a clock that is a day ahead; then the
clock is right.
"""

TAKEN_TOMORROW = replace(
    WATCHED,
    does=(
        DIES,
        Do(124.0, "A", What.CLOCK_JUMPS, (DAY_S,)),
        Do(128.5, "A", What.CLOCK_JUMPS, (0,)),
    ),
)
"""A snapshot is taken by such a clock, and judged by one that is right."""

COMES_AND_GOES = replace(
    WATCHED,
    does=tuple(
        Do(100.0 + 240 * number + after_s, "fate", what, (2,))
        for number in range(8)
        for after_s, what in ((0, What.BROKER_KILLED), (150, What.BROKER_STARTED))
    ),
    watches=(Watch("A", grace_s=200.0),),
    quiet_s=2100.0,
)
"""A broker is away for less than the grace time, and comes back, again and again."""
