"""A plan whose files were changed after the gate checked them is neither approved nor run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rehome.domain.plan.plan_hash import seal
from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.states import PlanState
from rehome.warehouse import PlanDirectory
from spark_jobs import plan as job
from tests.dags.approval.answers import after_approval, answered_by
from tests.dags.clusters import state_of, to
from tests.dags.site import Site

# In `make test` tests/domain/plan/test_kafka_json.py has both.
either_file = pytest.mark.parametrize(
    "name", ["reassignment.json", pytest.param("rollback.json", marks=pytest.mark.long)]
)


def test_moves_that_were_changed_after_the_approval_do_not_run(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])
    after_approval(monkeypatch, approve, lambda: send_elsewhere(site))
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    (plan,) = site.ledger.plans()
    assert f"The files of plan {plan.plan_id} are not those that were recorded" in run.log
    assert plan.state is PlanState.FAILED
    assert state_of(site.gateway, [topic]) == before


def test_a_plan_whose_files_were_changed_is_not_rolled_back(site: Site) -> None:
    topic = site.topics.create([[1, 2]])
    done = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert done.state == "success", done.log
    after = state_of(site.gateway, [topic])
    (plan,) = site.ledger.plans()
    send_elsewhere(site)
    run = site.run(action="rollback", plan_id=plan.plan_id)
    assert run.state == run.tasks["plan"] == "failed"
    assert "are not those that were recorded" in run.log
    assert state_of(site.gateway, [topic]) == after


@either_file
def test_a_plan_does_not_start_when_a_file_for_kafka_was_changed(
    name: str, approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    def edit_the_file() -> None:
        (plan,) = site.ledger.plans()
        PlanDirectory(plan.plan_dir).write_json(name, to(topic, {0: [4, 2]}))

    after_approval(monkeypatch, approve, edit_the_file)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    assert f"{name} of plan" in run.log
    assert "are not the bytes that the gate checked" in run.log
    assert state_of(site.gateway, [topic]) == before


@either_file
def test_a_file_that_is_changed_before_the_plan_is_recorded_is_not_recorded(
    name: str, monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    """And so not published: the ledger is what makes a plan one that can be approved."""
    topic = site.topics.create([[1, 2]])
    really = job.main

    def and_edit(arguments: Sequence[str] | None = None) -> int:
        code = really(arguments)
        (out,) = (b for a, b in pairwise(arguments or ()) if a == "--out")
        PlanDirectory(out).write_json(name, to(topic, {0: [4, 2]}))
        return code

    monkeypatch.setattr(job, "main", and_edit)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["plan"] == "failed"
    assert f"{name} of plan" in run.log
    assert "are not the bytes that the gate checked" in run.log
    assert not site.ledger.plans()


def test_a_file_that_is_changed_before_a_person_is_asked_is_not_put_up_for_approval(
    monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    from rehome.operators.dry_run import DryRunOperator

    topic = site.topics.create([[1, 2]])
    asked, really = answered_by(monkeypatch, "ben"), DryRunOperator.step

    def and_edit(self: Any, context: Any) -> str:
        reported = really(self, context)
        (plan,) = site.ledger.plans()
        PlanDirectory(plan.plan_dir).write_json("reassignment.json", to(topic, {0: [4, 2]}))
        return reported

    monkeypatch.setattr(DryRunOperator, "step", and_edit)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True)
    assert run.state == run.tasks["approve"] == "failed"
    assert "are not the bytes that the gate checked" in run.log
    assert not asked


def send_elsewhere(site: Site) -> None:
    """Replace the target in the files of the only plan, hash and all."""
    (record,) = site.ledger.plans()
    directory = PlanDirectory(record.plan_dir)
    plan, request = directory.load(), parse_request(record.request)
    (move,) = plan.moves
    directory.discard()
    directory.save(seal(replace(plan, moves=(replace(move, target=(4, 2)),))), request)
