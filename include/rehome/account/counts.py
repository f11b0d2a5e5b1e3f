"""How many moves and throttle settings of a plan are in which state. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from rehome.account.evidence import PlanEvidence
from rehome.domain.run.states import MoveState

FINISHING = timedelta(minutes=2)
"""So long after its end a plan's run may still prove the result."""


@dataclass(frozen=True, slots=True)
class PlanMoves:
    """Moves of a plan, by state; states that none is in are left out."""

    by_state: Mapping[MoveState, int]

    @property
    def total(self) -> int:
        """How many the plan has."""
        return sum(self.by_state.values())

    def count(self, *states: MoveState) -> int:
        """How many are in one of these states."""
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def in_flight(self) -> int:
        """How many are at the controller."""
        return self.count(MoveState.ADMITTED)

    @property
    def open(self) -> int:
        """How many have not ended."""
        return self.count(MoveState.PENDING, MoveState.ADMITTED)


@dataclass(frozen=True, slots=True)
class PlanThrottles:
    """Throttle settings of a plan.

    :param ever: how many were ever set.
    :param still_set: how many may still be set on the cluster; ``names``: of these, while the plan
        does not run.
    :param finishing: whether the plan has ended, and its run may still be at work: it takes
        throttles back, and proves the result.
    """

    ever: int
    still_set: int
    names: tuple[str, ...]
    finishing: bool

    @property
    def owed(self) -> int:
        """How many may still be set, and no run is about to take them back."""
        return 0 if self.finishing else self.still_set


def moves_of(evidence: PlanEvidence) -> PlanMoves:
    """By the ledger."""
    sums = sorted(evidence.sums.items())
    return PlanMoves({state: each.moves for state, each in sums if each.moves})


def throttles_of(evidence: PlanEvidence, now: datetime) -> PlanThrottles:
    """By the ledger. The run of a plan holds the cluster until it has taken throttles back."""
    record, counts = evidence.record, evidence.throttles
    finishing = (
        not evidence.run_over
        and record.ended_at is not None
        and record.started_at is not None
        and (evidence.driven or now - record.ended_at < FINISHING)
    )
    still_set = sum(count for state, count in counts.items() if state.open)
    return PlanThrottles(sum(counts.values()), still_set, evidence.owed, finishing)
