"""What is known of a plan at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from include.account.evidence import PlanEvidence
from include.account.known import Fact
from include.account.pace import PlanPace, pace_of
from include.account.plan_bytes import PlanBytes, bytes_of


@dataclass(frozen=True, slots=True)
class PlanAccount:
    """A plan at one moment: views of it show these fields, and work out none of their own."""

    bytes: PlanBytes
    pace: Fact[PlanPace]


def account_of(evidence: PlanEvidence, now: datetime) -> PlanAccount:
    """What follows from the evidence."""
    return PlanAccount(bytes_of(evidence), pace_of(evidence, now))
