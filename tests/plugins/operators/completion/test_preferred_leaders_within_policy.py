"""Elections at a plan's end, and in a task that is cleared later, within the connection's policy.

No broker is asked: where the policy allows an election, the operator finds that none answers.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.ledger.store import Ledger
from rehome.operators.completion.preferred_leaders import OWN_END, RestorePreferredLeadersOperator
from rehome.run.context import RunContext
from rehome.warehouse import Warehouse
from tests.dags.clusters import to
from tests.ledger.small_plans import make_plan

CLOSED = {"windows": [{"from": "2020-01-01T00:00:00Z", "until": "2020-01-02T00:00:00Z"}]}
OPEN = {"windows": [{"cron": "* * * * *", "hours": 10}]}
FORBIDDEN, ALLOWED = {"actions": ["rebalance"]}, {"actions": ["reassign"]}
JUST_NOW, LATER = timedelta(minutes=1), OWN_END + timedelta(minutes=1)

Restore = Callable[..., None]


@pytest.fixture
def restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Restore:
    """Carries the task out for a plan that was done so long ago, under a policy."""
    url, warehouse = f"sqlite:///{tmp_path}/ledger.db", (tmp_path / "warehouse").as_uri()
    monkeypatch.setenv("REHOME_LEDGER_URL", url)
    monkeypatch.setenv("REHOME_WAREHOUSE", warehouse)
    params = {"action": "reassign", "reassignment": to("t", {0: [3, 2], 1: [2, 3]})}

    def carried_out(ago: timedelta, policy: dict[str, Any], clears: int = 0) -> None:
        plan, run = make_plan("p1"), "reassign_partitions"
        directory = Warehouse(warehouse).plan("p1")
        directory.save(plan, parse_request(params))
        with Ledger.open(url, clock=lambda: datetime.now(UTC) - ago) as ledger:
            ledger.create_plan(plan, params, directory.uri, "run", "ann", dag_id=run)
            ledger.approve("p1", plan.plan_hash, "ann")
            ledger.claim("p1")
            ledger.transition("p1", PlanState.DONE, "all have arrived")
        extra = {"bootstrap.servers": "127.0.0.1:1", "rehome.policy": policy}
        kafka = json.dumps({"conn_type": "kafka", "extra": extra})
        monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", kafka)
        of = SimpleNamespace(
            dag_id=run,
            run_id="run",
            run_type="manual",
            triggering_user_name="ann",
            run_after=datetime.now(UTC) - ago,
            data_interval_end=None,
            clear_number=clears,
        )
        task = RestorePreferredLeadersOperator(
            task_id="restore_leaders", kafka_config_id="kafka_default"
        )
        task.execute({"dag_run": of, "params": {**params, "plan_id": "p1"}, "task": task})

    return carried_out


@pytest.mark.parametrize(
    ("ago", "policy", "why"),
    [
        (LATER, CLOSED, "outside the allowed windows"),
        (LATER, FORBIDDEN, "Action reassign is not among the allowed ones"),
        (JUST_NOW, FORBIDDEN, "Action reassign is not among the allowed ones"),
    ],
    ids=["cleared_outside_a_window", "cleared_after_the_action_was_forbidden", "own_end"],
)
def test_leaders_are_not_elected_where_the_policy_does_not_allow_it(
    ago: timedelta, policy: dict[str, Any], why: str, restore: Restore
) -> None:
    with pytest.raises(AirflowSkipException, match=why) as skipped:
        restore(ago, policy)
    assert str(skipped.value).startswith("Leaders stay as they are.")
    assert "Clear this task when the policy allows it" in str(skipped.value)


@pytest.mark.parametrize(
    ("ago", "policy"),
    [(JUST_NOW, CLOSED), (JUST_NOW, ALLOWED), (LATER, OPEN), (LATER, ALLOWED), (LATER, {})],
    ids=["overran_its_window", "own_end", "in_a_later_window", "cleared", "no_limits"],
)
def test_leaders_are_elected_where_the_policy_allows_it(
    ago: timedelta, policy: dict[str, Any], restore: Restore
) -> None:
    with pytest.raises(AirflowException, match="cannot be reached"):
        restore(ago, policy)


def test_a_run_that_is_cleared_when_its_request_counts_no_longer_elects_nobody(
    restore: Restore,
) -> None:
    """Anybody may clear it who may clear tasks."""
    with pytest.raises(AirflowSkipException, match="a request counts for 24 hours") as skipped:
        restore(timedelta(hours=25), {}, clears=1)
    assert str(skipped.value).startswith("Leaders stay as they are.")


class OnlyDescribed:
    """A cluster that answers which one it is, and nothing else."""

    def __enter__(self) -> OnlyDescribed:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def describe_cluster(self) -> Any:
        return SimpleNamespace(cluster_id="c1")


def test_a_task_that_is_cleared_elects_nobody_by_an_entry_of_another_cluster(
    restore: Restore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunContext, "gateway", lambda _: OnlyDescribed())
    file = tmp_path / "clusters.yaml"
    file.write_text("clusters: {big: {connection: kafka_default}}")
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(file))
    with Ledger.open(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        ledger.bind_entry("big", "another cluster")
    with pytest.raises(AirflowException, match="Entry big of the clusters file is bound to"):
        restore(LATER, {})
