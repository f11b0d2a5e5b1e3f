"""What other clients have in flight, described once and followed to its end: `dag.test()`."""

from __future__ import annotations

import threading

from rehome.domain.kafka import TopicPartition
from tests.dags.clusters import to
from tests.dags.conftest import CRAWL, Throttle
from tests.dags.foreign.by_the_tool import DAG
from tests.dags.site import Site


def test_what_others_have_in_flight_is_described_once_and_followed_to_its_end(
    another_clients_throttle: Throttle, first_poll: threading.Event, site: Site
) -> None:
    topic = site.topics.create([[1, 2], [2, 3]])
    site.topics.fill(topic, 1200, size_bytes=10_000)
    another_clients_throttle(topic, CRAWL)
    flying = TopicPartition(topic, 0)
    site.gateway.alter_reassignments({flying: [4, 2]})
    file = to(topic, {0: [4, 2], 1: [2, 3]})
    run = site.run(dag=DAG, topics=[f"{topic}:0"], reassignment=file)
    states = dict(run.tasks)
    assert states.pop("look") == "success", run.log
    assert set(states.values()) == {"skipped"}
    assert f"{flying}: of another client, which one is not known; first seen" in run.log
    assert "adds broker 4, removes broker 1, leads to [4, 2]" in run.log
    assert "throttle: leader 1 10 kB/s, broker 4 10 kB/s" in run.log
    assert "The reassignment in the file:" in run.log
    known = site.ledger.seen_reassignments(site.cluster.cluster_id)
    assert set(known) == {flying}

    def hurry() -> None:
        assert first_poll.wait(120)
        another_clients_throttle(topic, 5_000_000)

    another_client = threading.Thread(target=hurry, daemon=True)
    another_client.start()
    run = site.run(dag=DAG, action="follow", reassignment=file)
    another_client.join(300)
    assert (run.tasks["look"], run.tasks["follow"]) == ("success", "success"), run.log
    assert (run.tasks["approve"], run.tasks["cancel"]) == ("skipped", "skipped")
    assert "2 reassignments are complete" in run.log
    assert site.gateway.list_reassignments() == {}
    assert not site.ledger.plans()


def test_what_is_asked_wrongly_is_refused_with_every_problem(site: Site) -> None:
    run = site.run(dag=DAG, action="cancel", clean_throttles=True, throttle=5_000_000)
    assert run.tasks["look"] == "failed"
    assert "Action cancel needs topics, brokers, or all_in_flight." in run.log
    assert "throttle is for action adopt only." in run.log
