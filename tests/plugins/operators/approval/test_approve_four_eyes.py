"""Who may approve a plan that another person resumes; no broker is asked."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException

from rehome.domain.request.parse_request import parse_request
from rehome.domain.run.approval.effects import Effects
from rehome.domain.run.approval_terms import Approval, Terms
from rehome.domain.run.askers import Term
from rehome.domain.run.states import PlanState
from rehome.execution.access.connection_policy import PolicyError
from rehome.hooks.cluster import KafkaClusterHook
from rehome.ledger.store import Ledger
from rehome.operators.approval.approve import ApprovePlanOperator
from rehome.operators.throttle import SetThrottleOperator
from rehome.run import approval_terms
from rehome.run.causes.errors import AskedAgainError
from rehome.warehouse import PlanDirectory
from tests.dags.approval.answers import SEND_BACK, Given, answered, answered_by
from tests.ledger.people import approve_as
from tests.plugins.operators.approval.asked_plan import (
    APPROVED,
    FASTER,
    PARAMS,
    context,
    tried_out,
)

ANOTHER = "; another person has to approve it"
BOTH = f"ann has asked for the plan, and bob for the run{ANOTHER}"

Resume = Callable[..., dict[str, Any]]


@pytest.fixture
def resume(ledger: Ledger, directory: PlanDirectory) -> Resume:
    """Has a person resume ann's plan, which carl has approved at 10 MB/s and which has
    paused; the context of that run's tasks.
    """
    plan_hash = ledger.plan("p1").plan_hash

    def resumed(
        by: str,
        rate: int,
        approved_by: str = "carl",
        asked_by: str = "ann",
        run_id: str = "second",
        **bounds: Any,
    ) -> dict[str, Any]:
        if ledger.plan("p1").state is PlanState.PLANNED:
            effects = Effects.of(directory.load(), parse_request(PARAMS))
            terms = Terms(plan_hash, APPROVED, effects=effects)
            approve_as(ledger, approved_by, "p1", terms, asked_by=asked_by)
            ledger.claim("p1")
            ledger.transition("p1", PlanState.PAUSED, "a test")
        bounds = {"approval": True, **bounds}
        given: dict[str, Any] = {"lease_s": 0, "rate_bytes_per_s": rate}
        ledger.take_up("p1", "reassign_partitions", run_id, bounds, by, **given)
        return tried_out(directory, context(by, rate, run_id), rate)

    return resumed


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], list[str]]:
    """Has a person approve whatever is asked; what was asked."""
    return lambda by: answered_by(monkeypatch, by)


def approval(ledger: Ledger) -> Approval:
    found = ledger.plan("p1").approval
    assert found is not None
    return found


@pytest.mark.slow
@pytest.mark.parametrize("approver", ["ann", "bob"])
def test_neither_who_asked_for_the_plan_nor_who_resumes_it_faster_may_approve_that(
    approver: str, ledger: Ledger, resume: Resume, answers: Callable[[str], list[str]]
) -> None:
    run, asked = resume("bob", FASTER), answers(approver)
    who = f"ann has asked for the plan, and bob for the run and the throttle{ANOTHER}"
    with pytest.raises(AirflowFailException, match=who) as refused:
        ApprovePlanOperator(task_id="approve").execute(run)
    assert "have a person other than ann and bob approve it" in str(refused.value)
    assert len(asked) == 1
    assert (approval(ledger).by, approval(ledger).terms.rate_bytes_per_s) == ("carl", APPROVED)


@pytest.mark.slow
def test_a_third_person_approves_what_is_resumed_faster(
    ledger: Ledger, resume: Resume, answers: Callable[[str], list[str]]
) -> None:
    run, _ = resume("bob", FASTER), answers("carl")
    ApprovePlanOperator(task_id="approve").execute(run)
    given = approval(ledger)
    assert (given.by, given.asked_by) == ("carl", "bob")
    assert given.terms.rate_bytes_per_s == FASTER


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "throttle", "taken"),
    [
        ("carl", "200 MB/s", None),
        ("carl", "50 MB/s", 50_000_000),
        ("ann", "200 MB/s", 200_000_000),
        ("bob", "200 MB/s", 200_000_000),
    ],
)
def test_who_may_approve_a_plan_may_send_it_back_with_a_lower_throttle_only(
    by: str,
    throttle: str,
    taken: int | None,
    ledger: Ledger,
    resume: Resume,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else the same person could approve what nobody else has asked for."""
    run = resume("bob", FASTER)
    answered(monkeypatch, lambda _: Given(SEND_BACK, by, throttle), again=False)
    with pytest.raises(AskedAgainError) as sent_back:
        ApprovePlanOperator(task_id="approve").execute(run)
    assert ledger.plan("p1").requested_rate_bytes_per_s == (taken or FASTER)
    refused = "200 MB/s is more than was asked for. Who raises the throttle may not approve"
    assert (refused in str(sent_back.value)) is (taken is None)


def test_who_has_approved_a_plan_may_resume_it_as_it_was_approved(
    ledger: Ledger, resume: Resume, answers: Callable[[str], list[str]]
) -> None:
    run, asked = resume("carl", APPROVED), answers("nobody")
    ApprovePlanOperator(task_id="approve").execute(run)
    assert not asked
    policy = KafkaClusterHook("kafka_default").policy
    approval_terms.refuse_recorded_approval(policy, ledger.plan("p1"))


def test_an_approval_by_who_resumed_the_plan_does_not_start_it(resume: Resume) -> None:
    """As where own approval was allowed at the time."""
    run = resume("carl", APPROVED, approved_by="bob", asked_by="bob")
    with pytest.raises(AirflowFailException, match=BOTH):
        SetThrottleOperator(task_id="throttle", kafka_config_id="kafka_default").execute(run)


@pytest.mark.slow
def test_an_approval_that_the_policy_does_not_accept_any_more_is_asked_for_anew(
    ledger: Ledger, resume: Resume, answers: Callable[[str], list[str]]
) -> None:
    run = resume("carl", APPROVED, approved_by="bob", asked_by="bob")
    asked = answers("dora")
    ApprovePlanOperator(task_id="approve").execute(run)
    assert len(asked) == 1
    assert approval(ledger).by == "dora"


@pytest.mark.slow
@pytest.mark.parametrize(("approver", "may"), [("carl", False), ("ann", False), ("dora", True)])
def test_who_has_raised_the_throttle_before_the_approval_may_not_approve_it(
    approver: str,
    may: bool,
    ledger: Ledger,
    directory: PlanDirectory,
    answers: Callable[[str], list[str]],
) -> None:
    """`change_throttle` may ask for any rate of a plan that nobody has approved yet."""
    ledger.request_rate("p1", FASTER, "carl")
    run, asked = tried_out(directory, context("ann", APPROVED, "first"), FASTER), answers(approver)
    approve = ApprovePlanOperator(task_id="approve")
    if may:
        approve.execute(run)
        assert approval(ledger).terms.rate_bytes_per_s == FASTER
    else:
        who = f"ann has asked for the plan, and carl for the throttle{ANOTHER}"
        with pytest.raises(AirflowFailException, match=who) as refused:
            approve.execute(run)
        assert "have a person other than ann and carl approve it" in str(refused.value)
        assert ledger.plan("p1").approval is None
    assert len(asked) == 1
    assert "| asked for by | ann (the plan), carl (the throttle) |" in asked[0]


@pytest.mark.slow
@pytest.mark.parametrize(("approver", "may"), [("dan", False), ("carl", True)])
def test_who_has_asked_for_a_term_in_an_earlier_run_may_not_approve_it_in_the_next_one(
    approver: str,
    may: bool,
    ledger: Ledger,
    resume: Resume,
    answers: Callable[[str], list[str]],
) -> None:
    """Who resumes a plan on the page takes the terms over that it has by then."""
    resume("dan", APPROVED, additional=True)
    run = resume("ann", APPROVED, run_id="third", additional=True)
    asked, approve = answers(approver), ApprovePlanOperator(task_id="approve")
    if may:
        approve.execute(run)
        assert approval(ledger).terms.additional
    else:
        who = f"ann has asked for the plan, and dan for the value of additional{ANOTHER}"
        with pytest.raises(AirflowFailException, match=who):
            approve.execute(run)
        assert not approval(ledger).terms.additional
    assert len(asked) == 1


@pytest.mark.slow
@pytest.mark.parametrize("own", [True, False])
def test_an_approval_by_who_had_raised_the_throttle_counts_where_own_approval_is_allowed(
    own: bool,
    ledger: Ledger,
    directory: PlanDirectory,
    answers: Callable[[str], list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nor does it count any more once that is forbidden, whoever has asked for less since."""
    ledger.request_rate("p1", FASTER, "carl")
    run = tried_out(directory, context("ann", APPROVED, "first"), FASTER)
    policy = KafkaClusterHook("kafka_default").policy
    answers("carl")
    kafka = json.loads(os.environ["AIRFLOW_CONN_KAFKA_DEFAULT"])
    kafka["extra"]["rehome.policy"]["own_approval"] = True
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    ApprovePlanOperator(task_id="approve").execute(run)
    ledger.request_rate("p1", APPROVED, "ann")
    record = ledger.plan("p1")
    assert record.terms_asked_by == {Term.RATE: "ann"}
    if own:
        approval_terms.refuse_recorded_approval(KafkaClusterHook("kafka_default").policy, record)
    else:
        with pytest.raises(PolicyError, match="and carl for the throttle"):
            approval_terms.refuse_recorded_approval(policy, record)
