"""What the state of a plan is judged by, and its summary for people: types only."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehome.account.account import PlanAccount
from rehome.domain.run.causes.hurts import Hurt
from rehome.domain.run.findings import FindingGroup
from rehome.domain.run.states import Control, MoveState, PlanState
from rehome.ledger.base.records import EndReason
from rehome.watching.paused_plan import Outlook


class Tone(enum.StrEnum):
    """By which the page chooses colour and icon."""

    GOOD = "good"
    BAD = "bad"
    BUSY = "busy"
    CALM = "calm"


@dataclass(frozen=True, slots=True)
class StatusFacts:
    """What a plan's status summary goes by.

    :param cause: why the plan is in its state; ``end_reason``: the same as a code.
    :param moves: how many the plan has; ``by_state``: of those that the ledger knows.
    :param started: whether anything may have been changed on the cluster.
    :param elapsed_s: from the start to the end, or to now; None before the start.
    :param throttles: settings of it that were ever set; ``owed``: those that may still be set.
    :param finishing: whether its run may still be at work: to take throttles back, and to verify.
    :param cancelled_by: who cancelled it; "" = it was not cancelled.
    :param for_window: whether the next maintenance window is to carry it out.
    :param not_reached: why something that was asked for stays as it is: a line for each cause.
    :param outlook: what it waits for while it is paused; None = that is not known.
    :param account: what is known of it; None = the ledger has no record of the plan.
    :param findings: of its gates and its newest dry run, by kind.
    :param request, dry_run, verification, drained, demoted, leaders: its files; None = none yet.
    """

    plan_id: str
    plan_hash: str
    state: PlanState
    cause: str
    moves: int
    by_state: Mapping[MoveState, int]
    started: bool
    elapsed_s: float | None
    throttles: int
    owed: int
    finishing: bool = False
    cancelled_by: str = ""
    end_reason: EndReason | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
    dry_run: Mapping[str, Any] | None = None
    verification: Mapping[str, Any] | None = None
    drained: Mapping[str, Any] | None = None
    demoted: Mapping[str, Any] | None = None
    leaders: Mapping[str, Any] | None = None
    for_window: bool = False
    not_reached: tuple[str, ...] = ()
    outlook: Outlook | None = None
    account: PlanAccount | None = None
    findings: tuple[FindingGroup, ...] = ()

    @property
    def hurts(self) -> tuple[Hurt, ...]:
        """What keeps it from going on as it should, by what to do about it."""
        return self.account.hurts if self.account is not None else ()

    def moves_in(self, *states: MoveState) -> int:
        """How many moves are in one of these states."""
        return sum(self.by_state.get(state, 0) for state in states)


@dataclass(frozen=True, slots=True)
class StatusSummary:
    """The state of a plan, for people: the head of its report and of its page.

    :param label: the state in one or two words.
    :param headline: what happened, in one sentence.
    :param state_left: what is true of the cluster now.
    :param next_step: what the reader should do.
    :param control: the request that this is about; None = about none. A reader who has its button
        reads ``step_here`` instead, with a link to it.
    """

    tone: Tone
    label: str
    headline: str
    state_left: str
    next_step: str
    control: Control | None = None
    step_here: str = ""
