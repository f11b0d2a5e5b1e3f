"""Topics that a run brings to destinations: a dry run first, then the plan that it has made."""

from __future__ import annotations

from rehome.domain.run.states import PlanState
from tests.dags.site import Site


def test_a_dry_run_changes_nothing_and_its_plan_brings_the_topic_to_the_destinations_alone(
    site: Site,
) -> None:
    topic = site.topics.create([[1, 2], [2, 1], [1, 2]])
    site.topics.fill(topic, 100)
    asked = {"action": "rebalance", "topics": [topic], "destinations": "3, 4"}

    def replicas() -> list[tuple[int, ...]]:
        partitions = site.gateway.describe_topics([topic])[topic].partitions
        return [partitions[number].replicas for number in range(3)]

    tried = site.run(**asked, dry_run=True)
    assert tried.state == "success", tried.log
    assert replicas() == [(1, 2), (2, 1), (1, 2)]
    (plan,) = site.ledger.plans()

    run = site.run(action="rebalance", plan_id=plan.plan_id)
    assert run.state == "success", run.log
    assert {frozenset(row) for row in replicas()} == {frozenset({3, 4})}
    assert site.ledger.plans()[0].state is PlanState.DONE
    assert not site.ledger.throttles(open_only=True)
