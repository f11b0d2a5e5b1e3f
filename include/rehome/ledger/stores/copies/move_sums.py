"""How many moves of plans are in each state, and their bytes: summed by the database."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection, bindparam, case, func, select

from rehome.domain.run.ledger_view import MoveSums
from rehome.domain.run.states import MoveState
from rehome.ledger.base.models import MOVES

_PLANNED, _IN_PLACE = MOVES.c.bytes_to_move, MOVES.c.bytes_in_place
_SUMS = (
    func.count(),
    func.sum(_PLANNED),
    func.sum(case((_IN_PLACE.is_not(None), _PLANNED), else_=0)),
    func.sum(_IN_PLACE),
    func.sum(case((_IN_PLACE > _PLANNED, _IN_PLACE - _PLANNED), else_=0)),
)
"""Every column is in the index ``ix_moves_state``: no row is read."""
_OF_PLAN = (
    select(MOVES.c.state, *_SUMS).where(MOVES.c.plan_id == bindparam("of")).group_by(MOVES.c.state)
)
_ENDED = _OF_PLAN.where(MOVES.c.state.in_([state for state in MoveState if state.ended]))
_OF_PLANS = (
    select(MOVES.c.plan_id, MOVES.c.state, *_SUMS)
    .where(MOVES.c.plan_id.in_(bindparam("of", expanding=True)))
    .group_by(MOVES.c.plan_id, MOVES.c.state)
)


def sums_of(connection: Connection, plan_id: str) -> dict[MoveState, MoveSums]:
    """Of a plan, by state."""
    rows = connection.execute(_OF_PLAN, {"of": plan_id})
    return {MoveState(state): _sums(values) for state, *values in rows}


def sums_of_ended(connection: Connection, plan_id: str) -> dict[MoveState, MoveSums]:
    """Of a plan's moves that have ended, by state."""
    rows = connection.execute(_ENDED, {"of": plan_id})
    return {MoveState(state): _sums(values) for state, *values in rows}


def sums_of_plans(
    connection: Connection, plan_ids: Collection[str]
) -> Mapping[str, dict[MoveState, MoveSums]]:
    """Of several plans, by state."""
    found: dict[str, dict[MoveState, MoveSums]] = {plan_id: {} for plan_id in plan_ids}
    for plan_id, state, *values in connection.execute(_OF_PLANS, {"of": list(plan_ids)}):
        found[plan_id][MoveState(state)] = _sums(values)
    return found


def _sums(values: Collection[Any]) -> MoveSums:
    """A sum of nothing but NULL is NULL."""
    return MoveSums(*(int(value or 0) for value in values))
