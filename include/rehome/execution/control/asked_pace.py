"""What bounds a pace that people ask for in mid-run: the approval, the policy, what is written.

What is allowed of rates and moves at once, and why: docs/decisions/085 and 086.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rehome.domain.broker_rates import BrokerRates
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.flows import complete_samples
from rehome.domain.run.states import PlanState
from rehome.execution.access.connection_policy import ConnectionPolicy
from rehome.execution.control.approval import lets_more_through
from rehome.execution.control.refusals import AboveApproval, BelowInflow, MoreThanApproved
from rehome.execution.control.refused import PaceRefusedError
from rehome.execution.governor.control_loop import INFLOW_MARGIN
from rehome.execution.governor.measured_rate import inflow_bytes_per_s
from rehome.ledger.base.records import PlanRecord
from rehome.ledger.store import Ledger


def within_policy(
    policy: ConnectionPolicy,
    record: PlanRecord,
    rate: int | None,
    by_broker: BrokerRates | None,
) -> BrokerRates | None:
    """What single brokers are to have, where the policy bounds them and the plan's rate rises;
    None = they stay.
    """
    bounds = policy.largest_throttle_by_broker
    others = rate or record.asked_rate_bytes_per_s
    if not bounds or others is None:
        return by_broker
    before = record.asked_rates_by_broker
    rates = (before if by_broker is None else by_broker).at_most(bounds, others)
    return by_broker if by_broker is None and rates == before else rates


def refuse_below_inflow(
    ledger: Ledger, record: PlanRecord, rate: int | None, by_broker: BrokerRates | None
) -> None:
    """A copy that its partition outgrows never ends. What a paused plan needs is asked by the
    dry run of the run that resumes it.

    :raises PaceRefusedError: a rate is too low.
    """
    if record.state is not PlanState.RUNNING:
        return
    flows = complete_samples(ledger.view(record.plan_id).flows)
    own = (record.asked_rates_by_broker if by_broker is None else by_broker).by_key()
    own_rates = {} if by_broker is None else own
    rates: list[tuple[int, float]] = []
    if rate is not None:
        rates.append((rate, inflow_bytes_per_s(flows, without=own)))
    rates += [(each, inflow_bytes_per_s(flows, only=key)) for key, each in own_rates.items()]
    for each, inflow in rates:
        if inflow and each <= INFLOW_MARGIN * inflow:
            raise PaceRefusedError(BelowInflow(each, inflow, INFLOW_MARGIN * inflow))


def refuse_above_approval(
    record: PlanRecord, rate: int | None, by_broker: BrokerRates | None
) -> None:
    """What a person has approved is an upper limit; a lower rate needs no other approval.

    :raises PaceRefusedError: it is higher.
    """
    approval = record.approval
    if approval is None or not approval.by_person:
        return
    was = approval.terms
    now = replace(
        was,
        rate_bytes_per_s=rate or record.requested_rate_bytes_per_s or was.rate_bytes_per_s,
        rates_by_broker=_own_now(record, was) if by_broker is None else by_broker,
    )
    above = tuple(lets_more_through(now, was))
    if now.rate_bytes_per_s > was.rate_bytes_per_s:
        raise PaceRefusedError(AboveApproval(approval.by, was))
    if above:
        raise PaceRefusedError(AboveApproval(approval.by, was, above))


def _own_now(record: PlanRecord, was: Terms) -> BrokerRates:
    rates = record.requested_rates_by_broker
    return was.rates_by_broker if rates is None else rates


def refuse_more_moves(record: PlanRecord, moves: int) -> None:
    """Of a plan without a throttle, moves at once are all that limits it: so many as a person has
    approved are the most. With one, they are no term of the approval.

    :raises PaceRefusedError: they are more.
    """
    approval = record.approval
    if approval is None or not approval.by_person or approval.terms.unthrottled is None:
        return
    most = approval.terms.unthrottled
    if moves > most:
        raise PaceRefusedError(MoreThanApproved(approval.by, most))


def pace_of_run(record: PlanRecord, rate: int | None) -> dict[str, Any]:
    """How fast another run is to carry the plan out: as before, unless a throttle is named."""
    moves = record.asked_moves_per_broker
    pace: dict[str, Any] = {} if moves is None else {"max_moves_per_broker": moves}
    if own := record.asked_rates_by_broker.to_json():
        pace["throttle_by_broker"] = own
    elif record.request.get("throttle_by_broker"):
        pace["throttle_by_broker"] = {}
    if not record.unthrottled:
        return {**pace, "throttle": _throttle(record, rate)}
    return {**pace, "throttle": rate or "auto", "unthrottled": rate is None}


def _throttle(record: PlanRecord, rate: int | None) -> Any:
    return rate or record.requested_rate_bytes_per_s or record.request.get("throttle") or "auto"
