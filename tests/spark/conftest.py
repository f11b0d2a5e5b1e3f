"""The Spark session that the job joins when it runs in this process."""

import pytest

from rehome.quality.engine.results import GateResult
from tests.session.spark_session import spark

__all__ = ["passed_snapshot", "spark"]


@pytest.fixture
def passed_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate on the snapshot takes as long as that on the plan, and has tests of its own."""
    passed = GateResult("snapshot", ())
    monkeypatch.setattr("spark_jobs.gated_plan.check_snapshot", lambda *_, **__: passed)
