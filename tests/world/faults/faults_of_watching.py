"""Faults put back of what runs by itself: what it takes for an outage, for a window, for a clock.
See :mod:`tests.world.mutants`.
"""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from rehome.domain.run.paused.paused_plan import DagState
from rehome.execution.access.open_windows import CronWindow, CronWindows
from tests.world.mutants import Mutant, returns
from world import cases_of_watching as cases
from world.judge.violations import Kind

AT_ONE = CronWindow("0 1 * * *", timedelta(hours=4), ZoneInfo("UTC"))
OPEN_AND_CLOSE = "rehome.watching.open_and_close"

OF_WATCHING = (
    Mutant(
        "one rack of three is healed into two",
        "rehome.watching.domains_away:_racks",
        returns([]),
        frozenset({Kind.HEALED_WRONGLY}),
    ),
    Mutant(
        "a plan is promised to windows whose DAG is paused",
        "rehome.fleet.paused_plan:_state_of",
        returns(DagState.RUNS),
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "a plan is promised to a window of a cluster that has none",
        "rehome.fleet.clusters:windows_through",
        returns(CronWindows((AT_ONE,))),
        frozenset({Kind.FALSE_CLAIM}),
    ),
    Mutant(
        "what a clock has judged that was a day ahead holds for a day",
        f"{OPEN_AND_CLOSE}:by_this_clock",
        lambda _original: lambda finding, taken_at, latest: finding,
        frozenset({Kind.FALSE_FINDING}),
    ),
    Mutant(
        "a broker that comes and goes is never found",
        f"{OPEN_AND_CLOSE}:flapping",
        returns(()),
        frozenset({Kind.FALSE_FINDING}),
    ),
)
OF_WATCHING_FOUND_BY = {
    "one rack of three is healed into two": cases.RACK_AWAY,
    "a plan is promised to windows whose DAG is paused": cases.WINDOWS_PAUSED,
    "a plan is promised to a window of a cluster that has none": cases.NO_WINDOW,
    "what a clock has judged that was a day ahead holds for a day": cases.A_DAY_AHEAD,
    "a broker that comes and goes is never found": cases.COMES_AND_GOES,
}
