"""Why what is asked of a plan is refused, as types. ``words.refusal_words`` has the words."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime

from rehome.domain.broker_rates import RateSide
from rehome.domain.kafka import BrokerId
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.states import Control
from rehome.ledger.base.records import PlanRecord


class NotPossible(enum.StrEnum):
    """Why a plan's state does not allow what is asked."""

    ENDED = "ended"
    OTHER_ACTIVE = "other_active"
    """Another plan of its cluster runs or is paused."""
    NOTHING_TO_PAUSE = "nothing_to_pause"
    NOTHING_TO_RESUME = "nothing_to_resume"
    BEGUN = "begun"
    CARRIED_OUT = "carried_out"
    """A run has taken it up, and not begun it yet."""
    TAKES_BACK = "takes_back"
    """It takes another plan back, and was only tried out."""
    ACTIVE = "active"
    TAKEN_BACK = "taken_back"
    NEVER_STARTED = "never_started"


@dataclass(frozen=True, slots=True)
class StateRefusal:
    """Of a request to a plan as it was read.

    :param other: the plan that holds the cluster, where one does.
    """

    record: PlanRecord
    control: Control
    why: NotPossible
    other: PlanRecord | None = None


class NotContinued(enum.StrEnum):
    """Why a run may not resume a plan."""

    DRIVEN = "driven"
    """Another run drives it, and sends heartbeats."""
    TAKEN_UP = "taken_up"
    """Another run has taken it up, and not begun it yet."""
    NOT_OPEN = "not_open"
    """It has ended, or waits for its own run."""
    THROTTLES_SET = "throttles_set"
    """It is paused, and the run that drove it has not taken its throttles back."""


@dataclass(frozen=True, slots=True)
class ContinueRefusal:
    """Of a run that was to resume a plan.

    :param lease_ends_at: of the run that drives it, aware UTC; None = there is no lease.
    """

    record: PlanRecord
    why: NotContinued
    lease_ends_at: datetime | None = None


class PaceMissing(enum.StrEnum):
    """What a request to change the pace does without, or cannot change."""

    THROTTLE = "throttle"
    MOVES = "moves"
    NOTHING_TO_CHANGE = "nothing_to_change"
    """The plan is to run without a throttle."""


@dataclass(frozen=True, slots=True)
class BelowInflow:
    """Copies would hardly ever end.

    :param inflow: bytes per second that copies in flight grow by, at one broker; ``least``: more
        than which has to be asked for.
    """

    rate: int
    inflow: float
    least: float


@dataclass(frozen=True, slots=True)
class AboveApproval:
    """A throttle above the one that a person has approved.

    :param was: the terms that were approved.
    :param brokers: whose own rates would be above theirs; () = the plan's rate would.
    """

    by: str
    was: Terms
    brokers: tuple[tuple[RateSide, BrokerId], ...] = ()


@dataclass(frozen=True, slots=True)
class MoreThanApproved:
    """More moves at once than a person has approved, for a plan that nothing else limits."""

    by: str
    most: int


PaceRefusal = PaceMissing | BelowInflow | AboveApproval | MoreThanApproved
