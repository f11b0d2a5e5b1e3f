"""A plan of ann's, and a run that asks a person about it; no broker is asked."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from rehome import installation
from rehome.execution.dry_run.result import DryRunResult
from rehome.fleet.plan_settings import ComparedSettings
from rehome.run import evidence
from rehome.run.context import RunContext
from rehome.warehouse import PlanDirectory
from tests.dags.clusters import to

APPROVED, FASTER = 10_000_000, 100_000_000
PARAMS = {
    "action": "reassign",
    "reassignment": to("t", {0: [3, 2], 1: [2, 3]}),
    "throttle": APPROVED,
}
_SERIAL = itertools.count()


def tried_out(directory: PlanDirectory, run: dict[str, Any], rate: int) -> dict[str, Any]:
    """The run, after its dry run."""
    with installation.open_ledger() as ledger:
        plan = ledger.plan("p1")
        compared = ComparedSettings.of(
            directory, plan.action, "kafka_default", begun=plan.state.active
        )
        result = DryRunResult(
            "p1", plan.plan_hash, (), (), rate_bytes_per_s=rate, settings=compared.counting
        )
        evidence.record_dry_run(RunContext(run), directory, result)
    return run


def context(by: str, rate: int, run_id: str = "second") -> dict[str, Any]:
    run = SimpleNamespace(
        dag_id="reassign_partitions",
        run_id=run_id,
        run_after=datetime.now(UTC),
        data_interval_end=None,
        run_type="manual",
        triggering_user_name=by,
    )
    attempt = SimpleNamespace(try_number=1, id=f"ti-{next(_SERIAL)}")
    named = {"plan_id": "p1", "kafka_config_id": "kafka_default", "throttle": rate}
    task = SimpleNamespace(task_id="approve")
    return {"dag_run": run, "params": {**PARAMS, **named}, "ti": attempt, "task": task}
