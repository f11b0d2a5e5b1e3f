"""States of plans and moves, and what may be asked of a plan."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from include.domain.kafka import (
    TopicPartition,
)


class PlanState(enum.StrEnum):
    """States of a plan: planned → approved → running ⇄ paused → one of the ended ones."""

    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    PAUSED = "paused"
    DONE = "done"
    CANCELLED = "cancelled"
    ROLLED_BACK = "rolled_back"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a plan in this state."""
        return self in (
            PlanState.DONE,
            PlanState.CANCELLED,
            PlanState.ROLLED_BACK,
            PlanState.FAILED,
        )

    @property
    def active(self) -> bool:
        """Whether a plan in this state holds its cluster."""
        return self in (PlanState.RUNNING, PlanState.PAUSED)


class MoveState(enum.StrEnum):
    """States of a move: pending → admitted → one of the ended ones."""

    PENDING = "pending"
    ADMITTED = "admitted"  # journalled, and sent unless something came between
    DONE = "done"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"  # another client reassigned the partition
    FAILED = "failed"  # the controller refused it, or its topic is gone

    @property
    def ended(self) -> bool:
        """Whether nothing more happens to a move in this state."""
        return self not in (MoveState.PENDING, MoveState.ADMITTED)


BY_URGENCY = (
    MoveState.FAILED,
    MoveState.SUPERSEDED,
    MoveState.CANCELLED,
    MoveState.ADMITTED,
    MoveState.PENDING,
    MoveState.DONE,
)
"""States of moves for people: those that need attention first."""


class Control(enum.StrEnum):
    """What `control_reassignment` can be asked to do."""

    RUN = "run"
    NEXT_WINDOW = "next_window"
    PAUSE = "pause"
    RESUME = "resume"
    CHANGE_THROTTLE = "change_throttle"
    CANCEL = "cancel"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Settle:
    """Record what the observation shows became of a move."""

    partition: TopicPartition
    state: MoveState
    detail: str = ""
