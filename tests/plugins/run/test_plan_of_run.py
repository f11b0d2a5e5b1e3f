"""Reports say that nothing was changed only if that is known: not with another ledger, or none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehome import installation
from rehome.alerts.alert import Alert
from rehome.alerts.message import payload
from rehome.clusters.clusters_file import ClustersFileError
from rehome.domain.request.parse_request import parse_request
from rehome.domain.request.request import request_to_params
from rehome.domain.run.states import PlanState
from rehome.errors import PlanConflictError
from rehome.execution.control.answers import Controlled, HandedOver
from rehome.execution.control.resume import bounds_of
from rehome.ledger.base.records import EndReason, PlanRecord
from rehome.ledger.store import Ledger
from rehome.notifiers.run_end import RehomeNotifier
from rehome.operators.completion.report import WriteReportOperator
from rehome.operators.completion.verdict import VerdictOperator
from rehome.operators.control import ControlReassignmentOperator
from rehome.operators.throttle import ClearThrottleOperator
from rehome.run import drivers, evidence, plan_of_run, recorded_plans, run_request
from rehome.run.causes.task_end import TaskEnd, TaskReason
from rehome.run.context import RunContext, follow_up_id
from rehome.run.plan_of_run import UnknownPlanError
from rehome.warehouse import PlanDirectory
from tests.ledger.small_plans import make_plan
from tests.plugins.run.site import PARAMS, Site

TEARDOWNS = (ClearThrottleOperator, WriteReportOperator, VerdictOperator)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    return Site(tmp_path, monkeypatch)


@pytest.fixture
def notified(caplog: pytest.LogCaptureFixture) -> Callable[..., str]:
    """What the notifier says."""

    def of(site: Site, **options: Any) -> str:
        caplog.clear()
        RehomeNotifier("failed", **options).notify(site.context)
        return caplog.text

    return of


def test_where_no_plan_was_made_nothing_was_changed(
    site: Site, notified: Callable[..., str]
) -> None:
    assert site.reported_by(ClearThrottleOperator) == ""
    assert site.reported_by(WriteReportOperator) == "skipped: There is no plan to report on."
    assert "Nothing was changed." in site.reported_by(VerdictOperator)
    assert "No plan was made; nothing was changed." in notified(site, makes_plan=True)


def test_a_success_is_reported_without_airflows_reason(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    RehomeNotifier("succeeded").notify({**site.context, "reason": "success"})
    assert "succeeded. See the log of the run." in caplog.text
    caplog.clear()
    RehomeNotifier("failed").notify({**site.context, "reason": "task_failure"})
    assert "failed, and none of its tasks has said why. Airflow says: task_fail" in caplog.text


def test_a_planning_that_was_not_recorded_has_changed_nothing(
    site: Site, notified: Callable[..., str]
) -> None:
    site.plan(recorded=False)
    assert site.reported_by(ClearThrottleOperator) == ""
    assert "Nothing was changed." in site.reported_by(VerdictOperator)
    assert "No plan was made; nothing was changed." in notified(site, makes_plan=True)


def test_dags_that_make_no_plan_report_nothing_about_plans(
    site: Site, notified: Callable[..., str]
) -> None:
    """A sweep has changed what it has changed."""
    assert "nothing was changed" not in notified(site).lower()


@pytest.mark.parametrize("files", [True, False], ids=["files", "no_files"])
def test_a_ledger_that_is_not_the_runs_is_noticed(
    files: bool, site: Site, notified: Callable[..., str]
) -> None:
    """By the plan's files; where a worker sees others, by what the task `plan` has returned."""
    directory = site.plan(recorded=True)
    site.use("another")
    if not files:
        directory.discard()
    for operator in TEARDOWNS:
        reported = site.reported_by(operator)
        assert "What the run has changed on the cluster is not known here." in reported, operator
        assert "nothing was changed" not in reported.lower()
    if files:
        reported = notified(site, makes_plan=True)
        assert "is not known here" in reported
        assert "nothing was changed" not in reported.lower()


def test_a_ledger_that_cannot_be_read_is_no_reason_to_say_that_nothing_was_changed(
    site: Site, notified: Callable[..., str]
) -> None:
    site.plan(recorded=True)
    path = site.use("away")
    path.mkdir()
    for operator in TEARDOWNS:
        assert "The ledger cannot be opened" in site.reported_by(operator)
    reported = notified(site, makes_plan=True)
    assert "What the run has changed is not known here: The ledger cannot be opened" in reported
    assert "nothing was changed" not in reported.lower()


def test_a_run_with_a_follow_up_reports_both_plans(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: dict[str, Any] = {}

    def raised(ledger: Ledger, found: list[Alert]) -> None:
        sent.update(payload(found[0]), reported=found[0].facts, first=found[0].facts["plan_id"])

    monkeypatch.setattr("rehome.alerting.raise_alerts", raised)
    first = site.plan(recorded=True, action="drain").load()
    RehomeNotifier("failed", makes_plan=True).notify(site.context)
    assert "follow_up" not in sent["reported"]
    second = follow_up_id(first.plan_id)
    with installation.open_ledger() as ledger:
        ledger.create_plan(make_plan(second), PARAMS, "file:///plans/second", "run-1", "ann")
        ledger.transition(second, PlanState.FAILED, "its broker died")
    RehomeNotifier("failed", makes_plan=True).notify(site.context)
    assert sent["first"] == first.plan_id
    assert (sent["plan_id"], sent["state"]) == (second, "failed"), "the last one"
    assert (sent["follow_up"]["plan_id"], sent["follow_up"]["state"]) == (second, "failed")
    assert f"Plan {first.plan_id} is planned" in sent["text"]
    assert f"Plan {second} is failed (its broker died)" in sent["text"]


def test_only_the_run_that_drives_a_plan_leaves_it_without_one(
    site: Site, notified: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    """A run of control_reassignment that fails is about the plan, and does not drive it."""
    plan = site.plan(recorded=True).load()
    with installation.open_ledger() as ledger:
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
        ledger.acquire_lease(plan.cluster_id, "run-1", 60)
        ledger.claim(plan.plan_id)
    assert "Resume the plan, or cancel it" in notified(site)
    caplog.clear()
    after = site.context["dag_run"].run_after
    run = SimpleNamespace(dag_id="control_reassignment", run_id="run-2", run_after=after)
    params = {"action": "pause", "plan_id": plan.plan_id}
    RehomeNotifier("failed").notify({**site.context, "dag_run": run, "params": params})
    assert f"Plan {plan.plan_id} is running" in caplog.text
    assert "Resume the plan, or cancel it" not in caplog.text


def test_a_follow_up_that_is_not_known_is_reported_as_that(
    site: Site, monkeypatch: pytest.MonkeyPatch, notified: Callable[..., str]
) -> None:
    plan_id = site.plan(recorded=True, action="drain").load().plan_id
    known = plan_of_run.known_plan

    def but_the_first(context: RunContext, of: str) -> PlanRecord | None:
        if of != plan_id:
            raise UnknownPlanError(TaskEnd(TaskReason.FILES_UNREADABLE, of))
        return known(context, of)

    monkeypatch.setattr(plan_of_run, "known_plan", but_the_first)
    reported = notified(site, makes_plan=True)
    assert f"Plan {plan_id} is planned" in reported
    assert "Whether a plan follows it up is not known here" in reported


def test_a_plan_is_not_carried_on_with_the_files_of_another_ledger(
    site: Site, tmp_path: Path
) -> None:
    site.plan(recorded=True)
    with installation.open_ledger() as ledger:
        record = ledger.plan(RunContext(site.context).plan_id)
        assert recorded_plans.recorded_moves(ledger, record).plan_id == record.plan_id
    site.use("another")
    with installation.open_ledger() as another:
        plan = PlanDirectory(record.plan_dir).load()
        another.create_plan(plan, PARAMS, record.plan_dir, "run-1", "ann")
        with pytest.raises(PlanConflictError, match="were made for the ledger"):
            recorded_plans.recorded_moves(another, record)


def test_moves_of_a_plan_that_the_ledger_has_lost_are_read_from_its_own_files(site: Site) -> None:
    plan = site.plan(recorded=False).load()
    digest = plan.plan_hash[:16]
    with installation.open_ledger() as ledger:
        assert recorded_plans.moves_by_files(ledger, plan.plan_id, digest) == plan.moves
        for other in ("no-such-plan", "../../etc"):
            assert recorded_plans.moves_by_files(ledger, other, digest) is None
        for forged in ("", "0" * 16):
            assert recorded_plans.moves_by_files(ledger, plan.plan_id, forged) is None
    site.use("another")
    with installation.open_ledger() as another:
        assert recorded_plans.moves_by_files(another, plan.plan_id, digest) is None


def keep(directory: PlanDirectory, name: str, content: Any) -> None:
    """As the task does that the file is of."""
    with installation.open_ledger() as ledger:
        evidence.keep(ledger, directory, directory.load().plan_id, name, content)


@pytest.mark.slow
def test_a_done_plan_whose_proof_cannot_be_read_is_not_called_unverified(site: Site) -> None:
    directory = site.plan(recorded=True)
    with installation.open_ledger() as ledger:
        plan = directory.load()
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
        for state in (PlanState.RUNNING, PlanState.DONE):
            ledger.transition(plan.plan_id, state, "because")
    directory.write_json("verification.json", {"ok": True})  # by something else than the task
    assert "is done, but was not verified" in site.reported_by(VerdictOperator)
    keep(directory, "verification.json", {"ok": True})
    assert "no task has seen that what was to be empty is" in site.reported_by(VerdictOperator)
    keep(directory, "drained.json", {"as_planned": True})
    assert site.reported_by(VerdictOperator) == ""
    directory.write_json("verification.json", {"ok": True, "findings": {}})
    assert "verification.json is not what was written" in site.reported_by(VerdictOperator)
    warehouse = Path(installation.settings().warehouse.removeprefix("file://"))
    warehouse.rename(warehouse.with_name("away"))
    assert "whether the result was verified is not known" in site.reported_by(VerdictOperator)


def test_a_proof_that_fails_says_also_that_partitions_may_be_unread(site: Site) -> None:
    directory = site.plan(recorded=True)
    with installation.open_ledger() as ledger:
        plan = directory.load()
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
        for state in (PlanState.RUNNING, PlanState.DONE):
            ledger.transition(plan.plan_id, state, "because")
    keep(directory, "verification.json", {"ok": False})
    assert "that have lost messages, or that could not be read" in site.reported_by(VerdictOperator)


@pytest.mark.slow
def test_elections_that_were_not_made_are_not_called_done(site: Site) -> None:
    """They are all that was asked for."""
    directory = site.plan(recorded=True, action="elect_preferred")
    with installation.open_ledger() as ledger:
        plan = directory.load()
        ledger.approve(plan.plan_id, plan.plan_hash, "ann")
        for state in (PlanState.RUNNING, PlanState.DONE):
            ledger.transition(plan.plan_id, state, "because")
    keep(directory, "verification.json", {"ok": True})
    made = {"already": 1, "elected": ["t-1"], "waiting": [], "refused": {}}
    keep(directory, "leaders.json", made)
    keep(directory, "drained.json", {"as_planned": True})
    assert site.reported_by(VerdictOperator) == ""
    for missed in (
        {"waiting": ["t-0"]},
        {"refused": {"t-0": "NOT_CONTROLLER (41)"}},
        {"unread": ["t-0"]},
    ):
        keep(directory, "leaders.json", made | missed)
        assert "not every preferred leader leads: t-0: " in site.reported_by(VerdictOperator)


@pytest.mark.parametrize(
    ("cause", "reason"),
    [("rejected", None), ("not this month", EndReason.REJECTED)],
    ids=["only_its_words_say_so", "its_code_says_so"],
)
def test_that_a_plan_was_rejected_is_reported_by_a_code_and_not_by_its_cause(
    site: Site, cause: str, reason: EndReason | None
) -> None:
    plan = site.plan(recorded=True).load()
    with installation.open_ledger() as ledger:
        ledger.transition(plan.plan_id, PlanState.CANCELLED, cause, "ann", reason)
    reported = site.reported_by(VerdictOperator)
    assert reported.startswith(f"Plan {plan.plan_id} is cancelled") is (reason is None)
    assert bool(reported) is (reason is None)


def test_every_ledger_has_an_id_of_its_own_and_keeps_it(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "b", "a"):
        with Ledger.open(f"sqlite:///{tmp_path}/{name}.db") as ledger:
            ids.append(ledger.ledger_id)
    assert ids[0] == ids[2] != ids[1]


def test_a_plan_that_is_taken_up_is_what_it_was_made_for_within_the_bounds_of_its_run(
    site: Site,
) -> None:
    made = parse_request(PARAMS | {"cordon": "undo", "approval": True, "throttle": 7000})
    plan = replace(make_plan("planned"), action="drain")
    with installation.open_ledger() as ledger:
        written = {**request_to_params(made), "dry_run": True}
        ledger.create_plan(plan, written, "file:///p", "another", "ann", "kafka_default", "a-dag")

    params = {"action": "rebalance", "throttle": 9000, "kafka_config_id": "kafka_default"}
    context = site.context | {"params": params | {"plan_id": "planned"}}
    asked = run_request.request_of(RunContext(context))
    with installation.open_ledger() as ledger:
        ledger.take_up("planned", "a-dag", "run-1", bounds_of(asked), "ben", lease_s=60)
    assert run_request.plan_request(RunContext(context)) == replace(made, throttle_bytes_per_s=9000)

    site.plan(recorded=True)
    own = site.context | {"params": PARAMS | {"kafka_config_id": "kafka_default"}}
    assert run_request.plan_request(RunContext(own)) == parse_request(PARAMS), (
        "the run has made it itself"
    )


@pytest.mark.slow
def test_a_plan_that_has_begun_goes_on_whatever_happens_to_the_clusters_file(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its targets are read when the plan is made; a broken one keeps no throttle on the cluster."""
    path = tmp_path / "clusters.yaml"
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    path.write_text(
        "clusters: {a: {connection: kafka_default, targets: {max_moves_per_broker: 9}}}"
    )
    plan_id = site.plan(recorded=True).load().plan_id
    context = site.context | {"params": PARAMS | {"kafka_config_id": "kafka_default"}}
    assert run_request.request_of(RunContext(context)).max_moves_per_broker == 9, (
        "a new plan would have it"
    )
    assert run_request.plan_request(RunContext(context)) == parse_request(PARAMS)

    path.write_text("clusters: {a: [")
    assert RunContext(context).plan_id == plan_id
    with pytest.raises(ClustersFileError):
        run_request.plan_request(RunContext(context))  # it has not begun
    with installation.open_ledger() as ledger:
        ledger.approve(plan_id, ledger.plan(plan_id).plan_hash, "ann")
        ledger.transition(plan_id, PlanState.RUNNING, "because")
    assert run_request.plan_request(RunContext(context)) == parse_request(PARAMS)
    with installation.open_ledger() as ledger:
        ledger.transition(plan_id, PlanState.DONE, "because")
    assert site.reported_by(ClearThrottleOperator) == ""
    assert "is done, but was not verified" in site.reported_by(VerdictOperator)


def test_a_plan_is_stopped_whatever_is_wrong_with_the_policy(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = site.plan(recorded=True).load()
    path = tmp_path / "clusters.yaml"
    path.write_text("clusters: [")
    monkeypatch.setenv("REHOME_CLUSTERS_FILE", str(path))
    passed_on = list[str]()

    def control(what: str, *_: Any, **__: Any) -> Controlled:
        passed_on.append(what)
        return Controlled(HandedOver())

    def asked(action: str) -> dict[str, Any]:
        run = SimpleNamespace(dag_id="control_reassignment", run_id=action, run_type="manual")
        task = SimpleNamespace(get_flat_relatives=lambda upstream: [])
        params = {"plan_id": plan.plan_id, "action": action}
        return {"dag_run": run, "params": params, "task": task, "ti": None}

    done = SimpleNamespace(control=control)
    monkeypatch.setattr(drivers, "controller", lambda *_: done)
    described = SimpleNamespace(cluster_id=plan.cluster_id)
    cluster = SimpleNamespace(name="kafka_default", describe_cluster=lambda: described)
    monkeypatch.setattr(RunContext, "gateway", lambda _: nullcontext(cluster))
    monkeypatch.setattr(ControlReassignmentOperator, "skip", lambda *_, **__: None)
    operator = ControlReassignmentOperator(task_id="c", kafka_config_id="kafka_default")
    for action in ("pause", "cancel"):
        passed_on.clear()
        operator.step(RunContext(asked(action)))
        assert passed_on == [action]
    with pytest.raises(ClustersFileError):
        operator.step(RunContext(asked("resume")))
