"""Requests without a plan: on the page's list, and for programs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from rehome.account.requests import RequestLine, RequestState
from rehome.domain.run.causes.cause import Cause, CauseKind
from rehome.ledger.stores.by_run.causes import EndedRun
from rehome.ui.routes import lists
from tests.ui.site import EVIL, Site

Client = Callable[[str], TestClient]


def test_requests_without_a_plan_are_listed_by_the_page_and_for_programs(
    client: Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    going_on = RequestLine("reassign_partitions", "manual__4", RequestState.PLANNING, at, "ann")
    runs = SimpleNamespace(unfinished_runs=lambda: [going_on])
    monkeypatch.setattr(lists, "dag_runs", runs)
    cause = Cause(CauseKind.NO_JAVA, f"No Java {EVIL}.", "", "Set it up.", at, "plan")
    site.ledger.record_cause(EndedRun("reassign_partitions", "manual__3", cause))
    about = EndedRun("control_reassignment", "manual__5", cause, "p1")
    site.ledger.record_cause(about)
    viewer = client("viewer")
    text = viewer.get("").text
    for said in ("Being planned", "manual__4", "asked for by ann", "No Java", "manual__3"):
        assert said in text
    assert "<img" not in text
    assert "manual__5" not in text  # the page of its plan says it
    found = {each["run_id"]: each for each in viewer.get("requests").json()}
    assert {run_id: each["state"] for run_id, each in found.items()} == {
        "manual__4": "planning",
        "manual__3": "failed",
        "manual__5": "failed",
    }
    assert found["manual__5"]["plan_id"] == "p1"
    assert found["manual__3"]["cause"]["kind"] == "no_java"
