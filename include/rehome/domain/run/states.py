"""States of plans and moves, and what may be asked of a plan."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from rehome.domain.kafka import (
    TopicPartition,
)


class PlanState(enum.StrEnum):
    """States of a plan: planned → approved → running ⇄ paused → one of the ended ones."""

    PLANNED = "planned"
    """It is in the ledger, and nothing of it has started."""
    APPROVED = "approved"
    """A person, or its run, has approved it; nothing of it has started."""
    RUNNING = "running"
    """A run drives it. It holds its cluster: no other plan can start there."""
    PAUSED = "paused"
    """It starts nothing. The next window, or a person, resumes it. It still holds its cluster.
    Nothing of it is in flight, unless a cancel was refused: then its cause says so."""
    DONE = "done"
    """Every move is done, or needs no moving any more."""
    CANCELLED = "cancelled"
    """A person ended it, or its run gave it up: what was in flight was cancelled."""
    ROLLED_BACK = "rolled_back"
    """Another plan has taken back what it had moved."""
    FAILED = "failed"
    """Not every move is done, nothing moved for too long, or its run was ended. Its cause says
    which."""

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


MAY_BECOME = {
    PlanState.PLANNED: {PlanState.APPROVED, PlanState.CANCELLED, PlanState.FAILED},
    PlanState.APPROVED: {PlanState.RUNNING, PlanState.CANCELLED, PlanState.FAILED},
    PlanState.RUNNING: {
        PlanState.PAUSED,
        PlanState.DONE,
        PlanState.CANCELLED,
        PlanState.ROLLED_BACK,
        PlanState.FAILED,
    },
    PlanState.PAUSED: {
        PlanState.RUNNING,
        PlanState.CANCELLED,
        PlanState.ROLLED_BACK,
        PlanState.FAILED,
    },
    PlanState.DONE: {PlanState.ROLLED_BACK},
    PlanState.CANCELLED: {PlanState.ROLLED_BACK},
    PlanState.FAILED: {PlanState.ROLLED_BACK},
    PlanState.ROLLED_BACK: set[PlanState](),
}
"""Into which states a plan may come from each."""


class MoveState(enum.StrEnum):
    """States of a move: pending → admitted → one of the ended ones."""

    PENDING = "pending"
    """It waits to be started."""
    ADMITTED = "admitted"
    """It was written to the ledger, and sent to the controller unless something came between."""
    DONE = "done"
    """The controller lists no reassignment of the partition, and its replicas are the target."""
    CANCELLED = "cancelled"
    """It was taken back, or never started."""
    SUPERSEDED = "superseded"
    """Another client has reassigned the partition."""
    FAILED = "failed"
    """The controller refused it, or what became of it could not be read."""
    GONE = "gone"
    """Its topic or partition is not there any more: it needs no moving."""

    @property
    def well(self) -> bool:
        """Whether it has ended and nothing of it is left to be moved."""
        return self in (MoveState.DONE, MoveState.GONE)

    @property
    def ended(self) -> bool:
        """Whether nothing more is done about a move in this state."""
        return self not in (MoveState.PENDING, MoveState.ADMITTED)


BY_URGENCY = (
    MoveState.FAILED,
    MoveState.SUPERSEDED,
    MoveState.CANCELLED,
    MoveState.ADMITTED,
    MoveState.PENDING,
    MoveState.GONE,
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
    CHANGE_MOVES = "change_moves"
    CANCEL = "cancel"
    ROLL_BACK = "roll_back"


@dataclass(frozen=True, slots=True)
class Settle:
    """Record what the observation shows became of a move."""

    partition: TopicPartition
    state: MoveState
    detail: str = ""
