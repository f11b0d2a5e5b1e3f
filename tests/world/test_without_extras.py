"""What runs do without: every extra."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.code import house, walks
from rehome.run.ports import Extras


@pytest.mark.slow
def test_a_broker_is_drained_by_the_core_alone() -> None:
    walked, outcome = walks.drain(Extras())
    assert dict(outcome.states) == {"done": 1}
    assert outcome.violations == ()
    assert set(house.counted([Path(file) for file in walked.files])) == {"core"}
