"""Why an approval does not hold, in words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.domain.text import second_text
from rehome.execution.control.approval import Lapse, changed_evidence, changed_settings


def lapsed_text(
    plan_id: str, approval: Approval | None, terms: Terms, lapses: Collection[Lapse]
) -> tuple[str, str]:
    """What does not hold, and what to do.

    :param terms: of what would be run now.
    """
    if approval is None:
        what = f"The ledger does not say at which rate and until when plan {plan_id} was approved"
    else:
        reasons = "; ".join(
            reason_of(each, approval.terms, terms, approval.expires_at) for each in lapses
        )
        what = (
            f"The approval of plan {plan_id} by {approval.by_whom} does not hold any more: "
            f"{reasons}"
        )
    return what, "Trigger a new run: what is to run is then put up for approval anew."


def reason_of(lapse: Lapse, was: Terms, now: Terms, expires_at: datetime | None = None) -> str:
    """What differs between two terms, in words, for a person."""
    match lapse:
        case Lapse.HASH:
            return f"the plan's hash is {now.plan_hash}, not {was.plan_hash}"
        case Lapse.RATE:
            rate = now.rate_bytes_per_s
            return f"the rate would be {rate} bytes per second, not {was.rate_bytes_per_s}"
        case Lapse.LEAST_RATE | Lapse.RATES_BY_BROKER | Lapse.NEW_REPLICAS:
            return _both(_SAID[lapse](now), _SAID[lapse](was))
        case Lapse.WINDOW | Lapse.ADDITIONAL | Lapse.UNTHROTTLED:
            return f"it would run {_both(_RUN[lapse](now), _RUN[lapse](was))}"
        case Lapse.SETTINGS:
            return "; ".join(map(str, changed_settings(was, now)))
        case Lapse.EVIDENCE:
            files = ", ".join(changed_evidence(was, now))
            return f"what the approver has read is not what is there now: {files}"
        case Lapse.EXPIRED:
            assert expires_at is not None
            return f"it expired at {second_text(expires_at)}"
    return _EFFECT_REASONS[lapse](was.effects or Effects(), now.effects or Effects())


def _both(now: str, was: str) -> str:
    return f"{now}; approved was: {was}"


_SAID: Mapping[Lapse, Callable[[Terms], str]] = {
    Lapse.LEAST_RATE: lambda terms: terms.least,
    Lapse.RATES_BY_BROKER: lambda terms: terms.by_broker,
    Lapse.NEW_REPLICAS: lambda terms: terms.steps,
}
"""Terms that are said as they are."""
_RUN: Mapping[Lapse, Callable[[Terms], str]] = {
    Lapse.WINDOW: lambda terms: terms.window,
    Lapse.ADDITIONAL: lambda terms: terms.others,
    Lapse.UNTHROTTLED: lambda terms: terms.pace,
}
"""Terms that say how it would run."""
_FACTOR = {
    True: "partitions get more or fewer replicas than they have",
    False: "every partition keeps its number of replicas",
}
_LEADERS = {
    True: "preferred leaders are elected in the end",
    False: "no leaders are elected in the end",
}
_EFFECT_REASONS: Mapping[Lapse, Callable[[Effects, Effects], str]] = {
    Lapse.REPLICATION_FACTOR: lambda was, now: _both(
        _FACTOR[now.replication_factor], _FACTOR[was.replication_factor]
    ),
    Lapse.LEADERS: lambda was, now: _both(_LEADERS[now.leaders], _LEADERS[was.leaders]),
    Lapse.CORDON: lambda was, now: _both(now.cordon_words, was.cordon_words),
    Lapse.FOLLOW_UP: lambda was, now: _both(now.follow_up_words, was.follow_up_words),
    Lapse.NEVER_GIVEN: lambda was, now: "it was never given",
    Lapse.NO_PERSON: lambda was, now: "a person has to approve it, and no person was asked",
    Lapse.BEFORE_UPGRADE: lambda was, now: (
        "it was given under an earlier version of Rehome, which did not record what the approver "
        "was shown"
    ),
}
