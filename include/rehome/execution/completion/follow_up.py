"""Whether what has appeared on a drained broker may be moved away by the same run."""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from datetime import datetime

from rehome.domain.plan.plan import Plan
from rehome.domain.request.request import ReassignmentRequest
from rehome.execution.completion.drained import Drained


class NoFollowUp(enum.StrEnum):
    """Why what has appeared on a drained broker is not moved away by the same run."""

    UNREAD = "unread"
    ONLY_ON_DISK = "only_on_disk"
    WINDOW = "window"
    BUDGET = "budget"
    SECOND = "second"


@dataclass(frozen=True, slots=True)
class Budget:
    """What may still be copied. None = no limit."""

    bytes: int | None
    moves: int | None

    @property
    def spent(self) -> bool:
        """Whether nothing may be copied any more."""
        return any(left is not None and left <= 0 for left in (self.bytes, self.moves))


def budget_left(request: ReassignmentRequest, plan: Plan) -> Budget:
    """What a request's budget leaves after a plan that was made for it."""
    copies = sum(len(move.adding) + len(move.relocating) for move in plan.moves)
    size = sum(move.bytes_to_copy for move in plan.moves)
    return Budget(
        None if request.budget_bytes is None else request.budget_bytes - size,
        None if request.budget_moves is None else request.budget_moves - copies,
    )


def why_no_follow_up(
    remainder: Drained,
    request: ReassignmentRequest,
    plan: Plan,
    now: datetime,
    *,
    last: bool = False,
) -> NoFollowUp | None:
    """Why what was found may not be moved now; None = it may.

    :param last: the follow-up has ended: there is no second one.
    """
    if not remainder.left:
        return NoFollowUp.UNREAD
    if last:
        return NoFollowUp.SECOND
    if not remainder.plannable:
        return NoFollowUp.ONLY_ON_DISK
    if request.window_end is not None and now >= request.window_end:
        return NoFollowUp.WINDOW
    return NoFollowUp.BUDGET if budget_left(request, plan).spent else None


def follow_up_request(
    request: ReassignmentRequest, plan: Plan, rate_bytes_per_s: int | None
) -> ReassignmentRequest:
    """The same drain once more, with what is left of its budget.

    :param rate_bytes_per_s: the throttle that was asked for since; None = the request's own.
    """
    left, rate = budget_left(request, plan), request.throttle_bytes_per_s
    return replace(
        request,
        budget_bytes=left.bytes,
        budget_moves=left.moves,
        plan_id=None,
        throttle_bytes_per_s=rate_bytes_per_s or rate,
    )
