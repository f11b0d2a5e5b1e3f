"""What an approval is worth: a rejected plan never starts, and neither does one that drifted."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime
from typing import Any

import pytest

from include.cluster.model import TopicPartition
from include.execution.model import PlanState
from local.waiting import wait_until
from tests.dags.clusters import state_of, to
from tests.dags.site import Site


@pytest.fixture
def approve() -> type[Any]:
    """The class of the DAG's task ``approve``."""
    return type(importlib.import_module("dags.reassign_partitions").dag.get_task("approve"))


def test_a_rejected_plan_is_cancelled_and_changes_nothing(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    before = state_of(site.gateway, [topic])

    def reject(self: Any, context: Any) -> Any:
        """What the scheduler does once a person has answered in the UI."""
        answer = {"chosen_options": ["Reject"], "params_input": {}}
        who = {"responded_by_user": {"name": "ann"}, "responded_at": datetime.now(UTC)}
        return self.execute_complete(context, answer | who)

    monkeypatch.setattr(approve, "execute", reject)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}), approval=True)
    (plan,) = site.ledger.plans()
    assert (plan.state, plan.cause) == (PlanState.CANCELLED, "rejected"), run.log
    assert run.tasks["throttle"] == run.tasks["execute"] == "skipped"
    assert "rejected by ann; nothing was changed" in run.log
    assert state_of(site.gateway, [topic]) == before
    assert not site.ledger.throttles()


def test_an_approval_lapses_when_a_partition_changes_before_the_plan_starts(
    approve: type[Any], monkeypatch: pytest.MonkeyPatch, site: Site
) -> None:
    topic = site.topics.create([[1, 2]])
    really = approve.execute

    def somebody_moves_it(self: Any, context: Any) -> Any:
        result = really(self, context)
        assert not any(
            site.gateway.alter_reassignments({TopicPartition(topic, 0): [4, 2]}).values()
        )
        wait_until(
            lambda: site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (4, 2),
            "somebody else's move",
        )
        return result

    monkeypatch.setattr(approve, "execute", somebody_moves_it)
    run = site.run(action="reassign", reassignment=to(topic, {0: [3, 2]}))
    assert run.state == run.tasks["throttle"] == "failed"
    assert f"{topic}-0" in run.log
    assert site.gateway.describe_topics([topic])[topic].partitions[0].replicas == (4, 2)
    (plan,) = site.ledger.plans()
    assert plan.state is PlanState.FAILED
    assert not site.ledger.throttles()
