"""Without caps and broker sets plans are, bit for bit, what they were before there were any."""

from __future__ import annotations

import hashlib

from tests.quality.plan.clean import sound_plans

SPREADS_TOPICS = True

RECORDED = "fdccebacd1e340ddad5ccd3abdcc326b1cd6846bc732b181978a8a987f36877c"
"""Over the hashes of these plans, made by the planner before it knew caps and broker sets."""


def test_plans_without_limits_are_what_they_were() -> None:
    hashes = [checked.plan.plan_hash for _, checked in sound_plans(52, seed=777)]
    assert hashlib.sha256("".join(hashes).encode()).hexdigest() == RECORDED
