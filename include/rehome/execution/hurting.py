"""What a poll has found that keeps the plan from going on as it should. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind, some
from rehome.domain.run.causes.waits import Wait, WaitKind
from rehome.domain.run.ledger_view import LedgerView, MoveSums
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState
from rehome.execution.actions import Admit, Decision, Hold
from rehome.execution.admission.backlog import Backlog
from rehome.execution.observation.foreign_reassignments import cannot_end
from rehome.execution.progress.outpaced import Outpaced

_KINDS = {
    WaitKind.DISK_ROOM: HurtKind.WAITS_FOR_ROOM,
    WaitKind.LOG_DIR_ROOM: HurtKind.WAITS_FOR_ROOM,
    WaitKind.LEADER: HurtKind.WAITS_FOR_LEADER,
    WaitKind.BROKER_READ: HurtKind.WAITS_UNREAD,
    WaitKind.TOPIC_READ: HurtKind.WAITS_UNREAD,
    WaitKind.WINDOW: HurtKind.WAITS_FOR_WINDOW,
}
"""Of waits that are more than the plan's own order: slots are none, and of a broker that is not
alive the broker itself is what hurts."""


def hurts_at(
    plan: Plan,
    view: LedgerView,
    seen: Observation,
    actions: Collection[Decision],
    backlog: Backlog,
    outpaced: Collection[Outpaced],
) -> tuple[Hurt, ...]:
    """All of it, each kind once, in the order of what to do about it.

    :param actions: what is decided by this poll.
    :param outpaced: copies that producers outrun.
    """
    waiting = [action for action in actions if isinstance(action, Hold | Admit)]
    found = [
        *_of_brokers(plan, view, seen, backlog, waiting),
        *_of_throttles(seen),
        *_of_others(plan, view, seen, actions),
        *_of_waits(waiting),
    ]
    if view.refused_cancels:
        named, more = some(view.refused_cancels)
        answers = sorted({each.answer for each in view.refused_cancels.values()})
        count = len(view.refused_cancels)
        found.append(Hurt(HurtKind.NOT_CANCELLED, (), count, named, more, "; ".join(answers)))
    lasting = [each for each in outpaced if each.lasts]
    if lasting:
        found.append(Hurt(HurtKind.OUTPACED, why="; ".join(map(str, lasting))))
    return tuple(sorted(found, key=lambda each: each.place))


def _of_brokers(
    plan: Plan,
    view: LedgerView,
    seen: Observation,
    backlog: Backlog,
    waiting: Iterable[Hold | Admit],
) -> Iterator[Hurt]:
    """Of those that moves in flight need, or that moves which wait are copied to."""
    flying = [
        set(plan.by_partition[partition].needs_alive)
        for partition, state in view.moves.items()
        if state is MoveState.ADMITTED
    ]
    needed = set().union(*flying, +backlog.filling)
    dead = needed - seen.live_brokers
    if dead:
        waits = (
            each.waiting
            for each in waiting
            if {wait.kind for wait in each.waits} == {WaitKind.BROKER_ALIVE}
        )
        moves = sum(not dead.isdisjoint(each) for each in flying) + sum(waits)
        yield Hurt(HurtKind.DEAD_BROKERS, tuple(sorted(dead)), moves)
    silent = sorted((needed & seen.live_brokers) & set(seen.missing))
    if silent:
        why = "; ".join(sorted({str(seen.missing[broker]) for broker in silent}))
        yield Hurt(HurtKind.SILENT_BROKERS, tuple(silent), why=why)


def _of_throttles(seen: Observation) -> Iterator[Hurt]:
    if seen.unthrottled:
        named, more = some(seen.unthrottled)
        yield Hurt(HurtKind.NOT_THROTTLED, (), len(seen.unthrottled), named, more)
    if seen.throttles_unread:
        answers = sorted({str(error) for error in seen.throttles_unread.values()})
        yield Hurt(HurtKind.THROTTLES_UNREAD, why="; ".join(answers))


def _of_others(
    plan: Plan, view: LedgerView, seen: Observation, actions: Iterable[Decision]
) -> Iterator[Hurt]:
    """What another client has done to partitions of the plan, and what it does to others."""
    settled = view.settled.get(MoveState.SUPERSEDED, MoveSums()).moves
    taken = settled + sum(state is MoveState.SUPERSEDED for state in view.moves.values())
    if taken:
        yield Hurt(HurtKind.TAKEN_OVER, moves=taken)
    foreign = {p: entry for p, entry in seen.ongoing.items() if p not in plan.by_partition}
    if foreign:
        named, more = some(foreign)
        ends = (cannot_end(entry, seen.live_brokers) for _, entry in sorted(foreign.items()))
        why = next(filter(None, ends), "")
        holds = [each for each in actions if isinstance(each, Hold) and each.for_others]
        hangs = any(each.hangs for each in holds)
        yield Hurt(HurtKind.FOREIGN, (), 0, named, more, why, holds=bool(holds), hangs=hangs)


def _of_waits(waiting: Iterable[Hold | Admit]) -> Iterator[Hurt]:
    by_kind: dict[HurtKind, set[Wait]] = {}
    only: dict[HurtKind, int] = {}
    for each in waiting:
        for wait in each.waits:
            kind = _KINDS.get(wait.kind)
            if kind is not None:
                by_kind.setdefault(kind, set()).add(wait)
                if len({one.kind for one in each.waits}) == 1:
                    only[kind] = each.waiting
    for kind, waits in by_kind.items():
        brokers = sorted({wait.broker for wait in waits if wait.broker is not None})
        why = "; ".join(sorted(map(str, waits)))
        yield Hurt(kind, tuple(brokers), only.get(kind, 0), why=why)
