"""What to do next: the core of the execution.

A pure function of the plan, the ledger, one observation, the time and the policy. Production
and simulation run this same function, so every crash point and every window can be tested
without a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.waits import WaitKind
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.domain.text import count_text
from rehome.execution.actions import (
    Admit,
    Cancel,
    Decision,
    Finish,
    Hold,
    KeepThrottled,
    NextStep,
)
from rehome.execution.admission.admit import Admission, admit
from rehome.execution.admission.backlog import Backlog
from rehome.execution.assessed import Assessed
from rehome.execution.governor.control_loop import govern
from rehome.execution.observation.foreign_reassignments import cannot_end
from rehome.execution.stall import patience_s

HELD_BY_OTHERS = "another client's reassignment runs"
"""What a plan waits for as long as it takes, unless it may run at the same time as others."""


def decide(
    plan: Plan,
    view: LedgerView,
    observation: Observation,
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
    policy = policy.as_asked(view)
    index = Backlog.of(plan, view, observation) if backlog is None else backlog
    pace = policy.pace(view.target_bytes_per_s or policy.rate_bytes_per_s, view.own_targets)
    now_true = Assessed(plan, view, observation, now, policy, index, pace)
    next_steps = _ending(view, now_true, now, policy)
    if next_steps is None:
        next_steps = _start_or_wait(now_true)
    return [*now_true.settling, *_keep_throttled(observation), *next_steps]


def _keep_throttled(observation: Observation) -> list[Decision]:
    return [KeepThrottled(observation.unthrottled)] if observation.unthrottled else []


def needs_worker(actions: Iterable[Decision]) -> bool:
    """Whether there is anything to do: what the progress trigger asks at every poll."""
    return not all(isinstance(action, Hold) for action in actions)


def is_stop(actions: Iterable[Decision]) -> bool:
    """Whether the plan is to pause or to end early now: what is in flight is cancelled."""
    return any(isinstance(act, Finish) and act.state is not PlanState.DONE for act in actions)


def waits_for(actions: Iterable[Decision]) -> str:
    """Why moves do not start, for people; "" = none has to wait."""
    return "; ".join(action.cause for action in actions if isinstance(action, Hold))


def _ending(
    view: LedgerView, now_true: Assessed, now: datetime, policy: Policy
) -> list[Decision] | None:
    if view.cancel_requested:
        return _stop(now_true, PlanState.CANCELLED, "cancel requested", MoveState.CANCELLED)
    if now_true.ended:
        return [_finish(now_true.states())]
    if policy.window_end is not None and now >= policy.window_end:
        return _stop(now_true, PlanState.PAUSED, "the window has ended", MoveState.PENDING)
    if _is_stalled(view, now_true, now, policy):
        cause = f"nothing has moved for {_patience_s(view, now_true, policy):.0f} s"
        return _stop(now_true, PlanState.FAILED, cause, MoveState.CANCELLED)
    if view.pause_requested and not now_true.in_flight:
        return _stop(now_true, PlanState.PAUSED, "pause requested", MoveState.PENDING)
    return None


def _stop(now_true: Assessed, to: PlanState, cause: str, then: MoveState) -> list[Decision]:
    """Cancel what is in flight, and end. What is refused is asked again, less and less often; when
    that has lasted as long as a stall may, the plan ends with it in flight. What goes on meanwhile
    goes on at the throttle that is asked for.
    """
    started = tuple(move.partition for move in now_true.started)
    if not started:
        return [Finish(to, cause)]
    if all(map(now_true.given_up, started)):
        return [Cancel(started, cause, then), Finish(to, cause, despite=True)]
    due = tuple(filter(now_true.may_cancel, started))
    waits = len(started) - len(due)
    go_on = not now_true.view.refused_cancels.keys().isdisjoint(started)
    rate = _rate(now_true.view, now_true.now, now_true.policy) if go_on else []
    if due:
        return [*rate, Cancel(due, cause, then), Finish(to, cause, waits)]
    answers = sorted({now_true.view.refused_cancels[p].answer for p in started})
    what = count_text(waits, "move")
    why = f"{cause}, but {what} in flight could not be cancelled yet: {'; '.join(answers)}"
    return [*rate, Hold(why)]


def _finish(states: Mapping[MoveState, int]) -> Finish:
    if not states:
        return Finish(PlanState.DONE, "there was nothing to move")
    unwell = {state: count for state, count in states.items() if not state.well}
    if not unwell:
        return Finish(PlanState.DONE, _done_text(states.get(MoveState.GONE, 0), states))
    counted = ", ".join(f"{count} {state}" for state, count in sorted(unwell.items()))
    return Finish(PlanState.FAILED, f"not every move is done: {counted}")


def _done_text(gone: int, states: Mapping[MoveState, int]) -> str:
    if not gone:
        return "every move is done"
    are = count_text(gone, "partition is", "partitions are")
    if MoveState.DONE not in states:
        return f"nothing is left to move: {are} gone, and the plan has no other"
    return f"every move is done that is left to make: {are} gone"


def _is_stalled(view: LedgerView, now_true: Assessed, now: datetime, policy: Policy) -> bool:
    news = any(isinstance(act, Settle) for act in now_true.settling)
    if news or view.still_since is None:
        return False  # what is only asked for again, and refused again, is no news
    if not now_true.in_flight and _held_by_others(now_true, policy):
        return False
    return now - view.still_since >= timedelta(seconds=_patience_s(view, now_true, policy))


def _patience_s(view: LedgerView, now_true: Assessed, policy: Policy) -> float:
    return patience_s(view, policy.stall_timeout_s, in_flight=bool(now_true.in_flight))


def _held_by_others(now_true: Assessed, policy: Policy) -> bool:
    return not policy.additional and any(
        partition not in now_true.plan.by_partition for partition in now_true.not_admitted
    )


def _rate(view: LedgerView, now: datetime, policy: Policy) -> list[Decision]:
    change = govern(view, now, policy)
    return [] if change is None else [change]


def _start_or_wait(now_true: Assessed) -> list[Decision]:
    """What starts and what has to wait; the plan's end where nothing is left that could start."""
    plan_hold = _hold_of(now_true)
    admission = Admission(()) if plan_hold else _admission(now_true)
    if now_true.ended:
        return [_finish(now_true.states())]
    if admission.only_waits_for_window and not now_true.in_flight:
        cause = "what is left does not fit into the window"
        return _stop(now_true, PlanState.PAUSED, cause, MoveState.PENDING)
    starts = dict.fromkeys(move.partition for move in admission.moves)
    unsent = (move.partition for move in now_true.unsent if move.partition not in starts)
    back = tuple(filter(now_true.may_cancel, unsent))
    steps = [*_rate(now_true.view, now_true.now, now_true.policy), *_next_steps(now_true)]
    hold = plan_hold or (_hold(admission) if admission.waiting else None)
    if back:
        cause = f"it was not sent yet; {hold.cause if hold else ''}"
        steps.append(Cancel(back, cause, MoveState.PENDING))
    if starts:
        steps.append(Admit(tuple(starts), admission.waiting, admission.waits))
    elif hold:
        steps.append(hold)
    return steps


def _next_steps(now_true: Assessed) -> list[Decision]:
    """What is sent next of moves that are made in steps. They have their slots already, and go on
    in a pause, as any other move in flight; a step waits for the brokers that it copies to.
    """
    observation, targets = now_true.observation, []
    for move in now_true.between:
        there = observation.partitions[move.partition].replicas
        target = now_true.policy.next_step(move, there)
        if observation.live_brokers.issuperset(set(target) - set(there)):
            targets.append((move.partition, target))
    return [NextStep(tuple(targets))] if targets else []


def _hold_of(now_true: Assessed) -> Hold | None:
    """Why nothing may start at all; None = it may."""
    if now_true.view.pause_requested:
        return Hold("pause requested")
    if not _held_by_others(now_true, now_true.policy):
        return None
    observation, plan = now_true.observation, now_true.plan
    for partition in sorted(now_true.not_admitted):
        if partition in plan.by_partition:
            continue
        if why := cannot_end(observation.ongoing[partition], observation.live_brokers):
            return Hold(
                f"{HELD_BY_OTHERS}, and cannot end: {partition}: {why}", hangs=True, for_others=True
            )
    return Hold(HELD_BY_OTHERS, for_others=True)


def _admission(now_true: Assessed) -> Admission:
    return admit(
        now_true.unsent,
        now_true.backlog,
        now_true.in_use,
        now_true.observation,
        now_true.now,
        now_true.policy,
        now_true.pace.bytes_per_s,
        now_true.still_pending,
    )


def _hold(admission: Admission) -> Hold:
    return Hold(_reason(admission), waiting=admission.waiting, waits=admission.waits)


def _reason(admission: Admission) -> str:
    """Slots are what one normally waits for; anything else is worth saying first."""
    waits = sorted(admission.waits, key=lambda wait: (wait.kind is WaitKind.SLOT, str(wait)))
    waiting = count_text(admission.waiting, "move waits", "moves wait")
    return f"{waiting}: {'; '.join(map(str, waits))}"
