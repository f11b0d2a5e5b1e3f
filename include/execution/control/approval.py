"""What an approval is of, how long it holds, and why it does not hold any more."""

from __future__ import annotations

import enum
from datetime import datetime

from include.domain.request.cluster_values import Change, changes
from include.domain.run.approval_terms import Approval, Terms
from include.errors import PlanConflictError


class ApprovalLapsedError(PlanConflictError):
    """A plan was approved, but not what would be run now, or too long ago."""


class Lapse(enum.StrEnum):
    """Why an approval does not hold: what it names is another, or it is none."""

    NEVER_GIVEN = "never_given"
    EXPIRED = "expired"
    HASH = "plan_hash"
    RATE = "rate"
    WINDOW = "window"
    ADDITIONAL = "additional"
    UNTHROTTLED = "unthrottled"
    SETTINGS = "settings"


def changed_settings(was: Terms, now: Terms) -> tuple[Change, ...]:
    """Caps, broker sets and targets that differ; () = none, or it is not known. Pure."""
    if was.settings is None or now.settings is None:
        return ()
    return tuple(changes(was.settings, now.settings))


def lapses(
    approval: Approval | None,
    terms: Terms,
    now: datetime | None,
    *,
    requested_rate_bytes_per_s: int | None = None,
) -> tuple[Lapse, ...]:
    """Why what would be run now is not what was approved; empty = it is. Pure.

    :param terms: of the run that is about to act.
    :param now: None = the plan runs already: its approval was in time then, and of the cluster's
        caps, broker sets and targets at that time.
    :param requested_rate_bytes_per_s: what a person has asked for since, which holds instead of
        the run's own rate. A lower one needs no other approval; nor does a higher one where no
        person was asked to approve.
    """
    if approval is None:
        return (Lapse.NEVER_GIVEN,)
    rate, was = requested_rate_bytes_per_s or terms.rate_bytes_per_s, approval.terms
    asked_for = requested_rate_bytes_per_s is not None
    may_change = asked_for and (rate <= was.rate_bytes_per_s or not approval.by_person)
    found = {
        Lapse.EXPIRED: now is not None and now >= approval.expires_at,
        Lapse.HASH: terms.plan_hash != was.plan_hash,
        Lapse.RATE: rate != was.rate_bytes_per_s and not may_change,
        Lapse.WINDOW: (terms.window_end, terms.on_window_end)
        != (was.window_end, was.on_window_end),
        Lapse.ADDITIONAL: terms.additional != was.additional,
        Lapse.UNTHROTTLED: terms.unthrottled != was.unthrottled,
        Lapse.SETTINGS: now is not None and bool(changed_settings(was, terms)),
    }
    return tuple(lapse for lapse, holds in found.items() if holds)


def refuse_lapsed(
    plan_id: str,
    approval: Approval | None,
    terms: Terms,
    now: datetime | None,
    *,
    requested_rate_bytes_per_s: int | None = None,
) -> None:
    """Let only what was approved be run. See :func:`lapses`.

    :raises ApprovalLapsedError: it is something else, or was approved too long ago.
    """
    found = lapses(approval, terms, now, requested_rate_bytes_per_s=requested_rate_bytes_per_s)
    if not found:
        return
    why = {
        "state_left": "This step has changed nothing on the cluster.",
        "next_step": "Trigger again: what is to run is then put up for approval anew.",
    }
    if approval is None:
        what = f"The ledger does not say at which rate and until when plan {plan_id} was approved"
        raise ApprovalLapsedError(what, **why)
    rate, was = requested_rate_bytes_per_s or terms.rate_bytes_per_s, approval.terms
    reasons = {
        Lapse.EXPIRED: f"it expired at {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC",
        Lapse.HASH: f"the plan's hash is {terms.plan_hash}, not {was.plan_hash}",
        Lapse.RATE: f"the rate would be {rate} bytes per second, not {was.rate_bytes_per_s}",
        Lapse.WINDOW: f"it would run {terms.window}; approved was: {was.window}",
        Lapse.ADDITIONAL: f"it would run {terms.others}; approved was: {was.others}",
        Lapse.UNTHROTTLED: f"it would run {terms.pace}; approved was: {was.pace}",
        Lapse.SETTINGS: "; ".join(map(str, changed_settings(was, terms))),
    }
    raise ApprovalLapsedError(
        f"The approval of plan {plan_id} by {approval.by} does not hold any more: "
        + "; ".join(reasons[lapse] for lapse in found),
        **why,
    )
