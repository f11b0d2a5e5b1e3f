"""Moves that are not done, and need no moving any more when the plan ends. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from rehome.domain.plan.move import Move
from rehome.domain.run.observation import Observation
from rehome.domain.run.states import MoveState, Settle
from rehome.execution.observation.move_status import Fate, fate

_NEEDLESS = {Fate.DONE: MoveState.DONE, Fate.GONE: MoveState.GONE}


def needless(moves: Collection[Move], observation: Observation) -> Iterator[Settle]:
    """Those whose topic or partition is gone by now, or that others have brought where the plan
    says.

    :param moves: cancelled, superseded, refused or pending.
    :param observation: a fresh reading of them.
    """
    for move in moves:
        what, detail = fate(move, observation, observation.taken_at, sent_at=None, grace_s=0)
        if state := _NEEDLESS.get(what):
            yield Settle(move.partition, state, detail or "it is in place by now")
