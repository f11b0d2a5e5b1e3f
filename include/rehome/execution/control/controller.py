"""What may be asked of a plan by its id: run, pause, resume, a throttle, cancel, roll back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from typing import Any

from rehome.cluster.interface.port import ClusterPort
from rehome.domain.broker_rates import NO_OWN_RATES, BrokerRates
from rehome.domain.claims import Claim, InFlight, NoThrottleLeft, Owed, RunGoesOn
from rehome.domain.clock import utc_now
from rehome.domain.request.request import Action
from rehome.domain.run.askers import STARTED_DAG
from rehome.domain.run.states import Control, PlanState
from rehome.domain.text import bytes_text, count_text
from rehome.errors import STEP_UNCHANGED, InvalidRequestError, PlanConflictError
from rehome.execution.access.connection_policy import ANYTHING, ConnectionPolicy
from rehome.execution.access.lease import hold, orphaned
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.asked_pace import (
    pace_of_run,
    refuse_above_approval,
    refuse_below_inflow,
    refuse_more_moves,
    within_policy,
)
from rehome.execution.control.cancel import Cancelled, abort, named_errors, taken_back_text
from rehome.execution.control.resume import (
    can_be_run,
    in_time,
    only_planned,
    same_bounds,
)
from rehome.execution.throttle.set_up import Cleared, clear_throttle
from rehome.ledger.base.records import EndReason, PlanRecord
from rehome.ledger.store import Ledger
from rehome.ledger.stores.events import REHOME


@dataclass(frozen=True, slots=True)
class Controlled:
    """What a request has led to.

    :param message: what happens now, as a sentence.
    :param run: parameters of the `reassign_partitions` run that is needed; None = no new run.
    :param claims: what the message says of the cluster.
    """

    message: str
    run: Mapping[str, Any] | None = None
    claims: tuple[Claim, ...] = ()


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
        :raises InvalidRequestError: ``change_throttle`` without a throttle, or with one that the
            copies in flight outgrow.
        :raises PlanConflictError: there is no such plan, or its state does not allow it.
        :raises PolicyError: the connection's policy does not allow it.
        :raises WrongClusterError: the connection leads to another cluster than the plan's.
        """
        record = self.ledger.plan(plan_id)
        cluster = OwnCluster.of_plan(self.cluster, record)
        cluster.compare()
        self.policy.require_control(what, rate_bytes_per_s, by_broker or NO_OWN_RATES)
        if record.state.ended and what is not Control.ROLL_BACK:
            raise _refused(record, what, "Use roll_back to take back what it has moved.")
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
                return self._starts(*_roll_back(record, rate_bytes_per_s))

    def _run(self, record: PlanRecord, rate: int | None, now: datetime) -> Controlled:
        what = Control.RUN
        _refuse_begun(record, what)
        active = self.ledger.active_plan(record.cluster_id)
        if active is not None:
            other = (
                f"Plan {active.plan_id} is {active.state} on this cluster, and has to end first."
            )
            raise _refused(record, what, other)
        run = in_time(record.request, now)
        run |= {"dry_run": False, "plan_id": record.plan_id, **pace_of_run(record, rate)}
        run.pop("export", None)
        message = "A run of reassign_partitions carries the plan out."
        if "window_end" in record.request and "window_end" not in run:
            message += " The plan's window has closed: the run has none."
        return self._starts(message, run)

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
        before = [other.plan_id for other in others]
        message = "The plan is handed over to the windows of its cluster."
        if before:
            message += f" These were handed over before, and go first, one a window: {before}."
        return Controlled(message)

    def _pause(self, record: PlanRecord) -> Controlled:
        if not record.state.active:
            raise _refused(record, Control.PAUSE, "Nothing has started; mark its run failed.")
        self.ledger.request_pause(record.plan_id, self.actor)
        if record.state is PlanState.PAUSED:
            return Controlled(
                "The plan is paused already. From now on no window resumes it: only a person does."
            )
        if orphaned(record, self.ledger):
            return Controlled(
                f"The request to pause is recorded. {_silent(record)} So nothing pauses until a "
                "run goes on with the plan. Resume the plan, or cancel it."
            )
        return Controlled(
            "From the next poll on nothing more is started; the plan is paused when what is in "
            "flight has ended."
        )

    def _resume(self, record: PlanRecord, rate: int | None, now: datetime) -> Controlled:
        if not record.state.active:
            raise _refused(record, Control.RESUME, "It has not started yet; see its run.")
        if record.state is PlanState.RUNNING:
            self.ledger.withdraw_pause(record.plan_id, self.actor)
            silent = orphaned(record, self.ledger)
            if self._paused(record.dag_id) and (not silent or self._paused(STARTED_DAG)):
                return Controlled(
                    f"The plan will not pause. But the DAG {record.dag_id} is paused in Airflow: "
                    "no task "
                    f"of run {record.run_id} starts before that DAG is unpaused. Then the run goes "
                    "on by itself; if it does not, resume the plan again."
                )
            if not silent:
                return Controlled("The plan runs, and will not pause.", claims=(RunGoesOn(),))
        run = in_time(same_bounds(record.request), now)
        run |= {"plan_id": record.plan_id, **pace_of_run(record, rate)}
        return self._starts("A run of reassign_partitions goes on with the plan.", run)

    def _paused(self, dag_id: str | None) -> bool:
        return dag_id is not None and self.dag_paused(dag_id) is True

    def _starts(self, message: str, run: Mapping[str, Any]) -> Controlled:
        if self._paused(STARTED_DAG):
            message += " That DAG is paused in Airflow: the run stays queued until it is unpaused."
        return Controlled(message, run)

    def _change_throttle(
        self, record: PlanRecord, rate: int | None, by_broker: BrokerRates | None
    ) -> Controlled:
        if rate is None and by_broker is None:
            raise InvalidRequestError(["change_throttle needs a throttle in bytes per second."])
        _refuse_throttle(record, rate or 1)
        by_broker = within_policy(self.policy, record, rate, by_broker)
        refuse_below_inflow(self.ledger, record, rate, by_broker)
        self._ask_for_rate(record, rate, by_broker)
        said = [] if rate is None else [f"{bytes_text(rate)}/s per broker and direction"]
        if by_broker is not None:
            said.append("; ".join(by_broker.lines()) or "that of no single broker any more")
        return self._from_next_poll(record, f"The throttle is to be {', and '.join(said)}")

    def _change_moves(self, record: PlanRecord, moves: int | None) -> Controlled:
        if moves is None:
            raise InvalidRequestError(["change_moves needs max_moves_per_broker."])
        self.ledger.request_moves(
            record.plan_id,
            moves,
            self.actor,
            check=lambda now: refuse_more_moves(now, moves),
        )
        text = f"{count_text(moves, 'move')} at once for each broker and direction"
        return self._from_next_poll(record, f"At most {text}")

    def _from_next_poll(self, record: PlanRecord, message: str) -> Controlled:
        """From when on what was asked for holds."""
        runs = record.state is PlanState.RUNNING
        if orphaned(record, self.ledger):
            return Controlled(
                f"{message}. This is recorded, and holds as soon as a run goes on with the plan. "
                f"{_silent(record)} Resume the plan, or cancel it."
            )
        if runs and self._paused(record.dag_id):
            return Controlled(
                f"{message}. This is recorded, and holds once the DAG {record.dag_id} is unpaused: "
                "until then no task of its run starts, and the plan goes on as it was."
            )
        when = "the next poll" if runs else "when the plan runs"
        return Controlled(f"{message}, from {when} on.")

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
            if holder is not None and not orphaned(record, self.ledger):
                throttles = "" if record.unthrottled else "; then its throttles are taken back"
                return Controlled(
                    f"The next poll cancels what is in flight of the plan{throttles}. Should run "
                    f"{record.driver} be dead, cancel the plan again after "
                    f"{holder.expires_at:%H:%M:%S} UTC."
                )
        return self._end(record, cluster)

    def _end(self, record: PlanRecord, cluster: OwnCluster) -> Controlled:
        """Cancel a plan that no run will cancel, under the lease of its cluster."""
        cause = f"cancelled while it was {record.state}"
        if record.state is PlanState.RUNNING:
            cause += f", for its run {record.driver} sent no heartbeat"
        if not record.state.active:  # as far as this ledger knows
            by_person = PlanState.CANCELLED, cause, self.actor, EndReason.CANCELLED
            self.ledger.transition(record.plan_id, *by_person)
            return Controlled("The plan is cancelled. By the ledger nothing of it had started.")
        done, cleared = give_up(
            record, self.ledger, cluster, cause, self.owner, self.lease_s, actor=self.actor
        )
        left, claimed = _left_of_throttles(cleared)
        claims = (*claimed, InFlight(len(done.errors)))
        flew = " ".join(_what_flew(done, record))
        return Controlled(f"The plan is cancelled. {flew} {left}", claims=claims)


def _what_flew(done: Cancelled, record: PlanRecord) -> Iterator[str]:
    if done.cancelled:
        yield f"{taken_back_text(len(done.cancelled))}."
    elif not done.not_cancelled:
        yield "Nothing was in flight."
    if done.errors:
        yield f"These go on, {record.goes_on}: {named_errors(done.errors)}."
    if done.owed:
        yield (
            "Their broker is not alive: should copies between its log dirs have begun, they are "
            f"taken back when it returns: {named_errors(done.owed)}."
        )


def _left_of_throttles(cleared: Cleared) -> tuple[str, tuple[Claim, ...]]:
    """What is said of them. A value that this ledger has not set may be another client's, or one of
    ours that a ledger which was restored does not know.
    """
    others = len(cleared.changed_by_others)
    if cleared.owed:
        settings = tuple((entry.resource, entry.key) for entry in cleared.owed)
        return f"{len(settings)} throttle settings are owed.", (Owed(settings),)
    if others:
        return (
            f"{others} throttle settings hold values that this ledger has not set: they stay. "
            "See whether anybody needs them. Nothing else of its throttles is left.",
            (),
        )
    return "No throttle is left.", (NoThrottleLeft(),)


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
    with hold(ledger, cluster, owner, lease_s, release=True) as held:
        done = abort(
            plan.plan_id, held.ledger, held.cluster, cause, state=PlanState.CANCELLED, actor=actor
        )
        return done, clear_throttle(plan.plan_id, held.ledger, held.cluster)


def _roll_back(record: PlanRecord, rate: int | None) -> tuple[str, Mapping[str, Any]]:
    if record.state.active:
        raise _refused(record, Control.ROLL_BACK, "Cancel it first, then roll it back.")
    if record.state is PlanState.ROLLED_BACK:
        raise _refused(record, Control.ROLL_BACK, "It has been taken back already.")
    if record.started_at is None:
        raise _refused(record, Control.ROLL_BACK, "It never started: there is nothing to undo.")
    run = {"action": Action.ROLLBACK.value, "plan_id": record.plan_id}
    run |= pace_of_run(record, rate)
    if at_once := record.request.get("max_new_replicas_at_once"):
        run["max_new_replicas_at_once"] = at_once
    return "A run of reassign_partitions takes it back.", run


def _refuse_begun(record: PlanRecord, what: Control) -> None:
    """Refuse what only a plan can be asked for that a dry run has made, and nothing else yet."""
    if record.state is not PlanState.PLANNED:
        raise _refused(record, what, "See its run; resume it if it is paused.")
    if not only_planned(record):
        step = f"Run {record.driver} carries it out. If it has failed, clear its failed task."
        if record.for_window_at is not None:
            step += " Else the next window carries the plan out."
        raise _refused(record, what, step)
    if not can_be_run(record):
        raise _refused(record, what, "Roll the plan back that it takes back.")


def _silent(record: PlanRecord) -> str:
    return f"Run {record.driver}, which drives the plan, sends no heartbeat."


def _refuse_throttle(record: PlanRecord, rate: int | None) -> None:
    """A plan without a throttle has no list of what is throttled either."""
    if rate is not None and record.unthrottled:
        raise InvalidRequestError(
            [
                "The plan is to run without a throttle, and has none to change. Have it run, or "
                "resumed, with a throttle: that run asks for what it needs."
            ]
        )


def _refused(record: PlanRecord, what: Control, next_step: str) -> PlanConflictError:
    ended = " and has ended" if record.state.ended else ""
    return PlanConflictError(
        f"Plan {record.plan_id} is {record.state}{ended} ({record.cause}): {what} is not possible",
        state_left=STEP_UNCHANGED,
        next_step=next_step,
    )
