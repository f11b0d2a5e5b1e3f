"""What a follow-up is asked for: what its plan was, and a person's approval where that has one."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval_terms import Terms
from rehome.domain.run.event_kind import EventKind
from rehome.run import run_request
from rehome.run.context import FOLLOW_UP, RunContext
from rehome.warehouse import Warehouse
from tests.ledger.people import approve_as
from tests.ledger.small_plans import make_plan
from tests.plugins.run.asked import run_of, task_of

PARAMS: dict[str, Any] = {"action": "drain", "brokers": [4], "approval": False}


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "nobody_was_asked"])
def test_where_a_person_has_approved_a_plan_its_follow_up_is_asked_about_too(
    approved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the request for that approval says, though the run that made the plan wanted none."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    nowhere = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(nowhere))
    run = run_of("r1", run_after=datetime.now(UTC))
    context = task_of(run, **PARAMS)
    plan = replace(make_plan(RunContext(context).plan_id), action="drain")
    directory = Warehouse((tmp_path / "warehouse").as_uri()).plan(plan.plan_id)
    directory.save(plan, parse_request(PARAMS))
    terms = Terms(plan.plan_hash, 1_000_000)
    with installation.open_ledger() as ledger:
        ledger.create_plan(plan, PARAMS, directory.uri, "r1", "ann", dag_id=run.dag_id)
        if approved:
            approve_as(ledger, "ops", plan.plan_id, terms)
        else:
            ledger.approve(plan.plan_id, plan.plan_hash, "ann", terms)
        ledger.add_event(EventKind.FOLLOWED_UP, "more has appeared", plan_id=plan.plan_id)
    task = SimpleNamespace(task_id=f"{FOLLOW_UP}.plan", kafka_config_id="kafka_default")
    assert run_request.request_of(RunContext({**context, "task": task})).approval is approved
