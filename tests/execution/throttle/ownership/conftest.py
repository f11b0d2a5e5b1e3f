"""The small world that marks are tried in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rehome.domain import clock
from tests.execution.throttle.ownership.box import Box


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    """One topic with two partitions, in virtual time."""
    made = Box(tmp_path)
    made.model.actions.create_topic("t", [(1, 2), (1, 2)])
    with clock.replaced_by(made):
        made.sleep(1)
        yield made
    made.close()
