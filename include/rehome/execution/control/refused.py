"""Errors of what is asked of a plan: each has its reason as a type."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.errors import STEP_UNCHANGED, InvalidRequestError, PlanConflictError
from rehome.execution.control.approval import Lapse, as_asked, lapses
from rehome.execution.control.refusals import ContinueRefusal, PaceRefusal, StateRefusal
from rehome.execution.control.words.approval_words import lapsed_text
from rehome.execution.control.words.refusal_words import continue_text, pace_text, state_text


class StateRefusedError(PlanConflictError):
    """The plan's state does not allow what is asked."""

    def __init__(self, refusal: StateRefusal) -> None:
        self.refusal = refusal
        what, next_step = state_text(refusal)
        super().__init__(what, state_left=STEP_UNCHANGED, next_step=next_step)


class NotContinuedError(PlanConflictError):
    """No run may resume the plan now."""

    def __init__(self, refusal: ContinueRefusal) -> None:
        self.refusal = refusal
        what, next_step = continue_text(refusal)
        super().__init__(what, state_left=STEP_UNCHANGED, next_step=next_step)


class PaceRefusedError(InvalidRequestError):
    """The plan cannot, or may not, have the pace that is asked for."""

    def __init__(self, refusal: PaceRefusal) -> None:
        self.refusal = refusal
        super().__init__([pace_text(refusal)])


class ApprovalLapsedError(PlanConflictError):
    """A plan was approved, but not what would be run now, or too long ago.

    :param approval: None = there is none.
    :param terms: of what would be run now.
    """

    def __init__(
        self, plan_id: str, approval: Approval | None, terms: Terms, kinds: Collection[Lapse]
    ) -> None:
        self.lapses = tuple(kinds)
        what, next_step = lapsed_text(plan_id, approval, terms, self.lapses)
        super().__init__(what, state_left=STEP_UNCHANGED, next_step=next_step)


def refuse_lapsed(
    plan_id: str,
    approval: Approval | None,
    terms: Terms,
    now: datetime | None,
    *,
    requested_rate_bytes_per_s: int | None = None,
    requested_rates_by_broker: BrokerRates | None = None,
    begun: bool = False,
    needs_person: bool = False,
) -> None:
    """Let only what was approved be run. See ``lapses``.

    :raises ApprovalLapsedError: it is something else, or was approved too long ago.
    """
    kinds = lapses(
        approval,
        terms,
        now,
        requested_rate_bytes_per_s=requested_rate_bytes_per_s,
        requested_rates_by_broker=requested_rates_by_broker,
        begun=begun,
        needs_person=needs_person,
    )
    if kinds:
        asked_terms = as_asked(terms, requested_rate_bytes_per_s, requested_rates_by_broker)
        raise ApprovalLapsedError(plan_id, approval, asked_terms, kinds)
