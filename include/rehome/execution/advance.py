"""One step of a plan: observe → decide → act. A thin shell around `decide`.

Execute and the progress sensor call the same function. It holds no state: whatever dies, the
next call goes on from the ledger and the cluster. A move is written to the ledger before it is
sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from rehome.cluster.interface.error_codes import LOG_DIR_REFUSED, TRANSIENT, ErrorCode
from rehome.cluster.interface.errors import ClusterError, MissingRightError
from rehome.domain.actions import Action
from rehome.domain.clock import Clock, utc_now
from rehome.domain.kafka import BrokerError, BrokerId, ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.domain.text import count_text
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.actions import (
    Admit,
    Cancel,
    Decision,
    Finish,
    Hold,
    KeepThrottled,
    NextStep,
    PlaceReplicas,
    SetRate,
)
from rehome.execution.admission.backlog import Backlog
from rehome.execution.control.cancel import cancel_moves
from rehome.execution.control.words.cancel_words import left_in_flight
from rehome.execution.decide import is_stop
from rehome.execution.observation.log_dir_copies import wanted_log_dirs
from rehome.execution.observation.move_status import on_its_way
from rehome.execution.observation.needless_moves import needless
from rehome.execution.observation.observe import observe
from rehome.execution.poll import Poll, poll
from rehome.execution.progress.progress import Progress
from rehome.execution.throttle.configs import ThrottleError
from rehome.execution.throttle.ensure import ensure
from rehome.execution.throttle.set_up import change_rate
from rehome.ledger.store import Ledger
from rehome.ledger.stores.moves import UNWELL


@dataclass
class Advance:
    """What one step did.

    :param actions: everything that `decide` asked for, in order.
    :param admitted: partitions whose move the controller accepted in this step.
    :param settled: what became of moves, as recorded in this step.
    :param cancelled: partitions whose move was cancelled, or taken back, in this step.
    :param errors: refusals, by partition; a move that was refused for good has failed.
    :param holds: why nothing (more) was started.
    :param finished: the state the plan has ended or paused in; None = it goes on.
    :param progress: the last observation as KIP-179's table; None when nothing was observed.
    :param last_poll: the last poll, of which that is a part.
    :param in_flight: moves that the ledger has as admitted; whether all of them have been sent, and
        go on still, the next poll reads.
    :param on_their_way: moves that the controller listed when this step read it for the last time;
        None = it did not: the plan had ended before.
    :param copied_bytes: what all polls of this step have seen being copied since those before.
    """

    actions: list[Decision] = field(default_factory=list)
    admitted: list[TopicPartition] = field(default_factory=list)
    settled: dict[TopicPartition, MoveState] = field(default_factory=dict)
    cancelled: list[TopicPartition] = field(default_factory=list)
    errors: dict[TopicPartition, BrokerError] = field(default_factory=dict)
    holds: list[str] = field(default_factory=list)
    in_flight: int = 0
    on_their_way: int | None = None
    finished: PlanState | None = None
    cause: str = ""
    progress: Progress | None = None
    last_poll: Poll | None = None
    copied_bytes: int = 0


def advance(
    plan: Plan,
    ledger: Ledger,
    cluster: OwnCluster,
    policy: Policy,
    clock: Clock = utc_now,
    *,
    only_stops: bool = False,
    backlog: Backlog | None = None,
) -> Advance:
    """Bring the plan one step on. May be repeated at any time, after any crash.

    An approved plan is started. A paused one stays paused: ``Ledger.claim`` resumes it. Where
    a move is refused, the next poll gives its slot to another: a step asks for moves once, so that
    its calls are few however many are refused (docs/decisions/055).

    :param only_stops: act only where the plan is to pause or to end early; nothing is started.
    :param backlog: of the step before in this process; None = there was none.
    :raises PlanConflictError: the plan is not approved, or another one holds the cluster.
    :raises MissingRightError: the principal may not do what is needed.
    :raises ClusterError: the cluster could not be observed; nothing was changed.
    """
    done = Advance()
    if ledger.plan(plan.plan_id).state in (PlanState.PLANNED, PlanState.APPROVED):
        ledger.claim(plan.plan_id)
    step = _ActionRunner(plan, ledger, cluster, policy, done)
    backlog = Backlog() if backlog is None else backlog
    while True:
        last_poll = poll(plan, ledger, cluster, policy, backlog, clock)
        if last_poll is None:
            record = ledger.plan(plan.plan_id)
            done.finished, done.cause = record.state, record.cause
            return done
        done.progress, done.last_poll = last_poll.progress, last_poll
        done.copied_bytes += last_poll.copied_bytes
        done.on_their_way = _on_their_way(plan, last_poll)
        if only_stops and not is_stop(last_poll.actions):
            return done
        again = step.act(last_poll.actions, last_poll.observation, last_poll.view.rate_bytes_per_s)
        if not again:
            return done


def _on_their_way(plan: Plan, last_poll: Poll) -> int:
    observation, steps, moves = last_poll.observation, last_poll.view.steps, plan.by_partition
    listed = [(moves[p], entry) for p, entry in observation.ongoing.items() if p in moves]
    return sum(on_its_way(m, e, observation, steps.get(m.partition)) for m, e in listed)


class _ActionRunner:
    """Carries actions out.

    A move is written to the ledger before it is sent. A cancel is sent first, and recorded when it
    has worked: until then the move stays admitted. Either way the next step finds what was begun.
    """

    def __init__(
        self, plan: Plan, ledger: Ledger, cluster: OwnCluster, policy: Policy, done: Advance
    ) -> None:
        self._plan = plan
        self._policy = policy
        self._ledger = ledger
        self._cluster = cluster
        self._done = done
        self._uncancelled: dict[TopicPartition, BrokerError] = {}

    def act(
        self, actions: Sequence[Decision], observation: Observation, rate_bytes_per_s: int | None
    ) -> bool:
        """Carry out all of them; True when the plan's state calls for another poll."""
        self._done.actions += actions
        self._uncancelled.clear()
        again = False
        self._settle([action for action in actions if isinstance(action, Settle)])
        for action in actions:
            match action:
                case Cancel():
                    self._cancel(action.partitions, action.cause, action.then)
                case PlaceReplicas():
                    self._fail(self._place(dict(action.log_dirs)).refusals)
                case SetRate():
                    change_rate(self._plan, self._ledger, self._cluster, action)
                case KeepThrottled():
                    self._keep_throttled(action)
                case Admit():
                    again |= self._admit(action.partitions, observation, rate_bytes_per_s)
                case NextStep():
                    again |= self._send_steps(dict(action.targets), observation, rate_bytes_per_s)
                case Hold():
                    self._done.holds.append(action.cause)
                case Finish():
                    again |= self._finish(action)
        states = self._ledger.view_of_open(self._plan.plan_id).moves.values()
        self._done.in_flight = sum(state is MoveState.ADMITTED for state in states)
        return again

    def _settle(self, settlements: Collection[Settle]) -> None:
        states = {each.partition: each.state for each in settlements}
        for partition in self._ledger.settle_all(self._plan.plan_id, settlements):
            self._done.settled[partition] = states[partition]

    def _moves(self, partitions: Iterable[TopicPartition]) -> list[Move]:
        return [self._plan.by_partition[partition] for partition in partitions]

    def _keep_throttled(self, action: KeepThrottled) -> None:
        """What cannot be set again now is found missing by the next poll; all else goes on."""
        moves = self._moves(action.partitions)
        try:
            lacking = ensure(self._plan, self._ledger, self._cluster, moves, in_flight=True)
        except (ClusterError, ThrottleError) as error:
            lacking = {move.partition: str(error) for move in moves}
        for why, count in Counter(lacking.values()).items():
            kind = EventKind.THROTTLE_NOT_SET_AGAIN
            self._ledger.add_event_if_new(kind, why, self._plan.plan_id)
            flying = count_text(count, "move")
            self._done.holds.append(f"{flying} in flight may not be throttled: {why}")

    def _ensure_throttled(self, moves: Collection[Move]) -> list[Move]:
        """Of moves that are about to be sent, those that will be throttled."""
        waiting = ensure(self._plan, self._ledger, self._cluster, moves)
        for why, count in Counter(waiting.values()).items():
            self._done.holds.append(_sent_again(count, why))
        return [move for move in moves if move.partition not in waiting]

    def _cancel(
        self,
        partitions: Collection[TopicPartition],
        cause: str | Mapping[TopicPartition, str],
        then: MoveState,
    ) -> None:
        plan_id, moves = self._plan.plan_id, self._moves(partitions)
        result = cancel_moves(plan_id, moves, self._ledger, self._cluster, cause, then)
        self._done.cancelled += result.cancelled
        self._done.settled.update(result.ended)
        self._done.errors.update(result.not_cancelled)
        self._uncancelled |= result.errors

    def _finish(self, action: Finish) -> bool:
        """End the plan, unless something of ours could not be stopped: then a later poll does."""
        cause = action.cause
        if action.despite:
            cause = left_in_flight(cause, self._ledger.plan(self._plan.plan_id), self._uncancelled)
        elif self._uncancelled or action.waits:
            self._done.holds.append(f"{cause}, but not everything could be cancelled")
            return False
        elif action.state is PlanState.FAILED and self._settle_needless():
            return True
        if action.state is PlanState.DONE and self._plan.action == Action.ROLLBACK:
            left_alone = len(self._plan.summary.infeasible)
            self._ledger.record_rollback(self._plan.plan_id, left_alone)
        return self._ledger.transition(self._plan.plan_id, action.state, cause)

    def _settle_needless(self) -> bool:
        """Whether anything that had not ended well, or whose turn has not come, needs no moving
        any more: what is left of the plan is judged anew then.
        """
        plan_id = self._plan.plan_id
        lost = self._ledger.lost_data(plan_id)
        states = self._ledger.view(plan_id).moves
        left = (MoveState.PENDING, *UNWELL)
        moves = self._moves(p for p, state in states.items() if state in left and p not in lost)
        if not moves:
            return False
        observation = observe(self._cluster, moves, utc_now(), in_flight=(), starting=True)
        ends = list(needless(moves, observation))
        self._settle([each for each in ends if states[each.partition] is MoveState.PENDING])
        of_ended = [each for each in ends if states[each.partition] is not MoveState.PENDING]
        return bool(self._ledger.settle_needless(plan_id, of_ended)) or len(ends) > len(of_ended)

    def _admit(
        self,
        partitions: Collection[TopicPartition],
        observation: Observation,
        rate_bytes_per_s: int | None,
    ) -> bool:
        moves = self._moves(partitions)
        first = {move.partition: self._policy.next_step(move, move.current) for move in moves}
        if not self._ledger.admit(self._plan.plan_id, moves, observation, rate_bytes_per_s, first):
            return True
        try:
            moves = self._ensure_throttled(moves)
            placed = self._place(_wanted_log_dirs(moves))
            not_sent = placed.refusals.keys() | placed.later.keys()
            targets = {p: first[p] for p in (m.partition for m in moves) if p not in not_sent}
            verdicts = self._alter(targets)
        except MissingRightError:
            raise
        except ClusterError as error:
            # They stay admitted and not sent: the next poll judges them anew.
            self._done.holds.append(_sent_again(len(moves), error))
            return False
        if placed.later:
            later = next(iter(placed.later.values()))
            self._done.holds.append(_sent_again(len(placed.later), later))
        self._done.admitted += self._mark_sent(verdicts)
        refusals = {partition: error for partition, error in verdicts.items() if error is not None}
        self._fail({**placed.refusals, **refusals})
        return False

    def _mark_sent(
        self, verdicts: Mapping[TopicPartition, BrokerError | None]
    ) -> list[TopicPartition]:
        """Record what the controller has accepted."""
        accepted = [partition for partition, error in verdicts.items() if error is None]
        self._ledger.mark_sent(self._plan.plan_id, accepted)
        return accepted

    def _send_steps(
        self,
        targets: Mapping[TopicPartition, tuple[BrokerId, ...]],
        observation: Observation,
        rate_bytes_per_s: int | None,
    ) -> bool:
        """Send the next steps of moves. One that is refused for good has its move taken back: in
        between steps no move may stay.
        """
        moves = self._moves(targets)
        plan_id = self._plan.plan_id
        if not self._ledger.admit_steps(plan_id, moves, targets, observation, rate_bytes_per_s):
            return True
        try:
            sent = {p: targets[p] for p in (m.partition for m in self._ensure_throttled(moves))}
            verdicts = self._ask_controller(sent, allow=True)
        except MissingRightError:
            raise
        except ClusterError as error:
            self._done.holds.append(_sent_again(len(moves), error))
            return False
        self._mark_sent(verdicts)
        refusals = {partition: error for partition, error in verdicts.items() if error is not None}
        self._done.errors.update(refusals)
        for_good = {p: str(e) for p, e in refusals.items() if e.code not in TRANSIENT}
        self._cancel(sorted(for_good), for_good, MoveState.FAILED)
        return False

    def _alter(
        self, targets: Mapping[TopicPartition, tuple[BrokerId, ...]]
    ) -> dict[TopicPartition, BrokerError | None]:
        """Kafka's guard against another number of replicas is off where the plan is to change it,
        and for steps, in which the old replicas are there beside the new ones.
        """
        moves, allow = self._plan.by_partition, self._plan.allow_replication_factor_change
        steps = {p: to for p, to in targets.items() if to != moves[p].target}
        whole = {p: to for p, to in targets.items() if p not in steps}
        verdicts = self._ask_controller(whole, allow=allow) if whole or not steps else {}
        return verdicts | self._ask_controller(steps, allow=True) if steps else verdicts

    def _ask_controller(
        self, targets: Mapping[TopicPartition, tuple[BrokerId, ...]], *, allow: bool
    ) -> dict[TopicPartition, BrokerError | None]:
        return self._cluster.alter_reassignments(targets, allow_replication_factor_change=allow)

    def _fail(self, refusals: Mapping[TopicPartition, BrokerError]) -> None:
        """Settle what was refused for good; the next poll judges the others anew."""
        self._done.errors.update(refusals)
        for_good = {p: error for p, error in refusals.items() if error.code not in TRANSIENT}
        placed = {p for p in for_good if self._plan.by_partition[p].target_log_dirs}
        if placed:
            # Another log dir that it names may have been accepted: that copy is taken back.
            causes = {partition: str(for_good[partition]) for partition in placed}
            self._cancel(sorted(placed), causes, MoveState.FAILED)
        self._settle(
            [_settle_refused(p, error) for p, error in for_good.items() if p not in placed]
        )

    def _place(self, log_dirs: dict[ReplicaId, str]) -> _Placed:
        """Name the log dirs of replicas: one that exists begins to move, others begin there.

        A broker answers REPLICA_NOT_AVAILABLE for a replica that it does not have yet, and keeps
        the log dir for when it gets it (KIP-113): that is no error. A temporary failure for such a
        replica is tried again when it is there.
        """
        placed = _Placed()
        verdicts = self._cluster.alter_replica_log_dirs(log_dirs) if log_dirs else {}
        for replica, error in verdicts.items():
            if error is None:
                continue
            partition, broker = replica.topic_partition, replica.broker
            what = f"log dir {log_dirs[replica]} on broker {broker}"
            error_again = BrokerError(error.code, error.name, what)
            if error.code in LOG_DIR_REFUSED:
                placed.refusals[partition] = error_again
            elif broker not in self._plan.by_partition[partition].adding:
                placed.later[partition] = error_again
        return placed


@dataclass(frozen=True)
class _Placed:
    """Partitions that brokers did not take log dirs for.

    :param refusals: for good; ``later``: only now, though they have the replica.
    """

    refusals: dict[TopicPartition, BrokerError] = field(default_factory=dict)
    later: dict[TopicPartition, BrokerError] = field(default_factory=dict)


def _settle_refused(partition: TopicPartition, error: BrokerError) -> Settle:
    gone = error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Settle(partition, MoveState.GONE if gone else MoveState.FAILED, str(error))


def _sent_again(moves: int, error: object) -> str:
    return f"{count_text(moves, 'move is', 'moves are')} to be sent again: {error}"


def _wanted_log_dirs(moves: Iterable[Move]) -> dict[ReplicaId, str]:
    return {
        replica: log_dir for move in moves for replica, log_dir in wanted_log_dirs(move).items()
    }
