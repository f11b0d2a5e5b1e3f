"""Which refusals say something about the next snapshot that shows the same."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from include.domain.request.request import Action, ReassignmentRequest
from include.errors import InvalidRequestError, RehomeError
from include.quality.engine.results import ExpectationOutcome, GateResult, Status
from include.warehouse import PlanDirectory
from spark_jobs.gated_plan import GateThresholds, Proof, RefusedError

NO_SPARK = cast(SparkSession, None)


def refused(tmp_path: Path, *broken: tuple[str, Status], by_snapshot: bool = True) -> RefusedError:
    """The refusal of a gate by rules of these tables."""
    outcomes = tuple(ExpectationOutcome("a rule", table, each, "") for table, each in broken)
    out, request = PlanDirectory(tmp_path.as_uri()), ReassignmentRequest(Action.REBALANCE)
    proof = Proof(NO_SPARK, out, request, GateThresholds())
    with pytest.raises(RefusedError) as caught:
        proof.record(GateResult("snapshot", outcomes), by_snapshot=by_snapshot)
    return caught.value


def test_a_rule_on_brokers_is_broken_by_the_next_snapshot_too(tmp_path: Path) -> None:
    error = refused(tmp_path, ("brokers", Status.FAILED))
    assert error.to_json()["repeats"] is True
    assert not refused(tmp_path, ("brokers", Status.FAILED), by_snapshot=False).repeats


def test_the_age_of_a_snapshot_says_nothing_about_the_next_one(tmp_path: Path) -> None:
    broken = (("brokers", Status.FAILED), ("snapshot", Status.FAILED))
    assert not refused(tmp_path, *broken).repeats


def test_a_check_that_crashed_says_nothing_about_the_data(tmp_path: Path) -> None:
    broken = (("brokers", Status.FAILED), ("topics", Status.CRASHED))
    assert not refused(tmp_path, *broken).repeats


def test_what_cannot_be_read_now_may_be_readable_later() -> None:
    unread, invalid = RehomeError("The store did not answer"), InvalidRequestError(["No room."])
    assert not RefusedError.invalid(unread, by_snapshot=True).repeats
    assert RefusedError.invalid(invalid, by_snapshot=True).repeats
    assert not RefusedError.invalid(invalid).repeats
