"""What Kafka's own tool has started is cancelled, as a person approves it: `dag.test()`."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.process.waiting import wait_until
from rehome.domain.kafka import TopicPartition
from rehome.domain.run.event_kind import EventKind
from tests.dags.approval.answers import Given, answered
from tests.dags.clusters import state_of
from tests.dags.conftest import CRAWL, Throttle
from tests.dags.foreign.by_the_tool import DAG, crawling, started_by_the_tool
from tests.dags.site import Site


@pytest.mark.parametrize(
    ("partitions", "everything"),
    [(5, False), (5, True), pytest.param(50, False, marks=pytest.mark.long)],
)
def test_what_was_approved_is_cancelled_and_the_state_is_as_before(
    partitions: int,
    everything: bool,
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = site.topics.create([[1, 2]] * partitions)
    site.topics.fill(topic, 300, size_bytes=10_000)
    before = state_of(site.gateway, [topic])
    chosen = {"all_in_flight": True} if everything else {"topics": [topic]}
    assert site.run(dag="collect_snapshots").state == "success"
    another_clients_throttle(topic, CRAWL)
    started_by_the_tool(site, tmp_path, topic, partitions)
    asked = answered(monkeypatch, lambda _: Given())
    run = site.run(dag=DAG, action="cancel", clean_throttles=True, **chosen)
    assert run.state == "success", run.log
    assert (run.tasks["approve"], run.tasks["cancel"]) == ("success", "success")
    assert run.tasks["follow"] == "skipped"
    (body,) = asked.bodies
    assert f"**Cancel** {partitions} reassignments of other clients" in body
    assert f"- {topic}-0: adds [3], removes [1], leads to [3, 2]" in body
    assert f"{partitions} reassignments of other clients cancelled" in run.log
    wait_until(lambda: state_of(site.gateway, [topic]) == before, "every broker to know")
    kinds = [event.kind for event in site.ledger.events()]
    assert kinds.index(EventKind.CANCELLING_FOREIGN) < kinds.index(EventKind.FOREIGN_CANCELLED)


def test_nothing_is_cancelled_where_something_else_was_set_meanwhile(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = site.topics.create([[1, 2], [1, 2]])
    site.topics.fill(topic, 300, size_bytes=10_000)
    throttles = another_clients_throttle(topic, CRAWL)
    started_by_the_tool(site, tmp_path, topic, 2)
    one, other = TopicPartition(topic, 0), TopicPartition(topic, 1)

    def approves(_: object) -> Given:
        site.gateway.alter_reassignments({other: [3, 2]})
        return Given()

    answered(monkeypatch, approves)
    run = site.run(dag=DAG, action="cancel", all_in_flight=True)
    assert run.tasks["cancel"] == "failed"
    assert "Since the approval, some of the named partitions have changed:" in run.log
    assert f"{other} adds [3] and removes" in run.log
    assert set(site.gateway.list_reassignments()) == {one, other}
    assert state_of(site.gateway, [topic])["throttles"] == throttles
    site.gateway.alter_reassignments({one: None, other: None})


def test_nothing_is_cancelled_that_a_person_has_rejected(
    another_clients_throttle: Throttle,
    site: Site,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic, _ = crawling(site, tmp_path, another_clients_throttle, 1)
    answered(monkeypatch, lambda _: Given("Reject"))
    run = site.run(dag=DAG, action="cancel", topics=[topic])
    assert run.tasks["cancel"] == "skipped"
    assert set(site.gateway.list_reassignments()) == {TopicPartition(topic, 0)}
    site.gateway.alter_reassignments({TopicPartition(topic, 0): None})
