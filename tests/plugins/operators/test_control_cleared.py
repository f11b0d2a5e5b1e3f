"""What a person asks of a plan is done once, however often its run is tried again or cleared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.domain.run.askers import NotAskedForError
from rehome.execution.access.own_cluster import OwnCluster
from rehome.execution.control.answers import Controlled, HandedOver
from rehome.fleet import bound
from rehome.ledger.store import Ledger
from rehome.operators.control import ControlReassignmentOperator
from rehome.run import drivers
from rehome.run.context import RunContext
from tests.ledger.small_plans import make_plan
from tests.plugins.run.asked import BEGUN, by_a_task, run_of

RUN = {"plan_id": "p1", "throttle": 7}
CLUSTER = SimpleNamespace(describe_cluster=lambda: SimpleNamespace(cluster_id="c1"))
"""Nothing more is asked of it here."""


@dataclass
class Asking:
    """What is asked of a plan, by whom, and which tasks were skipped."""

    ledger: Ledger
    starts: Mapping[str, Any] | None = None
    asked: list[str] = field(default_factory=list)
    skipped: int = 0
    fails: bool = False

    def control(self, what: str, *_: Any, **__: Any) -> Controlled:
        if self.fails:
            raise ConnectionError
        self.asked.append(what)
        return Controlled(HandedOver(), self.starts)

    def by(self, run: SimpleNamespace, action: str = "resume") -> None:
        task = ControlReassignmentOperator(task_id="request", kafka_config_id="kafka_default")
        asked = {"plan_id": "p1", "action": action}
        task.step(RunContext({"params": asked, "dag_run": run, "task": task, "ti": None}))


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asking]:
    monkeypatch.setenv("REHOME_LEDGER_URL", f"sqlite:///{tmp_path}/ledger.db")
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", '{"conn_type": "kafka"}')

    def skip(*_: Any, **__: Any) -> None:
        found.skipped += 1

    with installation.open_ledger() as ledger:
        found = Asking(ledger)
        ledger.create_plan(make_plan("p1"), {}, "file:///nowhere", "r1", "ann")
        monkeypatch.setattr(drivers, "controller", lambda *_: found)
        monkeypatch.setattr(OwnCluster, "of_plan", lambda *_: CLUSTER)
        monkeypatch.setattr(bound, "require", lambda *_: None)
        monkeypatch.setattr(RunContext, "gateway", lambda _: nullcontext())
        monkeypatch.setattr(ControlReassignmentOperator, "skip", skip)
        yield found


def control_run(run_id: str = "manual__1", **given: Any) -> SimpleNamespace:
    return run_of(run_id, dag_id="control_reassignment", **given)


def test_a_run_that_has_to_be_started_is_written_down_in_the_name_of_who_asks(
    asking: Asking,
) -> None:
    asking.starts = RUN
    asking.by(control_run())
    found = asking.ledger.requested_run("reassign_partitions", "control__manual__1")
    assert found is not None
    assert found.asked_by == "ann"
    assert found.has_conf({**RUN, "kafka_config_id": "kafka_default"})
    assert asking.skipped == 0


def test_an_attempt_more_does_nothing_again_and_starts_what_is_to_be_started(
    asking: Asking,
) -> None:
    asking.starts = RUN
    asking.by(control_run())
    asking.by(control_run())
    assert (asking.asked, asking.skipped) == (["resume"], 0)
    asking.starts = None
    other = control_run("manual__2")
    asking.by(other, "cancel")
    asking.by(other, "cancel")
    assert (asking.asked, asking.skipped) == (["resume", "cancel"], 2)


@pytest.mark.parametrize("action", ["resume", "pause"])
def test_a_request_that_was_carried_out_is_not_carried_out_again_when_it_is_cleared(
    asking: Asking, action: str
) -> None:
    asking.by(control_run(), action)
    with pytest.raises(NotAskedForError, match=r"What ann has asked for .* was carried out"):
        asking.by(control_run(clear_number=1), action)
    assert asking.asked == [action]


def test_a_request_that_has_failed_is_done_when_it_is_cleared_soon_and_not_after_months(
    asking: Asking,
) -> None:
    asking.fails = True
    with pytest.raises(ConnectionError):
        asking.by(control_run())
    asking.fails = False
    months = timedelta(days=90)
    with pytest.raises(NotAskedForError, match="was cleared when that was over"):
        asking.by(control_run(clear_number=1, run_after=BEGUN - months))
    assert asking.asked == []
    asking.by(control_run(clear_number=1))
    asking.by(control_run(clear_number=1))
    assert asking.asked == ["resume"]


def test_a_task_of_another_dag_may_stop_a_plan_and_nothing_more(asking: Asking) -> None:
    for action in ("resume", "run", "roll_back", "next_window"):
        with pytest.raises(NotAskedForError, match="was started by a task"):
            asking.by(by_a_task("r", dag_id="control_reassignment"), action)
    for action in ("pause", "cancel"):
        asking.by(by_a_task(action, dag_id="control_reassignment"), action)
    assert asking.asked == ["pause", "cancel"]
