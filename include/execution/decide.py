"""What to do next: the core of the execution.

A pure function of the plan, the ledger, one observation, the time and the policy. Production
and simulation run this same function, so every crash point and every window can be tested
without a cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from include.domain.kafka import TopicPartition
from include.domain.plan.move import Move
from include.domain.plan.plan import Plan
from include.domain.run.ledger_view import DataSeen, LedgerView
from include.domain.run.observation import Observation
from include.domain.run.pace import Pace
from include.domain.run.run_policy import Policy
from include.domain.run.states import MoveState, PlanState, Settle
from include.domain.text import count_text
from include.execution.actions import (
    Admit,
    Cancel,
    Decision,
    Finish,
    Hold,
    KeepThrottled,
    PlaceReplicas,
)
from include.execution.admission.admit import Admission, admit
from include.execution.admission.backlog import Admitted, Backlog
from include.execution.admission.slots import InUse
from include.execution.admission.waits import WaitKind
from include.execution.governor.control_loop import govern
from include.execution.observation.foreign_reassignments import cannot_end
from include.execution.observation.log_dir_copies import may_be_copied, misplaced, where_copied_from
from include.execution.observation.move_status import Fate, fate, on_its_way, untouched
from include.execution.stall import patience_s

HELD_BY_OTHERS = "another client's reassignment runs"
"""What a plan waits for as long as it takes, unless it may run at the same time as others."""


def decide(
    plan: Plan,
    view: LedgerView,
    seen: Observation,
    now: datetime,
    policy: Policy,
    backlog: Backlog | None = None,
) -> list[Decision]:
    """What to do next; no I/O, no clock, no randomness. Same input, same actions.

    First everything that has ended is settled, and missing throttles are set again; then come, in
    this order, what ends the plan (a cancel request, nothing left, the window's end, a stall, a
    pause) and what starts moves.
    A pending move is assessed when another client reassigns its partition, or when it is its turn.

    :param backlog: the view's moves, indexed; only read. Without one it is built from the view,
        which takes as long as the plan has moves.
    """
    if view.state is not PlanState.RUNNING:
        return []
    known = Backlog.of(plan, view, seen) if backlog is None else backlog
    pace = policy.pace(view.target_bytes_per_s or policy.rate_bytes_per_s)
    now_true = _Assessed(plan, view, seen, now, policy, known, pace)
    next_steps = _ending(view, now_true, now, policy)
    if next_steps is None:
        next_steps = _start_or_wait(now_true)
    return [*now_true.settling, *_keep_throttled(seen), *next_steps]


def _keep_throttled(seen: Observation) -> list[Decision]:
    return [KeepThrottled(seen.unthrottled)] if seen.unthrottled else []


def needs_worker(actions: Iterable[Decision]) -> bool:
    """Whether there is anything to do: what the progress trigger asks at every poll."""
    return not all(isinstance(action, Hold) for action in actions)


def waits_for(actions: Iterable[Decision]) -> str:
    """Why moves do not start, for people; "" = none has to wait."""
    return "; ".join(action.cause for action in actions if isinstance(action, Hold))


@dataclass
class _Assessed:
    """The plan's moves by what is true of them now, and the actions that follow at once.

    :param pace: how fast moves can be made.
    :ivar in_use: what those take that are in flight.
    :ivar unsent: admitted, but never sent, and nothing of them is under way; largest first.
    :ivar not_admitted: what is being reassigned, by us or not, though no admitted move says so.
    """

    plan: Plan
    view: LedgerView
    seen: Observation
    now: datetime
    policy: Policy
    backlog: Backlog
    pace: Pace
    settling: list[Decision] = field(default_factory=list)
    settled: dict[TopicPartition, MoveState] = field(default_factory=dict)
    in_flight: list[Move] = field(default_factory=list)
    unsent: list[Move] = field(default_factory=list)
    not_admitted: list[TopicPartition] = field(default_factory=list)
    in_use: InUse = field(init=False)
    _going_on: list[Admitted] = field(default_factory=list)
    _pending_settled: int = 0

    def __post_init__(self) -> None:
        self.in_use = InUse(self.pace.slot_bytes)
        admitted, ongoing = self.backlog.admitted, self.seen.ongoing
        listed = 0
        for found, entry in zip(admitted.values(), map(ongoing.get, admitted), strict=True):
            listed += entry is not None
            if on_its_way(found.move, entry, self.seen):
                self._goes_on(found)
            else:
                self._assess_admitted(found)
        self.in_use.add_all(self._going_on, self.seen)
        self.unsent.sort(key=lambda move: (-move.size_bytes, move.partition))
        if listed < len(ongoing):
            self.not_admitted += [partition for partition in ongoing if partition not in admitted]
        for partition in self.not_admitted:
            move_of_ours = self.backlog.pending(partition)
            if move_of_ours is not None:
                self.still_pending(move_of_ours)

    @property
    def started(self) -> list[Move]:
        """Everything that is admitted and has not ended."""
        return [*self.in_flight, *self.unsent]

    @property
    def ended(self) -> bool:
        """Whether nothing is admitted and nothing pending."""
        return not self.started and self.backlog.pending_count == self._pending_settled

    def _goes_on(self, found: Admitted) -> None:
        self.in_flight.append(found.move)
        self._going_on.append(found)

    def states(self) -> Counter[MoveState]:
        """How many moves are in which state, with what is settled now."""
        known = self.view.moves
        states = Counter(known.values())
        states.update({state: sums.moves for state, sums in self.view.settled.items()})
        states.subtract(known[partition] for partition in self.settled)
        states.update(self.settled.values())
        return +states

    def may_cancel(self, partition: TopicPartition) -> bool:
        """Whether it was never refused, or long enough ago to be asked again."""
        refused = self.view.refused_cancels.get(partition)
        return refused is None or refused.due(self.now, self.policy.poll_interval_s)

    def given_up(self, partition: TopicPartition) -> bool:
        """Whether it was refused for as long as a stall may last."""
        refused = self.view.refused_cancels.get(partition)
        return refused is not None and refused.given_up(self.now, self.policy.stall_timeout_s)

    def _fate(self, move: Move, sent_at: datetime | None) -> tuple[Fate, str]:
        grace_s = self.policy.metadata_grace_s
        return fate(move, self.seen, self.now, sent_at=sent_at, grace_s=grace_s)

    def _lost(self, move: Move) -> str:
        """What is known to be gone of its messages; "" = nothing."""
        return self.view.data.get(move.partition, DataSeen()).lost_text

    def _settle(self, move: Move, state: MoveState, detail: str) -> None:
        self.settling.append(Settle(move.partition, state, detail))
        self.settled[move.partition] = state

    def _assess_admitted(self, found: Admitted) -> None:
        move = found.move
        what, detail = self._fate(move, self.view.sent.get(move.partition))
        lost = self._lost(move)
        if what in (Fate.IN_FLIGHT, Fate.UNREADABLE):
            self._goes_on(found)
        elif lost and what in _NOT_IN_FLIGHT:
            self._settle(move, MoveState.FAILED, f"{lost}; {_NOT_IN_FLIGHT[what]}")
        elif what is Fate.MISPLACED:
            self._goes_on(found)
            wanted = tuple(sorted(misplaced(move, self.seen).items()))
            self.settling.append(PlaceReplicas(wanted))
        elif what is Fate.UNDONE:
            self._undone(found, detail)
        elif what is Fate.UNTOUCHED and may_be_copied(move, self.seen):
            self._goes_on(found)
        elif what is Fate.UNTOUCHED:
            self.unsent.append(move)
        elif what is Fate.SUPERSEDED and where_copied_from(move, self.seen):
            self._take_back(found, detail)
        else:
            self._settle(move, _ENDS[what], detail)

    def _take_back(self, found: Admitted, detail: str) -> None:
        """Have another, fresh reading taken, and what is left of it cancelled; it is settled
        then.
        """
        if self.may_cancel(found.move.partition):
            self.settling.append(Cancel((found.move.partition,), detail))
        self._goes_on(found)

    def _undone(self, found: Admitted, detail: str) -> None:
        """A cancel loses the order of replicas, whichever client did it: it is put back.

        In the moment that a copy between log dirs ends, it may seem to have been taken back.
        """
        move = found.move
        if move.target_log_dirs:
            self._take_back(found, detail)
        elif self.seen.partitions[move.partition].replicas != move.current:
            self._put_back(found, detail)
        else:
            self._settle(move, MoveState.CANCELLED, detail)

    def _put_back(self, found: Admitted, detail: str) -> None:
        """Have the order of replicas put back; where that is refused for too long, say so."""
        partition = found.move.partition
        if self.given_up(partition):
            answer = self.view.refused_cancels[partition].answer
            order = f"{detail}; the order of its replicas could not be put back: {answer}"
            self._settle(found.move, MoveState.CANCELLED, order)
        elif self.may_cancel(partition):
            self.settling.append(Cancel((partition,), detail))
            self.settled[partition] = MoveState.CANCELLED
        else:
            self._goes_on(found)

    def still_pending(self, move: Move) -> bool:
        """Whether a pending move may start; settles what has become of it otherwise."""
        if move.partition in self.settled:
            return False
        if untouched(move, self.seen):
            return True
        what, detail = self._fate(move, None)
        if what is Fate.DONE:
            self._settle(move, MoveState.DONE, "was in place already")
        elif what in (Fate.SUPERSEDED, Fate.GONE):
            self._settle(move, _ENDS[what], detail)
        elif (what is Fate.IN_FLIGHT and move.partition in self.seen.ongoing) or where_copied_from(
            move, self.seen
        ):
            self._settle(move, MoveState.SUPERSEDED, "another client is making the same move")
        else:
            return True
        self._pending_settled += 1
        return False


_NOT_IN_FLIGHT = {
    Fate.DONE: "its replicas are where the plan says",
    Fate.UNDONE: "its replicas are as before the plan, in whatever order",
    Fate.UNTOUCHED: "its replicas are as before the plan",
    Fate.MISPLACED: "a replica lies in another log dir than planned",
}
"""Where a move is left of which messages are lost: nothing more is sent for it."""
_ENDS = {
    Fate.DONE: MoveState.DONE,
    Fate.SUPERSEDED: MoveState.SUPERSEDED,
    Fate.GONE: MoveState.GONE,
}


def _ending(
    view: LedgerView, now_true: _Assessed, now: datetime, policy: Policy
) -> list[Decision] | None:
    if view.cancel_requested:
        return _stop(now_true, PlanState.CANCELLED, "cancel requested", MoveState.CANCELLED)
    if now_true.ended:
        return [_finish(now_true.states())]
    if policy.window_end is not None and now >= policy.window_end:
        return _stop(now_true, PlanState.PAUSED, "the window has ended", MoveState.PENDING)
    if _stalled(view, now_true, now, policy):
        cause = f"nothing has moved for {_patience_s(view, now_true, policy):.0f} s"
        return _stop(now_true, PlanState.FAILED, cause, MoveState.CANCELLED)
    if view.pause_requested and not now_true.in_flight:
        return _stop(now_true, PlanState.PAUSED, "pause requested", MoveState.PENDING)
    return None


def _stop(now_true: _Assessed, to: PlanState, cause: str, then: MoveState) -> list[Decision]:
    """Cancel what is in flight, and end. What is refused is asked again, less and less often; when
    that has lasted as long as a stall may, the plan ends with it in flight.
    """
    started = tuple(move.partition for move in now_true.started)
    if not started:
        return [Finish(to, cause)]
    if all(map(now_true.given_up, started)):
        return [Cancel(started, cause, then), Finish(to, cause, despite=True)]
    due = tuple(filter(now_true.may_cancel, started))
    waits = len(started) - len(due)
    if due:
        return [Cancel(due, cause, then), Finish(to, cause, waits)]
    answers = sorted({now_true.view.refused_cancels[p].answer for p in started})
    what = count_text(waits, "move")
    return [Hold(f"{cause}, but {what} in flight could not be cancelled yet: {'; '.join(answers)}")]


def _finish(states: Mapping[MoveState, int]) -> Finish:
    if not states:
        return Finish(PlanState.DONE, "there was nothing to move")
    unwell = {state: count for state, count in states.items() if not state.well}
    if not unwell:
        return Finish(PlanState.DONE, _done(states.get(MoveState.GONE, 0), states))
    counted = ", ".join(f"{count} {state}" for state, count in sorted(unwell.items()))
    return Finish(PlanState.FAILED, f"not every move is done: {counted}")


def _done(gone: int, states: Mapping[MoveState, int]) -> str:
    if not gone:
        return "every move is done"
    are = count_text(gone, "partition is", "partitions are")
    if MoveState.DONE not in states:
        return f"nothing is left to move: {are} gone, and the plan has no other"
    return f"every move is done that is left to make: {are} gone"


def _stalled(view: LedgerView, now_true: _Assessed, now: datetime, policy: Policy) -> bool:
    news = any(isinstance(act, Settle) for act in now_true.settling)
    if news or view.still_since is None:
        return False  # what is only asked for again, and refused again, is no news
    if not now_true.in_flight and _held_by_others(now_true, policy):
        return False
    return now - view.still_since >= timedelta(seconds=_patience_s(view, now_true, policy))


def _patience_s(view: LedgerView, now_true: _Assessed, policy: Policy) -> float:
    return patience_s(view, policy.stall_timeout_s, in_flight=bool(now_true.in_flight))


def _held_by_others(now_true: _Assessed, policy: Policy) -> bool:
    return not policy.additional and any(
        found not in now_true.plan.by_partition for found in now_true.not_admitted
    )


def _rate(view: LedgerView, now: datetime, policy: Policy) -> list[Decision]:
    change = govern(view, now, policy)
    return [] if change is None else [change]


def _start_or_wait(now_true: _Assessed) -> list[Decision]:
    """What starts and what has to wait; the plan's end where nothing is left that could start."""
    held = _held(now_true)
    admission = Admission(()) if held else _admission(now_true)
    if now_true.ended:
        return [_finish(now_true.states())]
    if admission.only_waits_for_window and not now_true.in_flight:
        cause = "what is left does not fit into the window"
        return _stop(now_true, PlanState.PAUSED, cause, MoveState.PENDING)
    starts = dict.fromkeys(move.partition for move in admission.moves)
    unsent = (move.partition for move in now_true.unsent if move.partition not in starts)
    back = tuple(filter(now_true.may_cancel, unsent))
    steps = _rate(now_true.view, now_true.now, now_true.policy)
    hold = held or (Hold(_reason(admission)) if admission.waiting else None)
    if back:
        cause = f"it was not sent yet; {hold.cause if hold else ''}"
        steps.append(Cancel(back, cause, MoveState.PENDING))
    if starts:
        steps.append(Admit(tuple(starts)))
    elif hold:
        steps.append(hold)
    return steps


def _held(now_true: _Assessed) -> Hold | None:
    """Why nothing may start at all; None = it may."""
    if now_true.view.pause_requested:
        return Hold("pause requested")
    if not _held_by_others(now_true, now_true.policy):
        return None
    seen, plan = now_true.seen, now_true.plan
    for partition in sorted(now_true.not_admitted):
        if partition in plan.by_partition:
            continue
        if why := cannot_end(seen.ongoing[partition], seen.live_brokers):
            return Hold(f"{HELD_BY_OTHERS}, and cannot end: {partition}: {why}", hangs=True)
    return Hold(HELD_BY_OTHERS)


def _admission(now_true: _Assessed) -> Admission:
    return admit(
        now_true.unsent,
        now_true.backlog,
        now_true.in_use,
        now_true.seen,
        now_true.now,
        now_true.policy,
        now_true.pace.bytes_per_s,
        now_true.still_pending,
    )


def _reason(admission: Admission) -> str:
    """Slots are what one normally waits for; anything else is worth saying first."""
    waits = sorted(admission.waits, key=lambda wait: (wait.kind is WaitKind.SLOT, str(wait)))
    return f"{admission.waiting} moves wait: {'; '.join(map(str, waits))}"
