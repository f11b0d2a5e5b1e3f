"""Most tests of plans are about bands of brokers: there, topics may be spread in any way, unless a
module says ``SPREADS_TOPICS = True``. Their clusters have one topic of few partitions, whose spread
would leave nothing to decide.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehome.domain.request import request as requests


@pytest.fixture(autouse=True, scope="module")
def topics_in_any_way(request: pytest.FixtureRequest) -> Iterator[None]:
    """Plans keep topics spread by default only where the test's module asks for it."""
    with pytest.MonkeyPatch.context() as patch:
        if not getattr(request.module, "SPREADS_TOPICS", False):
            patch.setattr(requests, "SPREAD_TOLERANCE", float("inf"))
        yield
