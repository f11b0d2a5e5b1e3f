"""One poll of a running plan: what the ledger says, what the cluster shows, how far it is, and what
hurts it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace

from rehome.domain.clock import Clock, utc_now
from rehome.domain.kafka import BrokerId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.causes.hurts import Hurt, HurtKind, some
from rehome.domain.run.causes.waits import Wait, WaitKind
from rehome.domain.run.ledger_view import LedgerView, MoveSums
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import Admit, Cancel, Decision, Finish, Hold
from rehome.execution.admission.backlog import Backlog
from rehome.execution.admission.slots import Direction
from rehome.execution.decide import decide
from rehome.execution.observation.bytes_to_copy import to_copy
from rehome.execution.observation.data_loss import later
from rehome.execution.observation.foreign_reassignments import cannot_end
from rehome.execution.observation.move_status import is_recreated
from rehome.execution.observation.observe import observe, observe_more
from rehome.execution.progress.outpaced import Outpaced
from rehome.execution.progress.progress import Progress, record_progress
from rehome.execution.throttle.coverage import look_at_throttles
from rehome.ledger.store import Ledger

_TAKEN_IN = (Direction.IN.value, Direction.ACROSS.value)
DECISIONS_PER_POLL = 5
"""So often in one poll, at most, what `decide` chooses is read before it is acted upon."""

_HURT_OF_WAIT = {
    WaitKind.DISK_ROOM: HurtKind.WAITS_FOR_ROOM,
    WaitKind.LOG_DIR_ROOM: HurtKind.WAITS_FOR_ROOM,
    WaitKind.LEADER: HurtKind.WAITS_FOR_LEADER,
    WaitKind.BROKER_READ: HurtKind.WAITS_UNREAD,
    WaitKind.TOPIC_READ: HurtKind.WAITS_UNREAD,
    WaitKind.WINDOW: HurtKind.WAITS_FOR_WINDOW,
}
"""Of waits that are more than the plan's own order: slots are none, and of a broker that is not
alive the broker itself is what hurts."""


@dataclass(frozen=True)
class Poll:
    """What `decide` judges by, what it wants, and the progress that was written to the ledger.

    :param hurts: what keeps the plan from going on as it should, by what to do about it.
    """

    view: LedgerView
    observation: Observation
    actions: list[Decision]
    progress: Progress
    hurts: tuple[Hurt, ...] = ()

    @property
    def copied_bytes(self) -> int:
        """What brokers took in since the poll before, copies between log dirs among it."""
        flows = self.view.flows
        if not flows or flows[-1].at != self.observation.taken_at:
            return 0  # another process has polled since, and counts it
        return sum(flow.copied_bytes for flow in flows[-1].flows if flow.direction in _TAKEN_IN)


def poll(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    policy: Policy,
    backlog: Backlog,
    clock: Clock = utc_now,
    bystanders: Collection[TopicPartition] = (),
) -> Poll | None:
    """Poll once, record how far the plan is, and decide; None where it does not run.

    The trigger and the worker's step poll in the same way. Nothing is changed on the cluster. What
    is read grows with what is in flight, and with what starts, not with the plan: of moves that
    wait for their turn, metadata are assumed until they are chosen.

    :param backlog: follows the plan from poll to poll.
    :param bystanders: partitions to watch for strain, too.
    :raises ClusterError: the cluster could not be observed.
    """
    view = ledger.view_of_open(plan.plan_id, backlog.view)
    if view.state is not PlanState.RUNNING:
        return None
    policy = policy.as_asked(view)
    states_before = {} if backlog.view is None else backlog.view.moves
    changed = dict(view.moves.items() - states_before.items())
    plan.prepare(changed)
    flying = [plan.by_partition[p] for p, s in view.moves.items() if s is MoveState.ADMITTED]
    filling = {*(+backlog.filling), *_brokers_filled(plan, changed)}
    observation = observe(cluster, flying, clock(), bystanders=bystanders, filling=filling)
    starts = backlog.log_starts.of(cluster, flying, observation)
    observation = replace(observation, sizes=to_copy(flying, observation, starts))
    assumed = backlog.assumed.follow(changed, plan.by_partition, observation.live_brokers)
    observation = backlog.assumed.complete(observation, {move.partition for move in flying})
    backlog.follow(_moves(plan, {*changed, *assumed}), view, observation)
    progress, view = record_progress(plan, view, ledger, observation, policy, backlog)
    view = _watch_data(plan, flying, view, observation, ledger, cluster)
    backlog.view = view
    if foreign := _not_of(plan, view, observation):
        ledger.note_foreign_reassignments(plan.plan_id, foreign)
    coverage = look_at_throttles(plan, view, observation, ledger, cluster)
    observation = replace(
        observation, unthrottled=coverage.unthrottled, throttles_unread=coverage.unread
    )
    observation, actions = _decide_on(plan, view, observation, cluster, policy, backlog)
    hurts = hurts_at(plan, view, observation, actions, backlog, progress.outpaced)
    hurts = ledger.record_hurts(plan.plan_id, observation.taken_at, hurts)
    return Poll(view, observation, actions, progress, hurts)


def _watch_data(
    plan: Plan,
    flying: Collection[Move],
    view: LedgerView,
    observation: Observation,
    ledger: Ledger,
    cluster: OwnCluster,
) -> LedgerView:
    """Record what is new of the messages of what moves: the view then has it, too."""
    ours = [move for move in flying if not is_recreated(move, observation)]
    new = later(cluster, ours, view.data, observation.high_watermarks)
    ledger.record_data_seen(plan.plan_id, new)
    return replace(view, data={**view.data, **new}) if new else view


def _decide_on(
    plan: Plan,
    view: LedgerView,
    observation: Observation,
    cluster: OwnCluster,
    policy: Policy,
    backlog: Backlog,
) -> tuple[Observation, list[Decision]]:
    """What `decide` wants, and the reading with all that this concerns.

    What it chooses by what is assumed is read, and it decides again.
    """
    actions = decide(plan, view, observation, observation.taken_at, policy, backlog)
    read = observation.read or frozenset()
    for _ in range(DECISIONS_PER_POLL):
        unread = _concerned_partitions(actions, observation, backlog) - read
        if not unread:
            return observation, actions
        chosen, read = _moves(plan, unread), read | unread
        observation = replace(observe_more(cluster, observation, chosen), read=read)
        backlog.assumed.remember(observation, unread)
        backlog.follow(chosen, view, observation)
        actions = decide(plan, view, observation, observation.taken_at, policy, backlog)
    return observation, _of_read(actions, read)


def _not_of(
    plan: Plan, view: LedgerView, observation: Observation
) -> dict[TopicPartition, tuple[BrokerId, ...]]:
    """What is being reassigned, and is no move of the plan, with its target.

    What the plan could not cancel goes on, and is its own still.
    """
    return {
        partition: entry.target
        for partition, entry in observation.ongoing.items()
        if (state := view.moves.get(partition)) is not MoveState.ADMITTED
        and not (state is None and entry.target == _target(plan, partition))
    }


def _target(plan: Plan, partition: TopicPartition) -> tuple[BrokerId, ...] | None:
    return plan.by_partition[partition].target if partition in plan.by_partition else None


def _moves(plan: Plan, partitions: Iterable[TopicPartition]) -> list[Move]:
    return [plan.by_partition[partition] for partition in sorted(partitions)]


def _brokers_filled(plan: Plan, changed: Iterable[TopicPartition]) -> Iterator[BrokerId]:
    for partition in changed:
        move = plan.by_partition[partition]
        yield from (*move.adding, *move.relocating)


def _concerned_partitions(
    actions: Iterable[Decision], observation: Observation, backlog: Backlog
) -> set[TopicPartition]:
    """Partitions of the plan that something is to be done about, or that are being reassigned."""
    partitions = {p for p in observation.ongoing if backlog.pending(p) is not None}
    for action in actions:
        if isinstance(action, Admit | Cancel):
            partitions.update(action.partitions)
        elif isinstance(action, Settle):
            partitions.add(action.partition)
    return partitions


def _of_read(actions: Sequence[Decision], read: Set[TopicPartition]) -> list[Decision]:
    """Less what was decided of a partition that has not been read: that is for the next poll.

    The plan does not end as long as something is.
    """
    kept: list[Decision] = []
    for action in actions:
        if isinstance(action, Admit):
            starts = tuple(p for p in action.partitions if p in read)
            kept += [Admit(starts)] if starts else []
        elif not isinstance(action, Settle) or action.partition in read:
            kept.append(action)
    if kept == list(actions):
        return kept
    return [action for action in kept if not isinstance(action, Finish)]


def hurts_at(
    plan: Plan,
    view: LedgerView,
    observation: Observation,
    actions: Collection[Decision],
    backlog: Backlog,
    outpaced: Collection[Outpaced],
) -> tuple[Hurt, ...]:
    """All of it, each kind once, in the order of what to do about it.

    :param actions: what is decided by this poll.
    :param outpaced: copies that producers outrun.
    """
    waiting = [action for action in actions if isinstance(action, Hold | Admit)]
    hurts = [
        *_of_brokers(plan, view, observation, backlog, waiting),
        *_of_throttles(observation),
        *_of_others(plan, view, observation, actions),
        *_of_waits(waiting),
    ]
    if view.refused_cancels:
        examples, more = some(view.refused_cancels)
        answers = sorted({each.answer for each in view.refused_cancels.values()})
        count = len(view.refused_cancels)
        hurts.append(Hurt(HurtKind.NOT_CANCELLED, (), count, examples, more, "; ".join(answers)))
    lasting = [each for each in outpaced if each.lasts]
    if lasting:
        hurts.append(Hurt(HurtKind.OUTPACED, why="; ".join(map(str, lasting))))
    return tuple(sorted(hurts, key=lambda each: each.place))


def _of_brokers(
    plan: Plan,
    view: LedgerView,
    observation: Observation,
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
    dead = needed - observation.live_brokers
    if dead:
        waits = (
            each.waiting
            for each in waiting
            if {wait.kind for wait in each.waits} == {WaitKind.BROKER_ALIVE}
        )
        moves = sum(not dead.isdisjoint(each) for each in flying) + sum(waits)
        yield Hurt(HurtKind.DEAD_BROKERS, tuple(sorted(dead)), moves)
    silent = sorted((needed & observation.live_brokers) & set(observation.missing))
    if silent:
        why = "; ".join(sorted({str(observation.missing[broker]) for broker in silent}))
        yield Hurt(HurtKind.SILENT_BROKERS, tuple(silent), why=why)


def _of_throttles(observation: Observation) -> Iterator[Hurt]:
    if observation.unthrottled:
        examples, more = some(observation.unthrottled)
        yield Hurt(HurtKind.NOT_THROTTLED, (), len(observation.unthrottled), examples, more)
    if observation.throttles_unread:
        answers = sorted({str(error) for error in observation.throttles_unread.values()})
        yield Hurt(HurtKind.THROTTLES_UNREAD, why="; ".join(answers))


def _of_others(
    plan: Plan, view: LedgerView, observation: Observation, actions: Iterable[Decision]
) -> Iterator[Hurt]:
    """What another client has done to partitions of the plan, and what it does to others."""
    settled = view.settled.get(MoveState.SUPERSEDED, MoveSums()).moves
    taken = settled + sum(state is MoveState.SUPERSEDED for state in view.moves.values())
    if taken:
        yield Hurt(HurtKind.TAKEN_OVER, moves=taken)
    foreign = {p: entry for p, entry in observation.ongoing.items() if p not in plan.by_partition}
    if foreign:
        examples, more = some(foreign)
        ends = (cannot_end(entry, observation.live_brokers) for _, entry in sorted(foreign.items()))
        why = next(filter(None, ends), "")
        holds = [each for each in actions if isinstance(each, Hold) and each.for_others]
        hangs = any(each.hangs for each in holds)
        yield Hurt(HurtKind.FOREIGN, (), 0, examples, more, why, holds=bool(holds), hangs=hangs)


def _of_waits(waiting: Iterable[Hold | Admit]) -> Iterator[Hurt]:
    by_kind: dict[HurtKind, set[Wait]] = {}
    only: dict[HurtKind, int] = {}
    for each in waiting:
        for wait in each.waits:
            kind = _HURT_OF_WAIT.get(wait.kind)
            if kind is not None:
                by_kind.setdefault(kind, set()).add(wait)
                if len({one.kind for one in each.waits}) == 1:
                    only[kind] = each.waiting
    for kind, waits in by_kind.items():
        brokers = sorted({wait.broker for wait in waits if wait.broker is not None})
        why = "; ".join(sorted(map(str, waits)))
        yield Hurt(kind, tuple(brokers), only.get(kind, 0), why=why)
