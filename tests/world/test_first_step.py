"""What a run of the simulated world starts with."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from benchmarks.code.walks import DRAIN
from rehome.domain.run.run_policy import Policy
from rehome.execution import advance, rolling
from world.outcome import run

STEP = advance.advance


@pytest.mark.slow
def test_no_step_starts_more_small_moves_than_is_known_to_be_good() -> None:
    """Neither that of the task execute, nor the first one of progress."""
    at_once: list[int | None] = []

    def noted(
        plan: Any, ledger: Any, cluster: Any, policy: Policy, *more: Any, **options: Any
    ) -> Any:
        at_once.append(policy.max_small_in_flight)
        return STEP(plan, ledger, cluster, policy, *more, **options)

    with patch.object(advance, "advance", noted):
        assert dict(run(DRAIN, traced=False).states) == {"done": 1}
    assert len(at_once) > 1
    assert set(at_once) == {rolling.AT_FIRST}
