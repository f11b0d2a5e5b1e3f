"""Plans in the ledger: their states and transitions, and one active plan per cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from sqlalchemy import Connection, RowMapping, bindparam, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from rehome.domain.plan.plan import Plan
from rehome.domain.run.approval.questions import Answered
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.domain.run.askers import Term
from rehome.domain.run.event_kind import EventKind
from rehome.domain.run.states import MAY_BECOME, PlanState
from rehome.domain.text import count_text
from rehome.errors import PlanConflictError
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import MOVES, PLANS
from rehome.ledger.base.plan_rows import record_of, select_active, select_plan, unknown_plan
from rehome.ledger.base.records import EndReason, PlanRecord
from rehome.ledger.stores.approvals.questions import write_answer
from rehome.ledger.stores.approvals.written_files import write_files
from rehome.ledger.stores.audit.entries import by_task, write_audit
from rehome.ledger.stores.copies.hurts import forget_hurts
from rehome.ledger.stores.events import REHOME, write_event
from rehome.ledger.stores.planned_moves import move_row
from rehome.version import REHOME_VERSION

_NEW = insert(PLANS)
_NEW_MOVES = insert(MOVES)
_FROM_STATE = update(PLANS).where(
    PLANS.c.plan_id == bindparam("of"), PLANS.c.state == bindparam("from_state")
)
_THROUGH = (
    select(PLANS.c.plan_id)
    .where(
        or_(PLANS.c.planned_through.is_(None), PLANS.c.planned_through == bindparam("connection"))
    )
    .limit(1)
)


class PlanStore(Database):
    """Plans: created, approved, claimed, ended."""

    def create_plan(
        self,
        plan: Plan,
        request_json: Mapping[str, Any],
        plan_dir: str,
        run_id: str,
        actor: str,
        planned_through: str | None = None,
        dag_id: str | None = None,
        terms_asked_by: Mapping[Term, str] | None = None,
        policy: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Record a plan and its moves, as planned.

        A retry changes nothing. What is recorded is never replaced.

        :param planned_through: the connection that the cluster was read through; None = not known.
        :param dag_id: of the run; None = not known.
        :param terms_asked_by: who has asked for a term that is not the plan's own.
        :param policy: what that connection says of pace and approval; None = not known.
        :param files: name → SHA-256 of files of the plan that people decide by.
        :raises PlanConflictError: another plan of this id is recorded already.
        """
        with self.writing() as connection:
            if row := select_plan(connection, plan.plan_id):
                if row["plan_hash"] == plan.plan_hash:
                    return
                raise PlanConflictError(
                    f"Plan {plan.plan_id} is recorded already, with the state {row['state']}: "
                    "this attempt of the task has planned other moves",
                    state_left="The recorded plan stays as it is; the other moves are dropped.",
                    next_step="Trigger a new run: it gets a plan id of its own.",
                )
            whence: dict[str, Any] = {
                "dag_id": dag_id,
                "run_id": run_id,
                "planned_through": planned_through,
                "terms_asked_by": terms_asked_by and dict(terms_asked_by),
                "policy": policy and dict(policy),
            }
            self._insert_plan(connection, plan, request_json, plan_dir, actor, whence)
            write_files(connection, plan.plan_id, files or {}, self._clock)

    def _insert_plan(
        self,
        connection: Connection,
        plan: Plan,
        request_json: Mapping[str, Any],
        plan_dir: str,
        actor: str,
        whence: Mapping[str, Any],
    ) -> None:
        now = self._clock()
        row: dict[str, Any] = {
            "plan_id": plan.plan_id,
            "cluster_id": plan.cluster_id,
            "state": PlanState.PLANNED,
            "cause": "planned",
            "action": plan.action,
            "plan_hash": plan.plan_hash,
            "request": dict(request_json),
            "plan_dir": plan_dir,
            "actor": actor,
            **whence,
            "bytes_total": plan.bytes_to_copy,
            "bytes_taken_back": 0,
            "rehome_version": REHOME_VERSION,
            "cut_by_budget": plan.summary.cut_by_budget,
            "cancel_requested": False,
            "pause_requested": False,
            "created_at": now,
        }
        connection.execute(_NEW, row)
        rows = [move_row(plan.plan_id, move, now) for move in plan.moves]
        if rows:
            connection.execute(_NEW_MOVES, rows)
        write_event(
            connection,
            now,
            EventKind.PLANNED,
            f"{count_text(len(rows), 'move')}, hash {plan.plan_hash}",
            actor=actor,
            plan_id=plan.plan_id,
            cluster_id=plan.cluster_id,
        )
        if actor != REHOME:
            plan_ids = {"plan_id": plan.plan_id, "cluster_id": plan.cluster_id}
            write_audit(connection, now, by_task(Decided.PLANNED, actor, {**whence, **plan_ids}))

    def plan(self, plan_id: str) -> PlanRecord:
        """The plan of this id.

        :raises PlanConflictError: there is none.
        """
        with self.reading() as connection:
            row = select_plan(connection, plan_id)
        if row is None:
            raise unknown_plan(plan_id)
        return record_of(row)

    def plans(self, cluster_id: str | None = None) -> list[PlanRecord]:
        """Every plan (of one cluster), newest first."""
        query = select(PLANS).order_by(PLANS.c.created_at.desc(), PLANS.c.plan_id)
        if cluster_id is not None:
            query = query.where(PLANS.c.cluster_id == cluster_id)
        with self.reading() as connection:
            return [record_of(row) for row in connection.execute(query).mappings()]

    def was_planned_through(self, kafka_config_id: str) -> bool:
        """Whether a plan was made through a connection, or through one that is not known."""
        with self.reading() as connection:
            cursor = connection.execute(_THROUGH, {"connection": kafka_config_id})
            return cursor.first() is not None

    def active_plan(self, cluster_id: str) -> PlanRecord | None:
        """The plan that holds the cluster (running or paused), or None."""
        with self.reading() as connection:
            row = select_active(connection, cluster_id)
        return None if row is None else record_of(row)

    def approve(
        self,
        plan_id: str,
        plan_hash: str,
        actor: str,
        terms: Terms | None = None,
        *,
        by_person: bool = False,
        lasting_s: float = 0.0,
        asked_by: str | None = None,
        answered: Answered | None = None,
        answer_recorded: bool = False,
    ) -> None:
        """Approve exactly this plan: an approval is bound to the hash that the approver saw.

        A later approval replaces the one before; the same one again changes nothing.

        :param terms: what else it is bound to; None = the ledger does not know, and a run that
            asks (``refused.refuse_lapsed``) is refused.
        :param actor: who has approved it; where no person was asked, who triggered the run.
        :param by_person: whether the actor was asked.
        :param lasting_s: how long a run may begin, or go on, with it.
        :param asked_by: who triggered the run that asked.
        :param answered: what the person has answered, written in the same transaction; None = no
            person was asked, or by an earlier Rehome: then it does not count as a person's.
        :param answer_recorded: the answer is in the ledger already.
        :raises PlanConflictError: the plan is another one by now, or has ended, or the question has
            an answer already.
        """
        with self.writing() as connection:
            row = select_plan(connection, plan_id)
            if row is None:
                raise unknown_plan(plan_id)
            if row["plan_hash"] != plan_hash or (terms and terms.plan_hash != plan_hash):
                raise PlanConflictError(
                    f"The approval is for plan {plan_id} with the hash {plan_hash}, but the plan "
                    f"that is recorded now has the hash {row['plan_hash']}",
                    state_left="The approval does not count, and this step has changed nothing.",
                    next_step="Clear the task approve, with what comes after it: it asks about the "
                    "plan as it is now. Read that plan's report first.",
                )
            state = PlanState(row["state"])
            if state.ended:
                raise PlanConflictError(
                    f"Plan {plan_id} cannot be approved: it has ended, and is {state}",
                    state_left="This step has changed nothing.",
                    next_step="Trigger a new run: it makes a new plan.",
                )
            if state is PlanState.PLANNED:
                cause = "approved" if terms is None else "; ".join(terms.lines())
                self._set_state(connection, row, PlanState.APPROVED, cause, actor)
            if terms is not None:
                now = self._clock()
                expires_at = now + timedelta(seconds=lasting_s)
                others = record_of(row).terms_asked_by
                given = Approval(
                    terms,
                    actor if by_person else "",
                    by_person,
                    now,
                    expires_at,
                    asked_by,
                    others,
                    answered.by.id if answered and answered.by else None,
                    answered.question_id if answered else None,
                )
                self._keep_approval(connection, row, given, actor)
            if answered is not None and not answer_recorded:
                write_answer(connection, answered, self._clock)

    def _keep_approval(
        self, connection: Connection, row: RowMapping, given: Approval, actor: str
    ) -> None:
        before = row["approval"] and Approval.from_json(row["approval"])
        again = before and replace(before, at=given.at, expires_at=given.expires_at) == given
        if again and before.expires_at > given.at:
            return
        connection.execute(
            update(PLANS)
            .where(PLANS.c.plan_id == row["plan_id"])
            .values(
                approval=given.to_json(),
                approved_by=str(given.person) if given.person else None,
                approved_at=given.at,
            )
        )
        if given.by_person:
            detail = {"plan_hash": given.terms.plan_hash, "terms": given.terms.lines()}
            who = by_task(Decided.APPROVED, given.by, row)
            write_audit(connection, given.at, replace(who, detail=detail))
        if row["state"] != PlanState.PLANNED:
            write_event(
                connection,
                given.at,
                EventKind.APPROVED,
                "; ".join(given.terms.lines()),
                actor=actor,
                plan_id=row["plan_id"],
                cluster_id=row["cluster_id"],
            )

    def claim(self, plan_id: str, actor: str = "rehome") -> None:
        """Take the cluster for this plan: approved or paused → running. A retry changes nothing.

        :raises PlanConflictError: another plan is active on the cluster (it is named), or this
            one is not approved, or has ended.
        """
        self.transition(plan_id, PlanState.RUNNING, "claimed its cluster", actor)

    def transition(
        self,
        plan_id: str,
        to: PlanState,
        cause: str,
        actor: str = REHOME,
        reason: EndReason | None = None,
    ) -> bool:
        """Bring the plan into a state; False when it was there already.

        :param reason: the cause as a code, of a state that ends the plan.
        :raises PlanConflictError: the state machine does not allow it, or another plan is
            active on the cluster.
        """
        try:
            with self.writing() as connection:
                row = select_plan(connection, plan_id)
                if row is None:
                    raise unknown_plan(plan_id)
                state = PlanState(row["state"])
                if state is to:
                    return False
                if to not in MAY_BECOME[state]:
                    raise PlanConflictError(
                        f"Plan {plan_id} is {state} ({row['cause']}), so it cannot become {to}",
                        next_step=_WHAT_NEXT.get(state, "Trigger a new run."),
                    )
                self._set_state(connection, row, to, cause, actor, reason)
                return True
        except IntegrityError:
            raise self._conflict(plan_id) from None

    def _set_state(
        self,
        connection: Connection,
        row: RowMapping,
        to: PlanState,
        cause: str,
        actor: str,
        reason: EndReason | None = None,
    ) -> None:
        now = self._clock()
        values: dict[str, Any] = {
            "state": to,
            "cause": cause,
            "active_cluster_id": row["cluster_id"] if to.active else None,
        }
        if to is PlanState.APPROVED:
            values |= {"approved_at": now, "approved_by": actor}
        if to is PlanState.RUNNING:
            values |= {"started_at": row["started_at"] or now, "last_progress_at": now}
            values |= {"pause_requested": False, "refused_cancels": None}
            forget_hurts(connection, row["plan_id"])
        if to.ended:
            values |= {"ended_at": now, "end_reason": reason}
        about = {"of": row["plan_id"], "from_state": row["state"]}
        changed = connection.execute(_FROM_STATE, about | values)
        if changed.rowcount != 1:
            raise PlanConflictError(
                f"Plan {row['plan_id']} was {row['state']}, and something else changed that just "
                "now",
                state_left="This request has changed nothing.",
                next_step="Look at the plan's state, then try again.",
            )
        write_event(
            connection,
            now,
            EventKind.of_plan(to),
            cause,
            actor=actor,
            plan_id=row["plan_id"],
            cluster_id=row["cluster_id"],
        )
        if reason is EndReason.REJECTED:
            write_audit(connection, now, by_task(Decided.REJECTED, actor, row))

    def _conflict(self, plan_id: str) -> PlanConflictError:
        cluster_id = self.plan(plan_id).cluster_id
        other = self.active_plan(cluster_id)
        name = (
            f"plan {other.plan_id} ({other.state}, run {other.driver})" if other else "another plan"
        )
        return PlanConflictError(
            f"Plan {plan_id} does not start: {name} holds cluster {cluster_id}, which "
            "can have one running or paused plan at a time",
            next_step="Wait until that plan has ended; if it is paused, resume or cancel it. Then "
            "trigger a new run.",
        )

    def record_rollback(self, rollback_id: str, left_alone: int) -> None:
        """Record what a rollback, about to be done, means for the plan that it takes back.

        That plan becomes ROLLED_BACK; where partitions could not go back, for another client has
        moved or deleted them since or brokers are gone, it stays what it is and its events say so.

        :param rollback_id: a plan whose request names the other one.
        :param left_alone: partitions of the other plan that do not go back to where they were.
        """
        with self.writing() as connection:
            rollback = select_plan(connection, rollback_id)
            taken_back = str(rollback["request"].get("plan_id")) if rollback else ""
            row = select_plan(connection, taken_back)
            if row is None or row["started_at"] is None or row["state"] not in _TAKES_BACK:
                return  # another ledger's, never started, still active, or taken back already
            cause = f"by plan {rollback_id}"
            if not left_alone:
                self._set_state(connection, row, PlanState.ROLLED_BACK, cause, REHOME)
                return
            rest = count_text(left_alone, "partition that does", "partitions that do")
            cause += f", less {rest} not go back to where they were"
            where = {"plan_id": taken_back, "cluster_id": row["cluster_id"]}
            kind = EventKind.ROLLED_BACK_IN_PART
            write_event(connection, self._clock(), kind, cause, **where)


_TAKES_BACK = (PlanState.DONE, PlanState.CANCELLED, PlanState.FAILED)
_WHAT_NEXT = {
    PlanState.PLANNED: "Approve it first.",
    PlanState.APPROVED: "Start it first.",
}
