"""What may be asked of a plan by its id: run, pause, resume, a throttle, cancel, roll back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.actions import Action
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.claims import InFlight, RunGoesOn
from rehome.domain.clock import utc_now
from rehome.domain.run.askers import STARTED_DAG
from rehome.domain.run.states import Control, PlanState
from rehome.execution.access.connection_policy import ANYTHING, ConnectionPolicy
from rehome.execution.access.lease import hold, is_orphaned
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.answers import (
    CancelledHere,
    CancelledUnstarted,
    Controlled,
    HandedOver,
    HoldsFrom,
    NotToPause,
    PaceAsked,
    Pausing,
    RunFor,
    RunNeeded,
    ThrottlesLeft,
    ToCancel,
    ToPause,
)
from rehome.execution.control.asked_pace import (
    pace_of_run,
    refuse_above_approval,
    refuse_below_inflow,
    refuse_more_moves,
    within_policy,
)
from rehome.execution.control.cancel import Cancelled, abort
from rehome.execution.control.refusals import NotPossible, PaceMissing, StateRefusal
from rehome.execution.control.refused import PaceRefusedError, StateRefusedError
from rehome.execution.control.resume import (
    can_be_run,
    in_time,
    only_planned,
    same_bounds,
)
from rehome.execution.control.words.cancel_words import cancelled_cause
from rehome.execution.throttle.set_up import Cleared, clear_throttle
from rehome.ledger.base.records import EndReason, PlanRecord
from rehome.ledger.store import Ledger
from rehome.ledger.stores.events import REHOME


@dataclass(frozen=True, slots=True)
class Controller:
    """Passes requests on through the ledger; acts itself only where no run drives the plan.

    A run whose lease has expired is dead: no poll of it will ever come.

    :param actor: who asks.
    :param lease_s: how long the lease lasts that it takes to act itself.
    :param owner: who holds that lease: the run that passes the request on (``driver_name``). Two
        requests of one user are two owners.
    :param policy: what may be done through the cluster's connection.
    :param dag_paused: whether a DAG is paused in Airflow, so that no task of its runs starts;
        None = that is not known.
    """

    ledger: Ledger
    cluster: ClusterPort
    actor: str
    lease_s: float
    owner: str
    policy: ConnectionPolicy = ANYTHING
    dag_paused: Callable[[str], bool | None] = lambda _dag_id: None

    def control(
        self,
        what: Control,
        plan_id: str,
        rate_bytes_per_s: int | None = None,
        now: datetime | None = None,
        *,
        by_broker: BrokerRates | None = None,
        moves_per_broker: int | None = None,
    ) -> Controlled:
        """Do what is asked, or have it done.

        :param rate_bytes_per_s: for ``change_throttle``, and for runs that are started.
        :param by_broker: for ``change_throttle``: of brokers that are to have one of their own;
            None = they stay.
        :param moves_per_broker: for ``change_moves``.
        :raises PaceRefusedError: ``change_throttle`` without a throttle, or with one that the
            copies in flight outgrow.
        :raises PlanConflictError: there is no such plan.
        :raises StateRefusedError: its state does not allow it.
        :raises PolicyError: the connection's policy does not allow it.
        :raises WrongClusterError: the connection leads to another cluster than the plan's.
        """
        record = self.ledger.plan(plan_id)
        cluster = OwnCluster.of_plan(self.cluster, record)
        cluster.compare()
        self.policy.require_control(what, rate_bytes_per_s, by_broker or NO_OWN_RATES)
        if record.state.ended and what is not Control.ROLL_BACK:
            raise _refusal(record, what, NotPossible.ENDED)
        match what:
            case Control.RUN:
                return self._run(record, rate_bytes_per_s, now or utc_now())
            case Control.NEXT_WINDOW:
                return self._next_window(record, rate_bytes_per_s)
            case Control.PAUSE:
                return self._pause(record)
            case Control.RESUME:
                return self._resume(record, rate_bytes_per_s, now or utc_now())
            case Control.CHANGE_THROTTLE:
                return self._change_throttle(record, rate_bytes_per_s, by_broker)
            case Control.CHANGE_MOVES:
                return self._change_moves(record, moves_per_broker)
            case Control.CANCEL:
                return self._cancel(record, cluster)
            case Control.ROLL_BACK:
                return self._starts(RunFor.TAKE_BACK, _roll_back(record, rate_bytes_per_s))

    def _run(self, record: PlanRecord, rate: int | None, now: datetime) -> Controlled:
        what = Control.RUN
        _refuse_begun(record, what)
        active = self.ledger.active_plan(record.cluster_id)
        if active is not None:
            raise _refusal(record, what, NotPossible.OTHER_ACTIVE, active)
        run = in_time(record.request, now)
        run |= {"dry_run": False, "plan_id": record.plan_id, **pace_of_run(record, rate)}
        run.pop("export", None)
        closed = "window_end" in record.request and "window_end" not in run
        return self._starts(RunFor.CARRY_OUT, run, window_closed=closed)

    def _next_window(self, record: PlanRecord, rate: int | None) -> Controlled:
        _refuse_begun(record, Control.NEXT_WINDOW)
        _refuse_throttle(record, rate)
        self.policy.require_carried_out(
            record.action,
            rate or record.asked_rate_bytes_per_s,
            unthrottled=record.unthrottled,
        )
        if rate is not None:
            self._ask_for_rate(record, rate)
        if record.for_window_at is None:
            self.ledger.hand_over(record.plan_id, self.actor)
        others = takewhile(
            lambda other: other.plan_id != record.plan_id,
            self.ledger.handed_over(record.cluster_id),
        )
        return Controlled(HandedOver(tuple(other.plan_id for other in others)))

    def _pause(self, record: PlanRecord) -> Controlled:
        if not record.state.active:
            raise _refusal(record, Control.PAUSE, NotPossible.NOTHING_TO_PAUSE)
        self.ledger.request_pause(record.plan_id, self.actor)
        when = Pausing.AT_NEXT_POLL
        if record.state is PlanState.PAUSED:
            when = Pausing.STAYS_PAUSED
        elif is_orphaned(record, self.ledger):
            when = Pausing.WHEN_A_RUN_GOES_ON
        return Controlled(ToPause(when, record.driver))

    def _resume(self, record: PlanRecord, rate: int | None, now: datetime) -> Controlled:
        if not record.state.active:
            raise _refusal(record, Control.RESUME, NotPossible.NOTHING_TO_RESUME)
        if record.state is PlanState.RUNNING:
            self.ledger.withdraw_pause(record.plan_id, self.actor)
            silent = is_orphaned(record, self.ledger)
            if self._is_paused(record.dag_id) and (not silent or self._is_paused(STARTED_DAG)):
                return Controlled(NotToPause(record.dag_id, record.run_id))
            if not silent:
                return Controlled(NotToPause(), claims=(RunGoesOn(),))
        run = in_time(same_bounds(record.request), now)
        run |= {"plan_id": record.plan_id, **pace_of_run(record, rate)}
        return self._starts(RunFor.GO_ON, run)

    def _is_paused(self, dag_id: str | None) -> bool:
        return dag_id is not None and self.dag_paused(dag_id) is True

    def _starts(
        self, purpose: RunFor, run: Mapping[str, Any], *, window_closed: bool = False
    ) -> Controlled:
        return Controlled(RunNeeded(purpose, window_closed, self._is_paused(STARTED_DAG)), run)

    def _change_throttle(
        self, record: PlanRecord, rate: int | None, by_broker: BrokerRates | None
    ) -> Controlled:
        if rate is None and by_broker is None:
            raise PaceRefusedError(PaceMissing.THROTTLE)
        _refuse_throttle(record, rate or 1)
        by_broker = within_policy(self.policy, record, rate, by_broker)
        refuse_below_inflow(self.ledger, record, rate, by_broker)
        self._ask_for_rate(record, rate, by_broker)
        return self._ask_pace(record, rate_bytes_per_s=rate, by_broker=by_broker)

    def _change_moves(self, record: PlanRecord, moves: int | None) -> Controlled:
        if moves is None:
            raise PaceRefusedError(PaceMissing.MOVES)
        self.ledger.request_moves(
            record.plan_id,
            moves,
            self.actor,
            check=lambda now: refuse_more_moves(now, moves),
        )
        return self._ask_pace(record, moves_per_broker=moves)

    def _ask_pace(self, record: PlanRecord, **pace: Any) -> Controlled:
        holds = self._holds_from(record)
        return Controlled(PaceAsked(holds, record.driver, record.dag_id, **pace))

    def _holds_from(self, record: PlanRecord) -> HoldsFrom:
        """From when on what was asked for holds."""
        if is_orphaned(record, self.ledger):
            return HoldsFrom.RUN_GOES_ON
        if record.state is not PlanState.RUNNING:
            return HoldsFrom.PLAN_RUNS
        return HoldsFrom.DAG_UNPAUSED if self._is_paused(record.dag_id) else HoldsFrom.NEXT_POLL

    def _ask_for_rate(
        self, record: PlanRecord, rate: int | None, by_broker: BrokerRates | None = None
    ) -> None:
        """An approval that is given in this moment counts."""
        self.ledger.request_rate(
            record.plan_id,
            rate,
            self.actor,
            by_broker=by_broker,
            check=lambda now: refuse_above_approval(now, rate, by_broker),
        )

    def _cancel(self, record: PlanRecord, cluster: OwnCluster) -> Controlled:
        if record.state is PlanState.RUNNING:
            self.ledger.request_cancel(record.plan_id, self.actor)
            holder = self.ledger.holder(record.cluster_id)
            if holder is not None and not is_orphaned(record, self.ledger):
                ends_at = holder.expires_at
                return Controlled(ToCancel(record.driver, ends_at, record.unthrottled))
        return self._end(record, cluster)

    def _end(self, record: PlanRecord, cluster: OwnCluster) -> Controlled:
        """Cancel a plan that no run will cancel, under the lease of its cluster."""
        cause = cancelled_cause(record)
        if not record.state.active:  # as far as this ledger knows
            by_person = PlanState.CANCELLED, cause, self.actor, EndReason.CANCELLED
            self.ledger.transition(record.plan_id, *by_person)
            return Controlled(CancelledUnstarted())
        done, cleared = give_up(
            record, self.ledger, cluster, cause, self.owner, self.lease_s, actor=self.actor
        )
        left = _left_of_throttles(cleared)
        claims = (*left.claims, InFlight(len(done.errors)))
        return Controlled(CancelledHere(record, done, left), claims=claims)


def _left_of_throttles(cleared: Cleared) -> ThrottlesLeft:
    owed = tuple((entry.resource, entry.key) for entry in cleared.owed)
    return ThrottlesLeft(owed, len(cleared.changed_by_others))


def give_up(
    plan: PlanRecord,
    ledger: Ledger,
    cluster: OwnCluster,
    cause: str,
    owner: str,
    lease_s: float,
    *,
    actor: str = REHOME,
) -> tuple[Cancelled, Cleared]:
    """Cancel an active plan that no run drives, under the lease of its cluster.

    :param owner: who holds the lease meanwhile.
    :raises LeaseHeldError: another run holds the cluster, and goes on renewing its lease.
    :raises ClusterError: the cluster could not be reached; the plan is as it was.
    """
    with hold(ledger, cluster, owner, lease_s, release=True) as lease:
        done = abort(
            plan.plan_id, lease.ledger, lease.cluster, cause, state=PlanState.CANCELLED, actor=actor
        )
        return done, clear_throttle(plan.plan_id, lease.ledger, lease.cluster)


def _roll_back(record: PlanRecord, rate: int | None) -> Mapping[str, Any]:
    if record.state.active:
        raise _refusal(record, Control.ROLL_BACK, NotPossible.ACTIVE)
    if record.state is PlanState.ROLLED_BACK:
        raise _refusal(record, Control.ROLL_BACK, NotPossible.TAKEN_BACK)
    if record.started_at is None:
        raise _refusal(record, Control.ROLL_BACK, NotPossible.NEVER_STARTED)
    run = {"action": Action.ROLLBACK.value, "plan_id": record.plan_id}
    run |= pace_of_run(record, rate)
    if at_once := record.request.get("max_new_replicas_at_once"):
        run["max_new_replicas_at_once"] = at_once
    return run


def _refuse_begun(record: PlanRecord, what: Control) -> None:
    """Refuse what only a plan can be asked for that a dry run has made, and nothing else yet."""
    if record.state is not PlanState.PLANNED:
        raise _refusal(record, what, NotPossible.BEGUN)
    if not only_planned(record):
        raise _refusal(record, what, NotPossible.CARRIED_OUT)
    if not can_be_run(record):
        raise _refusal(record, what, NotPossible.TAKES_BACK)


def _refuse_throttle(record: PlanRecord, rate: int | None) -> None:
    """A plan without a throttle has no list of what is throttled either."""
    if rate is not None and record.unthrottled:
        raise PaceRefusedError(PaceMissing.NOTHING_TO_CHANGE)


def _refusal(
    record: PlanRecord, what: Control, why: NotPossible, other: PlanRecord | None = None
) -> StateRefusedError:
    return StateRefusedError(StateRefusal(record, what, why, other))
