"""Ways to spoil plans of the actions about leaders, single brokers and single log dirs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rehome.domain.actions import Action
from rehome.domain.kafka import LogDirName
from rehome.domain.plan.infeasible import Obstacle
from rehome.domain.plan.move import Move, MoveReason
from rehome.domain.request.request import ReassignmentRequest
from rehome.quality.facts.gate_input import Checked
from tests.planning.clusters import cluster
from tests.quality.plan.cases import planned, with_move, with_moves, with_summary
from tests.quality.plan.checked_plans import left, move, named, plus, seen
from tests.quality.plan.rule_names import (
    ASTRAY,
    CHANGES_NOTHING,
    COULD_STAY,
    COUNTS_STATED,
    DEMOTED_FIRST,
    DEMOTES_ONLY,
    DISTURBED,
    ELECTED,
    EMPTY,
    EVACUATES_ONLY,
    INTO_EVACUATED,
    KEPT_INSIDE,
    LEFT_OUT,
    ONLY_LED,
)
from tests.quality.snapshots import Rows

DEMOTE = ReassignmentRequest(Action.DEMOTE, brokers=(4,))
ELECT = ReassignmentRequest(Action.ELECT_PREFERRED)


def led_by_another(rows: Rows) -> None:
    """Partition 2 is led by broker 4, though it prefers broker 3."""
    rows.replica(2, 0)["is_leader"] = False
    rows.replica(2, 1)["is_leader"] = True


def demoted() -> Checked:
    """Broker 4 gives up partitions 3, 7 and 11; in partition 2 broker 3 is elected."""
    rows = Rows()
    led_by_another(rows)
    return planned(rows.snapshot(), DEMOTE)


def demoted_with_a_dead_broker() -> Checked:
    """Broker 3 is dead; broker 4, which leads in its place, gives everything up."""
    of = cluster([""] * 5, [(4, 3, 1), (3, 4, 1), (0, 1, 2)], dead=frozenset({3}), topic="payments")
    return planned(of.snapshot(), replace(DEMOTE, ignore_racks=True))


def elected_out_of_sync() -> Checked:
    """The replica that is elected in partition 2 is out of sync."""

    def spoil(rows: Rows) -> None:
        led_by_another(rows)
        rows.replica(2, 0)["in_isr"] = False

    return seen(with_move(demoted(), named(2), in_sync=1), spoil)


def elected() -> Checked:
    """Broker 3 is to lead partition 2 again."""
    rows = Rows()
    led_by_another(rows)
    return planned(rows.snapshot(), ELECT)


def replaced() -> Checked:
    """Broker 3 takes the place of broker 0; broker 4 is in the same rack."""
    racks = ["/a", "/b", "/c", "/a", "/a"]
    of = cluster(racks, [(0, 1, 2), (1, 0, 2), (2, 1, 0)], topic="payments")
    return planned(of.snapshot(), ReassignmentRequest(Action.REPLACE, replacements={0: 3}))


def evacuated() -> Checked:
    """What lies in /data/0 of broker 4 goes into its /data/1, but for what finds no room there."""
    rows = Rows()
    rows.log_dir(4, "/data/1").update(usable_bytes=50_000 + 2_500)
    request = ReassignmentRequest(
        Action.EVACUATE_LOG_DIRS, log_dirs=(LogDirName(4, "/data/0"),), ignore_racks=True
    )
    return planned(rows.snapshot(), request)


def first_that_stays() -> Move:
    return next(m for m in evacuated().plan.moves if 4 in m.target)


def first_that_leaves() -> Move:
    return next(m for m in evacuated().plan.moves if 4 not in m.target)


def changed(one: Move, **changes: object) -> Checked:
    return with_move(evacuated(), one.partition, **changes)


SOUND: dict[str, Callable[[], Checked]] = {
    "sound demotion": demoted,
    "sound demotion with a dead broker": demoted_with_a_dead_broker,
    "sound elections": elected,
    "sound replacement": replaced,
    "sound evacuation": evacuated,
}

OF_ACTIONS: dict[str, tuple[Callable[[], Checked], set[str]]] = {
    "a demoted broker stays preferred": (
        lambda: with_move(demoted(), named(3), target=(4, 1)),
        {DEMOTED_FIRST, CHANGES_NOTHING},
    ),
    "a dead broker is to lead in its place": (
        lambda: with_move(demoted_with_a_dead_broker(), named(0), target=(3, 1, 4)),
        {"a target names live brokers only", "a new preferred leader is in sync, or gets a copy"},
    ),
    "a demotion leaves a partition with an offline replica": (
        lambda: with_moves(
            demoted_with_a_dead_broker(), demoted_with_a_dead_broker().plan.moves[1:]
        ),
        {LEFT_OUT},
    ),
    "a demoted broker keeps a partition": (
        lambda: with_moves(demoted(), demoted().plan.moves[1:]),
        {LEFT_OUT},
    ),
    "a demoted broker keeps what another could lead, and only names it": (
        lambda: with_summary(
            with_moves(demoted(), demoted().plan.moves[:-1]),
            infeasible=(left(named(11), Obstacle.NO_OTHER_LEADER),),
        ),
        {LEFT_OUT},
    ),
    "a demotion changes another partition": (
        lambda: plus(demoted(), [move(0, (1, 2), (2, 1))]),
        {DEMOTES_ONLY},
    ),
    "a leader out of sync is to be elected": (elected_out_of_sync, {ELECTED}),
    "a replacement in another place": (
        lambda: with_move(replaced(), named(1), target=(3, 1, 2)),
        {ASTRAY, DISTURBED},
    ),
    "another broker than the replacement": (
        lambda: with_move(replaced(), named(0), target=(4, 1, 2)),
        {ASTRAY},
    ),
    "another broker than the replacement, named without need": (
        lambda: with_summary(
            with_move(replaced(), named(0), target=(4, 1, 2)),
            infeasible=(left(named(0), Obstacle.REPLACEMENT_FULL),),
        ),
        {ASTRAY},
    ),
    "a replacement that changes the order of others": (
        lambda: with_move(replaced(), named(0), target=(3, 2, 1)),
        {DISTURBED},
    ),
    "a replaced broker keeps a replica": (
        lambda: with_moves(replaced(), replaced().plan.moves[1:]),
        {EMPTY},
    ),
    "an evacuated log dir keeps a partition": (
        lambda: with_moves(
            evacuated(), [m for m in evacuated().plan.moves if m != first_that_leaves()]
        ),
        {LEFT_OUT},
    ),
    "an evacuated log dir keeps a replica of a partition that changes": (
        lambda: changed(
            first_that_stays(),
            target=first_that_stays().target[::-1],
            target_log_dirs=(),
        ),
        {KEPT_INSIDE, COULD_STAY},
    ),
    "an evacuation moves what lies elsewhere": (
        lambda: plus(evacuated(), [move(0, (1, 2), (1, 3))]),
        {EVACUATES_ONLY},
    ),
    "a copy goes into a log dir that is evacuated": (
        lambda: plus(evacuated(), [move(0, (1, 2), (1, 4))]),
        {INTO_EVACUATED, EVACUATES_ONLY},
    ),
    "a replica leaves its broker though it could stay": (
        lambda: changed(
            first_that_stays(),
            target=tuple(
                {4: ({1, 2, 3} - set(first_that_stays().current)).pop()}.get(b, b)
                for b in first_that_stays().current
            ),
            target_log_dirs=(),
        ),
        {COULD_STAY},
    ),
    "an election that changes the order": (
        lambda: with_move(elected(), named(2), target=(4, 3)),
        {ONLY_LED, COUNTS_STATED},
    ),
    "an election of what is led already": (
        lambda: plus(elected(), [replace(move(0, (1, 2), (1, 2)), reason=MoveReason.ELECTION)]),
        {CHANGES_NOTHING, COUNTS_STATED},
    ),
    "an election is left out": (lambda: with_moves(elected(), []), {LEFT_OUT}),
    "another number of elections": (
        lambda: with_summary(demoted(), elections=0),
        {COUNTS_STATED},
    ),
}
