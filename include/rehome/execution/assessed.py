"""What is true of a plan's moves now: the first half of `decide`. Pure.

Each admitted move goes on, was never sent, or has ended: then it is settled, whatever else is
decided. A pending move is looked at when it is its turn, or another client reassigns its partition.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from rehome.domain.kafka import TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.ledger_view import DataSeen, LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.pace import Pace
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, Settle
from rehome.execution.actions import Cancel, Decision, PlaceReplicas
from rehome.execution.admission.backlog import Admitted, Backlog
from rehome.execution.admission.slots import InUse
from rehome.execution.observation.log_dir_copies import (
    may_be_copied,
    misplaced_replicas,
    where_copied_from,
)
from rehome.execution.observation.move_status import Fate, fate, is_untouched, on_its_way


@dataclass
class Assessed:
    """The plan's moves by what is true of them now, and the actions that follow at once.

    :ivar settling: those actions.
    :param pace: how fast moves can be made.
    :ivar in_use: what those take that are in flight.
    :ivar unsent: admitted, but never sent, and nothing of them is under way; largest first.
    :ivar between: of what is in flight, moves whose next step is to be sent.
    :ivar not_admitted: what is being reassigned, by us or not, though no admitted move says so.
    """

    plan: Plan
    view: LedgerView
    observation: Observation
    now: datetime
    policy: Policy
    backlog: Backlog
    pace: Pace
    settling: list[Decision] = field(default_factory=list)
    settled: dict[TopicPartition, MoveState] = field(default_factory=dict)
    in_flight: list[Move] = field(default_factory=list)
    unsent: list[Move] = field(default_factory=list)
    not_admitted: list[TopicPartition] = field(default_factory=list)
    between: list[Move] = field(default_factory=list)
    in_use: InUse = field(init=False)
    _going_on: list[Admitted] = field(default_factory=list)
    _pending_settled: int = 0

    def __post_init__(self) -> None:
        self.in_use = InUse(self.pace)
        admitted, ongoing = self.backlog.admitted, self.observation.ongoing
        steps, listed = self.view.steps, 0
        for admitted_move, entry in zip(admitted.values(), map(ongoing.get, admitted), strict=True):
            listed += entry is not None
            step = steps.get(admitted_move.move.partition)
            if on_its_way(admitted_move.move, entry, self.observation, step):
                self._goes_on(admitted_move)
            else:
                self._assess_admitted(admitted_move)
        self.in_use.add_all(self._going_on, self.observation)
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

    def _goes_on(self, admitted_move: Admitted) -> None:
        self.in_flight.append(admitted_move.move)
        self._going_on.append(admitted_move)

    def states(self) -> Counter[MoveState]:
        """How many moves are in which state, with what is settled now."""
        moves = self.view.moves
        states = Counter(moves.values())
        states.update({state: sums.moves for state, sums in self.view.settled.items()})
        states.subtract(moves[partition] for partition in self.settled)
        states.update(self.settled.values())
        return +states

    def may_cancel(self, partition: TopicPartition) -> bool:
        """Whether it was never refused, or long enough ago to be asked again."""
        refusal = self.view.refused_cancels.get(partition)
        return refusal is None or refusal.due(self.now, self.policy.poll_interval_s)

    def given_up(self, partition: TopicPartition) -> bool:
        """Whether it was refused for as long as a stall may last."""
        refusal = self.view.refused_cancels.get(partition)
        return refusal is not None and refusal.given_up(self.now, self.policy.stall_timeout_s)

    def _fate(self, move: Move, sent_at: datetime | None) -> tuple[Fate, str]:
        grace_s, step = self.policy.metadata_grace_s, self.view.steps.get(move.partition)
        return fate(move, self.observation, self.now, sent_at=sent_at, grace_s=grace_s, step=step)

    def _losses_of(self, move: Move) -> str:
        """What is known to be gone of its messages; "" = nothing."""
        return self.view.data.get(move.partition, DataSeen()).lost_text

    def _settle(self, move: Move, state: MoveState, detail: str) -> None:
        self.settling.append(Settle(move.partition, state, detail))
        self.settled[move.partition] = state

    def _assess_admitted(self, admitted_move: Admitted) -> None:
        move = admitted_move.move
        what, detail = self._fate(move, self.view.sent.get(move.partition))
        lost = self._losses_of(move)
        if what in (Fate.IN_FLIGHT, Fate.UNREADABLE):
            self._goes_on(admitted_move)
        elif what is Fate.BETWEEN:
            self._goes_on(admitted_move)
            self.between.append(move)
        elif lost and what in _NOT_IN_FLIGHT:
            self._settle(move, MoveState.FAILED, f"{lost}; {_NOT_IN_FLIGHT[what]}")
        elif what is Fate.MISPLACED:
            self._goes_on(admitted_move)
            log_dirs = tuple(sorted(misplaced_replicas(move, self.observation).items()))
            self.settling.append(PlaceReplicas(log_dirs))
        elif what is Fate.UNDONE:
            self._undo(admitted_move, detail)
        elif what is Fate.UNTOUCHED and may_be_copied(move, self.observation):
            self._goes_on(admitted_move)
        elif what is Fate.UNTOUCHED:
            self.unsent.append(move)
        elif what is Fate.SUPERSEDED and where_copied_from(move, self.observation):
            self._take_back(admitted_move, detail)
        else:
            self._settle(move, _ENDS[what], detail)

    def _take_back(self, admitted_move: Admitted, detail: str) -> None:
        """Have another, fresh reading taken, and what is left of it cancelled; it is settled
        then.
        """
        if self.may_cancel(admitted_move.move.partition):
            self.settling.append(Cancel((admitted_move.move.partition,), detail))
        self._goes_on(admitted_move)

    def _undo(self, admitted_move: Admitted, detail: str) -> None:
        """A cancel loses the order of replicas, whichever client did it: it is put back.

        In the moment that a copy between log dirs ends, it may seem to have been taken back.
        """
        move = admitted_move.move
        if move.target_log_dirs:
            self._take_back(admitted_move, detail)
        elif self.observation.partitions[move.partition].replicas != move.current:
            self._put_back(admitted_move, detail)
        else:
            self._settle(move, MoveState.CANCELLED, detail)

    def _put_back(self, admitted_move: Admitted, detail: str) -> None:
        """Have the order of replicas put back; where that is refused for too long, say so."""
        partition = admitted_move.move.partition
        if self.given_up(partition):
            answer = self.view.refused_cancels[partition].answer
            order = f"{detail}; the order of its replicas could not be put back: {answer}"
            self._settle(admitted_move.move, MoveState.CANCELLED, order)
        elif self.may_cancel(partition):
            self.settling.append(Cancel((partition,), detail))
            self.settled[partition] = MoveState.CANCELLED
        else:
            self._goes_on(admitted_move)

    def still_pending(self, move: Move) -> bool:
        """Whether a pending move may start; settles what has become of it otherwise."""
        if move.partition in self.settled:
            return False
        if is_untouched(move, self.observation):
            return True
        what, detail = self._fate(move, None)
        if what is Fate.DONE:
            self._settle(move, MoveState.DONE, "was in place already")
        elif what in (Fate.SUPERSEDED, Fate.GONE):
            self._settle(move, _ENDS[what], detail)
        elif (
            what is Fate.IN_FLIGHT and move.partition in self.observation.ongoing
        ) or where_copied_from(move, self.observation):
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
