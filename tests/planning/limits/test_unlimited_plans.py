"""Without caps and broker sets plans are, bit for bit, what they were before there were any."""

from __future__ import annotations

import hashlib

from tests.quality.plan.clean import sound_plans

SPREADS_TOPICS = True

RECORDED = "64ae7076f5a7fd801b49982c780812289970a9a7624a6bcaba78beb7ecf0c600"
"""Over the hashes of these plans, made before the planner knew caps and broker sets, and
recorded anew when its search changed.
"""


def test_plans_without_limits_are_what_they_were() -> None:
    hashes = [checked.plan.plan_hash for _, checked in sound_plans(52, seed=777)]
    assert hashlib.sha256("".join(hashes).encode()).hexdigest() == RECORDED
