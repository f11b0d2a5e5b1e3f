"""What is known of a plan at one moment: made by one function, and shown by everybody. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from include.account.evidence import PlanEvidence
from include.account.plan_bytes import PlanBytes, bytes_of


@dataclass(frozen=True, slots=True)
class PlanAccount:
    """A plan at one moment: views of it show these fields, and work out none of their own."""

    bytes: PlanBytes


def account_of(evidence: PlanEvidence) -> PlanAccount:
    """What follows from the evidence."""
    return PlanAccount(bytes_of(evidence))
