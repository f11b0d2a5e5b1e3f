"""A discrete-event simulation of a plan: the production `decide` over a cluster in memory.

Between two polls time runs from event to event: a copy is complete, a broker dies, a person
asks for something. Deterministic: same plan, cluster, events and policy, same course.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from benchmarks.simulation.cluster import ClusterEvent, ModelledCluster
from benchmarks.simulation.journal import Crash, Entry, Journal
from rehome.domain.kafka import ReplicaId, TopicPartition
from rehome.domain.plan.move import Move
from rehome.domain.plan.plan import Plan
from rehome.domain.run.flows import (
    CHANGES_VIEWED,
    FLOWS_VIEWED,
    FlowSample,
    RateChange,
    RateReason,
    Strain,
)
from rehome.domain.run.ledger_view import LedgerView
from rehome.domain.run.observation import Observation
from rehome.domain.run.run_policy import Policy
from rehome.domain.run.states import MoveState, PlanState, Settle
from rehome.execution.actions import Admit, Cancel, Decision, Finish, Hold, SetRate
from rehome.execution.admission.backlog import Backlog, is_small_move
from rehome.execution.admission.small_costs import takes_s
from rehome.execution.decide import decide
from rehome.execution.estimate.projection import SMALL_STEP_S
from rehome.execution.governor.control_loop import first_rate
from rehome.execution.progress.flow_samples import Copied, flow_sample
from rehome.execution.stall import held_up


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator asks for in mid-run; None and False ask for nothing."""

    cancel: bool = False
    pause: bool = False
    rate_bytes_per_s: int | None = None


@dataclass(frozen=True, slots=True)
class At:
    """An event and its time, in seconds after the start."""

    after_s: float
    event: ClusterEvent | Asked | Strain


Decide = Callable[[Plan, LedgerView, Observation, datetime, Policy, Backlog], list[Decision]]
Watch = Callable[["Simulation", list[Decision]], None]


class Simulation:
    """One plan on one cluster.

    :param events: what happens from outside.
    :param resolution_s: copies that end within this time are taken together, and what they
        leave unused of their rate is lost; 0 = exact.
    :param decide_by: `decide`, or a wrapper that measures it.
    :param watch: called after the actions of each poll.
    :param governed: the governor gets to know what is copied, and the cluster the nominal rate.
    :param delivered: the part of a rate that brokers deliver where it is not governed; None = what
        the policy expects.
    :param wake_s: as in production a trigger reads at each poll, and the worker acts so much later
        when there is something to do; None = the reader acts at once.
    """

    def __init__(
        self,
        plan: Plan,
        cluster: ModelledCluster,
        policy: Policy,
        start: datetime,
        events: Iterable[At] = (),
        *,
        journal: Journal | None = None,
        resolution_s: float = 0.0,
        decide_by: Decide = decide,
        watch: Watch | None = None,
        governed: bool = False,
        delivered: float | None = None,
        wake_s: float | None = None,
    ) -> None:
        self.plan = plan
        self.cluster = cluster
        self.policy = policy
        self.now = start
        self.state = PlanState.RUNNING
        self.cause = ""
        self.polls = 0
        self.journal = journal or Journal([move.partition for move in plan.moves])
        self._start = start
        self._events = deque(sorted(events, key=lambda event: event.after_s))
        self._resolution_s = resolution_s
        self._decide = decide_by
        self.watch = watch
        target = policy.rate_bytes_per_s
        self._rate = first_rate(target) if governed else target
        self._asked = Asked()
        self._last_progress_at = start
        self._held_at: datetime | None = None
        self.governed = governed
        self._wake_s = wake_s
        expected = policy.throttle_efficiency if delivered is None else delivered
        self._delivered_part = 1.0 if governed else expected
        self._flows: deque[FlowSample] = deque(maxlen=FLOWS_VIEWED)
        self._seen_before: dict[ReplicaId, Copied] = {}
        self._polled_at: datetime | None = None
        self._strain: Strain | None = None
        self.rates = [RateChange(start, self._rate, target, target, RateReason.SET_UP, "set up")]
        cluster.set_rate(self._rate * self._delivered_part)
        self._small_s = 0.0  # what brokers take for the small moves that the last step has started
        self._backlog = self._indexed()

    @property
    def elapsed_s(self) -> float:
        """Time since the start."""
        return (self.now - self._start).total_seconds()

    def run(self, max_polls: int = 1_000_000) -> PlanState:
        """Poll until the plan ends or pauses.

        :raises RuntimeError: it did neither within ``max_polls``.
        """
        for _ in range(max_polls):
            self.poll()
            if self.state is not PlanState.RUNNING:
                return self.state
            if self._backlog.has_small(self.policy.small_bytes):
                self._flow_for(max(SMALL_STEP_S, self._small_s))  # the worker stays
                continue
            self._flow_for(self.policy.poll_interval_s)
            self._await_worker()
        raise RuntimeError(f"plan {self.plan.plan_id} is still running after {max_polls} polls")

    def resume(self, policy: Policy) -> None:
        """Go on with a paused plan, under the policy of its next run."""
        self.policy = policy
        self.state = PlanState.RUNNING
        self._asked = replace(self._asked, pause=False)
        self._last_progress_at = self.now

    def poll(self) -> list[Decision]:
        """One step as in production: observe, decide, act. Dies where the journal says."""
        self.polls += 1
        self._small_s = 0.0
        seen, actions = self._poll()
        try:
            for action in actions:
                self._act(action, seen)
        except Crash:
            self.journal = self.journal.reread()
            self._backlog = self._indexed()
        if self.watch is not None:
            self.watch(self, actions)
        return actions

    def _poll(self) -> tuple[Observation, list[Decision]]:
        seen = self.cluster.observe(self.now)
        if held_up(self.plan, seen, self.policy, admitted=bool(self._backlog.admitted)):
            self._held_at = self.now
        if self.governed:
            self._measure(seen)
        view = self._view()
        return seen, self._decide(self.plan, view, seen, self.now, self.policy, self._backlog)

    def _await_worker(self) -> None:
        """Let the trigger poll until there is something to do, and the worker be woken."""
        if self._wake_s is None:
            return
        while all(isinstance(action, Hold) for action in self._poll()[1]):
            self._flow_for(self.policy.poll_interval_s)
        self._flow_for(self._wake_s)

    def _act(self, action: Decision, seen: Observation) -> None:
        match action:
            case Settle(partition, state):
                self._record([partition], state, seen)
            case Admit(partitions):
                self._admit(partitions, seen)
            case Cancel(partitions, _, then):
                self.cluster.cancel(self._moves(partitions))
                self._record(partitions, then, seen)
            case SetRate():
                self._set_rate(action)
            case Finish(state, cause):
                self.state, self.cause = state, cause

    def _set_rate(self, change: SetRate) -> None:
        rate = self._rate = change.rate_bytes_per_s
        target = change.target_bytes_per_s or rate
        self.rates.append(
            RateChange(
                self.now,
                rate,
                target,
                change.limit_bytes_per_s or target,
                change.reason,
                change.cause,
                change.delivered_bytes_per_s,
            )
        )
        self.cluster.set_rate(rate * self._delivered_part)

    def _measure(self, seen: Observation) -> None:
        """As every poll in production does."""
        moves = [item.move for item in self._backlog.admitted.values()]
        flows = flow_sample(moves, seen, self._seen_before, self._polled_at, self._strain)
        if flows is not None:
            self._flows.append(flows)
        self._polled_at = seen.taken_at
        self._seen_before = {replica: Copied(size) for replica, size in seen.sizes.items()}

    def _admit(self, partitions: Collection[TopicPartition], seen: Observation) -> None:
        self._record(partitions, MoveState.ADMITTED, seen)
        moves = self._moves(partitions)
        refused = set(self.cluster.reassign(moves))
        small = [move for move in moves if is_small_move(move, self.policy.small_bytes)]
        self._small_s = takes_s(small)
        for partition in partitions:
            if partition in refused:
                self._record([partition], MoveState.FAILED, seen)
            else:
                self.journal.write(Entry(partition, MoveState.ADMITTED, self.now, sent=True))

    def _record(
        self, partitions: Collection[TopicPartition], state: MoveState, seen: Observation
    ) -> None:
        if state.ended:
            self._last_progress_at = self.now
        for partition in partitions:
            self.journal.write(Entry(partition, state, self.now))
        self._backlog.follow(self._moves(partitions), self._view(), seen)

    def _moves(self, partitions: Iterable[TopicPartition]) -> list[Move]:
        return [self.plan.by_partition[partition] for partition in partitions]

    def _view(self) -> LedgerView:
        return LedgerView(
            state=self.state,
            moves=self.journal.states,
            last_progress_at=self._last_progress_at,
            held_at=self._held_at,
            cancel_requested=self._asked.cancel,
            pause_requested=self._asked.pause,
            sent=self.journal.sent,
            rate_bytes_per_s=self._rate,
            requested_rate_bytes_per_s=self._asked.rate_bytes_per_s,
            rates=tuple(self.rates[-CHANGES_VIEWED:]),
            flows=tuple(self._flows),
        )

    def _indexed(self) -> Backlog:
        return Backlog.of(self.plan, self._view(), self.cluster.observe(self.now))

    def _flow_for(self, seconds: float) -> None:
        end = self.now + timedelta(seconds=seconds)
        while self.now < end:
            until_s = (end - self.now).total_seconds()
            if self._events:
                until_s = min(until_s, max(0.0, self._events[0].after_s - self.elapsed_s))
            step_s = min(until_s, max(self.cluster.copies.next_end_s(), self._resolution_s))
            if self.cluster.run(step_s):
                self._last_progress_at = self.now
            # A datetime counts microseconds: rounding down would stand still.
            self.now = min(end, self.now + timedelta(microseconds=max(1, round(step_s * 1e6))))
            while self._events and self._events[0].after_s <= self.elapsed_s:
                self._happen(self._events.popleft().event)

    def _happen(self, event: ClusterEvent | Asked | Strain) -> None:
        if isinstance(event, Asked):
            self._asked = event
            return
        if isinstance(event, Strain):
            self._strain = event
            return
        changed = self.cluster.happen(event)
        moves = [self.plan.by_partition[p] for p in changed if p in self.plan.by_partition]
        self._backlog.follow(moves, self._view(), self.cluster.observe(self.now))
