"""Without caps and broker sets plans are, bit for bit, what they were before there were any."""

from __future__ import annotations

import hashlib

import pytest

from tests.quality.plan.clean import sound_plans

SPREADS_TOPICS = True

RECORDED = "85992f3a5d6ab0eefb5bdc29d0ac34014fb627594625a85f8832555df4736cc2"
"""Over the hashes of these plans, made before the planner knew caps and broker sets, and
recorded anew when its search changed.
"""


@pytest.mark.slow
def test_plans_without_limits_are_what_they_were() -> None:
    hashes = [checked.plan.plan_hash for _, checked in sound_plans(52, seed=777)]
    assert hashlib.sha256("".join(hashes).encode()).hexdigest() == RECORDED
