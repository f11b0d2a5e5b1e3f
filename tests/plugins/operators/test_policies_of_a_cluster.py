"""Several connections to one cluster: the strictest policy holds, whichever is used; no broker is
asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rehome import installation
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval_terms import Terms
from rehome.errors import InvalidRequestError
from rehome.execution.access.connection_policy import PolicyError
from rehome.execution.dry_run.words.worded import put_in_words
from rehome.fleet import bound, policies
from rehome.ledger.base.audit_entry import Decided
from rehome.ledger.store import Ledger
from rehome.operators.add_partitions import CreatePartitionsOperator
from rehome.operators.dry_run import policy_findings
from rehome.operators.throttle import SetThrottleOperator
from rehome.run import run_request
from rehome.run.context import RunContext
from rehome.warehouse import Warehouse
from tests.dags.clusters import to
from tests.ledger.audit_rows import audit_of
from tests.ledger.people import approve_as
from tests.ledger.small_plans import make_plan
from tests.plugins.operators.approval.asked_plan import tried_out
from tests.plugins.run.asked import BY_ANN

RATE = 10_000_000
STRICT = {"approval": True, "own_approval": False, "largest_throttle": 2 * RATE}
PARAMS = {
    "action": "reassign",
    "reassignment": to("t", {0: [3, 2], 1: [2, 3]}),
    "throttle": RATE,
}
Connect = Callable[..., None]


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Connect:
    """Makes a connection with a policy; ``None`` = it is removed."""

    def make(name: str, policy: Any = None, *, gone: bool = False) -> None:
        variable = f"AIRFLOW_CONN_{name.upper()}"
        if gone:
            monkeypatch.delenv(variable)
            return
        extra = {"bootstrap.servers": "127.0.0.1:1"}
        extra |= {} if policy is None else {"rehome.policy": policy}
        monkeypatch.setenv(variable, json.dumps({"conn_type": "kafka", "extra": extra}))

    return make


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connect: Connect) -> Any:
    """Of a cluster that a strict connection leads to, and one without a policy."""
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("REHOME_WAREHOUSE", (tmp_path / "warehouse").as_uri())
    connect("kafka_strict", STRICT)
    connect("kafka_loose")
    with installation.open_ledger() as opened:
        for connection in ("kafka_strict", "kafka_loose"):
            bound.record_binding(RunContext(BY_ANN, connection), "c1")
        yield opened


def anns_run(connection: str) -> dict[str, Any]:
    """The context of a task of a run by which ann carries plan p1 out."""
    run = SimpleNamespace(
        dag_id="reassign_partitions",
        run_id="first",
        run_after=datetime.now(UTC),
        data_interval_end=None,
        run_type="manual",
        triggering_user_name="ann",
    )
    params = {**PARAMS, "plan_id": "p1", "kafka_config_id": connection}
    attempt = SimpleNamespace(try_number=1, xcom_pull=lambda **_: None)
    task = SimpleNamespace(task_id="throttle")
    return {"dag_run": run, "params": params, "ti": attempt, "task": task}


@pytest.mark.slow
def test_a_plan_that_needs_another_persons_approval_needs_it_through_any_connection(
    ledger: Ledger, tmp_path: Path, connect: Connect
) -> None:
    """Also where the strict connection is gone by then: it was made through that one."""
    plan, directory = make_plan("p1"), Warehouse((tmp_path / "warehouse").as_uri()).plan("p1")
    directory.save(plan, parse_request(PARAMS))
    made_through = policies.recorded_policy("kafka_strict")
    who: dict[str, Any] = {"dag_id": "reassign_partitions", "planned_through": "kafka_strict"}
    ledger.create_plan(plan, PARAMS, directory.uri, "first", "ann", **who, policy=made_through)
    run = anns_run("kafka_loose")
    assert run_request.plan_request(RunContext(run)).approval, (
        "though neither she nor the connection asks it"
    )
    tried_out(directory, run, RATE)
    approve_as(ledger, "ann", "p1", Terms(plan.plan_hash, RATE), asked_by="ann")
    throttle = SetThrottleOperator(task_id="throttle", kafka_config_id="kafka_loose")
    with pytest.raises(AirflowFailException, match=r"another person has to .*kafka_strict"):
        throttle.execute(run)
    connect("kafka_strict", gone=True)
    with pytest.raises(AirflowFailException, match=r"kafka_strict said so when the plan was made"):
        throttle.execute(run)
    ledger.record_connection("kafka_strict", "elsewhere")
    record = ledger.plan("p1")
    assert RunContext(run, "kafka_loose").policy_for(record).asks_another


def test_new_partitions_are_held_to_the_policy_of_their_own_cluster(ledger: Ledger) -> None:
    """Wherever the connection was last seen to lead, by another run since they were placed."""
    ledger.record_connection("kafka_loose", "elsewhere")
    create = CreatePartitionsOperator(task_id="create", kafka_config_id="kafka_loose")
    context = RunContext({"task": create})
    assert not context.policy_for(None).asks_another
    assert context.policy_on("c1").asks_another


def test_a_plan_without_a_recorded_policy_is_held_to_that_of_the_connection_it_was_made_through(
    ledger: Ledger, connect: Connect
) -> None:
    """Of before policies were kept with plans; nothing was read through the connection since."""
    connect("kafka_older", STRICT)
    plan = make_plan("p1", cluster_id="c1")
    ledger.record_connection("kafka_strict", "elsewhere")
    assert not policies.policy_of_cluster(ledger, "c1", "kafka_loose").asks_another
    ledger.create_plan(plan, PARAMS, "file:///nowhere", "first", "ann", "kafka_older")
    record = ledger.plan("p1")
    assert policies.policy_of_cluster(ledger, "c1", "kafka_loose", record).asks_another
    connect("kafka_older", gone=True)
    assert not policies.policy_of_cluster(ledger, "c1", "kafka_loose", record).asks_another


def test_a_connection_that_leads_elsewhere_or_is_gone_counts_no_longer_and_that_is_audited(
    ledger: Ledger, connect: Connect
) -> None:
    def largest() -> int | None:
        return policies.policy_of_cluster(ledger, "c1", "kafka_loose").largest_throttle

    assert largest() == 2 * RATE
    ledger.record_connection("kafka_strict", "another")
    assert largest() is None
    ledger.record_connection("kafka_strict", "c1")
    connect("kafka_strict", gone=True)
    assert largest() is None
    assert "kafka_strict" not in ledger.connections()
    left = [each for each in audit_of(ledger) if each.decision is Decided.NO_LONGER_COUNTS]
    assert [(each.cluster_id, each.detail["leads_to"]) for each in left] == [
        ("c1", "another"),
        ("another", "c1"),
        ("c1", None),
    ]


def test_another_connections_policy_that_cannot_be_read_counts_as_the_strictest(
    ledger: Ledger, connect: Connect
) -> None:
    connect("kafka_strict", {"no_such_key": 1})
    found = policies.policy_of_cluster(ledger, "c1", "kafka_loose")
    assert (found.asks_another, found.unthrottled) == (True, False)
    assert found.largest_throttle == 2 * RATE, "as it was last read"
    with pytest.raises(PolicyError, match=r"kafka_strict.*cannot be read"):
        found.require("drain", 3 * RATE, datetime.now(UTC))
    with pytest.raises(InvalidRequestError):
        policies.policy_of_cluster(ledger, "c1", "kafka_strict")
    connect("kafka_strict", STRICT)
    assert policies.policy_of_cluster(ledger, "c1", "kafka_loose").asks_another


def test_the_page_shows_what_was_last_read(ledger: Ledger, connect: Connect) -> None:
    connect("kafka_strict", gone=True)
    found = policies.policy_of_cluster(ledger, "c1", "kafka_loose", as_last_read=True)
    assert found.asks_another
    assert "kafka_strict" in ledger.connections(), "a page changes nothing"


def test_a_cluster_that_is_not_known_yet_has_the_connections_own_policy(ledger: Ledger) -> None:
    assert not policies.policy_of_cluster(ledger, None, "kafka_loose").approval
    assert policies.policy_of_cluster(ledger, None, "kafka_strict").approval


def test_a_dry_run_says_where_policies_differ(ledger: Ledger, connect: Connect) -> None:
    texts = [str(put_in_words(each)) for each in policy_findings(ledger, "c1")]
    assert len(texts) == 2
    assert "no approval (kafka_loose)" in texts[0]
    connect("kafka_loose", STRICT)
    bound.record_binding(RunContext(BY_ANN, "kafka_loose"), "c1")
    assert policy_findings(ledger, "c1") == []
