"""A plan and its moves as `decide` reads them: whole, or what has changed since the view before;
and the sums of moves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from sqlalchemy import Connection, bindparam, case, func, select

from rehome.domain.kafka import TopicPartition
from rehome.domain.run.flows import CHANGES_VIEWED, FLOWS_VIEWED, FlowSample
from rehome.domain.run.ledger_view import LedgerView, MoveSums, refused_from_json
from rehome.domain.run.states import MoveState, PlanState
from rehome.ledger.base.database import Database
from rehome.ledger.base.models import MOVES
from rehome.ledger.base.plan_rows import rates_asked, select_plan, unknown_plan
from rehome.ledger.stores.data_seen import data_of, open_starts, step_of
from rehome.ledger.stores.rates import select_changes, select_flows

_PLANNED, _IN_PLACE = MOVES.c.bytes_to_move, MOVES.c.bytes_in_place
_SUMS = (
    func.count(),
    func.sum(_PLANNED),
    func.sum(case((_IN_PLACE.is_not(None), _PLANNED), else_=0)),
    func.sum(_IN_PLACE),
    func.sum(case((_IN_PLACE > _PLANNED, _IN_PLACE - _PLANNED), else_=0)),
)
"""Every column is in the index ``ix_moves_state``: no row is read."""
_SUMS_OF_PLAN = (
    select(MOVES.c.state, *_SUMS).where(MOVES.c.plan_id == bindparam("of")).group_by(MOVES.c.state)
)
_ENDED = _SUMS_OF_PLAN.where(MOVES.c.state.in_([state for state in MoveState if state.ended]))
_SUMS_OF_PLANS = (
    select(MOVES.c.plan_id, MOVES.c.state, *_SUMS)
    .where(MOVES.c.plan_id.in_(bindparam("of", expanding=True)))
    .group_by(MOVES.c.plan_id, MOVES.c.state)
)


OPEN_STATES = tuple(state for state in MoveState if not state.ended)
"""Something is still to become of such a move."""
_OF_PLAN = MOVES.c.plan_id == bindparam("of")
_MOVES = select(MOVES.c.topic, MOVES.c.partition, MOVES.c.state, MOVES.c.bytes_to_move)
_STATES = select(MOVES.c.topic, MOVES.c.partition, MOVES.c.state).where(_OF_PLAN)
_OPEN_MOVES = _MOVES.where(_OF_PLAN, MOVES.c.state.in_(OPEN_STATES))
_CHANGED_MOVES = _MOVES.where(_OF_PLAN, MOVES.c.version > bindparam("since"))


class MoveViewStore(Database):
    """What there is to be known before something is decided."""

    def view(self, plan_id: str) -> LedgerView:
        """What `decide` needs to know of a plan, with the state of every move."""
        return self._view(plan_id, _all_moves)

    def view_of_open(self, plan_id: str, since: LedgerView | None = None) -> LedgerView:
        """What `decide` needs to know: the open moves, and what has ended since a view before.

        As many rows are read as moves have changed since then, however many the plan has.

        :param since: the last one of these; None = there is none, and all open moves are read.
        """
        return self._view(plan_id, partial(_open_moves, since=since), since)

    def _view(
        self, plan_id: str, select_moves: SelectMoves, since: LedgerView | None = None
    ) -> LedgerView:
        with self.reading() as connection:
            row = select_plan(connection, plan_id)
            if row is None:
                raise unknown_plan(plan_id)
            moves, settled, done = select_moves(connection, plan_id, row["moves_version"])
            starts = open_starts(connection, plan_id)
            changes = select_changes(connection, plan_id, newest=CHANGES_VIEWED)
            flows = _flows(connection, plan_id, since)
        return LedgerView(
            state=PlanState(row["state"]),
            moves=moves,
            last_progress_at=row["last_progress_at"],
            held_at=row["held_at"],
            cancel_requested=row["cancel_requested"],
            pause_requested=row["pause_requested"],
            sent={partition: row["sent_at"] for partition, row in starts.items() if row["sent_at"]},
            rate_bytes_per_s=row["rate_bytes_per_s"],
            requested_rate_bytes_per_s=row["requested_rate_bytes_per_s"],
            requested_rates_by_broker=rates_asked(row),
            requested_moves_per_broker=row["requested_moves_per_broker"],
            rates=tuple(changes),
            flows=flows,
            settled=settled,
            done=done,
            data={partition: data_of(row) for partition, row in starts.items()},
            version=row["moves_version"],
            refused_cancels=refused_from_json(row["refused_cancels"]),
            steps={partition: step_of(row) for partition, row in starts.items()},
        )


Settled = Mapping[MoveState, MoveSums]
MovesFound = tuple[dict[TopicPartition, MoveState], Settled, MoveSums]
SelectMoves = Callable[[Connection, str, int], MovesFound]
"""States of moves, the sums of those that are left out, and of all that are done, of a plan at a
version."""


def _all_moves(connection: Connection, plan_id: str, _: int) -> MovesFound:
    rows = connection.execute(_STATES, {"of": plan_id}).all()
    states = {TopicPartition(topic, p): MoveState(state) for topic, p, state in rows}
    return states, {}, sums_of_ended(connection, plan_id).get(MoveState.DONE, MoveSums())


def _open_moves(
    connection: Connection, plan_id: str, version: int, since: LedgerView | None
) -> MovesFound:
    before = {} if since is None else since.moves
    open_moves = {partition: state for partition, state in before.items() if not state.ended}
    if since is not None and since.version == version and len(open_moves) == len(before):
        return open_moves, since.settled, since.done
    if since is None:
        cursor = connection.execute(_OPEN_MOVES, {"of": plan_id})
    else:
        cursor = connection.execute(_CHANGED_MOVES, {"of": plan_id, "since": since.version})
    rows = cursor.all()
    open_moves |= {
        TopicPartition(topic, number): MoveState(state) for topic, number, state, _ in rows
    }
    ended = sums_of_ended(connection, plan_id)
    settled = {}
    for state, sums in ended.items():
        listed = [row.bytes_to_move for row in rows if row.state == state]
        settled[state] = MoveSums(sums.moves - len(listed), sums.bytes_to_copy - sum(listed))
    return open_moves, settled, ended.get(MoveState.DONE, MoveSums())


def _flows(
    connection: Connection, plan_id: str, since: LedgerView | None
) -> tuple[FlowSample, ...]:
    """The newest samples; those that a view has are not read again."""
    samples = () if since is None else since.flows
    after = samples[-1].at if samples else None
    new = select_flows(connection, plan_id, newest=FLOWS_VIEWED, after=after)
    return (*samples, *new)[-FLOWS_VIEWED:]


def sums_of(connection: Connection, plan_id: str) -> dict[MoveState, MoveSums]:
    """Of a plan, by state."""
    rows = connection.execute(_SUMS_OF_PLAN, {"of": plan_id})
    return {MoveState(state): _sums(values) for state, *values in rows}


def sums_of_ended(connection: Connection, plan_id: str) -> dict[MoveState, MoveSums]:
    """Of a plan's moves that have ended, by state."""
    rows = connection.execute(_ENDED, {"of": plan_id})
    return {MoveState(state): _sums(values) for state, *values in rows}


def sums_of_plans(
    connection: Connection, plan_ids: Collection[str]
) -> Mapping[str, dict[MoveState, MoveSums]]:
    """Of several plans, by state."""
    sums_by_plan: dict[str, dict[MoveState, MoveSums]] = {plan_id: {} for plan_id in plan_ids}
    for plan_id, state, *values in connection.execute(_SUMS_OF_PLANS, {"of": list(plan_ids)}):
        sums_by_plan[plan_id][MoveState(state)] = _sums(values)
    return sums_by_plan


def _sums(values: Collection[Any]) -> MoveSums:
    """A sum of nothing but NULL is NULL."""
    return MoveSums(*(int(value or 0) for value in values))
