"""What people ask of a plan, and runs that take up a paused one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, insert, select, update

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.run.askers import Term, asked_anew, changed_terms
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import PlanState
from rehome.domain.text import count_text
from rehome.errors import STEP_UNCHANGED, PlanConflictError
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import PLANS, TAKEN_UP_PLANS
from rehome.ledger.base.plan_rows import record_of, select_plan, unknown_plan
from rehome.ledger.base.records import PlanRecord, driver_name
from rehome.ledger.stores.audit.entries import by_task, write_audit
from rehome.ledger.stores.events import write_event
from rehome.ledger.stores.leases import take

ONLY_WITH_OPEN_PLANS = (
    "A run can go on only with a plan that is paused, or that a dry run has made. Trigger a new "
    "run: it makes a new plan."
)


class RequestStore(Database):
    """Requests to a plan; the next poll of the run that drives it carries them out."""

    def request_cancel(self, plan_id: str, actor: str) -> None:
        """Ask that the plan be cancelled; the next poll does it."""
        self._request(plan_id, actor, Decided.CANCEL, _to(cancel_requested=True))

    def request_pause(self, plan_id: str, actor: str) -> None:
        """Ask that the plan pause: nothing more is admitted, what is in flight ends."""
        self._request(plan_id, actor, Decided.PAUSE, _to(pause_requested=True))

    def request_rate(
        self,
        plan_id: str,
        rate_bytes_per_s: int | None,
        actor: str,
        *,
        by_broker: BrokerRates | None = None,
        found_bytes_per_s: int | None = None,
        check: Callable[[PlanRecord], None] | None = None,
    ) -> None:
        """Ask for another throttle (KIP-179's change in mid-run); the next poll sets it.

        :param rate_bytes_per_s: the plan's; None = it stays.
        :param by_broker: of brokers that are to have one of their own; None = they stay.
        :param found_bytes_per_s: what the dry run has found, where no throttle was asked for;
            None = it is not known.
        :param check: raises what the plan does not allow as it is at that moment.
        """

        def request_of(record: PlanRecord) -> Mapping[str, Any]:
            if check is not None:
                check(record)
            rate = rate_bytes_per_s or record.asked_rate_bytes_per_s
            rated = rate_bytes_per_s is not None and record.raises_rate(
                rate_bytes_per_s, actor, found_bytes_per_s
            )
            values: dict[str, Any] = {}
            if rate_bytes_per_s is not None:
                values["requested_rate_bytes_per_s"] = rate_bytes_per_s
            if by_broker is not None:
                before = record.asked_rates_by_broker
                rated |= any(by_broker.above(before, rate)) or (
                    actor == record.actor and by_broker != before
                )
                values["requested_rates_by_broker"] = by_broker.to_json()
            terms = asked_anew(record.terms_asked_by, [Term.RATE] if rated else [], actor)
            return {**values, "terms_asked_by": terms}

        detail: dict[str, Any] = {}
        said = []
        if rate_bytes_per_s is not None:
            detail["rate_bytes_per_s"] = rate_bytes_per_s
            said.append(f"throttle of {rate_bytes_per_s} B/s")
        if by_broker is not None:
            detail["throttle_by_broker"] = by_broker.to_json()
            said.append("; ".join(by_broker.lines()) or "no throttle of a single broker")
        event = f"{', '.join(said)} requested"
        self._request(plan_id, actor, Decided.THROTTLE, request_of, event, detail)

    def request_moves(
        self,
        plan_id: str,
        moves_per_broker: int,
        actor: str,
        *,
        check: Callable[[PlanRecord], None],
    ) -> None:
        """Ask for another number of moves at once; from the next poll on it holds.

        :param check: raises what the plan does not allow as it is at that moment.
        """

        def request_of(record: PlanRecord) -> Mapping[str, Any]:
            check(record)
            changed = [Term.UNTHROTTLED] if record.unthrottled else []
            terms = asked_anew(record.terms_asked_by, changed, actor)
            return {"requested_moves_per_broker": moves_per_broker, "terms_asked_by": terms}

        event = f"{count_text(moves_per_broker, 'move')} at once for each broker requested"
        detail = {"max_moves_per_broker": moves_per_broker}
        self._request(plan_id, actor, Decided.MOVES_AT_ONCE, request_of, event, detail)

    def hand_over(self, plan_id: str, actor: str) -> None:
        """Have the next maintenance window carry out what a dry run has planned."""
        now = self._clock()

        def request_of(record: PlanRecord) -> Mapping[str, Any]:
            terms = asked_anew(record.terms_asked_by, [Term.WINDOW], actor)
            return {"for_window_at": now, "terms_asked_by": terms}

        self._request(plan_id, actor, Decided.HAND_OVER, request_of)

    def handed_over(self, cluster_id: str, dag_id: str = "") -> list[PlanRecord]:
        """Plans of a cluster that wait for its next window, the one handed over first first.

        :param dag_id: the window's; "" = of any, less the plan that a run has taken up.
        """
        query = select(PLANS).where(
            PLANS.c.cluster_id == cluster_id,
            PLANS.c.state.in_([PlanState.PLANNED, PlanState.APPROVED]),
            PLANS.c.for_window_at.is_not(None),
        )
        query = query.order_by(PLANS.c.for_window_at, PLANS.c.plan_id)
        with self.reading() as connection:
            records = [record_of(row) for row in connection.execute(query).mappings()]
        return [record for record in records if record.may_be_begun_by(dag_id)]

    def withdraw_pause(self, plan_id: str, actor: str) -> None:
        """Take back that the plan is to pause, or is to stay paused."""
        self._request(plan_id, actor, Decided.PAUSE_WITHDRAWN, _to(pause_requested=False))

    def take_up(
        self,
        plan_id: str,
        dag_id: str,
        run_id: str,
        bounds: Mapping[str, Any],
        actor: str,
        *,
        lease_s: float,
        rate_bytes_per_s: int | None = None,
        handed_over: bool = False,
        keeps_asked: bool = False,
    ) -> None:
        """Make a run the one that continues a paused plan, or one whose own run is dead, or that
        carries out what a dry run has planned.

        The lease of an active plan's cluster passes to it: what the other run still writes is
        fenced off. A retry changes nothing.

        :param bounds: request parameters that the run replaces, such as ``window_end``.
        :param lease_s: how long the lease lasts, unless it is renewed.
        :param rate_bytes_per_s: throttle from now on; None = what an operator asked for last,
            or else the run's own.
        :param handed_over: whether the run is of the window that the plan was handed over to: who
            has handed it over has asked for that window. Any other run takes it away from the
            window.
        :param keeps_asked: whether rates of single brokers, and moves at once, that one has asked
            for in mid-run still hold; else those of the run do, which may be the same.
        :raises PlanConflictError: there is no such plan, or it is neither active nor planned only.
        :raises LeaseHeldError: its run, or another one, holds the cluster and is alive.
        """
        with self.writing() as connection:
            row = _row_of(connection, plan_id)
            state = PlanState(row["state"])
            driver = driver_name(row["dag_id"] and dag_id, run_id)
            planned = record_of(row).may_be_begun_by(dag_id)
            if driver_name(row["dag_id"], row["run_id"]) == driver and not state.ended:
                return
            if not state.active and not planned:
                raise PlanConflictError(
                    f"No run can resume plan {plan_id}: it is {state} ({row['cause']})",
                    state_left=STEP_UNCHANGED,
                    next_step=ONLY_WITH_OPEN_PLANS,
                )
            if state.active:
                take(self, connection, row["cluster_id"], driver_name(dag_id, run_id), lease_s)
            now = self._clock()  # a plan whose run was dead has not stalled for that
            values: dict[str, Any] = {"dag_id": dag_id, "run_id": run_id, "last_progress_at": now}
            values["request"] = {**row["request"], **bounds}
            if planned:
                values["request"] |= {"dry_run": False, "export": False}
            values["terms_asked_by"] = _asked_by_run(
                record_of(row), bounds, rate_bytes_per_s, actor, handed_over=handed_over
            )
            if not handed_over:
                values["for_window_at"] = None
            if rate_bytes_per_s is not None:
                values["requested_rate_bytes_per_s"] = rate_bytes_per_s
            if not keeps_asked and not handed_over:
                values["requested_rates_by_broker"] = None
                values["requested_moves_per_broker"] = None
            connection.execute(update(PLANS).where(PLANS.c.plan_id == plan_id).values(values))
            _record_taken_up(connection, dag_id, run_id, plan_id)
            write_event(
                connection,
                now,
                EventKind.CONTINUED,
                f"{dag_id}/{run_id}",
                actor=actor,
                plan_id=plan_id,
                cluster_id=row["cluster_id"],
            )
            who = by_task(Decided.CONTINUED, actor, row)
            write_audit(connection, now, replace(who, dag_id=dag_id, run_id=run_id))

    def taken_up_by(self, dag_id: str, run_id: str) -> str | None:
        """Id of the existing plan that a run took up last; None = it took up none.

        A later run may have taken up the same plan since.
        """
        query = select(TAKEN_UP_PLANS.c.plan_id).where(*_of_run(dag_id, run_id))
        with self.reading() as connection:
            plan_id: str | None = connection.execute(query).scalar_one_or_none()
        return plan_id

    def _request(
        self,
        plan_id: str,
        actor: str,
        decision: Decided,
        values_of: Callable[[PlanRecord], Mapping[str, Any]],
        event: str = "",
        detail: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        """Record it, with an event in the decision's own words unless there are better ones."""
        with self.writing() as connection:
            row = _row_of(connection, plan_id)
            if PlanState(row["state"]).ended:
                raise PlanConflictError(
                    f"Plan {plan_id} has ended already: it is {row['state']}",
                )
            values = values_of(record_of(row))
            connection.execute(update(PLANS).where(PLANS.c.plan_id == plan_id).values(values))
            now, text = self._clock(), event or decision
            write_event(connection, now, EventKind.REQUEST, text, actor=actor, plan_id=plan_id)
            write_audit(connection, now, replace(by_task(decision, actor, row), detail=detail))


def _record_taken_up(connection: Connection, dag_id: str, run_id: str, plan_id: str) -> None:
    statement = update(TAKEN_UP_PLANS).where(*_of_run(dag_id, run_id))
    if not connection.execute(statement.values(plan_id=plan_id)).rowcount:
        of_run = {"dag_id": dag_id, "run_id": run_id}
        connection.execute(insert(TAKEN_UP_PLANS).values(plan_id=plan_id, **of_run))


def _of_run(dag_id: str, run_id: str) -> tuple[ColumnElement[bool], ...]:
    return TAKEN_UP_PLANS.c.dag_id == dag_id, TAKEN_UP_PLANS.c.run_id == run_id


def _to(**values: Any) -> Callable[[PlanRecord], Mapping[str, Any]]:
    return lambda record: values


def _asked_by_run(
    record: PlanRecord,
    bounds: Mapping[str, Any],
    rate_bytes_per_s: int | None,
    actor: str,
    *,
    handed_over: bool,
) -> dict[Term, str]:
    """Who has asked for which term, once a run has taken the plan up with these parameters."""
    taken_up = replace(
        record,
        request={**record.request, **bounds},
        requested_rate_bytes_per_s=rate_bytes_per_s or record.requested_rate_bytes_per_s,
    )
    after = taken_up.asked_rate_bytes_per_s
    changed = set(changed_terms(record.request, bounds))
    if after is not None:
        changed.discard(Term.RATE)  # what bounds a throttle that Rehome finds
    if record.raises_rate(after, actor, None):
        changed.add(Term.RATE)
    if handed_over:
        changed.discard(Term.WINDOW)
    elif record.for_window_at is not None:
        changed.add(Term.WINDOW)  # it was to run in another one
    return asked_anew(record.terms_asked_by, changed, actor)


def _row_of(connection: Connection, plan_id: str) -> RowMapping:
    row = select_plan(connection, plan_id)
    if row is None:
        raise unknown_plan(plan_id)
    return row
