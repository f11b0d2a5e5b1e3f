"""What is known of a plan at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from include.account.evidence import PlanEvidence
from include.account.known import Fact
from include.account.pace import PlanPace, pace_of
from include.account.plan_bytes import PlanBytes, bytes_of
from include.account.times import Elapsed, Predicted, elapsed_of, ends_of, predicted_of


@dataclass(frozen=True, slots=True)
class PlanAccount:
    """A plan at one moment: views of it show these fields, and work out none of their own.

    :param ends: when its last copy is complete.
    :param elapsed: None before its start.
    """

    bytes: PlanBytes
    pace: Fact[PlanPace]
    ends: Fact[datetime]
    elapsed: Elapsed | None
    predicted: Fact[Predicted]


def account_of(evidence: PlanEvidence, now: datetime) -> PlanAccount:
    """What follows from the evidence."""
    return PlanAccount(
        bytes_of(evidence),
        pace_of(evidence, now),
        ends_of(evidence, now),
        elapsed_of(evidence, now),
        predicted_of(evidence),
    )
