"""What a report is of is read from the plan's files and the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.ledger.store import Ledger
from rehome.reporting.collect import report_data, write_plan_report
from rehome.warehouse import Warehouse
from tests.reporting.pages import Page
from tests.reporting.reported_plans import (
    MB,
    dry_run_json,
    gates_json,
    moves,
    plan_of,
)


def test_a_report_is_collected_from_the_plans_files_and_the_ledger(tmp_path: Path) -> None:
    plan = plan_of(*moves())
    request = parse_request({"action": "drain", "brokers": [4], "throttle": 2 * MB})
    directory = Warehouse(tmp_path.as_uri()).plan(plan.plan_id)
    directory.save(plan, request)
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        with pytest.raises(PlanConflictError):
            report_data(ledger, directory)
        ledger.create_plan(plan, {}, directory.uri, "run-1", "asker")
        ledger.approve(plan.plan_id, plan.plan_hash, "approver")
        directory.write_json("gates.json", list(gates_json()))
        directory.write_json("dry_run.json", dry_run_json())
        uri = write_plan_report(directory, ledger)
        data = report_data(ledger, directory)
    assert data.account.state is PlanState.APPROVED
    assert data.record.approved_by == "approver"
    assert len(data.moves) == 3
    reported = Page(Path(uri.removeprefix("file://")).read_text()).text
    assert "The plan is approved" in reported
    assert "every live broker answered" in reported
